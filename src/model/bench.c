/* The table of metrics: the only place where their names and units are written down. */
#include "model/bench.h"

#include <string.h>

const struct bench_metric_info bench_metrics[BENCH_METRICS] = {
    [BENCH_WALL] = {"wall", "wall_ms", UNIT_MS, "wall time"},
    [BENCH_USER] = {"user", "user_ms", UNIT_MS, "CPU time in user space"},
    [BENCH_SYSTEM] = {"system", "sys_ms", UNIT_MS, "CPU time in the kernel"},
    [BENCH_CPU] = {"cpu", "cpu_ms", UNIT_MS, "CPU time, user and kernel"},
    [BENCH_PEAK_RSS] = {"peak_rss", "peak_rss_kb", UNIT_KIB, "peak memory (RSS)"},
    [BENCH_PEAK_PSS] = {"peak_pss", "peak_pss_kb", UNIT_KIB, "peak memory (PSS), sampled"},
    [BENCH_FAULTS_MINOR] = {"faults_minor", "faults_minor", UNIT_COUNT, "page faults, minor"},
    [BENCH_FAULTS_MAJOR] = {"faults_major", "faults_major", UNIT_COUNT, "page faults, from disk"},
    [BENCH_SWITCHES_VOLUNTARY] = {"switches_voluntary", "switches_voluntary", UNIT_COUNT,
                                  "switches, to wait"},
    [BENCH_SWITCHES_INVOLUNTARY] = {"switches_involuntary", "switches_involuntary", UNIT_COUNT,
                                    "switches, forced"},
    [BENCH_READ] = {"read", "read_bytes", UNIT_BYTES, "read by calls"},
    [BENCH_WRITTEN] = {"written", "written_bytes", UNIT_BYTES, "written by calls"},
    [BENCH_STORAGE_READ] = {"storage_read", "storage_read_bytes", UNIT_BYTES, "read from storage"},
    [BENCH_STORAGE_WRITTEN] = {"storage_written", "storage_written_bytes", UNIT_BYTES,
                               "written to storage"},
    [BENCH_CYCLES] = {"cycles", "cycles", UNIT_COUNT, "CPU cycles"},
    [BENCH_INSTRUCTIONS] = {"instructions", "instructions", UNIT_COUNT, "instructions"},
    [BENCH_CACHE_MISSES] = {"cache_misses", "cache_misses", UNIT_COUNT, "cache misses"},
    [BENCH_BRANCH_MISSES] = {"branch_misses", "branch_misses", UNIT_COUNT, "branch misses"},
};

int bench_metric_find(const char *name)
{
    for (int i = 0; i < BENCH_METRICS; i++)
        if (strcmp(bench_metrics[i].name, name) == 0 || strcmp(bench_metrics[i].key, name) == 0)
            return i;
    return -1;
}

void bench_result_deinit(struct bench_result *result)
{
    VEC_FREE(&result->runs);
}

const char *bench_machine(struct arena *arena, const char *cpu_model, uint64_t threads)
{
    return arena_printf(arena, "%s, %llu threads", cpu_model, (unsigned long long)threads);
}
