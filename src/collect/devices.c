/* From tallies in the kernel, one a CPU, to rows of devices. They only grow: what is new is what
 * they have more than when they were last read.
 *
 * How many requests a device had on average needs no clock in the kernel: each request that is in
 * the device for a time adds that time to the sum of depth over time. */
#include "collect/devices.h"

#include "base/clock.h"
#include "base/vec.h"
#include "collect/bpf_unit.h"
#include "format/block.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

_Static_assert((int)BLOCK_BUCKETS == (int)WAIT_BUCKETS && (int)BLOCK_SIZES == (int)CALL_SIZES,
               "format and model");
_Static_assert((int)BLOCK_READ == (int)DEVICE_READ && (int)BLOCK_WRITE == (int)DEVICE_WRITE &&
                   (int)BLOCK_FLUSH == (int)DEVICE_FLUSH &&
                   (int)BLOCK_DISCARD == (int)DEVICE_DISCARD && (int)BLOCK_OPS == (int)DEVICE_OPS,
               "format and model");

extern const unsigned char block_bpf[];
extern const size_t block_bpf_bytes;

struct device_seen {
    uint32_t number;
    char name[BLOCK_NAME_BYTES];
    uint32_t rows[BLOCK_OPS];           /* the sink's ids; 0: not yet */
    struct block_tally last[BLOCK_OPS]; /* as they were last read */
    uint64_t open_ns[BLOCK_OPS];        /* in the device at the end: what they add to depth_ns */
};

struct devices {
    struct sink *sink;
    struct bpf_unit *unit;
    int devices_fd, tallies_fd, flights_fd, counts_fd;
    int cpus;
    struct block_tally *per_cpu;
    VEC(struct device_seen) seen;
    bool detached;
    char missing[256];
};

static const char *const bio_programs[] = {"bio_queue", "bio_complete"};
static const char *const programs[] = {"request_issue", "request_complete", "request_requeue",
                                       "bio_queue", "bio_complete"};

void devices_close(struct devices *devices)
{
    if (!devices)
        return;
    bpf_unit_close(devices->unit);
    free(devices->per_cpu);
    VEC_FREE(&devices->seen);
    free(devices);
}

/* ---- what this kernel is like ---- */

/* Until Linux 5.11 these tracepoints had the queue as an argument before. Kernels of distributors
 * took that over earlier: those older ones are asked. */
static uint32_t argument_of(const char *type_name)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    if (uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
        (major > 5 || (major == 5 && minor >= 11)))
        return 0;
    struct btf *btf = btf__load_vmlinux_btf();
    int id = btf ? btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF) : -ENOENT;
    const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
    type = type ? btf__type_by_id(btf, type->type) : NULL;
    type = type && btf_is_ptr(type) ? btf__type_by_id(btf, type->type) : NULL;
    /* The first parameter of such a function is not the tracepoint's. */
    uint32_t argument = type && btf_is_func_proto(type) && btf_vlen(type) == 2 ? 0 : 1;
    btf__free(btf);
    return argument;
}

/* Is there a device that takes bios as they are? Every bio of the machine would be looked at for
 * its sake. They have no folder "mq" in sysfs; one without a size is not in use. */
static bool bios_matter(void)
{
    DIR *folder = opendir("/sys/block");
    bool matter = !folder; /* who knows */
    for (struct dirent *entry; !matter && folder && (entry = readdir(folder));) {
        char path[512], size[32] = "";
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/sys/block/%s/mq", entry->d_name);
        if (access(path, F_OK) == 0)
            continue;
        snprintf(path, sizeof(path), "/sys/block/%s/size", entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file || !fgets(size, sizeof(size), file) || strtoull(size, NULL, 10) > 0)
            matter = true;
        if (file)
            fclose(file);
    }
    if (folder)
        closedir(folder);
    return matter;
}

/* ---- into the kernel ---- */

static int unit_load(struct devices *devices, const char *cache_dir, bool bios, struct why *why)
{
    struct bpf_blob blob = {"block", block_bpf, block_bpf_bytes};
    struct block_config config = {
        .issue_arg = argument_of("btf_trace_block_rq_issue"),
        .queue_arg = argument_of("btf_trace_block_bio_queue"),
    };
    bpf_unit_close(devices->unit);
    devices->unit = NULL;
    int r = bpf_unit_open(&blob, cache_dir, &devices->unit, why);
    if (r == 0)
        r = bpf_unit_config(devices->unit, &config, sizeof(config), why);
    for (size_t i = 0; i < ARRAY_SIZE(bio_programs) && r == 0 && !bios; i++)
        r = bpf_unit_leave_out(devices->unit, bio_programs[i]);
    if (r == 0)
        r = bpf_unit_load(devices->unit, why);
    return r < 0 ? r : bpf_unit_attach(devices->unit, why);
}

/* A cache that is not right, or a kernel that does not tell of bios, must not cost the rest. */
static int unit_start(struct devices *devices, const char *cache_dir, struct why *why)
{
    bool bios = bios_matter();
    int r = unit_load(devices, cache_dir, bios, why);
    if (r == 0 || r == -EPERM || r == -EACCES || r == -ENOMEM)
        return r;
    if (cache_dir)
        r = unit_load(devices, NULL, bios, why);
    if (r < 0 && bios) {
        struct why first = *why;
        r = unit_load(devices, NULL, false, why);
        if (r == 0)
            snprintf(devices->missing, sizeof(devices->missing),
                     "devices without a queue of requests (dm, md, zram): %.150s", first.what);
    }
    if (r == -ENOENT)
        why_set(why, WHY_DENIED, ENOENT, "use a kernel built with CONFIG_BLK_DEV and BPF events",
                "this kernel does not tell of requests to block devices");
    return r;
}

int devices_open(const char *cache_dir, struct sink *sink, struct devices **ret, struct why *why)
{
    struct devices *devices = calloc(1, sizeof(*devices));
    if (!devices)
        return why_nomem(why);
    devices->sink = sink;
    devices->cpus = libbpf_num_possible_cpus();
    int r = devices->cpus > 0 ? 0 : why_errno(why, -devices->cpus, NULL, "counting CPUs");
    if (r == 0) {
        devices->per_cpu = calloc((size_t)devices->cpus, sizeof(*devices->per_cpu));
        r = devices->per_cpu ? 0 : why_nomem(why);
    }
    if (r == 0)
        r = unit_start(devices, cache_dir, why);
    if (r < 0) {
        devices_close(devices);
        return r;
    }
    devices->devices_fd = bpf_unit_map_fd(devices->unit, "devices");
    devices->tallies_fd = bpf_unit_map_fd(devices->unit, "tallies");
    devices->flights_fd = bpf_unit_map_fd(devices->unit, "flights");
    devices->counts_fd = bpf_unit_map_fd(devices->unit, "counts");
    *ret = devices;
    return 0;
}

int devices_begin(struct devices *devices, uint64_t start_ns, struct why *why)
{
    return bpf_unit_begin(devices->unit, start_ns, why);
}

const char *devices_missing(const struct devices *devices)
{
    return devices->missing[0] ? devices->missing : NULL;
}

uint64_t devices_map_bytes(void)
{
    enum { ELEMENT = 48 }; /* the kernel's own part of an element of a hash */
    int cpus = libbpf_num_possible_cpus();
    return (uint64_t)BLOCK_FLIGHTS_MAX * (8 + sizeof(struct block_flight) + ELEMENT) +
           (uint64_t)BLOCK_DEVICES_MAX * (8 + sizeof(struct block_device_state) + ELEMENT) +
           (uint64_t)BLOCK_DEVICES_MAX * BLOCK_OPS *
               (ELEMENT + (uint64_t)(cpus > 0 ? cpus : 1) * sizeof(struct block_tally));
}

/* ---- out of it ---- */

static void tallies_join(const struct block_tally *per_cpu, int cpus, struct block_tally *ret)
{
    *ret = (struct block_tally){0};
    for (int cpu = 0; cpu < cpus; cpu++) {
        const struct block_tally *one = &per_cpu[cpu];
        if (one->count == 0)
            continue;
        if (ret->count == 0 || one->first_ns < ret->first_ns)
            ret->first_ns = one->first_ns;
        ret->last_ns = MAX(ret->last_ns, one->last_ns);
        ret->max_ns = MAX(ret->max_ns, one->max_ns);
        ret->count += one->count;
        ret->bytes += one->bytes;
        ret->total_ns += one->total_ns;
        for (unsigned i = 0; i < BLOCK_BUCKETS; i++)
            ret->buckets[i] += one->buckets[i];
        for (unsigned i = 0; i < BLOCK_SIZES; i++)
            ret->sizes[i] += one->sizes[i];
    }
}

static void tally_less(const struct block_tally *now, const struct block_tally *before,
                       struct device_tally *ret)
{
    *ret = (struct device_tally){
        .count = now->count - before->count,
        .bytes = now->bytes - before->bytes,
        .total_ns = now->total_ns - before->total_ns,
        .max_ns = now->max_ns,
        .first_ns = now->first_ns,
        .last_ns = now->last_ns,
    };
    for (unsigned i = 0; i < WAIT_BUCKETS; i++)
        ret->buckets[i] = now->buckets[i] - before->buckets[i];
    for (unsigned i = 0; i < CALL_SIZES; i++)
        ret->sizes[i] = now->sizes[i] - before->sizes[i];
}

static int device_need(struct devices *devices, uint32_t number, const char *name,
                       struct device_seen **ret)
{
    for (size_t i = 0; i < devices->seen.len; i++)
        if (devices->seen.data[i].number == number) {
            *ret = &devices->seen.data[i];
            return 0;
        }
    struct device_seen fresh = {.number = number};
    snprintf(fresh.name, sizeof(fresh.name), "%.*s", BLOCK_NAME_BYTES - 1, name);
    if (VEC_PUSH(&devices->seen, fresh) < 0)
        return -ENOMEM;
    *ret = &devices->seen.data[devices->seen.len - 1];
    return 0;
}

static int row_add(struct devices *devices, struct device_seen *device, unsigned op,
                   const struct device_tally *tally)
{
    struct device_info info = {
        .number = device->number,
        .op = (enum device_op)op,
        .name = str_from(device->name),
    };
    int r = 0;
    if (device->rows[op] == 0)
        r = sink_device(devices->sink, &info, &device->rows[op]);
    return r < 0 ? r : sink_device_add(devices->sink, device->rows[op], tally);
}

static int device_take(struct devices *devices, struct device_seen *device,
                       const struct block_device_state *state)
{
    struct device_tally more[BLOCK_OPS];
    uint64_t all_ns = 0;
    bool any = false;
    for (unsigned op = 0; op < BLOCK_OPS; op++) {
        struct block_key key = {.number = device->number, .op = op};
        struct block_tally now = device->last[op];
        if (bpf_map_lookup_elem(devices->tallies_fd, &key, devices->per_cpu) == 0)
            tallies_join(devices->per_cpu, devices->cpus, &now);
        tally_less(&now, &device->last[op], &more[op]);
        device->last[op] = now;
        more[op].depth_ns = more[op].total_ns + device->open_ns[op];
        more[op].depth_max = state->depth_max[op];
        device->open_ns[op] = 0;
        all_ns += more[op].depth_ns;
        any = any || more[op].count > 0 || more[op].depth_ns > 0;
    }
    more[BLOCK_READ].depth_ns = all_ns;
    more[BLOCK_READ].depth_max = state->depth_max[BLOCK_OPS];
    int r = 0;
    for (unsigned op = 0; op < BLOCK_OPS && r == 0 && any; op++)
        if (op == BLOCK_READ || more[op].count > 0 || more[op].depth_ns > 0)
            r = row_add(devices, device, op, &more[op]);
    return r;
}

int devices_drain(struct devices *devices)
{
    uint32_t number, next;
    const uint32_t *last = NULL;
    for (int i = 0; i < BLOCK_DEVICES_MAX; i++) {
        struct block_device_state state;
        struct device_seen *device;
        if (bpf_map_get_next_key(devices->devices_fd, last, &next) < 0)
            return errno == ENOENT ? 0 : -errno;
        number = next;
        last = &number;
        if (bpf_map_lookup_elem(devices->devices_fd, &number, &state) < 0)
            continue;
        state.name[BLOCK_NAME_BYTES - 1] = '\0';
        int r = device_need(devices, number, state.name, &device);
        if (r == 0)
            r = device_take(devices, device, &state);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Requests that are still in a device were there until now. */
static void flights_take(struct devices *devices, uint64_t now_ns)
{
    uint64_t address, next;
    const uint64_t *last = NULL;
    for (int i = 0; i < BLOCK_FLIGHTS_MAX; i++) {
        struct block_flight flight;
        if (bpf_map_get_next_key(devices->flights_fd, last, &next) < 0)
            return;
        address = next;
        last = &address;
        if (bpf_map_lookup_elem(devices->flights_fd, &address, &flight) < 0 ||
            flight.op >= BLOCK_OPS || flight.start_ns > now_ns)
            continue;
        for (size_t k = 0; k < devices->seen.len; k++)
            if (devices->seen.data[k].number == flight.number)
                devices->seen.data[k].open_ns[flight.op] += now_ns - flight.start_ns;
    }
}

/* A program that is interrupted by itself is not run: the kernel counts that. */
static uint64_t missed_count(const struct devices *devices)
{
    uint64_t missed = 0;
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        struct bpf_prog_info info = {0};
        uint32_t bytes = sizeof(info);
        int fd = bpf_unit_program_fd(devices->unit, programs[i]);
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &bytes) == 0)
            missed += info.recursion_misses;
    }
    return missed;
}

int devices_finish(struct devices *devices)
{
    uint64_t counts[BLOCK_COUNTS];
    if (devices->detached)
        return 0;
    bpf_unit_detach(devices->unit);
    devices->detached = true;
    int r = devices_drain(devices);
    if (r == 0) {
        /* Once more, now that every device is known. */
        flights_take(devices, clock_mono_ns());
        r = devices_drain(devices);
    }
    if (r == 0)
        r = bpf_counts_read(devices->counts_fd, counts, BLOCK_COUNTS);
    if (r == 0)
        r = sink_counter(devices->sink, "io.device_lost", UNIT_COUNT,
                         counts[BLOCK_LOST] + missed_count(devices));
    if (r == 0)
        r = sink_counter(devices->sink, "io.device_errors", UNIT_COUNT, counts[BLOCK_ERRORS]);
    return r;
}
