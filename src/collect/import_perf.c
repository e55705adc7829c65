/* perf.data: its events go through the same `stacks` as those of our own sampler, so that
 * stacks copied by `perf record --call-graph dwarf` are unwound, and frames are named from the
 * files they lie in, if those are here and still the same. */
#include "base/clock.h"
#include "base/map.h"
#include "collect/import_common.h"
#include "collect/perf_data.h"
#include "collect/stacks.h"
#include "target/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

struct perf_series {
    uint32_t id;      /* 0: not made yet */
    bool cpu_time;    /* its weights are the CPU's nanoseconds */
    uint64_t each_ns; /* what a sample stands for, when that is not its period */
};

struct perf {
    struct import import;
    struct stacks *stacks;
    enum unwind_machine machine;
    struct map_u64 series_of; /* attribute to index in `series` */
    VEC(struct perf_series) series;
    bool have_cpu;
    struct perf_data_about about;
    uint64_t first_ns, now_ns;
    uint64_t lost, throttled, sampled_ns;
    uint64_t walked, complete, truncated; /* stacks that we unwound */
};

struct event_name {
    uint32_t type;
    uint64_t config;
    const char *name;
};
static const struct event_name event_names[] = {
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, "cache-references"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache-misses"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "branch-misses"},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock"},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "task-clock"},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults"},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches"},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, "cpu-migrations"},
};

static const char *event_name(struct perf *perf, const struct perf_data_attr *attr)
{
    if (attr->name[0] != '\0')
        return attr->name;
    for (size_t i = 0; i < ARRAY_SIZE(event_names); i++)
        if (event_names[i].type == attr->attr.type && event_names[i].config == attr->attr.config)
            return event_names[i].name;
    return arena_printf(perf->import.arena, "event-%u-0x%llx", attr->attr.type,
                        (unsigned long long)attr->attr.config);
}

static bool is_clock(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_SOFTWARE &&
           (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool is_cycles(const struct perf_event_attr *attr)
{
    /* On machines with two kinds of core the kind stands in the upper half. */
    return attr->type == PERF_TYPE_HARDWARE &&
           (attr->config & UINT32_MAX) == PERF_COUNT_HW_CPU_CYCLES;
}

/* What a weight of this event means: nanoseconds where that can be said, else a count. */
static int series_make(struct perf *perf, const struct perf_data_attr *attr,
                       struct perf_series *ret)
{
    struct import *import = &perf->import;
    const struct perf_event_attr *raw = &attr->attr;
    const char *name = event_name(perf, attr);
    bool period = raw->sample_type & PERF_SAMPLE_PERIOD;
    struct perf_series series = {0};
    enum unit unit = UNIT_COUNT;
    const char *meaning = "number of events";
    if (is_clock(raw)) {
        unit = UNIT_NS;
        meaning = "time on a CPU";
        if (!period && raw->freq)
            series.each_ns = raw->sample_freq ? NS_PER_SEC / raw->sample_freq : 0;
    } else if (is_cycles(raw) && raw->freq && raw->sample_freq) {
        unit = UNIT_NS;
        series.each_ns = NS_PER_SEC / raw->sample_freq;
        meaning = arena_printf(import->arena,
                               "time on a CPU, estimated: a sample counts as 1/%llu s",
                               (unsigned long long)raw->sample_freq);
    } else if (!period && raw->freq) {
        series.each_ns = 1;
        meaning = "number of samples";
    }
    bool cpu = (is_clock(raw) || is_cycles(raw)) && !perf->have_cpu;
    const char *about = arena_printf(import->arena, "perf.data, event %s: %s", name, meaning);
    int r = import_series(import, cpu ? "cpu" : name, unit, about, &series.id);
    if (r < 0)
        return r;
    perf->have_cpu = perf->have_cpu || cpu;
    series.cpu_time = cpu && unit == UNIT_NS;
    import_note(import, "series %s: %s", import->result->series[import->result->series_count - 1],
                about);
    *ret = series;
    return 0;
}

static int series_of(struct perf *perf, const struct perf_data_attr *attr, struct perf_series *ret)
{
    bool fresh;
    uint64_t *slot = map_u64_at(&perf->series_of, attr->index, &fresh);
    if (!slot)
        return -ENOMEM;
    if (fresh) {
        struct perf_series series = {0};
        int r = series_make(perf, attr, &series);
        if (r < 0 && r != -E2BIG)
            return r;
        *slot = perf->series.len;
        if (VEC_PUSH(&perf->series, series) < 0)
            return -ENOMEM;
    }
    *ret = perf->series.data[*slot];
    return ret->id ? 0 : -E2BIG;
}

/* perf's numbers of x86_64's registers to DWARF's; -1: of no use to an unwinder. */
static const int8_t x86_64_dwarf[24] = {0,  3,  2,  1,  4, 5, 6,  7,  -1, -1, -1, -1,
                                        -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15};
enum { X86_64_IP = 8, AARCH64_PC = 32, ABI_64 = 2 };

static bool registers_of(const struct perf *perf, const struct perf_data_sample *sample,
                         struct unwind_registers *ret)
{
    if (!sample->regs || sample->regs_abi != ABI_64)
        return false;
    bool pc = false;
    const uint8_t *at = sample->regs;
    *ret = (struct unwind_registers){0};
    for (unsigned i = 0; i < 64; i++) {
        if (!(sample->regs_mask >> i & 1))
            continue;
        uint64_t value;
        memcpy(&value, at, sizeof(value));
        at += sizeof(value);
        bool x86 = perf->machine == UNWIND_X86_64;
        if (i == (x86 ? (unsigned)X86_64_IP : (unsigned)AARCH64_PC)) {
            ret->pc = value;
            pc = true;
            continue;
        }
        int number = x86 ? (i < ARRAY_SIZE(x86_64_dwarf) ? x86_64_dwarf[i] : -1)
                         : (i < UNWIND_REGISTERS ? (int)i : -1);
        if (number >= 0) {
            ret->reg[number] = value;
            ret->known |= 1u << number;
        }
    }
    unsigned sp = perf->machine == UNWIND_X86_64 ? 7 : 31;
    return pc && ret->known >> sp & 1;
}

static uint64_t weight_of(const struct perf_series *series, const struct perf_data_sample *sample)
{
    if (series->each_ns > 0)
        return series->each_ns;
    return sample->period > 0 ? sample->period : sample->attr->attr.sample_period;
}

static int sample_add(struct perf *perf, const struct perf_data_event *event)
{
    struct import *import = &perf->import;
    struct perf_series series = {0};
    bool skipped;
    int r = import_settle(import, series_of(perf, event->sample.attr, &series), "too_many_events",
                          &skipped);
    if (r < 0 || skipped)
        return r;
    struct unwind_registers registers;
    bool walk = registers_of(perf, &event->sample, &registers);
    unsigned sp = perf->machine == UNWIND_X86_64 ? 7 : 31;
    struct stacks_sample wanted = {
        .time_ns = perf->now_ns,
        .pid = event->pid,
        .tid = event->tid,
        .kernel = event->sample.kernel,
        .kernel_count = event->sample.kernel_count,
        .user = event->sample.user,
        .user_count = walk ? 0 : event->sample.user_count,
        .registers = walk ? &registers : NULL,
    };
    if (walk)
        wanted.slice = (struct unwind_slice){registers.reg[sp], event->sample.stack,
                                             event->sample.stack_len};
    struct stacks_found found = {0};
    r = import_settle(import, stacks_sample(perf->stacks, &wanted, &found), "stack_refused",
                      &skipped);
    if (r < 0 || skipped)
        return r;
    struct sample sample = {
        .series = series.id,
        .thread = found.thread,
        .stack = found.stack,
        .time_ns = event->time_ns,
        .weight = weight_of(&series, &event->sample),
    };
    if (series.cpu_time && sample.weight <= INT64_MAX - perf->sampled_ns)
        perf->sampled_ns += sample.weight;
    if (walk) {
        perf->walked++;
        perf->complete += found.end == UNWIND_ROOT;
        perf->truncated += found.end == UNWIND_TRUNCATED;
    }
    return import_settle(import, import_samples(import, &sample, 1), "bad_sample", &skipped);
}

static int mmap_add(struct perf *perf, const struct perf_data_event *event)
{
    const struct perf_data_mmap *from = &event->mmap;
    struct stacks_mmap mmap = {
        .time_ns = perf->now_ns,
        .pid = event->pid,
        .address = from->address,
        .size_bytes = from->size_bytes,
        .file_offset = from->file_offset,
        .executable = from->executable,
        .path = from->path,
        .build_id = from->build_id,
        .build_id_len = from->build_id_len,
        .inode = from->inode,
        .device_major = from->device_major,
        .device_minor = from->device_minor,
    };
    return stacks_mmap(perf->stacks, &mmap);
}

static int perf_event(void *context, const struct perf_data_event *event, struct why *why)
{
    (void)why; /* the import's own is the same */
    struct perf *perf = context;
    struct import *import = &perf->import;
    /* Without a time an event is of now; and time does not go back for the address spaces. */
    perf->now_ns = MAX(perf->now_ns, event->time_ns);
    if (perf->first_ns == 0)
        perf->first_ns = event->time_ns;
    bool skipped;
    switch (event->kind) {
    case PERF_DATA_SAMPLE:
        return sample_add(perf, event);
    case PERF_DATA_MMAP:
        return import_settle(import, mmap_add(perf, event), "mapping_refused", &skipped);
    case PERF_DATA_COMM:
        return import_settle(import,
                             stacks_comm(perf->stacks, perf->now_ns, event->pid, event->tid,
                                         event->comm, event->exec),
                             "comm_refused", &skipped);
    case PERF_DATA_FORK:
        return import_settle(
            import,
            stacks_fork(perf->stacks, perf->now_ns, event->parent_pid, event->pid, event->tid),
            "fork_refused", &skipped);
    case PERF_DATA_EXIT:
        return import_settle(import,
                             stacks_exit(perf->stacks, perf->now_ns, event->pid, event->tid),
                             "exit_refused", &skipped);
    case PERF_DATA_LOST:
        perf->lost += MIN(event->lost, (uint64_t)INT64_MAX - MIN(perf->lost, (uint64_t)INT64_MAX));
        return 0;
    case PERF_DATA_THROTTLE:
        perf->throttled++;
        return 0;
    }
    return 0;
}

static void perf_skip(void *context, const char *reason)
{
    struct perf *perf = context;
    import_skip(&perf->import, reason);
}

static int machine_of(struct perf *perf, const char *arch)
{
    if (arch[0] == '\0') {
        perf->machine = unwind_machine_here();
        import_note(&perf->import, "the file does not name its architecture: taken to be this "
                                   "machine's");
        return 0;
    }
    if (strcmp(arch, "x86_64") == 0 || strcmp(arch, "amd64") == 0) {
        perf->machine = UNWIND_X86_64;
        return 0;
    }
    if (strcmp(arch, "aarch64") == 0 || strcmp(arch, "arm64") == 0) {
        perf->machine = UNWIND_AARCH64;
        return 0;
    }
    return why_set(perf->import.why, WHY_DENIED, EOPNOTSUPP,
                   "turn it into text there: perf script -i FILE > FILE.txt",
                   "'%s' was recorded on %s; whyslow reads x86_64 and aarch64",
                   perf->import.source->path, arch);
}

static int perf_begin(void *context, const struct perf_data_about *about, struct why *why)
{
    struct perf *perf = context;
    perf->about = *about;
    if (about->command[0] != '\0')
        perf->import.command = arena_dup(perf->import.arena,
                                         command_text_shown(perf->import.arena, about->command));
    int r = machine_of(perf, about->arch);
    if (r < 0)
        return r;
    struct utsname here;
    bool foreign = uname(&here) < 0 ||
                   (about->osrelease[0] != '\0' && strcmp(about->osrelease, here.release) != 0) ||
                   (about->hostname[0] != '\0' && strcmp(about->hostname, here.nodename) != 0);
    struct stacks_opts opts = {
        .system_wide = true,
        .cache_dir = perf->import.opts->cache_dir,
        .debuginfod = perf->import.opts->debuginfod,
        .machine = perf->machine,
        .foreign_kernel = foreign,
        .no_symbols = perf->import.opts->no_symbols,
    };
    if (foreign)
        import_note(&perf->import,
                    "recorded on another machine or kernel (%s, %s): kernel frames "
                    "are not named",
                    about->hostname[0] ? about->hostname : "unknown host",
                    about->osrelease[0] ? about->osrelease : "unknown kernel");
    return stacks_open(&opts, perf->import.sink, &perf->stacks, why);
}

static int counters_put(struct perf *perf)
{
    struct sink *sink = perf->import.sink;
    int r = sink_counter(sink, "loss.ring_full", UNIT_COUNT, perf->lost);
    if (r == 0)
        r = sink_counter(sink, "cpu.throttled", UNIT_COUNT, perf->throttled);
    /* Chains that perf walked itself do not tell whether they are complete. */
    if (r == 0 && perf->walked > 0)
        r = sink_counter(sink, "cpu.complete", UNIT_COUNT, perf->complete);
    if (r == 0 && perf->walked > 0)
        r = sink_counter(sink, "cpu.truncated", UNIT_COUNT, perf->truncated);
    if (r == 0 && perf->sampled_ns > 0)
        r = sink_counter(sink, "cpu.sampled_ns", UNIT_NS, perf->sampled_ns);
    return r;
}

static int perf_finish(struct perf *perf)
{
    struct import *import = &perf->import;
    if (perf->about.has_clock && perf->first_ns >= perf->about.clock_ns)
        import->start_real_ns = perf->about.wall_clock_ns + (perf->first_ns - perf->about.clock_ns);
    if (perf->stacks) {
        int r = stacks_finish(perf->stacks, import->why);
        if (r < 0)
            return r;
    }
    int r = counters_put(perf);
    return r < 0 ? import_sink_failed(import, r) : import_finish(import);
}

static int perf_import(struct import_source *source, struct sink *sink,
                       const struct import_opts *opts, struct arena *arena,
                       struct import_result *ret, struct why *why)
{
    static const struct perf_data_ops ops = {perf_begin, perf_event, perf_skip};
    struct perf perf = {.import = {.source = source,
                                   .sink = sink,
                                   .opts = opts,
                                   .arena = arena,
                                   .result = ret,
                                   .why = why,
                                   .format = "perf.data"}};
    int r = perf_data_read(source, &ops, &perf, why);
    if (r == 0)
        r = perf_finish(&perf);
    stacks_close(perf.stacks);
    map_u64_deinit(&perf.series_of);
    VEC_FREE(&perf.series);
    import_deinit(&perf.import);
    return r;
}

extern const struct importer importer_perf;
const struct importer importer_perf = {
    .name = "perf.data",
    .about = "perf record's file or pipe, also compressed; stacks copied with --call-graph dwarf "
             "are unwound",
    .detect = perf_data_detect,
    .import = perf_import,
};
