/* What the hooks for I/O (preload/io*.c) and whyslow say to each other, beside format/preload.h.
 *
 * Calls are added up in rows: by call, outcome, object and stack. What finds no row goes through
 * the ring by itself, and what finds no room there either into rows that keep call, outcome and
 * object, or only call and outcome: sums stay whole, where and on what is lost, and counted.
 *
 * What an fd or a path stands for is told once, in the table of objects, and gets a number. The
 * number is in the table before anything refers to it. Numbers go up; a number's entry is used
 * again only when whyslow has read it. */
#pragma once

#include "format/preload.h"

enum {
    PRELOAD_CALL_ROWS = 152,       /* of a thread, the last ones for what finds no room: */
    PRELOAD_CALL_ROWS_OBJECT = 24, /* with its object, without a stack; */
    PRELOAD_CALL_ROWS_LAST = 32,   /* with neither */
    PRELOAD_CALL_WAYS = 8,
    PRELOAD_CALL_SIZES = 32, /* of bytes, as call_size() of model/call.h */
    PRELOAD_OBJECTS = 65536,
    PRELOAD_TEXT_BYTES = 312,
    PRELOAD_PIECE_BYTES = 1024, /* of what is said on a socket, at most */
    PRELOAD_ADDRESS_BYTES = 112,
};

/* An object as calls name it: number << PRELOAD_FD_BITS | fd + 1. Without a number only the fd is
 * known; without an fd it is a path; 0: nothing. */
enum { PRELOAD_FD_BITS = 22 };

enum preload_call_flag {
    /* As enum call_flag of model/call.h, */
    PRELOAD_CALL_SYNC = 1 << 0,
    PRELOAD_CALL_DIRECT = 1 << 1,
    PRELOAD_CALL_NONBLOCK = 1 << 2,
    PRELOAD_CALL_CREATES = 1 << 4,
    /* and ours. */
    PRELOAD_CALL_FOLDED = 1 << 8, /* on what and from where found no room */
    PRELOAD_CALL_READS = 1 << 9,  /* the kernel counts it in syscr of /proc/PID/io */
    PRELOAD_CALL_WRITES = 1 << 10,
    PRELOAD_CALL_NAMELESS = 1 << 11, /* it is about a path for which there was no number */
    /* Of single ones, not of rows. */
    PRELOAD_CALL_PLACED = 1 << 16,
    PRELOAD_CALL_SEQUENTIAL = 1 << 17,
    PRELOAD_CALL_ROW_FLAGS = 0xffff,
};

/* What calls that are added up have in common. */
struct preload_call_key {
    uint64_t object;
    uint32_t stack; /* number of a stack record; 0: none */
    uint16_t call;  /* the system call's number */
    uint16_t error;
    uint32_t flags; /* enum preload_call_flag */
    uint32_t unused;
};

struct preload_call { /* PRELOAD_CALL */
    struct preload_record record;
    struct preload_call_key key;
    uint64_t start_ns, end_ns;
    uint64_t bytes, asked;
};
_Static_assert(sizeof(struct preload_call) == 64, "shared with the target");

struct preload_call_row {
    uint32_t sequence; /* odd while the thread writes it */
    uint32_t used;     /* 0: never */
    struct preload_call_key key;
    uint64_t count, total_ns, max_ns;
    uint64_t first_ns, last_ns;
    uint64_t bytes, asked, partial, placed, sequential;
    uint64_t taken; /* by whyslow: of `count`, how many it has read */
    uint32_t buckets[PRELOAD_BUCKETS];
    uint32_t sizes[PRELOAD_CALL_SIZES];
};
_Static_assert(sizeof(struct preload_call_row) == 760, "shared with the target");

static inline unsigned preload_call_size(uint64_t bytes)
{
    unsigned bucket = bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes);
    return bucket < PRELOAD_CALL_SIZES ? bucket : PRELOAD_CALL_SIZES - 1;
}

/* What went over a socket: the beginning of it. Behind it, `len` bytes, padded to eight. */
enum preload_piece_flag { PRELOAD_PIECE_SENT = 1, PRELOAD_PIECE_CLOSED = 2 };

struct preload_piece { /* PRELOAD_PIECE; record.flags is one of the above, 0: received */
    struct preload_record record;
    uint64_t object;
    uint64_t start_ns, end_ns;
    uint64_t bytes;
    uint32_t stack;
    uint32_t len;
};
_Static_assert(sizeof(struct preload_piece) == 48, "shared with the target");

enum preload_origin {
    PRELOAD_SEEN = 1, /* an fd that somebody else opened */
    PRELOAD_OPENED,
    PRELOAD_CONNECTED,
    PRELOAD_ACCEPTED,
    PRELOAD_PATH, /* no fd: what was asked for */
};

struct preload_object {
    uint64_t number; /* 0 while it is written */
    uint64_t time_ns;
    uint64_t dev, ino; /* dev: major << 20 | minor */
    uint64_t hash;     /* of a path */
    uint64_t birth;    /* of a file, in ns: numbers of deleted files are given to new ones; 0 */
    uint32_t pid;
    int32_t fd;
    uint32_t mode;  /* st_mode; 0: not known */
    uint32_t flags; /* of open() */
    uint16_t origin;
    uint16_t enough; /* by whyslow: no more pieces, please */
    uint16_t family, type;
    uint16_t own_bytes, peer_bytes; /* of addresses */
    uint16_t text_bytes; /* the path, whole where that is known; cut where it is longer */
    uint16_t cut;
    int32_t folder; /* the fd from which a path begins that is relative still, or AT_FDCWD */
    uint32_t unused;
    uint8_t own[PRELOAD_ADDRESS_BYTES], peer[PRELOAD_ADDRESS_BYTES];
    char text[PRELOAD_TEXT_BYTES];
};
_Static_assert(sizeof(struct preload_object) == 624, "shared with the target");

struct preload_io_objects {
    uint64_t head;     /* the last number given out */
    uint64_t nameless; /* objects for which there was no room, each time */
    uint32_t pieces;   /* by whyslow, before the target begins: tell what is said on sockets */
    uint32_t unused;
    uint64_t tail __attribute__((aligned(128))); /* by whyslow: the last number it has read */
    struct preload_object at[PRELOAD_OBJECTS] __attribute__((aligned(4096)));
} __attribute__((aligned(4096)));

struct preload_io_thread {
    struct preload_thread thread;
    uint64_t unseen; /* calls of signal handlers that came while another was written down */
    uint64_t folded; /* calls that lost their object and stack for want of room */
    uint64_t row_tags[PRELOAD_CALL_ROWS] __attribute__((aligned(128)));
    struct preload_call_row rows[PRELOAD_CALL_ROWS];
} __attribute__((aligned(4096)));
_Static_assert(sizeof(struct preload_io_thread) == sizeof(struct preload_thread) + 29 * 4096,
               "shared with the target");

#define PRELOAD_IO_OFFSET ((uint64_t)PRELOAD_HEADER_BYTES + PRELOAD_LOCKS_BYTES)
#define PRELOAD_IO_BYTES                                                                           \
    (sizeof(struct preload_io_objects) + PRELOAD_THREADS_MAX * sizeof(struct preload_io_thread))
#define PRELOAD_BYTES (PRELOAD_IO_OFFSET + PRELOAD_IO_BYTES)
