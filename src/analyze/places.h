/* Where in a program: from a stack of one recording to names that mean the same in all. */
#pragma once

#include "model/finding.h"
#include "model/profile.h"

/* The innermost function that is the user's; where none is, the innermost that has a name and is
 * neither kernel nor of the language's own library; then one without a name; then that library's.
 * `stack` 0: empty. */
struct place place_of_stack(const struct profile *profile, uint32_t stack);
/* One function, with the line where it is declared. */
struct place place_of_function(const struct profile *profile, uint32_t function);
/* Whose code a function is, for all that is said of it: by its image's path and by what the kernel
 * calls its own. Interpreters are known by their names, wherever they were installed; what is in
 * the system's folders or a package's is a library's, and so is what was compiled into the program
 * from there: templates, runtimes, a static libc, by their source, or by names where none is known.
 * What is in /usr/local without a source file is nobody's for certain; all else is the user's. */
enum finding_owner place_owner(const struct profile *profile,
                               const struct profile_function *function);
/* The language whose programs run in that image: "Python" of ".../python3.11"; NULL: it is no
 * interpreter. */
const char *place_interpreted(struct str path);
/* The C or C++ library or the loader, by its path: it serves every program. */
bool place_is_c_library(struct str path);
/* A function of these, or of a language's own library or runtime, wherever it was linked into: what
 * it does counts for who calls it. */
bool place_is_standard(const struct profile *profile, const struct profile_function *function);
/* Whether a stack passes through the place: function and file, and the line if `line`. */
bool place_on_stack(const struct profile *profile, uint32_t stack, const struct place *place,
                    bool line);
bool place_same(const struct place *a, const struct place *b, bool line);
/* The system call in which a stack is, as its name without prefix: "read", "fsync"; empty when it
 * is in none, or that cannot be told. By kernel frames where there are some, else by the wrapper
 * of the C library at the leaf: a function of the program that happens to be called "read" is
 * none. */
struct str place_syscall(const struct profile *profile, uint32_t stack);
/* For many rows: which stacks pass through a place, by stack id. One pass over all stacks, where
 * place_on_stack() walks one. NULL when out of memory. */
bool *place_stacks(struct arena *arena, const struct profile *profile, const struct place *place,
                   bool line);

/* The same answers for many stacks of one profile: what is worked out by function is worked out
 * once. Heap; deinit takes half-built ones. */
struct places {
    const struct profile *profile;
    uint32_t *best;    /* by stack: index into profile->places, plus one; 0: none */
    uint8_t *answers;  /* by stack: how well that answers "who?" */
    struct str *calls; /* by function: the system call it is the entry of; empty: of none */
};
MUST_USE int places_init(const struct profile *profile, struct places *ret); /* 0, -ENOMEM */
struct place places_of_stack(const struct places *places, uint32_t stack);
struct str places_syscall(const struct places *places, uint32_t stack);
void places_deinit(struct places *places);
