/* How a binary was built, read from its ELF and DWARF and from nothing else.
 *
 * What the file does not say is a reason, not a guess: every text field is
 * either a fact or NULL with the matching `_na` reason set. Texts live in the
 * arena given to build_info_read(). */
#pragma once

#include "base/arena.h"
#include "base/why.h"
#include "model/value.h"

#include <stdint.h>

enum build_tri { BUILD_UNKNOWN, BUILD_NO, BUILD_YES };

/* One answer with its evidence: `because` says what in the file shows it, or,
 * for BUILD_UNKNOWN, why the file cannot tell. Never NULL. */
struct build_fact {
    enum build_tri answer;
    const char *because;
};

struct build_info {
    const char *path;     /* the ELF read: the interpreter's for a script, see `script` */
    const char *script;   /* the script whose #! line led here; NULL for a binary */
    const char *machine;  /* "x86_64", "aarch64", … */
    const char *kind;     /* "PIE", "executable", "shared library", "object" */
    bool is_static;       /* no dynamic loader */
    const char *build_id; /* lower-case hex, or NULL */
    const char *language; /* "C", "C++", "Rust", "Go", …; several joined by ", "; or NULL */
    const char *language_na;
    const char *compiler; /* "GNU C17 12.2.0", "Debian clang version 14.0.6", or NULL */
    const char *compiler_na;
    const char *optimization; /* "-O2", "-O0", "optimized, level not recorded", or NULL */
    const char *optimization_na;
    struct build_fact optimized; /* BUILD_NO for -O0 and -Og */
    struct build_fact lto;
    struct build_fact frame_pointers; /* kept by (nearly) all functions? */
    double frame_pointer_share;       /* 0 to 1, of functions looked at; NaN if not known */
    struct build_fact unwind_tables;  /* .eh_frame or .debug_frame covers the code */
    struct build_fact symbols;        /* a symbol table, full or mini (.gnu_debugdata) */
    struct build_fact debug_info;     /* DWARF with functions and lines, here or in a found file */
    const char *debug_info_where;     /* "in the binary", "/usr/lib/debug/…", or NULL */
    unsigned dwarf_version;           /* 0 if none */
    struct build_fact split_debug;    /* .gnu_debuglink / build-id file, or .dwo */
    struct build_fact stripped;
    const char *sanitizers;       /* "address, undefined"; "" when none */
    const char *instrumented;     /* "gcov", "llvm profile", "gprof (-pg)"; "" when none */
    struct build_fact assertions; /* assert() is compiled in */
    const char *sampled;          /* what was looked at only in part; "" when nothing */
};

/* `path` may be a script: its interpreter is read then. -ENOEXEC when it is
 * neither ELF nor script; damaged files give an error that names what is wrong. */
MUST_USE int build_info_read(struct arena *arena, const char *path, struct build_info *ret,
                             struct why *why);

/* As a map for reports: the same facts, unknown ones as n/a with their reason. */
struct value build_info_value(struct arena *arena, const struct build_info *info);
