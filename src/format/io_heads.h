/* What bpf/io_heads.h, bpf/tls.bpf.c and collect/io_heads.c say to each other: heads of what is
 * said on sockets, and inside of TLS.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. */
#pragma once

#include "format/objects.h"
#include "format/offcpu.h"

#include <stdint.h>

enum {
    IO_HEAD_BYTES = 64 << 10,  /* as PROTOCOL_HEAD_BYTES */
    IO_HEAD_SHORT_BYTES = 256, /* of a connection that says too much */
    IO_HEADS_CPUS = 64,        /* set before loading */
    IO_HEADS_CONNS_MAX = 65536,
    IO_HEADS_THREADS_MAX = 16384, /* inside a function of TLS at a time */
    IO_HEADS_BUFFERS_MAX = 8,     /* of a call with many: further ones are not looked at */
    IO_HEADS_MESSAGES_MAX = 4,
    /* Of one connection, in each window: so much in full, then short heads up to the double. */
    IO_HEADS_BUDGET_BYTES = 2 << 20,
    IO_HEADS_WINDOW_NS = 100000000,
};

/* What user space thinks of a connection. */
enum io_heads_verdict {
    IO_HEADS_UNKNOWN = 0,
    IO_HEADS_IGNORE = 1, /* nobody wants to know: a call costs one lookup */
    IO_HEADS_INSIDE = 2, /* TLS, whose inside is told by itself: only its stacks are of use */
};

/* Map "io_conns", by the inode of the socket: sockets get ever new numbers. */
struct io_heads_conn {
    uint64_t id;        /* never given again */
    uint64_t opened_ns; /* 0: it was there when we came */
    uint64_t window_ns; /* since when `bytes` are counted */
    uint32_t bytes;     /* told */
    uint32_t verdict;
    uint32_t tgid; /* that spoke last, as the kernel counts */
    uint32_t lost; /* pieces that were not told since the last that was */
    uint32_t met;  /* 1: user space knows of it */
    uint32_t unused;
};
_Static_assert(sizeof(struct io_heads_conn) == 48, "shared with BPF");

/* Map "tls_now", by the kernel's id of a thread: the function of TLS that it is in. */
struct io_heads_tls {
    uint64_t ssl, buffer;
    uint64_t length; /* address of where the length is put by functions that do so; 0: none */
    uint64_t start_ns;
    uint64_t stack; /* ref, of a call inside; 0: there was none */
};
_Static_assert(sizeof(struct io_heads_tls) == 40, "shared with BPF");

/* .rodata of tls.bpf.c. */
struct io_heads_tls_config {
    uint32_t ring_bytes;
    uint32_t unused;
};

/* In the ring, beside those of format/offcpu.h and format/io.h. */
enum io_heads_record {
    IO_HEADS_MET = 110,
    IO_HEADS_PIECE = 111,
    IO_HEADS_CLOSED = 112,
    IO_HEADS_TLS_PIECE = 113,
    IO_HEADS_TLS_CLOSED = 114,
};

/* Who speaks on it and with whom. */
struct io_heads_met {
    struct offcpu_head head;
    uint64_t conn;
    uint64_t opened_ns;
    struct object_record object;
};
_Static_assert(sizeof(struct io_heads_met) == 40 + sizeof(struct object_record), "shared with BPF");

enum io_heads_mark {
    IO_HEADS_IN = 1 << 0, /* received; else sent */
};

/* Only the bytes that are there are told: len of bytes[]. */
struct io_heads_piece {
    struct offcpu_head head; /* time_ns: when the call had returned */
    uint64_t conn;           /* of IO_HEADS_TLS_PIECE the address of the SSL */
    uint64_t start_ns;
    uint64_t stack;
    uint64_t ino;   /* of the socket */
    uint64_t ssl;   /* the thread is inside a function of TLS, for this one; 0: it is not */
    uint64_t moved; /* bytes */
    uint32_t lost;  /* pieces before this one */
    uint32_t marks;
    uint32_t len;
    uint32_t unused;
    uint8_t bytes[IO_HEAD_BYTES];
};
_Static_assert(sizeof(struct io_heads_piece) == 88 + IO_HEAD_BYTES, "shared with BPF");

struct io_heads_closed {
    struct offcpu_head head;
    uint64_t conn; /* as in a piece */
};
_Static_assert(sizeof(struct io_heads_closed) == 32, "shared with BPF");

/* Map "io_heads_counts", per CPU. */
enum io_heads_count {
    IO_HEADS_TOLD,    /* pieces */
    IO_HEADS_LOST,    /* pieces: the ring was full */
    IO_HEADS_SHORT,   /* pieces of which little was told: the connection says much at a time */
    IO_HEADS_BEYOND,  /* pieces: more than a connection may say at a time */
    IO_HEADS_CUT,     /* calls with more buffers than are looked at */
    IO_HEADS_IGNORED, /* connections that speak nothing that we know, by their kind */
    IO_HEADS_COUNTS,
};
