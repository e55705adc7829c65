/* Samples of the running program's stacks: the collector's life. */
#include "collect/cpu.h"

#include "base/clock.h"
#include "base/jsonw.h"
#include "collect/cpu_parts.h"
#include "collect/tiers.h"
#include "target/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The program itself, as it would be used. */
static void probe_deep(struct probe *ret)
{
    struct why why = {0};
    struct cpu_deep *deep = NULL;
    int r = cpu_deep_open(1, NULL, &deep, &why);
    cpu_deep_close(deep);
    *ret = (struct probe){.ok = r == 0, .error = -r};
    if (r == 0)
        return;
    snprintf(ret->detail, sizeof(ret->detail), "%.190s", why.what);
    snprintf(ret->remedy, sizeof(ret->remedy), "%.190s", why.remedy);
}

static void cpu_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_KERNEL,
         {probe_perf_system, probe_perf_kernel, probe_deep},
         "sampled stacks of any process, deep ones and kernel frames included"},
        {TIER_KERNEL,
         {probe_perf_system, probe_perf_kernel},
         "sampled stacks of any process, kernel frames included, up to 64 KiB deep"},
        {TIER_USER, {probe_perf_own}, "sampled stacks of own processes, user space only"},
        {TIER_FLOOR, {probe_preload}, "samples by a timer inside the program, own threads only"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

static uint64_t own_cpu_ns(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int series_add(struct collector *c, struct why *why)
{
    char about[256], event[32];
    snprintf(about, sizeof(about), "CPU time, sampled by %s at %u Hz a CPU",
             perf_plan_event(&c->plan, event, sizeof(event)), c->plan.rate_hz);
    struct series_info info = {.name = "cpu", .kind = SERIES_SUM, .unit = UNIT_NS, .about = about};
    int r = sink_series(c->sink, &info, &c->series);
    return r < 0 ? why_errno(why, -r, NULL, "the series 'cpu' could not be recorded") : 0;
}

static int stacks_make(struct collector *c, struct why *why)
{
    struct stacks_opts opts = {
        .live = true,
        .system_wide = c->plan.system,
        .cache_dir = c->opts.cache_dir,
        .debuginfod = c->opts.debuginfod,
        .machine = unwind_machine_here(),
        .embed_functions = CPU_EMBED_FUNCTIONS,
        .embed_no_code = c->opts.no_code,
        .no_symbols = c->opts.no_symbols,
        .root_pid = c->opts.scope == TARGET_SPAWNED ? c->opts.pid : 0,
        .root_command = c->opts.command,
    };
    return stacks_open(&opts, c->sink, &c->stacks, why);
}

static int process_read(struct collector *c, int pid, uint64_t now_ns, struct why *why)
{
    struct proc_stat stat;
    int r = stacks_attach(c->stacks, pid, now_ns, why);
    if (r < 0)
        return r;
    /* Of a machine, those that run just now will be sampled first. */
    bool first = c->opts.scope == TARGET_ATTACHED ||
                 (proc_stat_read(pid, 0, &stat) == 0 && stat.state == 'R');
    if (first && c->plan.stacks == PERF_STACKS_SLICE)
        r = stacks_preload(c->stacks, pid);
    return r < 0 ? why_errno(why, -r, NULL, "cannot read the programs of process %d", pid) : 0;
}

/* Processes that were here before us. One that ends while we look is no loss. */
static int processes_read(struct collector *c, struct why *why)
{
    if (c->opts.scope == TARGET_SPAWNED)
        return 0;
    uint64_t now_ns = clock_mono_ns();
    if (c->opts.scope == TARGET_ATTACHED)
        return process_read(c, c->opts.pid, now_ns, why);
    DIR *dir = opendir("/proc");
    if (!dir)
        return why_errno(why, errno, "mount /proc", "cannot list the processes");
    struct dirent *entry;
    int r = 0;
    while (r == 0 && (entry = readdir(dir))) {
        uint64_t pid;
        if (str_to_u64(str_from(entry->d_name), 10, &pid) < 0 || pid > INT32_MAX)
            continue;
        r = process_read(c, (int)pid, now_ns, why);
        if (r != -ENOMEM)
            r = 0;
    }
    closedir(dir);
    return r;
}

static void cpu_close(struct collector *c)
{
    if (!c)
        return;
    cpu_events_close(c);
    cpu_deep_close(c->deep);
    cpu_blind_close(c->blind);
    stacks_close(c->stacks);
    free(c);
}

/* Not having it is no failure: deep stacks end as truncated, and the recording says why. */
static void deep_open(struct collector *c)
{
    struct why why = {0};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (c->opts.no_samples) {
        snprintf(c->deep_na, sizeof(c->deep_na), "no samples were asked for");
        return;
    }
    if (c->plan.stacks != PERF_STACKS_SLICE) {
        snprintf(c->deep_na, sizeof(c->deep_na), "stacks are not walked by whyslow (-g)");
        return;
    }
    if (cpu_deep_open(cpus > 0 ? (size_t)cpus : 1, c->opts.cache_dir, &c->deep, &why) == 0)
        return;
    snprintf(c->deep_na, sizeof(c->deep_na), "%.300s%s%.200s", why.what, why.remedy[0] ? "; " : "",
             why.remedy);
}

/* Events are denied, but nobody asked for samples: followers can do with less. */
static int blind_start(struct collector *c, const struct why *denied, struct why *why)
{
    snprintf(c->blind_na, sizeof(c->blind_na), "%.300s%s%.200s", denied->what,
             denied->remedy[0] ? "; " : "", denied->remedy);
    snprintf(c->plan.kernel_na, sizeof(c->plan.kernel_na), "%.250s", denied->what);
    int r = stacks_make(c, why);
    if (r < 0)
        return r;
    r = cpu_blind_open(c);
    if (r < 0)
        return why_errno(why, -r, "'ps -e' lists the processes", "cannot follow process %d",
                         c->opts.pid);
    return processes_read(c, why);
}

static int start(struct collector *c, struct why *why)
{
    bool system = c->opts.scope == TARGET_SYSTEM || c->opts.scope == TARGET_CGROUP;
    struct why denied = {0};
    int r = perf_plan_make(c->opts.stacks, system, c->opts.rate_hz, &c->plan, &denied);
    if ((r == -EACCES || r == -EPERM || r == -ENOSYS) && c->opts.no_samples && !system)
        return blind_start(c, &denied, why);
    if (r < 0) {
        *why = denied;
        return r;
    }
    c->registers_mask = perf_registers_mask();
    c->slice_bytes = CPU_SLICE_BYTES_MIN;
    cpu_cycles_begin(c);
    deep_open(c);
    r = stacks_make(c, why);
    if (r == 0)
        r = cpu_events_open(c, why);
    if (r == 0 && !c->opts.no_samples)
        r = series_add(c, why);
    if (r < 0)
        return r;
    c->sample_type = perf_attr_sampling(&c->plan, 1, c->slice_bytes).sample_type;
    return processes_read(c, why);
}

int cpu_start(const struct cpu_opts *opts, struct sink *sink, struct collector **ret,
              struct why *why)
{
    if (!opts->no_samples && (opts->rate_hz == 0 || opts->rate_hz > CPU_RATE_HZ_MAX))
        return why_set(why, WHY_USAGE, EINVAL, "999 is a good rate", "the rate must be 1 to %d Hz",
                       CPU_RATE_HZ_MAX);
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    c->opts = *opts;
    if (opts->no_samples)
        c->opts.rate_hz = CPU_RATE_HZ; /* of events that are never switched on */
    c->sink = sink;
    c->cgroup_fd = -1;
    c->own_start_ns = own_cpu_ns();
    c->start_ns = clock_mono_ns();
    int r = start(c, why);
    if (r < 0) {
        cpu_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

/* The account after `start_ns`, and in cpu_halt() before the end is noted: it is never of a longer
 * time than the recording. */
static int cpu_begin(struct collector *c, uint64_t start_ns, struct why *why)
{
    c->start_ns = start_ns;
    cpu_account_begin(c);
    return c->blind ? 0 : cpu_events_enable(c, why);
}

static int cpu_start_default(const struct collector_target *target, struct sink *sink,
                             struct collector **ret, struct why *why)
{
    struct cpu_opts opts = {
        .scope = TARGET_SPAWNED,
        .pid = target->pid,
        .command = target->command,
        .rate_hz = CPU_RATE_HZ,
    };
    return cpu_start(&opts, sink, ret, why);
}

static int take(struct collector *c, bool all, struct why *why)
{
    uint64_t now_ns = clock_mono_ns();
    int r = c->blind ? cpu_blind_scan(c, now_ns, all) : cpu_records_take(c, all);
    if (r == 0 && c->blind)
        r = cpu_followers_tell(c, all ? UINT64_MAX : now_ns);
    return r < 0 ? why_errno(why, -r, NULL, "the samples could not be recorded") : 0;
}

static int cpu_drain(struct collector *c, struct why *why)
{
    if (c->stopped)
        return 0;
    int r = take(c, false, why);
    cpu_account_look(c);
    cpu_turn(c, clock_mono_ns());
    return r;
}

void cpu_halt(struct collector *c)
{
    if (c->halted)
        return;
    cpu_account_look(c);
    cpu_samples_disable(c);
    c->halted = true;
}

static int cpu_stop(struct collector *c, struct why *why)
{
    if (c->stopped)
        return 0;
    cpu_halt(c);
    cpu_events_disable(c);
    int r = take(c, true, why);
    if (c->deep && cpu_deep_counts(c->deep, c->deep_counts) < 0)
        c->deep_counts[CPU_DEEP_NS] = 0;
    c->stopped = true;
    c->own_ns = own_cpu_ns() - c->own_start_ns;
    return r;
}

/* How it was measured, for whoever reads the recording. */
static int document_put(struct collector *c)
{
    char *text = NULL, event[32];
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    static const char *const modes[] = {"unwind", "fp", "none"};
    static const char *const scopes[] = {"command", "process", "system", "cgroup"};
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    jsonw_key(&json, "event");
    jsonw_text(&json, str_from(perf_plan_event(&c->plan, event, sizeof(event))));
    jsonw_key(&json, "scope");
    jsonw_text(&json, str_from(scopes[c->opts.scope]));
    jsonw_key(&json, "rate_hz");
    jsonw_u64(&json, c->plan.rate_hz);
    jsonw_key(&json, c->plan.clock == PERF_CYCLES ? "rates_hz" : "periods_ns");
    jsonw_array_begin(&json);
    for (size_t i = 0; i < c->set_count; i++)
        jsonw_u64(&json, c->sets[i].period);
    jsonw_array_end(&json);
    jsonw_key(&json, "precise");
    jsonw_u64(&json, c->plan.precise);
    jsonw_key(&json, "stacks");
    jsonw_text(&json, str_from(modes[c->plan.stacks]));
    jsonw_key(&json, "slice_bytes");
    jsonw_u64(&json, c->plan.stacks == PERF_STACKS_SLICE ? c->slice_bytes : 0);
    jsonw_key(&json, "ring_bytes");
    jsonw_u64(&json, c->rings.data_bytes);
    jsonw_key(&json, "kernel");
    if (c->plan.kernel)
        jsonw_text(&json, STR("sampled"));
    else
        jsonw_text(&json, str_from(c->plan.kernel_na));
    jsonw_key(&json, "deep_stacks");
    jsonw_text(&json, c->deep ? STR("copied") : str_from(c->deep_na));
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? sink_document(c->sink, "cpu", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

static int counters_put(struct collector *c)
{
    bool sampled = !c->opts.no_samples;
    bool walked = sampled && c->plan.stacks != PERF_STACKS_NONE;
    uint64_t account_ns = 0;
    bool account = cpu_account_get(c, &account_ns);
    uint64_t unmatched = c->deep ? cpu_deep_pieces(c->deep)->unmatched : 0;
    uint64_t kernel_ns = c->sample_cost_ns * c->samples + c->deep_counts[CPU_DEEP_NS];
    const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
        bool given;
    } counters[] = {
        {"cpu.samples", UNIT_COUNT, c->samples, sampled},
        {"cpu.complete", UNIT_COUNT, c->complete, walked},
        {"cpu.truncated", UNIT_COUNT, c->truncated, walked},
        {"cpu.deep_complete", UNIT_COUNT, c->deep_complete, c->deep != NULL},
        {"cpu.deep_copied", UNIT_COUNT, c->deep_counts[CPU_DEEP_SAMPLES], c->deep != NULL},
        {"cpu.deep_cut", UNIT_COUNT, c->deep_counts[CPU_DEEP_RING_FULL], c->deep != NULL},
        {"cpu.deep_beyond", UNIT_COUNT, c->deep_counts[CPU_DEEP_TOO_DEEP], c->deep != NULL},
        {"cpu.deep_spared", UNIT_COUNT, c->deep_counts[CPU_DEEP_SPARED], c->deep != NULL},
        {"cpu.deep_unmatched", UNIT_COUNT, unmatched, c->deep != NULL},
        {"cpu.sampled_ns", UNIT_NS, c->sampled_ns, sampled},
        {"cpu.throttled", UNIT_COUNT, c->throttled, sampled},
        {"cpu.rusage_ns", UNIT_NS, account_ns, account},
        {"cpu.own_ns", UNIT_NS, c->own_ns, true},
        {"cpu.kernel_ns", UNIT_NS, kernel_ns, c->sample_cost_ns > 0},
        {"cpu.doubled", UNIT_COUNT, c->doubled, c->doubled > 0},
        {"cpu.out_of_order", UNIT_COUNT, c->rings.late, c->rings.late > 0},
        {"loss.ring_full", UNIT_COUNT, cpu_events_lost(c), true},
        {"loss.records_malformed", UNIT_COUNT, c->malformed + c->rings.damaged, true},
        {"loss.records_refused", UNIT_COUNT, c->refused, c->refused > 0},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        if (counters[i].given)
            r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    return r < 0 ? r : stacks_ends_put(c->sink, "cpu", c->ends);
}

static int cpu_finish(struct collector *c, struct why *why)
{
    int r = counters_put(c);
    if (r == 0 && !c->opts.no_samples)
        r = document_put(c);
    if (r < 0)
        return why_errno(why, -r, NULL, "the figures of sampling could not be recorded");
    uint64_t start_ns = own_cpu_ns();
    r = stacks_finish(c->stacks, why);
    if (r < 0)
        return r;
    r = sink_counter(c->sink, "cpu.naming_ns", UNIT_NS, own_cpu_ns() - start_ns);
    return r < 0 ? why_errno(why, -r, NULL, "the figures of sampling could not be recorded") : 0;
}

void cpu_follow(struct collector *c, const struct cpu_follower *follower)
{
    if (c->follower_count < CPU_FOLLOWERS_MAX)
        c->followers[c->follower_count++] = *follower;
}

struct stacks *cpu_stacks(struct collector *c)
{
    return c->stacks;
}

bool cpu_has_switches(const struct collector *c)
{
    return c->opts.switches && !c->blind;
}

const char *cpu_events_na(const struct collector *c)
{
    return c->blind ? c->blind_na : NULL;
}

size_t cpu_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    size_t count = MIN(max, c->cpu_count);
    for (size_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = c->ring_fds[i], .events = POLLIN};
    if (c->deep && count < max)
        fds[count++] = (struct pollfd){.fd = cpu_deep_wake_fd(c->deep), .events = POLLIN};
    return count;
}

void cpu_counts(const struct collector *c, struct cpu_counts *ret)
{
    *ret = (struct cpu_counts){
        .samples = c->samples,
        .complete = c->complete,
        .truncated = c->truncated,
        .lost = cpu_events_lost(c),
        .throttled = c->throttled,
        .sampled_ns = c->sampled_ns,
    };
}

const char *cpu_deep_na(const struct collector *c)
{
    return c->deep ? NULL : c->deep_na;
}

const struct perf_plan *cpu_plan(const struct collector *c)
{
    return &c->plan;
}

const struct collector_ops collector_cpu = {
    .name = "cpu",
    .summary = "where CPU time goes, by call stack",
    .built = true,
    .probe = cpu_probe,
    .start = cpu_start_default,
    .begin = cpu_begin,
    .drain = cpu_drain,
    .stop = cpu_stop,
    .finish = cpu_finish,
    .close = cpu_close,
};
