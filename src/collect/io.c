/* Reads, writes and syncs by file and stack. Probed here; the collection is not in this
 * version. */
#include "collect/io.h"

#include "collect/tiers.h"

static void io_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_KERNEL,
         {probe_bpf_tracing},
         "every read, write and sync with file, latency and stack; device latency"},
        {TIER_USER, {probe_preload}, "I/O calls of programs that load our library"},
        {TIER_FLOOR, {NULL}, "bytes read and written by each process"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

const struct collector_ops collector_io = {
    .name = "io",
    .summary = "bytes, calls and latency, by file and stack",
    .built = false,
    .probe = io_probe,
};
