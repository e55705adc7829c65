/* The ring in the order of time: stacks are walked while the mappings are those of their moment,
 * and what is freed is what was allocated before. */
#include "base/clock.h"
#include "collect/heap_kernel_parts.h"

#include <errno.h>
#include <stdlib.h>

/* ---- accounts ---- */

static uint64_t key_of(uint32_t id, uint32_t exec)
{
    return (uint64_t)id << 32 | exec;
}

static void account_leave(struct heap_account *account)
{
    if (!account || --account->users > 0)
        return;
    heap_count_deinit(&account->count);
    free(account);
}

void heap_accounts_close(struct collector *c)
{
    for (size_t i = 0; i < c->accounts.len; i++)
        account_leave(c->accounts.data[i].account);
    VEC_FREE(&c->accounts);
    map_u64_deinit(&c->account_at);
    map_u64_deinit(&c->state_at);
    VEC_FREE(&c->states);
    VEC_FREE(&c->looked);
}

/* Under its key, in the place of what was there. */
static int account_set(struct collector *c, uint64_t key, struct heap_account *account)
{
    const struct heap_account_ref ref = {account};
    uint64_t *at = map_u64_at(&c->account_at, key, NULL);
    if (!at || VEC_PUSH(&c->accounts, ref) < 0)
        return -ENOMEM;
    account->users++;
    *at = c->accounts.len;
    return 0;
}

static int account_new(struct collector *c, uint32_t tgid, uint32_t exec, struct heap_account **ret)
{
    if (c->accounts.len >= HEAP_KERNEL_ACCOUNTS_MAX) {
        c->accounts_beyond++;
        return -E2BIG;
    }
    struct heap_account *account = calloc(1, sizeof(*account));
    if (!account)
        return -ENOMEM;
    heap_count_init(&account->count, c->opts.temporary_within);
    account->pid = (int)tgid;
    int r = account_set(c, key_of(tgid, exec), account);
    if (r < 0)
        free(account);
    else
        *ret = account;
    return r;
}

static int account_of(struct collector *c, uint32_t tgid, uint32_t exec, struct heap_account **ret)
{
    const uint64_t *at = map_u64_find(&c->account_at, key_of(tgid, exec));
    if (!at || *at == 0)
        return account_new(c, tgid, exec, ret);
    *ret = c->accounts.data[*at - 1].account;
    return 0;
}

/* Nothing of it will be freed any more. What it was stays known. */
static int account_end(struct collector *c, struct heap_account *account)
{
    int r = heap_count_put(&account->count, c->sink, true);
    account->over = true;
    heap_count_over(&account->count);
    return r;
}

/* ---- threads ---- */

static int state_of(struct collector *c, const struct offcpu_head *head,
                    struct heap_thread_state **ret)
{
    struct told_thread *seen;
    struct heap_thread_state fresh = {0};
    uint64_t *at = map_u64_at(&c->state_at, key_of(head->tid, head->exec), NULL);
    if (!at)
        return -ENOMEM;
    if (*at == 0) {
        if (VEC_PUSH(&c->states, fresh) < 0)
            return -ENOMEM;
        *at = c->states.len;
    }
    struct heap_thread_state *state = &c->states.data[*at - 1];
    int r = told_threads_get(&c->threads, head->tid, head->tgid, head->exec, head->time_ns, &seen);
    if (r == 0 && !state->account) {
        r = account_of(c, head->tgid, head->exec, &state->account);
        if (r == 0)
            state->account->threads++;
    }
    if (r < 0)
        return r;
    state->thread.number = (uint32_t)*at;
    state->thread.thread = seen->thread;
    /* A child of vfork() has its parent's memory, which is the parent's account. */
    if (state->account->count.process == 0 && state->account->pid == (int)head->tgid)
        state->account->count.process = seen->process;
    *ret = state;
    return 0;
}

/* ---- events ---- */

static int event_log(struct collector *c, const struct heap_count_event *event,
                     enum heap_event_kind kind)
{
    const struct heap_event log = {
        .thread = event->thread->thread,
        .stack = event->stack,
        .kind = kind,
        .address = event->address,
        .size = event->size,
        .time_ns = event->time_ns,
    };
    return c->opts.log ? sink_heap_event(c->sink, &log) : 0;
}

static int entry_log(struct collector *c, const struct heap_count_event *event,
                     const struct heap_live_entry *entry)
{
    const struct heap_count_event freed = {
        .thread = event->thread,
        .time_ns = event->time_ns,
        .address = entry->address,
        .size = entry->size,
        .stack = entry->stack,
    };
    return entry->address != 0 ? event_log(c, &freed, HEAP_EVENT_FREED) : 0;
}

static int reallocated(struct collector *c, struct heap_thread_state *state,
                       const struct heap_count_event *event, uint64_t before)
{
    struct heap_count *count = &state->account->count;
    struct heap_live_entry old = state->given;
    if (state->giving != before) /* its beginning was lost */
        old = heap_count_take(count, before);
    state->giving = 0;
    state->given = (struct heap_live_entry){0};
    if (event->address == 0 && event->size != 0)
        return heap_count_put_back(count, &old);
    c->allocations += event->address != 0;
    c->frees++;
    int r = heap_count_reallocated(count, before, &old, event);
    if (r == 0)
        r = entry_log(c, event, &old);
    return r < 0 || event->address == 0 ? r : event_log(c, event, HEAP_EVENT_ALLOCATED);
}

static int allocated_take(struct collector *c, const struct heap_kernel_allocated *told)
{
    struct heap_thread_state *state;
    int r = state_of(c, &told->head, &state);
    if (r < 0)
        return r;
    const struct heap_count_event event = {
        .thread = &state->thread,
        .time_ns = told->head.time_ns,
        .address = told->address,
        .size = told->size,
        .stack = told_stacks_find(&c->told, told->stack, told->head.time_ns),
    };
    state->freed = 0;
    if (told->old != 0)
        return reallocated(c, state, &event, told->old);
    if (event.address == 0 && event.size == 0)
        return 0; /* nothing was asked for, nothing was given */
    c->allocations += event.address != 0;
    r = heap_count_allocated(&state->account->count, &event);
    return r < 0 || event.address == 0 ? r : event_log(c, &event, HEAP_EVENT_ALLOCATED);
}

static int freed_take(struct collector *c, const struct heap_kernel_freed *told)
{
    struct heap_thread_state *state;
    struct heap_live_entry entry;
    int r = state_of(c, &told->head, &state);
    if (r < 0)
        return r;
    struct heap_count *count = &state->account->count;
    const struct heap_count_event event = {
        .thread = &state->thread,
        .time_ns = told->head.time_ns,
        .address = told->address,
    };
    if (state->freed == told->address && !heap_live_find(&count->live, told->address)) {
        c->handed_on++; /* operator delete has told of it */
        return 0;
    }
    state->freed = told->address;
    c->frees++;
    r = heap_count_freed(count, &event, &entry);
    return r < 0 ? r : entry_log(c, &event, &entry);
}

static int given_take(struct collector *c, const struct heap_kernel_freed *told)
{
    struct heap_thread_state *state;
    int r = state_of(c, &told->head, &state);
    if (r < 0)
        return r;
    struct heap_count *count = &state->account->count;
    const struct heap_count_event over = {.thread = &state->thread, .time_ns = told->head.time_ns};
    if (state->given.address != 0) /* the end of the last one was lost */
        r = heap_count_reallocated(count, state->giving, &state->given, &over);
    state->giving = told->address;
    state->given = heap_count_take(count, told->address);
    return r;
}

/* ---- processes ---- */

static int forked_take(struct collector *c, const struct heap_kernel_forked *told)
{
    struct heap_account *parent, *child;
    const struct offcpu_head *head = &told->head;
    int r = account_of(c, head->tgid, head->exec, &parent);
    if (r == 0 && told->shares)
        return account_set(c, key_of(told->child, told->child_exec), parent);
    if (r == 0)
        r = account_new(c, told->child, told->child_exec, &child);
    if (r == 0)
        r = heap_count_forked(&parent->count, &child->count);
    if (r == 0 && c->attached)
        r = heap_looks_add(c, (int)told->child);
    return r;
}

/* Its old memory is gone; which of its threads did it does not matter. */
static int began_take(struct collector *c, const struct offcpu_head *head)
{
    struct heap_account *account;
    uint64_t *old = head->exec > 0
                        ? map_u64_find(&c->account_at, key_of(head->tgid, head->exec - 1))
                        : NULL;
    int r = 0;
    if (old && *old != 0) {
        account = c->accounts.data[*old - 1].account;
        if (account->pid == (int)head->tgid && !account->over)
            r = account_end(c, account);
    }
    if (r == 0)
        r = account_new(c, head->tgid, head->exec, &account);
    return r < 0 ? r : heap_looks_add(c, (int)head->tgid);
}

static int exit_take(struct collector *c, const struct offcpu_head *head)
{
    struct told_thread *seen;
    int r = told_threads_get(&c->threads, head->tid, head->tgid, head->exec, head->time_ns, &seen);
    if (r == 0)
        seen->ended = true;
    uint64_t *at = map_u64_find(&c->state_at, key_of(head->tid, head->exec));
    if (r < 0 || !at || *at == 0)
        return r;
    struct heap_account *account = c->states.data[*at - 1].account;
    *at = 0; /* whoever has this id next is another */
    if (!account || --account->threads > 0 || head->tid != head->tgid ||
        account->pid != (int)head->tgid)
        return 0;
    heap_looks_end(c, account->pid);
    return account_end(c, account);
}

/* ---- the ring ---- */

static size_t record_bytes(uint32_t record)
{
    switch (record) {
    case HEAP_KERNEL_ALLOCATED:
        return sizeof(struct heap_kernel_allocated);
    case HEAP_KERNEL_FREED:
    case HEAP_KERNEL_GIVEN:
        return sizeof(struct heap_kernel_freed);
    case HEAP_KERNEL_FORKED:
        return sizeof(struct heap_kernel_forked);
    default:
        return sizeof(struct offcpu_head);
    }
}

static int record_take(struct collector *c, const struct offcpu_head *head, size_t bytes)
{
    if (bytes < record_bytes(head->record)) {
        c->malformed++;
        return 0;
    }
    switch (head->record) {
    case OFFCPU_COPY:
        return told_stacks_take(&c->told, (const void *)head, bytes);
    case HEAP_KERNEL_ALLOCATED:
        return allocated_take(c, (const void *)head);
    case HEAP_KERNEL_FREED:
        return freed_take(c, (const void *)head);
    case HEAP_KERNEL_GIVEN:
        return given_take(c, (const void *)head);
    case HEAP_KERNEL_FORKED:
        return forked_take(c, (const void *)head);
    case HEAP_KERNEL_BEGAN:
        return began_take(c, head);
    case OFFCPU_EXIT:
        return exit_take(c, head);
    default:
        c->malformed++;
        return 0;
    }
}

int heap_records_take(struct collector *c, uint64_t time_ns)
{
    const struct offcpu_head *head;
    size_t bytes;
    uint64_t place;
    int failed = 0;
    bpf_ring_begin(&c->ring);
    /* What an announcement has changed counts from the moment we were told of it. */
    told_stacks_check(&c->told, c->until_ns);
    while ((head = bpf_ring_next(&c->ring, &bytes, &place))) {
        if (bytes < sizeof(*head)) {
            c->malformed++;
            continue;
        }
        if (head->time_ns > time_ns) { /* the next time */
            c->ring.at = place;
            break;
        }
        int r = record_take(c, head, bytes);
        if (r == -E2BIG || r == -EINVAL)
            c->refused++; /* beyond a bound of the sink: this one, not the recording */
        else if (r < 0 && failed == 0)
            failed = r; /* go on: the sink counts what it drops */
        bpf_ring_release(&c->ring, UINT64_MAX);
    }
    bpf_ring_release(&c->ring, UINT64_MAX);
    if (time_ns != UINT64_MAX)
        c->until_ns = time_ns;
    return failed;
}
