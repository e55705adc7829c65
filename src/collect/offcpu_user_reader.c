/* Whom to look at, and what becomes of what was seen.
 *
 * The kernel's records are some milliseconds behind: which threads are off the CPU now is a
 * guess, which wait a look belongs to is not. A look is kept, with the bytes of its stack, until
 * all records up to its end were read: by then mappings are those of its moment, and the thread
 * either was off the CPU all the while or the look is thrown away. A thread that does not run
 * does not change what it sits in, so that one look a wait is enough. */
#include "base/clock.h"
#include "collect/offcpu_user_parts.h"
#include "unwind/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BUDGET_PERCENT = 2,           /* of one CPU */
    BUDGET_BURST_MS = 20,         /* a program of many threads is looked at soon */
    MEMORY_BYTES_MAX = 16 << 20,  /* of stacks that wait for their time */
};

void user_reader_deinit(struct user_reader *reader)
{
    for (size_t i = 0; i < USER_LOOKS_MAX; i++)
        free(reader->looks[i].bytes);
}

static uint64_t own_ns(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* A slot with room for the stack; NULL when too many wait. */
static struct user_look *slot_take(struct user_reader *reader, uint32_t slice_bytes)
{
    if (reader->count == USER_LOOKS_MAX)
        return NULL;
    struct user_look *look = &reader->looks[(reader->first + reader->count) % USER_LOOKS_MAX];
    if (look->cap >= slice_bytes)
        return look;
    size_t memory_bytes = reader->memory_bytes - look->cap + slice_bytes;
    if (memory_bytes > MEMORY_BYTES_MAX)
        return look->cap > 0 ? look : NULL; /* a smaller slice is better than none */
    uint8_t *bytes = realloc(look->bytes, slice_bytes);
    if (!bytes)
        return look->cap > 0 ? look : NULL;
    look->bytes = bytes;
    look->cap = slice_bytes;
    reader->memory_bytes = memory_bytes;
    return look;
}

/* False: there is no room for more. */
static bool look_at(struct user_reader *reader, struct user_thread *thread, uint8_t *wanted)
{
    struct user_look *look = slot_take(reader, thread->slice_bytes);
    if (!look)
        return false;
    int r = user_look(thread->pid, thread->tid, look);
    reader->looked++;
    /* Its first wait after the horizon may be this one: the next will be looked at again. */
    thread->looked_ns = clock_mono_ns();
    *wanted = 0;
    switch (r) {
    case 0:
        reader->count++;
        break;
    case -EAGAIN:
        reader->ran++;
        break;
    case -ENOENT:
    case -ESRCH:
        reader->gone++;
        break;
    case -EACCES:
    case -EPERM:
    case -ENOSYS:
        reader->denied++;
        reader->denied_error = -r;
        reader->denied_pid = thread->pid;
        break;
    default:
        reader->failed++;
        break;
    }
    return true;
}

int user_reader_round(struct user_reader *reader, uint64_t now_ns)
{
    struct user_threads *t = reader->threads;
    uint64_t begin_ns = own_ns(), last_ns = begin_ns;
    uint64_t passed_ns = reader->last_round_ns ? now_ns - reader->last_round_ns : USER_PERIOD_NS;
    int64_t burst_ns = BUDGET_BURST_MS * (int64_t)NS_PER_MS;
    reader->budget_ns += (int64_t)(MIN(passed_ns, NS_PER_SEC) * BUDGET_PERCENT / 100);
    reader->budget_ns = MIN(reader->budget_ns, burst_ns);
    reader->last_round_ns = now_ns;
    reader->rounds++;
    size_t count = t->threads.len, i = 0;
    for (; i < count && reader->budget_ns > 0; i++) {
        size_t at = (reader->cursor + i) % count;
        if (!t->wanted.data[at])
            continue;
        if (!look_at(reader, &t->threads.data[at], &t->wanted.data[at]))
            break;
        uint64_t ns = own_ns();
        reader->budget_ns -= (int64_t)(ns - last_ns);
        last_ns = ns;
    }
    if (count > 0)
        reader->cursor = (reader->cursor + i) % count;
    for (; i < count; i++)
        reader->left_out += t->wanted.data[(reader->cursor + i) % count];
    reader->own_ns += last_ns - begin_ns;
    return 0;
}

static int walk(struct user_reader *reader, const struct user_look *look, struct stacks_found *ret)
{
    /* Of its registers these two are known; what it saved lies on its stack. */
    unsigned sp = unwind_machine_info(unwind_machine_here())->sp;
    struct unwind_registers registers = {.pc = look->call.pc, .known = 1u << sp};
    registers.reg[sp] = look->call.sp;
    struct stacks_sample sample = {
        .time_ns = look->end_ns,
        .pid = look->pid,
        .tid = look->tid,
        .registers = &registers,
        .slice = {.address = look->call.sp, .bytes = look->bytes, .len = look->len},
    };
    return stacks_sample(reader->stacks, &sample, ret);
}

static void end_count(struct user_reader *reader, struct user_thread *thread,
                      const struct stacks_found *found)
{
    reader->used++;
    reader->ends[found->end]++;
    reader->complete += found->end == UNWIND_ROOT;
    if (found->end != UNWIND_TRUNCATED)
        return;
    reader->truncated++;
    if (thread->slice_bytes >= USER_SLICE_BYTES_MAX)
        return;
    /* Deeper from now on; if it still waits, at once. */
    thread->slice_bytes *= 2;
    reader->threads->wanted.data[thread - reader->threads->threads.data] = 1;
}

static int look_use(struct user_reader *reader, const struct user_look *look)
{
    struct user_threads *t = reader->threads;
    struct stacks_found found;
    if (!user_threads_waits(t, look->tid, look->begin_ns)) {
        reader->stale++;
        return 0;
    }
    int r = walk(reader, look, &found);
    if (r < 0)
        return r;
    end_count(reader, user_threads_find(t, look->tid), &found);
    struct user_cause cause = {
        .stack = found.stack,
        .flags = look->flags,
        .detail = look->facts.detail,
        .syscall = look->call.syscall,
    };
    return user_threads_observe(t, look->end_ns, look->tid, &cause, look->owner);
}

int user_reader_until(struct user_reader *reader, uint64_t time_ns)
{
    uint64_t begin_ns = 0;
    int r = 0;
    while (r == 0 && reader->count > 0 && reader->looks[reader->first].end_ns <= time_ns) {
        begin_ns = begin_ns ? begin_ns : own_ns();
        r = look_use(reader, &reader->looks[reader->first]);
        reader->first = (reader->first + 1) % USER_LOOKS_MAX;
        reader->count--;
    }
    if (begin_ns)
        reader->own_ns += own_ns() - begin_ns;
    return r;
}
