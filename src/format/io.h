/* What bpf/io.bpf.c and collect/io_kernel*.c say to each other.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. Stacks
 * are told and recognised as format/offcpu.h says, with the same records. */
#pragma once

#include "format/objects.h"
#include "format/offcpu.h"

#include <stdint.h>

enum {
    IO_CALLS_MAX = 512,
    IO_THREADS_MAX = 8192,
    IO_EPOCHS = 4096,               /* of fds, by process and number; before them one of all, */
    IO_EPOCH_NAMES = 1 + IO_EPOCHS, /* behind them one of the names of folders */
    IO_BUCKETS = 128,               /* as WAIT_BUCKETS and CALL_SIZES of the model */
    IO_SIZES = 32,
    IO_WAYS = 4,       /* cells that a row may be in */
    IO_CELLS_MIN = 64, /* of one CPU in each of two tables, by turns; a power of two */
    IO_CELLS_MAX = 4096,
    IO_FILES = 32, /* that a thread is remembered to have used, by their fds */
    IO_NO_FILE = IO_FILES,
    IO_VECTORS_MAX = 16, /* of a call with many buffers are looked at */
    IO_MESSAGES_MAX = 64,
    IO_PATH_BYTES = 512,
    IO_PATHS_SEEN = 1 << 16,
    IO_COPIES_MAX = 16384,   /* of a thread's stacks at once; so many more in every round: */
    IO_COPIES_A_ROUND = 192, /* a program that never stops surprising us */
    IO_COPIES_A_PLACE = 512, /* of a thread and a round, where the ring gets full */
    IO_PLACES = 8,
    IO_COST_EVERY = 64,   /* so many runs of the program: one is timed */
    IO_UNKNOWN_CALL = -2, /* of 32 bits on a machine of 64: other numbers, other names */
};

/* What is known about a system call, by its number. Arguments count from 1; 0: none. */
struct io_call {
    uint8_t fd;
    uint8_t asked; /* how many bytes are asked for; IO_VECTOR: buffers, their number follows */
    uint8_t place; /* where in the file; IO_PLACE_CURRENT: where the file stands */
    uint8_t path;  /* a path, relative to `folder` or, if that is 0, to where the process is */
    uint8_t folder;
    uint8_t flags; /* as open() has them, or as send() has them */
    uint8_t other; /* a second fd, that is written to */
    uint8_t unused;
    uint32_t kind; /* enum io_call_kind, several */
};
enum io_call_kind {
    IO_BYTES = 1 << 0,         /* its result are bytes moved */
    IO_READS = 1 << 1,         /* what it adds to the page cache had to be fetched */
    IO_PLACE_CURRENT = 1 << 2, /* moves from where the file stands */
    IO_OPENS = 1 << 3,         /* its result is an fd, which is what it is about */
    IO_VECTOR = 1 << 4,
    IO_MESSAGES = 1 << 5,  /* its result are messages, argument 2 is where they are */
    IO_INSIDE = 1 << 6,    /* bytes go from one fd to another, nobody sees them */
    IO_SETTLES = 1 << 7,   /* afterwards it is known what the socket is for */
    IO_CLOSES = 1 << 8,    /* afterwards an fd is nothing, or something else */
    IO_NO_RESULT = 1 << 9, /* returns to somewhere else: neither result nor stack */
    IO_URING = 1 << 10,
    IO_CREATES = 1 << 11, /* always */
    IO_HOW = 1 << 12,     /* `flags` is a pointer to them */
    IO_WRITES = 1 << 13,
    IO_SENDS = 1 << 14,      /* `flags` are those of send() */
    IO_EXECS = 1 << 15,      /* when it returns, the program that called is no more */
    IO_ACCEPTS = 1 << 16,    /* its result is a connection */
    IO_MODES = 1 << 17,      /* may change how a file is open: fcntl, ioctl */
    IO_CLOSES_ONE = 1 << 18, /* as IO_CLOSES, but only the fd that it is about */
    IO_OURS = 1 << 19,       /* the program does not make it: a probe does */
    IO_RENAMES = 1 << 20,    /* afterwards a folder may have another name */
};
_Static_assert(sizeof(struct io_call) == 12, "shared with BPF");

/* .rodata: set before the program is loaded. */
struct io_config {
    uint64_t cgroup_id; /* these as in struct offcpu_config */
    uint32_t cgroup_level;
    uint32_t scope;
    uint32_t root;
    uint32_t own;
    uint32_t pid_ns;
    uint32_t ring_bytes;
    uint32_t stacks, requests; /* what was asked for, 0 or 1 */
    uint32_t cells;            /* of one CPU, a power of two */
    uint32_t cpus;
    uint32_t o_direct, o_tmpfile; /* numbers differ between machines */
    struct io_call calls[IO_CALLS_MAX];
};
_Static_assert(sizeof(struct io_config) == 56 + 12 * IO_CALLS_MAX, "shared with BPF");

/* All calls that are alike. Keys are compared word by word: no gaps. */
struct io_key {
    uint64_t stack; /* ref; IO_STACK_MISSED; 0: there is none to know */
    struct object_id object;
    uint32_t tid, tgid;
    int16_t call; /* CALL_NO_SYSCALL: a fault; IO_UNKNOWN_CALL */
    uint16_t error;
    uint16_t flags; /* enum call_flag */
    uint16_t exec;  /* how often it had become another program, lowest bits */
};
_Static_assert(sizeof(struct io_key) == 40, "shared with BPF");

/* As struct call_tally. */
struct io_tally {
    uint64_t count, total_ns, max_ns, first_ns, last_ns;
    uint64_t bytes, asked_bytes, partial, placed, sequential, missed, missed_bytes;
    uint32_t buckets[IO_BUCKETS];
    uint32_t sizes[IO_SIZES];
};
_Static_assert(sizeof(struct io_tally) == 96 + 4 * IO_BUCKETS + 4 * IO_SIZES, "shared with BPF");

/* Map "cells", mapped by user space: two tables by turns, in each the cells of one CPU after
 * another. As it stands a record IO_ROW of the ring, when another row needs its place. */
struct io_cell {
    struct offcpu_head head;
    struct io_key key;
    struct io_tally tally; /* count 0: free */
};
_Static_assert(sizeof(struct io_cell) == 24 + 40 + sizeof(struct io_tally), "shared with BPF");

/* Map "folded", by call (the last one: all others): calls for which there was no room. */
struct io_folded {
    uint32_t tid, tgid, exec, unused; /* of the last one */
    struct io_tally tally;
};
_Static_assert(sizeof(struct io_folded) == 16 + sizeof(struct io_tally), "shared with BPF");

/* An open file that a thread used. */
struct io_file {
    uint64_t file, inode, ino; /* the same three: the same file; inode 0: look again */
    struct object_id id;
    uint64_t next;  /* where the last call ended */
    uint64_t epoch; /* as of which this is so */
    uint32_t fd;
    uint32_t flags; /* enum call_flag, and beyond: */
};
enum { IO_FILE_APPENDS = 1 << 16, IO_FILE_HAS_PLACES = 1 << 17 };
_Static_assert(sizeof(struct io_file) == 64, "shared with BPF");

#define IO_NO_PLACE UINT64_MAX
/* In place of a ref: the stack was neither recognised nor copied. */
#define IO_STACK_MISSED UINT64_MAX

/* Where stacks of a thread were copied. */
struct io_place {
    uint64_t place, copies;
};

/* Map "threads", by kernel thread id: what a thread is at. */
struct io_thread {
    uint64_t start_ns; /* of the call that goes on; 0: none */
    uint64_t since_ns; /* taken up */
    uint64_t round;    /* of `copies` */
    uint64_t place;    /* where in the file the call is; IO_NO_PLACE */
    uint64_t missed_bytes;
    int32_t call;
    uint32_t at; /* in files: what the call is about; IO_NO_FILE */
    uint32_t tid, tgid;
    uint32_t kernel_tgid;
    uint32_t exec;
    uint32_t copies;
    uint32_t spent;       /* of IO_COPIES_MAX, */
    uint64_t spent_round; /* as of this round */
    struct io_file files[IO_FILES];
    struct io_place places[IO_PLACES];
};
_Static_assert(sizeof(struct io_thread) == 80 + 64 * IO_FILES + 16 * IO_PLACES, "shared with BPF");

/* Until user space has walked a stack all calls with it are copied: a program makes thousands
 * before that, and may be over by then. But where the ring gets full one place must not use up what
 * others need: it is the same stack again, most likely. */
static inline _Bool io_copy_allowed(struct io_thread *thread, uint64_t place, _Bool is_roomy)
{
    uint64_t back = (thread->round - thread->spent_round) * IO_COPIES_A_ROUND;
    thread->spent = thread->spent > back ? thread->spent - (uint32_t)back : 0;
    thread->spent_round = thread->round;
    struct io_place *seen = &thread->places[(place ^ place >> 7 ^ place >> 13) & (IO_PLACES - 1)];
    place ^= thread->round << 48; /* anew in every round */
    if (seen->place != place) {
        seen->place = place;
        seen->copies = 0;
    }
    if (thread->spent >= IO_COPIES_MAX || (!is_roomy && seen->copies >= IO_COPIES_A_PLACE))
        return 0;
    thread->spent++;
    seen->copies++;
    return 1;
}

/* In the ring "told", beside OFFCPU_COPY, OFFCPU_EXIT and OBJECT_RECORD_TYPE. */
enum io_record {
    IO_ROW = 100,  /* struct io_cell */
    IO_PATH = 101, /* struct io_path */
    /* struct io_cell up to its buckets: it is one call. head.tid is sizes[0], head.tgid
     * buckets[0]; the others follow from the sums. */
    IO_ROW_ONE = 102,
};

/* A path that was asked for, seen for the first time. Of one that is not relative the record ends
 * with the path, of others with the folder's text. */
struct io_path {
    struct offcpu_head head;
    struct object_id id;
    uint32_t relative; /* to `folder` */
    uint32_t bytes;    /* of the path, with its NUL */
    char path[IO_PATH_BYTES];
    struct object_record folder;
};
_Static_assert(sizeof(struct io_path) == 48 + IO_PATH_BYTES + sizeof(struct object_record),
               "shared with BPF");

/* Per CPU; indexes below OFFCPU_COUNTS are those of enum offcpu_count that stacks need. */
enum io_count {
    IO_SEEN = OFFCPU_COUNTS, /* calls that returned, or whose thread ended */
    IO_FOLDED,               /* calls added up without thread, stack and object */
    IO_TAKEN_OVER,           /* cells that went through the ring */
    IO_BEFORE,               /* calls that were under way when we came: not counted */
    IO_URING_CALLS,
    IO_INSIDE_BYTES,
    IO_COMPAT,       /* calls of 32 bits */
    IO_BUFFERS_LEFT, /* calls with more buffers or messages than are looked at */
    IO_PATHS_LOST,   /* that could not be read or told */
    IO_ENDED_INSIDE, /* of the calls: the thread ended in it */
    IO_COUNTS,
};

/* Map "cpus", mapped by user space, one a CPU. */
struct io_cpu {
    /* 0: no program adds to a cell; 1: one is about to; else the round it is in, plus 2. */
    uint64_t busy;
    uint64_t refs; /* of stacks, given out */
    uint64_t runs;
    uint64_t counts[IO_COUNTS];
    uint64_t unused[3];
};
_Static_assert(sizeof(struct io_cpu) == 8 * (6 + IO_COUNTS), "shared with BPF");

/* As call_size(), which a test holds it to. */
static inline uint32_t io_size(uint64_t bytes)
{
    uint32_t octave = 0;
    if (bytes == 0)
        return 0;
    for (uint32_t step = 32; step > 0; step /= 2)
        if (bytes >> octave >> step)
            octave += step;
    return octave + 1 < IO_SIZES ? octave + 1 : IO_SIZES - 1;
}

/* A call that has returned: what io.bpf.c hands to the parts that look into it (io_heads.h). */
struct io_moment {
    uint64_t start_ns, end_ns;
    int64_t result;
    uint64_t args[6];
    uint64_t stack; /* ref, as in format/offcpu.h; 0: not known */
    uint64_t file;  /* address of the struct file, 0: none */
    struct object_id object;
    uint32_t tid, tgid;   /* as they are called where whyslow runs */
    uint32_t kernel_tgid; /* as the kernel counts */
    uint32_t exec;        /* programs that the process has been */
    int32_t call;
    int32_t fd;
};
