/* What the files of `stacks` share; nobody else includes this.
 *
 * stacks.c          open and close, samples: the hot path
 * stacks_process.c  processes and threads as the kernel announces them
 * stacks_mapping.c  what stands where in a process, and since when
 * stacks_image.c    images: identified, opened, rows loaded at the first sample
 * stacks_finish.c   names for the frames seen
 * stacks_pointer.c  a frame pointer that was not sampled
 * stacks_told.c     stacks that a program has walked itself
 *
 * Everything is reached by index; index and id are different things: ids are the sink's. */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/stacks.h"
#include "target/build_id.h"

enum {
    STACKS_NONE = UINT32_MAX,
    STACKS_IMAGES_MAX = 1 << 16,
    STACKS_FDS_MAX = 512, /* images kept open; others are opened again by path */
    STACKS_CACHES_MAX = 64,
    STACKS_ROOTS_MAX = 64,         /* containers */
    STACKS_MAPPINGS_MAX = 1 << 15, /* executable ones of one process */
    STACKS_NAME_BYTES = 64,
};

enum image_state {
    IMAGE_UNSEEN, /* no sample in it so far */
    IMAGE_LOADED,
    IMAGE_FAILED, /* frames go by frame pointer; `note` says why */
};

struct stack_image {
    uint32_t id; /* 0 until it is needed */
    enum image_kind kind;
    enum image_state state;
    struct str path; /* these live in the arena */
    struct str build_id;
    uint64_t size_bytes;
    const char *root;   /* where the path begins ("/proc/self/fd/7"); NULL: "/" */
    unsigned owner;     /* of a JIT's process: 0 where it is not known */
    const char *note;   /* what could not be had, for people; NULL if nothing */
    const char *source; /* where its names came from; NULL: nobody asked yet */
    int fd;             /* -1: none, or closed for want of fds */
    struct unwind_image *rows;
    struct map_u64 frames; /* address to frame id */
};

/* The beginning of a container's file system, held open: the container may end before us. */
struct stack_root {
    uint64_t device, inode, space;
    int fd;
    const char *path; /* "/proc/self/fd/7" */
};

struct stack_mapping {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t file_offset;
    uint64_t start_ns;
    uint32_t image; /* index */
    uint32_t id;    /* 0: not told to the sink yet */
};

struct stack_process {
    int pid;
    uint32_t parent; /* index, STACKS_NONE if outside */
    uint32_t id;     /* 0 until it is needed */
    uint64_t start_ns;
    uint32_t threads;     /* alive */
    uint32_t main_thread; /* index, STACKS_NONE until there is one */
    uint32_t jit;         /* image of code without a file; STACKS_NONE until there is one */
    bool ended;
    bool sampled;       /* its mappings are told to the sink as they come */
    bool silent;        /* a fork that only lived to exec: never told to the sink */
    struct str file;    /* first executable mapping since exec, or from /proc */
    struct str exe;     /* the same file, by the name that it was started by */
    struct str command; /* empty: not known yet */
    char name[STACKS_NAME_BYTES];
    struct unwind_space *space; /* NULL once it has ended */
    struct unwind_cache *cache; /* NULL until it is sampled */
    uint64_t cache_used;        /* stacks.clock when it was last */
    VEC(struct stack_mapping) mappings;
};

struct stack_thread {
    int tid;
    uint32_t process; /* index */
    uint32_t id;
    bool ended;
    bool named; /* by an announcement, not by inheritance */
    uint64_t start_ns;
    char name[STACKS_NAME_BYTES];
};

struct stacks {
    struct stacks_opts opts;
    struct sink *sink;
    struct arena arena;
    VEC(struct stack_process) processes;
    struct map_u64 pids; /* to index + 1; 0 when gone */
    VEC(struct stack_thread) threads;
    struct map_u64 tids; /* the same */
    VEC(struct stack_image) images;
    VEC(struct stack_root) roots;
    struct intern image_keys; /* id n is image n - 1 */
    uint32_t kernel;          /* image index */
    size_t fds_open;
    size_t caches;
    uint64_t clock;                /* samples so far: tells which cache was used last */
    uint32_t unknown[UNWIND_ENDS]; /* frame ids */
    struct unwind_frame *frames;   /* UNWIND_FRAMES_MAX */
    /* The last stack from its root: most of the next one is the same. */
    uint32_t *last_frames, *last_stacks;
    size_t last_len;
    /* The last walk from its root, and the ids of its frames: the same for the same reason. */
    struct unwind_frame *walk_frames;
    uint32_t *walk_ids;
    size_t walk_len;
    uint32_t walk_process;
    uint32_t *path;     /* frames of the sample at hand, root first */
    VEC(uint32_t) hits; /* samples whose innermost frame it is, by frame id */
    uint64_t refused;   /* announcements and mappings beyond our bounds */
    bool root_named;    /* opts.root_command was given to the target */
};

/* stacks.c */
/* Frames to st->frames; images that it comes across are loaded. */
MUST_USE int stacks_walk(struct stacks *st, uint32_t process, const struct stacks_sample *sample,
                         struct unwind_result *ret);
MUST_USE int unknown_frame(struct stacks *st, unsigned reason, uint32_t *ret);

/* stacks_process.c */
uint32_t thread_find(const struct stacks *st, int tid);
uint32_t process_find(const struct stacks *st, int pid);
/* Made from what /proc tells if it is not known. */
MUST_USE int process_need(struct stacks *st, uint64_t time_ns, int pid, uint32_t *ret);
/* Tells the sink about it, once. */
/* Its program is known now; the sink may have heard of the process before. */
MUST_USE int process_program(struct stacks *st, uint32_t process, struct str file);
/* The path by which a file that the process maps is called: its program's by the name that it was
 * started by, others as they are. */
struct str process_path(struct stacks *st, uint32_t process, struct str file);
MUST_USE int process_tell(struct stacks *st, uint32_t process);
MUST_USE int process_end(struct stacks *st, uint32_t process, uint64_t time_ns);
MUST_USE int thread_need(struct stacks *st, uint64_t time_ns, uint32_t process, int tid,
                         uint32_t *ret);
MUST_USE int thread_tell(struct stacks *st, uint32_t thread);
void stacks_processes_deinit(struct stacks *st);

/* stacks_mapping.c */
MUST_USE int mapping_add(struct stacks *st, uint32_t process, const struct stacks_mmap *mmap);
MUST_USE int mappings_tell(struct stacks *st, uint32_t process);
MUST_USE int mappings_end(struct stacks *st, uint32_t process, uint64_t time_ns);
/* What /proc/PID/maps shows now. */
MUST_USE int mappings_read(struct stacks *st, uint32_t process, uint64_t time_ns);
/* The image got its rows: every space that has it learns of them. */
MUST_USE int mappings_upgrade(struct stacks *st, uint32_t image);

/* stacks_image.c */
MUST_USE int image_find(struct stacks *st, uint32_t process, const struct stacks_mmap *mmap,
                        uint32_t *ret);
MUST_USE int image_add(struct stacks *st, struct str key, enum image_kind kind, struct str path,
                       uint32_t *ret, bool *ret_new);
/* Loads the rows if no sample was in it before; what cannot be loaded becomes a note. */
MUST_USE int image_load(struct stacks *st, uint32_t image);
MUST_USE int image_tell(struct stacks *st, uint32_t image);
/* An fd to read it from, opened anew if need be; -errno. Stays the image's. */
int image_fd(struct stacks *st, uint32_t index);
/* Beyond the bound on open images it is closed again. */
void image_fd_done(struct stacks *st, struct stack_image *image);
MUST_USE int image_frame(struct stacks *st, uint32_t image, enum frame_kind kind, uint64_t address,
                         uint32_t *ret_frame);
void stacks_images_deinit(struct stacks *st);
