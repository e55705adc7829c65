// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How long block devices take: from the moment a request is handed to the device to its answer,
 * added up by device and operation.
 *
 * Requests of the whole machine: below the page cache nobody knows who asked. Devices without
 * requests (device mapper, md, zram) are seen by their bios instead. All are raw tracepoints,
 * whose arguments are taken as numbers: in the course of time they got others in other places.
 *
 * An answer may come in an interrupt, so all maps are allocated beforehand. A program that is
 * interrupted by itself is not run again by the kernel: an answer may be missed. Then the request
 * stays in the map until its memory serves the next one, which takes its place. */
#include "begun.h"
#include "kernel.h"

#include "format/block.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct blk_mq_ops;

struct request_queue {
    const struct blk_mq_ops *mq_ops; /* none: the device takes bios as they are */
    struct gendisk *disk;            /* Linux 5.15 */
};

struct gendisk {
    int major, first_minor;
    char disk_name[BLOCK_NAME_BYTES];
    struct request_queue *queue;
};

struct request {
    struct request_queue *q;
    struct gendisk *rq_disk; /* until Linux 5.16 */
    unsigned int cmd_flags;
    unsigned int __data_len;
};

struct block_device {
    struct gendisk *bd_disk;
};

struct bvec_iter {
    unsigned int bi_size;
};

struct bio {
    struct block_device *bi_bdev; /* Linux 5.12 */
    struct gendisk *bi_disk;      /* before */
    unsigned int bi_opf;
    struct bvec_iter bi_iter;
};

#pragma clang attribute pop

char block_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct block_config config;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BLOCK_FLIGHTS_MAX);
    __type(key, __u64);
    __type(value, struct block_flight);
} flights SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BLOCK_DEVICES_MAX);
    __type(key, __u32);
    __type(value, struct block_device_state);
} devices SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, BLOCK_DEVICES_MAX *BLOCK_OPS);
    __type(key, struct block_key);
    __type(value, struct block_tally);
} tallies SEC(".maps");

/* What does not fit on a program's stack: an empty tally, never written to. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct block_tally);
} empty SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, BLOCK_COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

enum { OP_MASK = 0xff };

static __always_inline void count_add(__u32 what)
{
    __u64 *count = bpf_map_lookup_elem(&counts, &what);
    if (count)
        (*count)++;
}

/* What others add meanwhile makes the value read one that was there, or nearly. */
static __always_inline void depth_up(uint64_t *depth, uint64_t *max)
{
    __sync_fetch_and_add(depth, 1);
    uint64_t now = *(volatile uint64_t *)depth;
    if (now > *max)
        *max = now;
}

static __always_inline void device_depth(__u32 number, __u32 op, bool up)
{
    struct block_device_state *device = bpf_map_lookup_elem(&devices, &number);
    if (!device || op >= BLOCK_OPS)
        return;
    if (up) {
        depth_up(&device->depth[op], &device->depth_max[op]);
        depth_up(&device->depth[BLOCK_OPS], &device->depth_max[BLOCK_OPS]);
    } else {
        __sync_fetch_and_add(&device->depth[op], (uint64_t)-1);
        __sync_fetch_and_add(&device->depth[BLOCK_OPS], (uint64_t)-1);
    }
}

static __always_inline bool device_need(struct gendisk *disk, __u32 number)
{
    if (bpf_map_lookup_elem(&devices, &number))
        return true;
    struct block_device_state fresh = {0};
    BPF_CORE_READ_STR_INTO(&fresh.name, disk, disk_name);
    bpf_map_update_elem(&devices, &number, &fresh, BPF_NOEXIST);
    return bpf_map_lookup_elem(&devices, &number) != 0;
}

/* Never one more in the device for a request that is handed over again, or whose end was missed:
 * each address in the map is one of its depth. */
static __always_inline void flight_end(__u64 address, const struct block_flight *flight)
{
    __u32 number = flight->number, op = flight->op;
    if (bpf_map_delete_elem(&flights, &address) == 0)
        device_depth(number, op, false);
}

__attribute__((noinline)) int flight_begin(__u64 address, __u64 disk_address, __u32 op, __u64 bytes)
{
    struct gendisk *disk = (void *)disk_address;
    struct block_flight flight = {.bytes = bytes, .op = op};
    const struct block_flight *missed = bpf_map_lookup_elem(&flights, &address);
    if (missed)
        flight_end(address, missed);
    if (!disk || op >= BLOCK_OPS || begun_ns() == 0)
        return 0;
    flight.number = (__u32)BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
    flight.start_ns = bpf_ktime_get_ns();
    if (!device_need(disk, flight.number) ||
        bpf_map_update_elem(&flights, &address, &flight, BPF_NOEXIST) != 0) {
        count_add(BLOCK_LOST);
        return 0;
    }
    device_depth(flight.number, op, true);
    return 0;
}

static __always_inline struct block_tally *tally_need(const struct block_flight *flight)
{
    struct block_key key = {.number = flight->number, .op = flight->op};
    struct block_tally *tally = bpf_map_lookup_elem(&tallies, &key);
    if (tally)
        return tally;
    __u32 zero = 0;
    const struct block_tally *none = bpf_map_lookup_elem(&empty, &zero);
    if (none)
        bpf_map_update_elem(&tallies, &key, none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&tallies, &key);
}

__attribute__((noinline)) int flight_done(__u64 address, __u32 failed)
{
    const struct block_flight *found = bpf_map_lookup_elem(&flights, &address);
    if (!found)
        return 0; /* it began before us */
    struct block_flight flight = *found;
    flight_end(address, &flight);
    struct block_tally *tally = tally_need(&flight);
    if (!tally) {
        count_add(BLOCK_LOST);
        return 0;
    }
    __u64 now_ns = bpf_ktime_get_ns(), ns = now_ns - flight.start_ns;
    if (failed)
        count_add(BLOCK_ERRORS);
    if (tally->count == 0 || flight.start_ns < tally->first_ns)
        tally->first_ns = flight.start_ns;
    if (ns > tally->max_ns)
        tally->max_ns = ns;
    tally->last_ns = now_ns;
    tally->total_ns += ns;
    tally->bytes += flight.bytes;
    tally->buckets[block_bucket(ns) & (BLOCK_BUCKETS - 1)]++;
    tally->sizes[block_size(flight.bytes) & (BLOCK_SIZES - 1)]++;
    tally->count++;
    return 0;
}

static __always_inline struct gendisk *request_disk(struct request *rq)
{
    if (bpf_core_field_exists(rq->rq_disk))
        return BPF_CORE_READ(rq, rq_disk);
    return BPF_CORE_READ(rq, q, disk);
}

SEC("raw_tp/block_rq_issue")
int request_issue(__u64 *context)
{
    __u64 address = config.issue_arg ? context[1] : context[0];
    struct request *rq = (void *)address;
    __u64 bytes = BPF_CORE_READ(rq, __data_len);
    __u32 op = block_op_of(BPF_CORE_READ(rq, cmd_flags) & OP_MASK, bytes);
    flight_begin(address, (__u64)request_disk(rq), op, bytes);
    return 0;
}

/* Part by part, if the device answers so: the last part is all that is left. */
SEC("raw_tp/block_rq_complete")
int request_complete(__u64 *context)
{
    __u64 address = context[0];
    __u32 done = (__u32)context[2];
    struct request *rq = (void *)address;
    if (done < BPF_CORE_READ(rq, __data_len))
        return 0;
    flight_done(address, (__u32)context[1]);
    return 0;
}

/* The device had no room for it: it will be handed over again. */
SEC("raw_tp/block_rq_requeue")
int request_requeue(__u64 *context)
{
    __u64 address = config.issue_arg ? context[1] : context[0];
    const struct block_flight *flight = bpf_map_lookup_elem(&flights, &address);
    if (flight)
        flight_end(address, flight);
    return 0;
}

static __always_inline struct gendisk *bio_disk(struct bio *bio)
{
    if (bpf_core_field_exists(bio->bi_disk))
        return BPF_CORE_READ(bio, bi_disk);
    return BPF_CORE_READ(bio, bi_bdev, bd_disk);
}

/* Only of devices that take bios as they are: others make requests of them. */
SEC("raw_tp/block_bio_queue")
int bio_queue(__u64 *context)
{
    __u64 address = config.queue_arg ? context[1] : context[0];
    struct bio *bio = (void *)address;
    struct gendisk *disk = bio_disk(bio);
    if (!disk || BPF_CORE_READ(disk, queue, mq_ops))
        return 0;
    __u64 bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
    flight_begin(address, (__u64)disk, block_op_of(BPF_CORE_READ(bio, bi_opf) & OP_MASK, bytes),
                 bytes);
    return 0;
}

SEC("raw_tp/block_bio_complete")
int bio_complete(__u64 *context)
{
    flight_done(context[1], 0);
    return 0;
}
