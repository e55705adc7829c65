/* Requests of one thread to one peer, each begun when the one before was answered.
 *
 * One pass over the events in the order of their beginning: a thread has one open chain for each
 * peer, which the next request goes on with or ends. Pipelined and overlapping requests are no
 * chain: nobody waited for one to ask the next. */
#include "analyze/io_request_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct open_chain {
    uint32_t last; /* event, plus one; 0: none */
    uint32_t count;
};

struct chaining {
    struct arena *arena;
    const struct io *io;
    struct io_request_groups *groups;
    struct map_u64 open_at; /* thread, peer and protocol to an index into `open`, plus one */
    VEC(struct open_chain) open;
    uint32_t *before; /* by event: the one before it in its chain, plus one */
    VEC(struct io_chain) chains;
};

static bool goes_on(const struct request_event *last, const struct request_event *next)
{
    uint64_t took_ns = last->end_ns - last->start_ns;
    return next->start_ns >= last->end_ns &&
           next->start_ns - last->end_ns <= MAX(took_ns, (uint64_t)IO_CHAIN_PAUSE_NS);
}

static const struct request_info *info_of(const struct chaining *chaining, uint32_t event)
{
    return &chaining->io->requests[chaining->io->events[event].request].info;
}

/* The stack of more than half of a chain's requests, by votes that cancel each other out. */
static uint32_t most_stack(const struct chaining *chaining, const struct io_chain *chain)
{
    uint32_t stack = 0;
    uint64_t votes = 0, count = 0;
    for (uint64_t i = 0; i < chain->count; i++) {
        uint32_t other = info_of(chaining, chain->events[i])->stack;
        if (votes == 0)
            stack = other;
        votes = stack == other ? votes + 1 : votes - 1;
    }
    for (uint64_t i = 0; i < chain->count; i++)
        count += info_of(chaining, chain->events[i])->stack == stack;
    return count * 2 > chain->count ? stack : 0;
}

static int events_list(struct chaining *chaining, struct io_chain *chain, uint32_t last)
{
    chain->events = arena_alloc(chaining->arena, chain->count * sizeof(*chain->events));
    if (!chain->events)
        return -ENOMEM;
    uint32_t at = last;
    for (uint64_t i = chain->count; i > 0; i--, at = chaining->before[at - 1]) {
        const struct request_event *event = &chaining->io->events[at - 1];
        const struct request_info *info = info_of(chaining, at - 1);
        chain->events[i - 1] = at - 1;
        chain->sum_ns += event->end_ns - event->start_ns;
        chain->max_ns = MAX(chain->max_ns, event->end_ns - event->start_ns);
        chain->text = chain->text == info->text ? chain->text : 0;
    }
    chain->stack = most_stack(chaining, chain);
    return 0;
}

static int chain_end(struct chaining *chaining, struct open_chain *open)
{
    struct open_chain ended = *open;
    *open = (struct open_chain){0};
    if (ended.count < IO_CHAIN_MIN)
        return 0;
    const struct request_info *info = info_of(chaining, ended.last - 1);
    struct io_chain chain = {.thread = info->thread,
                             .peer = info->peer,
                             .protocol = info->protocol,
                             .text = info->text,
                             .count = ended.count,
                             .end_ns = chaining->io->events[ended.last - 1].end_ns};
    int r = events_list(chaining, &chain, ended.last);
    if (r < 0)
        return r;
    chain.start_ns = chaining->io->events[chain.events[0]].start_ns;
    return VEC_PUSH(&chaining->chains, chain);
}

static int event_add(struct chaining *chaining, uint32_t index)
{
    const struct request_event *event = &chaining->io->events[index];
    const struct request_info *info = info_of(chaining, index);
    if (info->role == REQUEST_SERVER || event->flags & REQUEST_UNANSWERED ||
        event->end_ns < event->start_ns)
        return 0;
    uint64_t key = hash_u64((uint64_t)info->thread << 32 | info->peer) ^ (uint64_t)info->protocol;
    uint64_t *at = map_u64_at(&chaining->open_at, key, NULL);
    if (!at)
        return -ENOMEM;
    if (*at == 0) {
        struct open_chain made = {0};
        if (VEC_PUSH(&chaining->open, made) < 0)
            return -ENOMEM;
        *at = chaining->open.len;
    }
    struct open_chain *open = &chaining->open.data[*at - 1];
    if (open->last && !goes_on(&chaining->io->events[open->last - 1], event)) {
        int r = chain_end(chaining, open);
        if (r < 0)
            return r;
    }
    chaining->before[index] = open->last;
    open->last = index + 1;
    open->count++;
    return 0;
}

static int by_spare(const void *left, const void *right)
{
    const struct io_chain *a = left, *b = right;
    uint64_t spare_a = io_chain_spare_ns(a), spare_b = io_chain_spare_ns(b);
    if (spare_a != spare_b)
        return spare_a > spare_b ? -1 : 1;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static void groups_tell(struct chaining *chaining)
{
    struct io_request_groups *groups = chaining->groups;
    for (size_t i = 0; i < groups->chain_count; i++)
        for (uint64_t k = 0; k < groups->chains[i].count; k++) {
            uint32_t row = chaining->io->events[groups->chains[i].events[k]].request;
            uint32_t group = groups->of_row[row];
            if (group == 0)
                continue;
            struct io_request_group *to = &groups->groups[group - 1];
            to->sequential++;
            if (to->chain == SIZE_MAX || groups->chains[to->chain].count < groups->chains[i].count)
                to->chain = i;
        }
}

static int chains_take(struct chaining *chaining)
{
    struct io_request_groups *groups = chaining->groups;
    size_t count = chaining->chains.len;
    groups->chains = arena_alloc(chaining->arena, (count + 1) * sizeof(*groups->chains));
    if (!groups->chains)
        return -ENOMEM;
    if (count > 0)
        memcpy(groups->chains, chaining->chains.data, count * sizeof(*groups->chains));
    if (count > 1)
        qsort(groups->chains, count, sizeof(*groups->chains), by_spare);
    groups->chain_count = count;
    groups_tell(chaining);
    return 0;
}

int io_chains_build(struct arena *arena, const struct io *io, struct io_request_groups *groups)
{
    struct chaining chaining = {.arena = arena, .io = io, .groups = groups};
    chaining.before = calloc(io->event_count + 1, sizeof(*chaining.before));
    int r = chaining.before ? 0 : -ENOMEM;
    for (size_t i = 0; i < io->event_count && r == 0; i++)
        r = event_add(&chaining, (uint32_t)i);
    for (size_t i = 0; i < chaining.open.len && r == 0; i++)
        r = chain_end(&chaining, &chaining.open.data[i]);
    if (r == 0)
        r = chains_take(&chaining);
    free(chaining.before);
    map_u64_deinit(&chaining.open_at);
    VEC_FREE(&chaining.open);
    VEC_FREE(&chaining.chains);
    return r;
}
