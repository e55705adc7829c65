/* From what the kernel (or a file of perf's) tells about processes, mappings and samples to
 * stack ids in a sink.
 *
 * One `stacks` serves a whole recording: it knows the process tree, which image stood where
 * and when, keeps images open from the moment they are first seen (their container may be
 * gone later), unwinds, interns frames, and at the end names them. CPU sampling, the BPF
 * collectors and the importers of perf's files all feed it.
 *
 * Events must come in the order of time. Fork copies an address space, exec clears it, exit
 * ends it: a PID that comes back is a new process. A sample is never dropped: what cannot be
 * walked ends in an unknown frame with a reason (enum unwind_end). */
#pragma once

#include "model/sink.h"
#include "unwind/trace.h"

#include <sys/types.h>

struct stacks;

struct stacks_opts {
    bool live;             /* the processes are here: /proc may be read. false: an imported file */
    bool system_wide;      /* processes that were never announced are looked up, not refused */
    const char *cache_dir; /* for rows and symbols; NULL: none */
    bool debuginfod;
    enum unwind_machine machine;
    unsigned embed_functions; /* embed source and disassembly of so many hottest; 0: none */
    bool embed_no_code;       /* source alone */
    bool no_symbols;          /* stacks_finish() names nothing */
    bool foreign_kernel;      /* kernel addresses are not of this boot: they stay unnamed */
    int root_pid;             /* a target that is about to exec: what it is before is not it; 0 */
    const char *root_command; /* its command line, borrowed; NULL: read from /proc */
};

MUST_USE int stacks_open(const struct stacks_opts *opts, struct sink *sink, struct stacks **ret,
                         struct why *why);
void stacks_close(struct stacks *stacks); /* NULL is fine */

/* A process that runs already: its threads, names and mappings are read from /proc. */
MUST_USE int stacks_attach(struct stacks *stacks, int pid, uint64_t time_ns, struct why *why);

/* What is mapped there now, where nobody announces it. */
MUST_USE int stacks_read_again(struct stacks *stacks, int pid, uint64_t time_ns);

/* Reads the unwind rows of all that is mapped there now, before the first sample needs them: it
 * takes a while for large programs, and samples would be lost meanwhile. */
MUST_USE int stacks_preload(struct stacks *stacks, int pid);

/* The kernel's announcements, as in PERF_RECORD_FORK, COMM, EXIT, MMAP2. */
MUST_USE int stacks_fork(struct stacks *stacks, uint64_t time_ns, int parent_pid, int pid, int tid);
MUST_USE int stacks_comm(struct stacks *stacks, uint64_t time_ns, int pid, int tid, struct str name,
                         bool exec);
MUST_USE int stacks_exit(struct stacks *stacks, uint64_t time_ns, int pid, int tid);
struct stacks_mmap {
    uint64_t time_ns;
    int pid; /* -1: the kernel or one of its modules */
    uint64_t address;
    uint64_t size_bytes;
    uint64_t file_offset;
    bool executable;
    struct str path;
    const uint8_t *build_id; /* NULL: not told */
    size_t build_id_len;
    uint64_t inode; /* 0: not told; guards against opening another file of that name */
    uint32_t device_major, device_minor;
};
MUST_USE int stacks_mmap(struct stacks *stacks, const struct stacks_mmap *mmap);

/* Threads that were announced or read and have not ended; how many were stored. */
size_t stacks_live_tids(const struct stacks *stacks, int *tids, size_t max);

/* It was announced or read, and has not ended. */
bool stacks_has_thread(const struct stacks *stacks, int pid, int tid);
/* The sink's id of a process; made if need be. */
MUST_USE int stacks_process(struct stacks *stacks, uint64_t time_ns, int pid,
                            uint32_t *ret_process);
/* The sink's id of a thread; made if need be. */
MUST_USE int stacks_thread(struct stacks *stacks, uint64_t time_ns, int pid, int tid,
                           uint32_t *ret_thread);

/* A sample's stack. Either registers and slice, or a ready chain of user addresses
 * (innermost first, return addresses as they are), or neither; kernel addresses before. */
struct stacks_sample {
    uint64_t time_ns;
    int pid, tid;
    const uint64_t *kernel; /* innermost first */
    size_t kernel_count;
    const struct unwind_registers *registers;
    struct unwind_slice slice;
    const uint64_t *user;
    size_t user_count;
    struct unwind_trace *trace; /* what the user part hangs on comes here; NULL: not wanted */
};
struct stacks_found {
    uint32_t thread; /* sink ids */
    uint32_t stack;
    enum unwind_end end;       /* of the user part; UNWIND_ROOT when there was none to walk */
    uint64_t slice_used_bytes; /* how far up the slice the walk had to read */
};
MUST_USE int stacks_sample(struct stacks *stacks, const struct stacks_sample *sample,
                           struct stacks_found *ret);

/* A sample of which only pc and sp are known may end in a frame that hangs on the frame pointer:
 * looks for it on the stack, with the help of the code around return addresses. -ENOENT: it is
 * not needed; -ENODATA: there is no telling. */
struct stacks_memory {
    void *context;
    size_t (*read)(void *context, int pid, uint64_t address, void *to, size_t len);
};
MUST_USE int stacks_frame_pointer(struct stacks *stacks, const struct stacks_sample *sample,
                                  const struct stacks_memory *memory, uint64_t *ret);

/* A stack with kernel frames (innermost first) on top of one that is known. */
MUST_USE int stacks_on_top(struct stacks *stacks, uint32_t stack, const uint64_t *kernel,
                           size_t count, uint32_t *ret_stack);
/* Changes with every change of what is mapped in a process; 0: it is not known. */
uint64_t stacks_generation(const struct stacks *stacks, int pid);

/* What stands at an address of a process: an image and a place in it, as one number; 0: nothing
 * that is known to be code. */
uint64_t stacks_code_at(const struct stacks *stacks, int pid, uint64_t address);

/* Stacks that a program has walked itself (stacks_told.c): frames by the image they are of, which
 * may be gone from its place by now. */
struct stacks_told_image {
    uint64_t start, end; /* where it lies, or lay */
    struct str path;     /* as the loader knows it; empty: the program itself */
};
/* An image, kept open from here on; for the next one. While its process is there. */
MUST_USE int stacks_told_image(struct stacks *stacks, int pid, const struct stacks_told_image *told,
                               uint32_t *ret_image);
/* `address` is one of the image, to look up as it stands. */
MUST_USE int stacks_told_frame(struct stacks *stacks, uint32_t image, uint64_t address,
                               uint32_t *ret_frame);
/* What is mapped there now, where nothing better is known. */
MUST_USE int stacks_told_address(struct stacks *stacks, int pid, uint64_t address,
                                 uint32_t *ret_frame);
/* The unknown frame with which a walk ends that did not reach the root. */
MUST_USE int stacks_told_end(struct stacks *stacks, enum unwind_end end, uint32_t *ret_frame);
/* With this one the process ends. False also when nothing is known of either. */
bool stacks_is_last_thread(const struct stacks *stacks, int pid, int tid);
/* The file that a process runs; empty: not known. */
struct str stacks_program(const struct stacks *stacks, int pid);

/* Counters "<axis>.end.<why>" of walks that did not reach the root, one for each enum unwind_end.
 */
MUST_USE int stacks_ends_put(struct sink *sink, const char *axis, const uint64_t *ends);

/* Names all frames seen, embeds source and code of the hottest, hands notes on images that
 * could not be read to the sink (document "images"). */
MUST_USE int stacks_finish(struct stacks *stacks, struct why *why);
