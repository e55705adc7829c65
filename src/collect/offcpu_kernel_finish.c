/* Last words: what was lost, what it cost, how it was measured. */
#include "base/jsonw.h"
#include "collect/offcpu_kernel_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int counters_put(struct collector *c)
{
    uint64_t told[OFFCPU_COUNTS] = {0};
    struct known_counts known = known_stacks_counts(c->told.known);
    struct objects_counts objects = objects_counts(c->objects);
    int r = bpf_counts_read(c->fds.counts, told, OFFCPU_COUNTS);
    if (r < 0)
        return r;
    const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } counters[] = {
        {"waits.seen", UNIT_COUNT, told[OFFCPU_WAITS]},
        {"waits.long", UNIT_COUNT, c->events},
        {"waits.open", UNIT_COUNT, c->open_waits},
        {"waits.attached", UNIT_COUNT, c->filled},
        {"waits.wakers", UNIT_COUNT, told[OFFCPU_WAKERS]},
        {"waits.stacks_recognised", UNIT_COUNT, told[OFFCPU_RECOGNISED]},
        {"waits.slots_verified", UNIT_COUNT, told[OFFCPU_VERIFIED]},
        {"waits.stacks_copied", UNIT_COUNT, told[OFFCPU_COPIED]},
        {"waits.stacks_read_again", UNIT_COUNT, told[OFFCPU_READ_AGAIN]},
        {"waits.stacks_walked", UNIT_COUNT, c->told.walked},
        {"waits.stacks_complete", UNIT_COUNT, c->told.complete},
        {"waits.stacks_truncated", UNIT_COUNT, c->told.truncated},
        {"waits.stacks_learnt", UNIT_COUNT, known.learnt},
        {"waits.stacks_unlearnable", UNIT_COUNT, known.unlearnable},
        {"waits.kernel_recognised", UNIT_COUNT, told[OFFCPU_KERNEL_RECOGNISED]},
        {"waits.returns_unseen", UNIT_COUNT, told[OFFCPU_UNSEEN]},
        {"waits.kernel_learnt", UNIT_COUNT, c->kernel_learnt.len},
        {"waits.stacks_taken_back", UNIT_COUNT, known.taken_back},
        {"waits.lost.stacks_spared", UNIT_COUNT, told[OFFCPU_SPARED]},
        {"waits.lost.stacks_unreadable", UNIT_COUNT, told[OFFCPU_UNREADABLE]},
        {"waits.lost.stacks_stale", UNIT_COUNT, c->told.stale},
        {"waits.lost.stacks_stray", UNIT_COUNT, c->told.stray + c->told.lost},
        {"waits.stacks_pushed_out", UNIT_COUNT, known.pushed_out},
        {"waits.lost.known_full", UNIT_COUNT, known.full},
        {"waits.lost.ring_full", UNIT_COUNT, told[OFFCPU_RING_FULL]},
        {"waits.lost.threads_full", UNIT_COUNT, told[OFFCPU_THREADS_FULL]},
        {"waits.lost.wakers_merged", UNIT_COUNT, told[OFFCPU_TALLIES_MERGED]},
        {"waits.lost.tallies_full", UNIT_COUNT, told[OFFCPU_TALLIES_FULL]},
        {"waits.lost.kernel_stacks", UNIT_COUNT, told[OFFCPU_KERNEL_FULL]},
        {"waits.lost.malformed", UNIT_COUNT, c->malformed + c->told.malformed + c->ring.damaged},
        {"waits.lost.objects", UNIT_COUNT, objects.beyond + objects.refused},
        {"waits.lost.refused", UNIT_COUNT, c->refused},
        {"waits.own_ns", UNIT_NS, c->own_ns},
        {"waits.kernel_ns", UNIT_NS, told[OFFCPU_COST_NS]},
        {"waits.map_bytes", UNIT_BYTES, c->map_bytes},
    };
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    return r;
}

static void text_put(struct jsonw *json, const char *key, const char *text)
{
    jsonw_key(json, key);
    jsonw_text(json, str_from(text));
}

static void u64_put(struct jsonw *json, const char *key, uint64_t value)
{
    jsonw_key(json, key);
    jsonw_u64(json, value);
}

static int document_put(struct collector *c)
{
    static const char *const scopes[] = {"tree", "machine", "cgroup"};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    text_put(&json, "tier", tier_name(TIER_KERNEL));
    text_put(&json, "scope", scopes[c->config.scope]);
    jsonw_key(&json, "waits");
    jsonw_bool(&json, c->opts.waits);
    jsonw_key(&json, "locks");
    jsonw_bool(&json, c->opts.locks);
    u64_put(&json, "long_ns", c->config.long_ns);
    u64_put(&json, "start_ns", c->start_ns);
    u64_put(&json, "stop_ns", c->stop_ns);
    u64_put(&json, "map_bytes", c->map_bytes);
    jsonw_key(&json, "not_known");
    jsonw_array_begin(&json);
    if (!c->opts.waits)
        jsonw_text(&json, STR("waits for anything but futexes: they were not asked for"));
    if (c->ring_na[0])
        jsonw_text(&json, str_from(c->ring_na));
    if (c->opts.locks && !c->kernel_locks)
        jsonw_text(&json, str_from(c->kernel_locks_na));
    if (c->opts.locks && c->config.pid_ns != 0)
        jsonw_text(&json, STR("owners of locks: threads are counted anew in this container"));
    if (c->opts.waits && c->asked_na)
        jsonw_text(&json, STR("whether a process waits for an answer: this kernel does not tell "
                              "what sockets send and receive (Linux 6.3 does)"));
    jsonw_array_end(&json);
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? sink_document(c->sink, "waits", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

int offcpu_finish_put(struct collector *c)
{
    int r = counters_put(c);
    return r < 0 ? r : document_put(c);
}
