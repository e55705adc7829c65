/* Last words: what was lost, what cannot be seen, what it cost. */
#include "base/jsonw.h"
#include "collect/heap_kernel_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t accounts_sum(const struct collector *c, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->accounts.len; i++)
        sum += *(const uint64_t *)(const void *)((const char *)&c->accounts.data[i].account->count +
                                                 offset);
    return sum;
}
#define SUM_OF(c, member) accounts_sum((c), offsetof(struct heap_count, member))

static uint64_t processes_count(const struct collector *c)
{
    uint64_t count = 0;
    for (size_t i = 0; i < c->accounts.len; i++)
        count += c->accounts.data[i].account->count.process != 0;
    return count;
}

static int counters_put(struct collector *c, const uint64_t *counts)
{
    struct known_counts known = known_stacks_counts(c->told.known);
    const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } counters[] = {
        {"heap.processes", UNIT_COUNT, processes_count(c)},
        {"heap.threads", UNIT_COUNT, c->states.len},
        {"heap.inherited_frees", UNIT_COUNT, SUM_OF(c, tally.inherited_frees)},
        {"heap.failed", UNIT_COUNT, SUM_OF(c, tally.failed)},
        {"heap.allocations", UNIT_COUNT, c->allocations},
        {"heap.frees", UNIT_COUNT, c->frees},
        {"heap.frees_handed_on", UNIT_COUNT, c->handed_on},
        {"heap.unseen_frees", UNIT_COUNT, SUM_OF(c, tally.unseen_frees)},
        {"heap.frees_again", UNIT_COUNT, SUM_OF(c, again)},
        {"heap.missed_frees", UNIT_COUNT, SUM_OF(c, missed)},
        {"heap.calls_nested", UNIT_COUNT, counts[HEAP_KERNEL_NESTED]},
        {"heap.calls_left", UNIT_COUNT, counts[HEAP_KERNEL_LEFT]},
        {"heap.probe_runs", UNIT_COUNT, counts[HEAP_KERNEL_RUNS]},
        {"heap.calls_paced", UNIT_COUNT, counts[HEAP_KERNEL_PACED]},
        {"heap.probes", UNIT_COUNT, c->probed.set},
        {"heap.probes_refused", UNIT_COUNT, c->probed.refused},
        {"heap.probes_beyond", UNIT_COUNT, c->probed.beyond + c->looks_beyond},
        {"heap.stacks_recognised", UNIT_COUNT, counts[OFFCPU_RECOGNISED]},
        {"heap.stacks_copied", UNIT_COUNT, counts[OFFCPU_COPIED]},
        {"heap.stacks_read_again", UNIT_COUNT, counts[OFFCPU_READ_AGAIN]},
        {"heap.stacks_walked", UNIT_COUNT, c->told.walked},
        {"heap.stacks_complete", UNIT_COUNT, c->told.complete},
        {"heap.stacks_truncated", UNIT_COUNT, c->told.truncated},
        {"heap.stacks_learnt", UNIT_COUNT, known.learnt},
        {"heap.stacks_pushed_out", UNIT_COUNT, known.pushed_out},
        {"heap.lost.calls", UNIT_COUNT, counts[HEAP_KERNEL_LOST]},
        {"heap.lost.stacks", UNIT_COUNT, counts[OFFCPU_RING_FULL]},
        {"heap.lost.stacks_unreadable", UNIT_COUNT, counts[OFFCPU_UNREADABLE]},
        {"heap.lost.stacks_stale", UNIT_COUNT, c->told.stale},
        {"heap.lost.stacks_stray", UNIT_COUNT, c->told.stray + c->told.lost},
        {"heap.lost.known_full", UNIT_COUNT, known.full},
        {"heap.lost.threads_full", UNIT_COUNT, counts[OFFCPU_THREADS_FULL]},
        {"heap.lost.malformed", UNIT_COUNT, c->malformed + c->told.malformed + c->ring.damaged},
        {"heap.lost.beyond", UNIT_COUNT, SUM_OF(c, beyond) + c->accounts_beyond + c->refused},
        {"heap.own_ns", UNIT_NS, c->own_ns},
        {"heap.kernel_ns", UNIT_NS, counts[OFFCPU_COST_NS]},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    return r;
}

/* ---- the document ---- */

static void text_put(struct jsonw *json, const char *key, const char *text)
{
    jsonw_key(json, key);
    jsonw_text(json, str_from(text));
}

static void number_put(struct jsonw *json, const char *key, uint64_t number)
{
    jsonw_key(json, key);
    jsonw_u64(json, number);
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

static void missing_put(const struct collector *c, struct jsonw *json, const uint64_t *counts)
{
    jsonw_key(json, "na");
    jsonw_array_begin(json);
    na_put(json, c->attached, "earlier allocations",
           "what was allocated before the recording began was not seen: it is in no figure, and "
           "frees of it are counted as unseen");
    na_put(json, c->attached, "first moments of children",
           "a process that the program forks is seen a moment later than it begins");
    na_put(json, counts[HEAP_KERNEL_LOST] > 0, "exact figures",
           "the program allocates faster than it could be told: some calls were lost");
    na_put(json, c->probed.trampolines > 0, "stacks inside of the allocator",
           "while the program is in malloc() the kernel's own address stands in its stack: "
           "samples and waits there end in it, stacks of allocations do not");
    na_put(json, c->probed.left_out > 0, "some forms of operator new",
           "it cannot be told where they return: what they allocate is not seen");
    na_put(json, true, "mmap and brk by the program itself",
           "the kernel tier looks at the heap only; --tier user has them");
    jsonw_array_end(json);
}

static void cost_put(const struct collector *c, struct jsonw *json, const uint64_t *counts)
{
    uint64_t calls = c->allocations + c->frees;
    jsonw_key(json, "cost_ns_per_call");
    if (calls == 0 || c->trap_ns == 0)
        jsonw_null(json);
    else
        jsonw_u64(json, (counts[HEAP_KERNEL_RUNS] * c->trap_ns + counts[OFFCPU_COST_NS]) / calls);
}

static int document_put(struct collector *c, const uint64_t *counts)
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
    text_put(&json, "mode", "exact");
    text_put(&json, "scope", scopes[c->config.scope]);
    jsonw_key(&json, "attached");
    jsonw_bool(&json, c->attached);
    number_put(&json, "unseen_frees", SUM_OF(c, tally.unseen_frees));
    number_put(&json, "lost_calls", counts[HEAP_KERNEL_LOST]);
    number_put(&json, "temporary_within", MAX(c->opts.temporary_within, 1u));
    cost_put(c, &json, counts);
    missing_put(c, &json, counts);
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? sink_document(c->sink, "heap", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

int heap_finish_put(struct collector *c)
{
    uint64_t counts[HEAP_KERNEL_COUNTS];
    int r = bpf_counts_read(c->fds.counts, counts, HEAP_KERNEL_COUNTS);
    if (r == 0)
        r = counters_put(c, counts);
    return r < 0 ? r : document_put(c, counts);
}

/* ---- nothing ---- */

const char *heap_kernel_na(const struct collector *c)
{
    static const char no_image[] =
        "no image of the program defines malloc() and free() that can be found by name (nor "
        "je_malloc, mi_malloc or tc_malloc): it is stripped and static, or has another allocator; "
        "a program with symbols (.symtab) can be looked at";
    static const char no_program[] =
        "the kernel refused the programs on malloc(); run as root, on Linux 6.6 or newer";
    if (c->allocations + c->frees > 0)
        return NULL;
    if (c->probed.set == 0)
        return c->probed.refused > 0 ? no_program : no_image;
    return c->attached ? "the program allocated and freed nothing while it was looked at"
                       : "the program allocated nothing by way of a malloc() that is known by "
                         "name; a static program needs its symbols (.symtab) to be looked at";
}
