/* What bpf/block.bpf.c and collect/devices.c say to each other.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. */
#pragma once

#include <stdint.h>

enum {
    BLOCK_DEVICES_MAX = 64,
    BLOCK_FLIGHTS_MAX = 16384, /* requests in all devices at the same time */
    BLOCK_NAME_BYTES = 32,     /* as the kernel's DISK_NAME_LEN */
    BLOCK_BUCKETS = 128,       /* as WAIT_BUCKETS of model/wait.h */
    BLOCK_SIZES = 32,          /* as CALL_SIZES of model/call.h */
};

/* As enum device_op of model/call.h; all of them together stand behind the last. */
enum block_op {
    BLOCK_READ,
    BLOCK_WRITE,
    BLOCK_FLUSH,
    BLOCK_DISCARD,
    BLOCK_OPS,
    BLOCK_NO_OP = 255, /* what is no I/O of anybody's: zones being reset, a driver's own commands */
};

/* .rodata: set before the program is loaded. */
struct block_config {
    uint32_t issue_arg; /* which argument is the request: 1 before Linux 5.11, 0 since */
    uint32_t queue_arg; /* the same of block_bio_queue */
};
_Static_assert(sizeof(struct block_config) == 8, "shared with BPF");

/* Map "flights": requests (or bios) that a device has not answered, by address. */
struct block_flight {
    uint64_t start_ns, bytes;
    uint32_t number, op;
};
_Static_assert(sizeof(struct block_flight) == 24, "shared with BPF");

/* Map "devices", by number (major << 20 | minor): shared by all CPUs. */
struct block_device_state {
    char name[BLOCK_NAME_BYTES];
    uint64_t depth[BLOCK_OPS + 1]; /* requests in it now */
    uint64_t depth_max[BLOCK_OPS + 1];
};
_Static_assert(sizeof(struct block_device_state) == 112, "shared with BPF");

struct block_key {
    uint32_t number, op;
};
_Static_assert(sizeof(struct block_key) == 8, "shared with BPF");

/* Map "tallies", one a CPU. Only ever grows: a reader takes what is new since it last looked. */
struct block_tally {
    uint64_t count, bytes, total_ns, max_ns, first_ns, last_ns;
    uint32_t buckets[BLOCK_BUCKETS];
    uint32_t sizes[BLOCK_SIZES];
};
_Static_assert(sizeof(struct block_tally) == 48 + 4 * (BLOCK_BUCKETS + BLOCK_SIZES),
               "shared with BPF");

/* Map "counts": one of each a CPU. */
enum block_count {
    BLOCK_LOST,   /* requests that found no room */
    BLOCK_ERRORS, /* requests that the device could not do */
    BLOCK_COUNTS,
};

/* The position of the highest bit. BPF has no instruction that counts zeroes, and a loop would be
 * walked through by the verifier, so it is steps. */
static inline uint32_t block_octave(uint64_t value)
{
    uint32_t octave = 0;
    for (uint32_t step = 32; step > 0; step /= 2)
        if (value >> octave >> step)
            octave += step;
    return octave;
}

/* As wait_bucket() of model/wait.h. */
static inline uint32_t block_bucket(uint64_t ns)
{
    if (ns < 256)
        return 0;
    uint32_t octave = block_octave(ns);
    uint32_t bucket = (octave - 8) * 4 + (uint32_t)(ns >> (octave - 2) & 3);
    return bucket < BLOCK_BUCKETS ? bucket : BLOCK_BUCKETS - 1;
}

/* As call_size() of model/call.h. */
static inline uint32_t block_size(uint64_t bytes)
{
    uint32_t bucket = bytes == 0 ? 0 : block_octave(bytes) + 1;
    return bucket < BLOCK_SIZES ? bucket : BLOCK_SIZES - 1;
}

/* What the kernel's number of an operation (REQ_OP_…) means for people. Those up to 5 have never
 * changed; of the others the odd ones write, if there is anything to write; from 32 on they are
 * a driver's own. */
static inline uint32_t block_op_of(uint32_t kernel_op, uint64_t bytes)
{
    switch (kernel_op) {
    case 0:
        return BLOCK_READ;
    case 1: /* a bio without bytes is there for its flush */
        return bytes > 0 ? BLOCK_WRITE : BLOCK_FLUSH;
    case 2:
        return BLOCK_FLUSH;
    case 3:
    case 5:
        return BLOCK_DISCARD;
    default:
        return kernel_op < 32 && kernel_op % 2 == 1 && bytes > 0 ? BLOCK_WRITE : BLOCK_NO_OP;
    }
}
