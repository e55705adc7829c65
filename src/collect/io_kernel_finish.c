/* Last words: what was lost, what cannot be seen, what it cost. */
#include "base/jsonw.h"
#include "collect/io_kernel_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t io_count(const struct collector *c, unsigned what)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->config.cpus; i++)
        sum += c->cpus[i].counts[what];
    return sum;
}

static int counters_put(struct collector *c)
{
    struct known_counts known = known_stacks_counts(c->told.known);
    struct objects_counts objects = objects_counts(c->objects);
    const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } counters[] = {
        {"io.calls", UNIT_COUNT, io_count(c, IO_SEEN) + c->open_calls + c->faults_last - c->faults},
        {"io.faults", UNIT_COUNT, c->faults},
        {"io.open_calls", UNIT_COUNT, c->open_calls},
        {"io.calls_ended_inside", UNIT_COUNT, io_count(c, IO_ENDED_INSIDE)},
        {"io.calls_before", UNIT_COUNT, io_count(c, IO_BEFORE)},
        {"io.compat_calls", UNIT_COUNT, io_count(c, IO_COMPAT)},
        {"io.uring_calls", UNIT_COUNT, io_count(c, IO_URING_CALLS)},
        {"io.inside_bytes", UNIT_BYTES, io_count(c, IO_INSIDE_BYTES)},
        {"io.buffers_left", UNIT_COUNT, io_count(c, IO_BUFFERS_LEFT)},
        {"io.rows_by_ring", UNIT_COUNT, io_count(c, IO_TAKEN_OVER)},
        {"io.rounds_held", UNIT_COUNT, c->rounds_held},
        {"io.stacks_recognised", UNIT_COUNT, io_count(c, OFFCPU_RECOGNISED)},
        {"io.slots_verified", UNIT_COUNT, io_count(c, OFFCPU_VERIFIED)},
        {"io.stacks_copied", UNIT_COUNT, io_count(c, OFFCPU_COPIED)},
        {"io.stacks_read_again", UNIT_COUNT, io_count(c, OFFCPU_READ_AGAIN)},
        {"io.stacks_walked", UNIT_COUNT, c->told.walked},
        {"io.stacks_complete", UNIT_COUNT, c->told.complete},
        {"io.stacks_truncated", UNIT_COUNT, c->told.truncated},
        {"io.stacks_learnt", UNIT_COUNT, known.learnt},
        {"io.folded", UNIT_COUNT, io_count(c, IO_FOLDED)},
        {"io.unattributed", UNIT_COUNT,
         io_count(c, IO_FOLDED) + c->stackless + objects.nameless_calls},
        {"io.lost.stacks_spared", UNIT_COUNT, io_count(c, OFFCPU_SPARED)},
        {"io.lost.stacks_unreadable", UNIT_COUNT, io_count(c, OFFCPU_UNREADABLE)},
        {"io.lost.stacks_stale", UNIT_COUNT, c->told.stale},
        {"io.lost.stacks_stray", UNIT_COUNT, c->told.stray + c->told.lost},
        {"io.lost.known_full", UNIT_COUNT, known.full},
        {"io.lost.ring_full", UNIT_COUNT, io_count(c, OFFCPU_RING_FULL)},
        {"io.lost.threads_full", UNIT_COUNT, io_count(c, OFFCPU_THREADS_FULL)},
        {"io.lost.paths", UNIT_COUNT, io_count(c, IO_PATHS_LOST)},
        {"io.lost.malformed", UNIT_COUNT, c->malformed + c->told.malformed + c->ring.damaged},
        {"io.lost.objects", UNIT_COUNT, objects.beyond + objects.refused},
        {"io.lost.refused", UNIT_COUNT, c->refused},
        {"io.own_ns", UNIT_NS, c->own_ns},
        {"io.kernel_ns", UNIT_NS, io_count(c, OFFCPU_COST_NS)},
        {"io.map_bytes", UNIT_BYTES, c->map_bytes},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    return r;
}

static void text_put(struct jsonw *json, const char *key, const char *text)
{
    jsonw_key(json, key);
    jsonw_text(json, str_from(text));
}

static void na_put(struct jsonw *json, bool is, const char *what, const char *reason)
{
    if (!is)
        return;
    jsonw_object_begin(json);
    text_put(json, "what", what);
    text_put(json, "reason", reason);
    jsonw_object_end(json);
}

static void missing_put(const struct collector *c, struct jsonw *json)
{
    jsonw_key(json, "na");
    jsonw_array_begin(json);
    na_put(json, io_count(c, IO_URING_CALLS) > 0, "io_uring",
           "what is asked for through io_uring is seen as io_uring_enter only, without files, "
           "bytes and latencies");
    na_put(json, io_count(c, IO_INSIDE_BYTES) > 0, "sendfile and splice",
           "bytes that go from one fd to another inside the kernel are counted on the one that "
           "is read; what they say is not seen");
    na_put(json, io_count(c, IO_COMPAT) > 0, "32-bit calls",
           "they have other numbers: counted and timed without names");
    na_put(json, io_count(c, IO_BEFORE) > 0, "calls before",
           "calls that were under way when recording began are not counted");
    na_put(json, io_count(c, IO_FOLDED) > 0, "some rows",
           "more different calls than there is room for: some are added up by their name only");
    na_put(json, c->ring_na[0] != '\0', "room for calls", c->ring_na);
    na_put(json, c->cache_na, "page cache",
           "this kernel does not tell what is added to the page cache");
    na_put(json, io_said_na(c) != NULL, "TLS and SQLite", io_said_na(c));
    na_put(json, io_said_hides_callers(c), "stacks inside of TLS and SQLite",
           "it cannot be told where some of their functions return: while the program is in one, "
           "its stacks end there");
    na_put(json, io_said_encrypted(c) > 0, "requests inside of TLS",
           "some connections are encrypted by other means than OpenSSL's libssl: by a library "
           "that is not looked into, or one that is linked into the program without its symbols");
    na_put(json, c->faults_na, "faults on mapped files",
           "this kernel does not tell which file a page fault is on (Linux 6.11 does)");
    na_put(json, c->faults > 0, "time of faults on mapped files",
           "it is known only of those that waited for their page: the kernel does not tell when "
           "others are over");
    na_put(json, !c->devices, "devices", c->devices_na);
    if (c->devices && devices_missing(c->devices))
        na_put(json, true, "devices", devices_missing(c->devices));
    jsonw_array_end(json);
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
    jsonw_key(&json, "why_not_higher");
    jsonw_null(&json);
    text_put(&json, "scope", scopes[c->config.scope]);
    jsonw_key(&json, "stacks");
    jsonw_bool(&json, c->opts.stacks);
    jsonw_key(&json, "requests");
    jsonw_bool(&json, c->opts.requests);
    missing_put(c, &json);
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? sink_document(c->sink, "io", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

int io_finish_put(struct collector *c)
{
    int r = counters_put(c);
    return r < 0 ? r : document_put(c);
}
