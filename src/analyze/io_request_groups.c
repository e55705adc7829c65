/* Rows of requests become groups; single requests say which connections and parameters. */
#include "analyze/io_request_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct grouping {
    struct arena *arena;
    const struct io *io;
    struct io_request_groups *groups;
    struct intern keys, peers;
    struct map_u64 threads, connections, parameters, results;
    VEC(struct io_request_group) list;
    VEC(struct io_result) result_list;
    VEC(struct io_dialled) dialled;
};

/* The same for rows that are one group. */
struct group_key {
    uint32_t protocol, role, peer, text, stack;
};

static uint64_t pair(uint64_t group, uint64_t other)
{
    return hash_u64(group * 0x9e3779b97f4a7c15u ^ hash_u64(other));
}

static int row_add(struct grouping *grouping, uint32_t id)
{
    const struct request_row *row = &grouping->io->requests[id];
    const struct request_info *info = &row->info;
    struct group_key key = {(uint32_t)info->protocol, (uint32_t)info->role, info->peer, info->text,
                            info->stack};
    uint32_t group;
    bool fresh;
    if (intern_add(&grouping->keys, (struct str){(const char *)&key, sizeof(key)}, &group, &fresh) <
        0)
        return -ENOMEM;
    if (fresh) {
        struct io_request_group made = {.protocol = info->protocol,
                                        .role = info->role,
                                        .peer = info->peer,
                                        .text = info->text,
                                        .stack = info->stack,
                                        .service = STR(""),
                                        .chain = SIZE_MAX};
        if (VEC_PUSH(&grouping->list, made) < 0)
            return -ENOMEM;
    }
    struct io_request_group *to = &grouping->list.data[group - 1];
    request_tally_add(&to->tally, &row->tally);
    grouping->groups->of_row[id] = group;
    grouping->groups->requests += row->tally.count;
    grouping->groups->unanswered += row->tally.unanswered;
    /* Rows of several threads may have seen the same parameters: until events tell, the most of
     * one row is what is sure. */
    to->parameters_more = to->parameters_more || to->parameters > 0 ||
                          row->tally.parameters >= REQUEST_PARAMETERS;
    to->parameters = MAX(to->parameters, row->tally.parameters);
    bool first;
    uint32_t life = profile_life(&grouping->io->profile, info->thread);
    if (!map_u64_at(&grouping->threads, (uint64_t)group << 32 | life, &first))
        return -ENOMEM;
    to->threads += first;
    uint64_t *count = map_u64_at(&grouping->results, (uint64_t)group << 32 | info->result, NULL);
    if (!count)
        return -ENOMEM;
    *count += row->tally.count;
    return 0;
}

static int event_add(struct grouping *grouping, const struct request_event *event, uint64_t *params)
{
    uint32_t group = grouping->groups->of_row[event->request];
    if (group == 0 || group > grouping->list.len)
        return 0;
    struct io_request_group *to = &grouping->list.data[group - 1];
    bool fresh;
    to->events++;
    if (!map_u64_at(&grouping->connections, (uint64_t)group << 32 | event->connection, &fresh))
        return -ENOMEM;
    to->connections += fresh && event->connection != 0;
    if (to->service.len == 0)
        to->service = grouping->io->connections[event->connection].info.service;
    if (event->parameters == 0)
        return 0;
    if (!map_u64_at(&grouping->parameters, pair(group, event->parameters), &fresh))
        return -ENOMEM;
    params[group - 1] += fresh;
    return 0;
}

/* Where every request is known by itself its parameters are counted, not estimated. */
static int events_add(struct grouping *grouping)
{
    const struct io *io = grouping->io;
    size_t count = grouping->list.len;
    uint64_t *params = calloc(count + 1, sizeof(*params));
    int r = params ? 0 : -ENOMEM;
    for (size_t i = 0; i < io->event_count && r == 0; i++)
        r = event_add(grouping, &io->events[i], params);
    for (size_t i = 0; i < count && r == 0; i++) {
        struct io_request_group *group = &grouping->list.data[i];
        bool all = group->events == group->tally.count;
        group->parameters = all ? params[i] : MAX(group->parameters, params[i]);
        group->parameters_more = group->parameters_more && !all;
    }
    grouping->groups->events = io->event_count;
    free(params);
    return r;
}

static int by_result(const void *left, const void *right)
{
    const struct io_result *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return (a->text > b->text) - (a->text < b->text);
}

struct result_pair {
    uint32_t group, text;
    uint64_t count;
};

static int by_pair(const void *left, const void *right)
{
    const struct result_pair *a = left, *b = right;
    return (a->group > b->group) - (a->group < b->group);
}

/* The map's pairs, sorted by group, become slices of one list. */
static int results_take(struct grouping *grouping)
{
    size_t count = 0, at = 0, total = grouping->results.len + 1;
    struct result_pair *pairs = calloc(total, sizeof(*pairs));
    uint64_t key, value;
    if (!pairs)
        return -ENOMEM;
    while (count < total && map_u64_next(&grouping->results, &at, &key, &value))
        pairs[count++] = (struct result_pair){(uint32_t)(key >> 32), (uint32_t)key, value};
    if (count > 1)
        qsort(pairs, count, sizeof(*pairs), by_pair);
    int r = 0;
    for (size_t i = 0; i < count && grouping->list.data && r == 0; i++) {
        struct io_request_group *group = &grouping->list.data[pairs[i].group - 1];
        struct io_result result = {pairs[i].text, pairs[i].count};
        if (group->result_count++ == 0)
            group->result_first = (uint32_t)i;
        r = VEC_PUSH(&grouping->result_list, result);
    }
    free(pairs);
    for (size_t i = 0; grouping->list.data && i < grouping->list.len && r == 0; i++) {
        const struct io_request_group *group = &grouping->list.data[i];
        if (group->result_count > 1)
            qsort(grouping->result_list.data + group->result_first, group->result_count,
                  sizeof(struct io_result), by_result);
    }
    return r;
}

static int connection_add(struct grouping *grouping, const struct connection_row *row)
{
    const struct connection_info *info = &row->info;
    if (info->opened_ns == 0 || info->role == REQUEST_INSIDE)
        return 0;
    uint32_t id;
    bool fresh;
    const char *key = arena_printf(grouping->arena, "%d %d %.*s", (int)info->protocol,
                                   (int)info->role, STR_FMT(info->peer));
    int r = intern_add(&grouping->peers, str_from(key), &id, &fresh);
    struct io_dialled made = {
        .peer = info->peer, .service = STR(""), .protocol = info->protocol, .role = info->role};
    if (r == 0 && fresh)
        r = VEC_PUSH(&grouping->dialled, made);
    if (r < 0)
        return r;
    struct io_dialled *to = &grouping->dialled.data[id - 1];
    to->connections++;
    to->requests += row->requests;
    to->tls = to->tls || info->flags & CONNECTION_TLS;
    if (to->service.len == 0)
        to->service = info->service;
    return 0;
}

struct ranked {
    const struct io_request_group *group;
};

static int by_total(const void *left, const void *right)
{
    const struct io_request_group *a = ((const struct ranked *)left)->group;
    const struct io_request_group *b = ((const struct ranked *)right)->group;
    if (a->tally.total_ns != b->tally.total_ns)
        return a->tally.total_ns > b->tally.total_ns ? -1 : 1;
    if (a->tally.count != b->tally.count)
        return a->tally.count > b->tally.count ? -1 : 1;
    return a < b ? -1 : 1; /* as they came */
}

static int by_connections(const void *left, const void *right)
{
    const struct io_dialled *a = left, *b = right;
    if (a->connections != b->connections)
        return a->connections > b->connections ? -1 : 1;
    size_t len = MIN(a->peer.len, b->peer.len);
    int r = memcmp(a->peer.data, b->peer.data, len);
    return r ? r : (a->peer.len > b->peer.len) - (a->peer.len < b->peer.len);
}

/* In the order of reports, and rows point to where their group went. */
static int groups_order(struct grouping *grouping)
{
    struct io_request_groups *groups = grouping->groups;
    size_t count = grouping->list.len;
    struct ranked *order = calloc(count + 1, sizeof(*order));
    uint32_t *place = calloc(count + 1, sizeof(*place));
    groups->groups = arena_alloc(grouping->arena, (count + 1) * sizeof(*groups->groups));
    if (!order || !place || !groups->groups) {
        free(order);
        free(place);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        order[i].group = &grouping->list.data[i];
    if (count > 1)
        qsort(order, count, sizeof(*order), by_total);
    for (size_t i = 0; i < count; i++) {
        groups->groups[i] = *order[i].group;
        place[order[i].group - grouping->list.data] = (uint32_t)i + 1;
    }
    for (size_t i = 1; i < grouping->io->request_count; i++)
        if (groups->of_row[i] > 0)
            groups->of_row[i] = place[groups->of_row[i] - 1];
    groups->count = count;
    free(order);
    free(place);
    return 0;
}

static void *kept(struct arena *arena, const void *data, size_t count, size_t size)
{
    void *copy = arena_alloc(arena, (count + 1) * size);
    if (copy && count > 0)
        memcpy(copy, data, count * size);
    return copy;
}

static int lists_take(struct grouping *grouping)
{
    struct io_request_groups *groups = grouping->groups;
    if (grouping->dialled.len > 1)
        qsort(grouping->dialled.data, grouping->dialled.len, sizeof(struct io_dialled),
              by_connections);
    groups->results = kept(grouping->arena, grouping->result_list.data, grouping->result_list.len,
                           sizeof(struct io_result));
    groups->result_count = grouping->result_list.len;
    groups->dialled = kept(grouping->arena, grouping->dialled.data, grouping->dialled.len,
                           sizeof(struct io_dialled));
    groups->dialled_count = grouping->dialled.len;
    return groups->results && groups->dialled ? groups_order(grouping) : -ENOMEM;
}

int io_request_groups_build(struct arena *arena, const struct io *io, struct io_request_groups *ret)
{
    struct io_request_groups groups = {0};
    struct grouping grouping = {.arena = arena, .io = io, .groups = &groups};
    groups.of_row = arena_alloc(arena, (io->request_count + 1) * sizeof(*groups.of_row));
    int r = groups.of_row ? 0 : -ENOMEM;
    for (uint32_t i = 1; i < io->request_count && r == 0; i++)
        if (io->requests[i].tally.count > 0)
            r = row_add(&grouping, i);
    for (size_t i = 1; i < io->connection_count && r == 0; i++)
        r = connection_add(&grouping, &io->connections[i]);
    if (r == 0)
        r = events_add(&grouping);
    if (r == 0)
        r = results_take(&grouping);
    if (r == 0)
        r = lists_take(&grouping);
    if (r == 0)
        r = io_chains_build(arena, io, &groups);
    intern_deinit(&grouping.keys);
    intern_deinit(&grouping.peers);
    map_u64_deinit(&grouping.threads);
    map_u64_deinit(&grouping.connections);
    map_u64_deinit(&grouping.parameters);
    map_u64_deinit(&grouping.results);
    VEC_FREE(&grouping.list);
    VEC_FREE(&grouping.result_list);
    VEC_FREE(&grouping.dialled);
    if (r == 0)
        *ret = groups;
    return r;
}
