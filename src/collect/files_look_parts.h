/* What the files of `files_look` share; nobody else includes this.
 *
 * files_look.c         which files, and the document
 * files_look_view.c    a process's root and mounts
 * files_look_facts.c   what a file and a folder are asked */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/str.h"
#include "base/vec.h"
#include "collect/files_look.h"

#include <sys/types.h>

enum filesystem_flag {
    FILESYSTEM_NETWORK = 1 << 0,
    FILESYSTEM_MEMORY = 1 << 1,
    FILESYSTEM_OVERLAY = 1 << 2,
    FILESYSTEM_COW = 1 << 3,
    FILESYSTEM_MADE_UP = 1 << 4, /* /proc and the like: there is nothing to measure */
    FILESYSTEM_SILENT = 1 << 5,  /* its answer may never come */
};
uint32_t filesystem_flags(struct str type);

struct view_mount {
    const char *point;
    struct str type;
    uint32_t flags; /* enum filesystem_flag */
};

/* How a process sees the files of the machine. */
struct view {
    uint64_t space; /* inode of its mount namespace */
    char root[256]; /* where its root is, as its own link says */
    int root_fd;    /* -1: cannot be had */
    VEC(struct view_mount) mounts;
};

enum { VIEWS_MAX = 16 };

struct views {
    struct arena arena;
    struct view list[VIEWS_MAX]; /* list[0] is our own */
    size_t count;
    int last_pid;
    struct view *last;
};

/* Of a process that is gone: our own. NULL only when there is none at all. */
const struct view *views_of(struct views *views, int pid);
void views_deinit(struct views *views);
/* The mount that holds a path; NULL: none is known. Lines as of /proc/PID/mountinfo. */
const struct view_mount *view_mount_of(const struct view *view, const char *path);
MUST_USE int view_mounts_read(struct arena *arena, struct view *view, struct str text);
/* Without following links. An fd or -errno. */
int view_open(const struct view *view, const char *path, int flags);

enum fact {
    FACT_FILESYSTEM,
    FACT_SIZE,
    FACT_FREE,
    FACT_EXTENTS,
    FACT_FOLDER,
    FACTS,
};
extern const char *const fact_keys[FACTS];

struct file_facts {
    const struct view_mount *mount; /* NULL: n/a */
    char na[FACTS][128];            /* empty: it is known */
    uint64_t size_bytes, allocated_bytes;
    uint64_t free_bytes, free_permille;
    uint64_t extents, fragments, shared_extents;
    uint64_t folder_entries;
    bool extents_more, folder_entries_more;
};

struct looked_file {
    const char *path;
    uint64_t inode;
};
/* Folders whose entries were counted: many files are of one. */
struct counted_folder {
    int error; /* negative errno, 0: they are counted */
    uint64_t entries;
    bool more;
};
struct counted_folders {
    struct intern keys; /* id n is list.data[n - 1] */
    VEC(struct counted_folder) list;
};
/* `fiemap` has room for FILES_LOOK_EXTENTS_MAX extents. */
struct fiemap;
size_t fiemap_bytes(void);
void file_look(const struct view *view, const struct looked_file *file,
               struct counted_folders *counted, struct fiemap *fiemap, struct file_facts *ret);
/* Entries of a folder without "." and ".."; 0 or -errno. */
int folder_count(const struct view *view, const char *path, struct counted_folders *counted,
                 uint64_t *ret, bool *ret_more);
void counted_folders_deinit(struct counted_folders *counted);
/* The path of the folder that holds a path; in `buffer`. False: it is too long. */
bool folder_of(struct str path, char *buffer, size_t size);
/* Words for an errno of the look. */
const char *look_error(int error, char *buffer, size_t size);
/* What has no answer to wait for, or NULL: the reason not to ask. */
const char *look_forbidden(const struct view_mount *mount);
/* Adds up extents as they come from the kernel. */
void extents_count(const struct fiemap *fiemap, struct file_facts *ret);
