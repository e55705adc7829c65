/* The last words: counters, the document "heap", programs that were not covered, and why nothing
 * was seen. */
#include "collect/heap_user_parts.h"

#include "base/clock.h"
#include "base/jsonw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t heap_own_cpu_ns(void)
{
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) < 0)
        return 0;
    return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

void heap_program_begins(struct collector *c, int pid)
{
    uint64_t *program = map_u64_at(&c->programs, (uint32_t)pid, NULL);
    if (program)
        *program = HEAP_PROGRAM_BEGAN;
}

static void uncovered_name(struct collector *c, struct str exe)
{
    struct heap_uncovered *row = &c->uncovered_named[c->uncovered_count];
    if (exe.len == 0 || exe.len >= sizeof(row->exe) || c->uncovered_count == HEAP_UNCOVERED_MAX)
        return;
    for (size_t i = 0; i < c->uncovered_count; i++)
        if (str_is(exe, c->uncovered_named[i].exe))
            return;
    memcpy(row->exe, exe.data, exe.len);
    row->exe[exe.len] = '\0';
    if (preload_heap_fits(row->exe, row->why, sizeof(row->why)))
        snprintf(row->why, sizeof(row->why),
                 "the library was not loaded: LD_PRELOAD did not reach it, or it ended too soon");
    c->uncovered_count++;
}

/* A program, begun by exec, without a window: the loader did not take the library. */
void heap_program_ends(struct collector *c, int pid)
{
    uint64_t *program = map_u64_find(&c->programs, (uint32_t)pid);
    if (program && *program == HEAP_PROGRAM_BEGAN) {
        c->uncovered++;
        uncovered_name(c, stacks_program(c->stacks, pid));
    }
    if (program)
        *program = 0;
}

void heap_na_find(struct collector *c)
{
    uint32_t refused = preload_heap_header(c->preload)->refused;
    if (c->allocations + c->frees + c->mapped + c->no_cell > 0)
        return;
    if (c->uncovered_count > 0)
        snprintf(c->na, sizeof(c->na), "%.300s", c->uncovered_named[0].why);
    else if (refused > 0)
        snprintf(c->na, sizeof(c->na),
                 "the library found no memory to count in, in %u processes: is 'ulimit -v' set?",
                 refused);
    else if (c->malformed + c->unmatched + c->left_out > 0)
        snprintf(
            c->na, sizeof(c->na),
            "what the library counted could not be read: %llu windows made no sense, %llu were "
            "of processes that are not recorded, %llu were beyond our bounds",
            (unsigned long long)c->malformed, (unsigned long long)c->unmatched,
            (unsigned long long)c->left_out);
    else if (c->processes > 0 && c->opts.sample_bytes > 0)
        snprintf(
            c->na, sizeof(c->na),
            "the program allocated too little for a sample in every %llu bytes: leave --sample "
            "out, every call is counted then",
            (unsigned long long)c->opts.sample_bytes);
    else if (c->processes > 0)
        snprintf(c->na, sizeof(c->na), "the program never allocated memory");
    else
        snprintf(c->na, sizeof(c->na),
                 "the library was not loaded by any process: the program ended before it began");
}

static int counters_put(struct collector *c)
{
    const struct heap_header *header = preload_heap_header(c->preload);
    uint32_t max = preload_heap_windows_max(c->preload), windows = header->windows;
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"heap.processes", c->processes},
        {"heap.threads", c->threads},
        {"heap.uncovered", c->uncovered},
        {"heap.allocations", c->allocations},
        {"heap.frees", c->frees},
        {"heap.mapped", c->mapped},
        {"heap.unseen_frees", c->unseen_frees},
        {"heap.inherited_frees", c->inherited_frees},
        {"heap.missed_frees", c->missed},
        {"heap.failed", c->failed},
        {"heap.nested", c->nested},
        {"heap.snapshots", c->snapshots},
        {"heap.events", c->events},
        {"heap.events_lost", c->events_lost},
        {"heap.stacks", c->stacks_told},
        {"heap.incomplete", c->stacks_told - c->stacks_complete},
        {"heap.walks", c->walks},
        {"heap.frames", c->frames},
        {"heap.recognised", c->recognised},
        {"heap.no_rules", c->no_rules},
        {"heap.no_cell", c->no_cell},
        {"heap.no_entry", c->no_entry},
        {"heap.lost", c->lost},
        {"heap.refused", header->refused + (windows > max ? windows - max : 0) + c->left_out},
        {"heap.windows_unmatched", c->unmatched},
        {"heap.windows_unfinished", c->unfinished},
        {"heap.malformed", c->malformed},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, UNIT_COUNT, counters[i].value);
    return r < 0
               ? r
               : sink_counter(c->sink, "heap.own_ns", UNIT_NS, heap_own_cpu_ns() - c->own_start_ns);
}

static void number(struct jsonw *json, const char *key, uint64_t value)
{
    jsonw_key(json, key);
    jsonw_u64(json, value);
}

static void text(struct jsonw *json, const char *key, const char *value)
{
    jsonw_key(json, key);
    jsonw_text(json, str_from(value));
}

static void unseen(struct jsonw *json, const char *what, const char *reason)
{
    jsonw_object_begin(json);
    text(json, "what", what);
    text(json, "reason", reason);
    jsonw_object_end(json);
}

static void facts_write(const struct collector *c, struct jsonw *json)
{
    const struct heap_header *header = preload_heap_header(c->preload);
    jsonw_object_begin(json);
    text(json, "tier", "user");
    text(json, "mode", c->opts.sample_bytes ? "sampled" : "exact");
    number(json, "sample_bytes", c->opts.sample_bytes);
    number(json, "temporary_within", c->opts.temporary_within);
    number(json, "snapshot_ns", c->opts.snapshot_ns);
    jsonw_key(json, "log");
    jsonw_bool(json, c->opts.log);
    number(json, "processes", c->processes);
    number(json, "windows", header->windows);
    number(json, "refused", header->refused);
    number(json, "stacks", c->stacks_told);
    number(json, "stacks_complete", c->stacks_complete);
    number(json, "no_cell", c->no_cell);
    number(json, "lost", c->lost);
    jsonw_key(json, "nodes_full");
    jsonw_bool(json, c->nodes_full);
    jsonw_key(json, "cells_full");
    jsonw_bool(json, c->cells_full);
    text(json, "rss", "less what whyslow shares with the program; with the library's own tables");
    number(json, "uncovered", c->uncovered);
    jsonw_key(json, "na");
    jsonw_array_begin(json);
    if (c->na[0])
        unseen(json, "allocations", c->na);
    for (size_t i = 0; i < c->uncovered_count; i++)
        unseen(json, c->uncovered_named[i].exe, c->uncovered_named[i].why);
    jsonw_array_end(json);
    jsonw_object_end(json);
}

static int document_put(struct collector *c)
{
    char *bytes = NULL;
    size_t len = 0;
    struct jsonw json;
    FILE *out = open_memstream(&bytes, &len);
    if (!out)
        return -ENOMEM;
    jsonw_init(&json, out, 0);
    facts_write(c, &json);
    int r = fclose(out) == 0 ? sink_document(c->sink, "heap", (struct str){bytes, len}) : -ENOMEM;
    free(bytes);
    return r;
}

int heap_facts_put(struct collector *c, bool is_last)
{
    int r = is_last ? counters_put(c) : 0;
    return r < 0 ? r : document_put(c);
}
