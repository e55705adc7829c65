/* What threads ask of the kernel: rows of system calls that collectors add up.
 *
 * A row stands for all calls that are alike: the same thread at the same stack, the same call on
 * the same object with the same outcome. Facts only: what is slow, small or random is for
 * analyze/ to say. */
#pragma once

#include "base/str.h"
#include "model/wait.h"

#include <stdint.h>

enum call_flag {
    CALL_SYNC = 1 << 0,     /* the file is open with O_SYNC or O_DSYNC: every write waits */
    CALL_DIRECT = 1 << 1,   /* O_DIRECT */
    CALL_NONBLOCK = 1 << 2, /* O_NONBLOCK, or MSG_DONTWAIT */
    CALL_FAULT = 1 << 3,   /* no call: page faults on a mapped file; `syscall` is CALL_NO_SYSCALL */
    CALL_CREATES = 1 << 4, /* open: with O_CREAT, O_TMPFILE */
};

enum { CALL_NO_SYSCALL = -1 };

struct call_info {
    uint32_t thread; /* ids of the sink */
    uint32_t stack;  /* 0: not known, or not asked for */
    uint32_t object; /* 0: none */
    int32_t syscall; /* its number on this machine */
    uint32_t error;  /* errno; 0: it went well */
    uint32_t flags;  /* enum call_flag */
};

/* Bytes of a call: bucket 0 is none, bucket n from 2^(n-1) on. */
enum { CALL_SIZES = 32 };

static inline unsigned call_size(uint64_t bytes)
{
    unsigned bucket = bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes);
    return bucket < CALL_SIZES ? bucket : CALL_SIZES - 1;
}

struct call_tally {
    uint64_t count;
    uint64_t total_ns, max_ns;
    uint64_t first_ns, last_ns; /* beginning of the first and end of the last of them */
    uint64_t bytes;             /* moved */
    uint64_t asked_bytes;       /* asked for: partial reads and writes are those that moved less */
    uint64_t partial;           /* calls that moved less, but something */
    uint64_t placed;            /* calls of which the place in the file is known */
    uint64_t sequential;        /* of those: began where the one before ended */
    uint64_t missed;            /* reads and faults that had to fetch from the device */
    uint64_t missed_bytes;      /* fetched meanwhile, read-ahead included */
    uint32_t buckets[WAIT_BUCKETS];
    uint32_t sizes[CALL_SIZES];
};

/* ---- devices ---- */

enum device_op {
    DEVICE_READ = 0,
    DEVICE_WRITE = 1,
    DEVICE_FLUSH = 2,
    DEVICE_DISCARD = 3,
    DEVICE_OPS
};

struct device_info {
    uint32_t number; /* major << 20 | minor, as the kernel counts */
    enum device_op op;
    struct str name; /* "vda" */
};

/* Of the whole machine: who asked for it cannot be told below the page cache. */
struct device_tally {
    uint64_t count, bytes;
    uint64_t total_ns, max_ns; /* from being handed to the device to its answer */
    uint64_t first_ns, last_ns;
    uint64_t depth_ns; /* requests in the device × time; for DEVICE_READ all operations together */
    uint64_t depth_max;
    uint32_t buckets[WAIT_BUCKETS];
    uint32_t sizes[CALL_SIZES];
};
