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
    BUDGET_PERCENT = 2,          /* of one CPU */
    BUDGET_BURST_MS = 30,        /* spent at once: a program of many threads is looked at soon */
    MEMORY_BYTES_MAX = 16 << 20, /* of stacks that wait for their time */
    DENIALS_MIN = 3,             /* of one thread, one round after the other: then it is so */
    POINTER_MISSES_MAX = 4,      /* a place where no frame pointer was found so often has none */
};

int user_reader_init(struct user_reader *reader, struct sink *sink)
{
    reader->sink = sink;
    int r = objects_open(sink, &reader->objects);
    return r < 0 ? r : lock_names_open(&reader->names);
}

void user_reader_deinit(struct user_reader *reader)
{
    objects_close(reader->objects);
    lock_names_close(reader->names);
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
    /* A wait that begins while we look, or before we get the CPU back, was not seen. */
    uint64_t begin_ns = clock_mono_ns();
    int r = user_look(thread->pid, thread->tid, look);
    /* Now, since the fd may be another's once the call is over. What it is need not be known. */
    look->object = 0;
    if (r == 0 && look->fd >= 0 &&
        objects_of_fd(reader->objects, thread->pid, look->fd, &look->object) < 0)
        reader->fds_unknown++;
    reader->looked++;
    /* Its first wait after the horizon may be this one: the next will be looked at again. */
    thread->looked_ns = begin_ns;
    user_threads_delay_read(reader->threads, thread, clock_mono_ns());
    *wanted = 0;
    switch (r) {
    case 0:
        look->ran = false;
        thread->denials = 0;
        reader->count++;
        break;
    case -EAGAIN:
        reader->ran++;
        look->ran = true;
        look->end_ns = look->begin_ns;
        reader->count += reader->threads->floor; /* then it is a fact like any other */
        break;
    case -ENOENT:
    case -ESRCH:
        reader->gone++;
        break;
    case -EACCES:
    case -EPERM:
    case -ENOSYS:
        /* One that is about to end is root's for a moment. */
        if (++thread->denials < DENIALS_MIN) {
            *wanted = 1;
            break;
        }
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
    int64_t burst_ns = BUDGET_BURST_MS * (int64_t)NS_PER_MS;
    uint64_t passed_ns = reader->last_round_ns ? now_ns - reader->last_round_ns : 0;
    if (reader->rounds == 0)
        reader->budget_ns = burst_ns;
    reader->budget_ns += (int64_t)(MIN(passed_ns, NS_PER_SEC) * BUDGET_PERCENT / 100);
    reader->budget_ns = MIN(reader->budget_ns, burst_ns);
    reader->last_round_ns = now_ns;
    reader->rounds++;
    size_t count = t->threads.len, i = 0;
    for (size_t j = 0; j < count && reader->threads->floor; j++)
        t->wanted.data[j] = t->threads.data[j].where != USER_GONE;
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

static size_t code_read(void *context, int pid, uint64_t address, void *to, size_t len)
{
    (void)context;
    return user_memory_read(pid, address, to, len);
}

static uint64_t slot_of(const struct user_look *look, uint64_t address)
{
    uint64_t value = 0, at = address - look->call.sp;
    if (address >= look->call.sp && look->len >= sizeof(value) && at <= look->len - sizeof(value))
        memcpy(&value, look->bytes + at, sizeof(value));
    return value;
}

/* What hangs on the frame pointer is walked with one that was found, not shown. */
static int pointer_find(struct user_reader *reader, struct user_thread *thread,
                        const struct user_look *look, const struct stacks_sample *sample,
                        uint64_t *ret)
{
    static const struct stacks_memory memory = {.read = code_read};
    if (thread->pointer && thread->pointer_pc == look->call.pc &&
        thread->pointer_sp == look->call.sp &&
        thread->pointer_return == slot_of(look, thread->pointer + 8)) {
        *ret = thread->pointer;
        return 0;
    }
    bool same = thread->pointer_pc == look->call.pc && thread->pointer_sp == look->call.sp;
    if (same && thread->pointer_misses >= POINTER_MISSES_MAX)
        return -ENODATA;
    uint64_t pointer = 0;
    int r = stacks_frame_pointer(reader->stacks, sample, &memory, &pointer);
    if (r < 0 && r != -ENODATA)
        return r;
    thread->pointer_misses = r == 0 ? 0 : same ? thread->pointer_misses + 1 : 1;
    thread->pointer = pointer;
    thread->pointer_pc = look->call.pc;
    thread->pointer_sp = look->call.sp;
    thread->pointer_return = slot_of(look, pointer + 8);
    if (r == 0)
        *ret = pointer;
    return r;
}

static int walk(struct user_reader *reader, struct user_thread *thread,
                const struct user_look *look, struct stacks_found *ret)
{
    /* Of its registers these two are known; what it saved lies on its stack. */
    const struct unwind_machine_info *info = unwind_machine_info(unwind_machine_here());
    struct unwind_registers registers = {.pc = look->call.pc, .known = 1u << info->sp};
    registers.reg[info->sp] = look->call.sp;
    struct stacks_sample sample = {
        .time_ns = look->end_ns,
        .pid = look->pid,
        .tid = look->tid,
        .registers = &registers,
        .slice = {.address = look->call.sp, .bytes = look->bytes, .len = look->len},
    };
    int r = pointer_find(reader, thread, look, &sample, &registers.reg[info->fp]);
    if (r == 0) {
        registers.known |= 1u << info->fp;
        reader->pointers++;
    } else if (r != -ENOENT && r != -ENODATA) {
        return r;
    }
    return stacks_sample(reader->stacks, &sample, ret);
}

/* A wait whose stack was cut off is looked at again: then only the last look counts. */
static void end_count(struct user_reader *reader, struct user_thread *thread,
                      const struct stacks_found *found)
{
    if (thread->observed && thread->cut_off) {
        reader->used--;
        reader->truncated--;
    }
    thread->cut_off = found->end == UNWIND_TRUNCATED;
    reader->used++;
    reader->ends[found->end]++;
    reader->complete += found->end == UNWIND_ROOT;
    reader->truncated += thread->cut_off;
    if (!thread->cut_off || thread->slice_bytes >= USER_SLICE_BYTES_MAX)
        return;
    /* Deeper from now on; if it still waits, at once. */
    thread->slice_bytes *= 2;
    reader->threads->wanted.data[thread - reader->threads->threads.data] = 1;
}

static int futex_put(struct user_reader *reader, const struct user_look *look, uint32_t process,
                     uint32_t *ret)
{
    struct object_info info = {
        .kind = OBJECT_FUTEX, .process = process, .key = look->facts.address};
    int r = sink_object(reader->sink, &info, ret);
    return r < 0 ? r : lock_names_see(reader->names, reader->stacks, look->pid, info.key, *ret);
}

/* 0 in *ret: nothing, or nothing that is known. */
static int object_put(struct user_reader *reader, const struct user_look *look, uint32_t *ret)
{
    const struct user_call_facts *facts = &look->facts;
    uint32_t process = 0;
    *ret = look->object;
    if (facts->on != USER_CALL_ON_FUTEX && facts->on != USER_CALL_ON_CHILD)
        return 0;
    int r = stacks_process(reader->stacks, look->end_ns, look->pid, &process);
    if (r == 0)
        r = facts->on == USER_CALL_ON_FUTEX
                ? futex_put(reader, look, process, ret)
                : objects_of_child(reader->objects, process, (uint32_t)facts->child, ret);
    return r == -E2BIG ? 0 : r;
}

/* A thread that ran meanwhile but sits in the very same place again: not good enough for any one
 * wait, but for short ones that come and go faster than anybody can look. */
static bool is_nearby(const struct user_thread *thread, const struct stacks_found *found)
{
    return thread->where != USER_GONE && !thread->observed && found->end == UNWIND_ROOT;
}

static int look_use(struct user_reader *reader, const struct user_look *look)
{
    struct user_threads *t = reader->threads;
    struct user_thread *thread = user_threads_find(t, look->tid);
    struct stacks_found found = {0};
    struct user_cause cause = {
        .flags = look->flags,
        .detail = look->facts.detail,
        .syscall = look->call.syscall,
        .limit_ns = look->limit_ns,
        .until_ns = look->until_ns,
    };
    if (!thread || thread->where == USER_GONE) {
        reader->stale++;
        return 0;
    }
    bool waits = user_threads_waits(t, look->tid, look->begin_ns);
    if (waits && user_call_in_kernel(&look->call)) /* there is nothing to walk */
        return user_threads_observe(t, look->end_ns, look->tid, &cause, 0);
    int r = walk(reader, thread, look, &found);
    if (r < 0)
        return r;
    if (!waits && !is_nearby(thread, &found)) {
        reader->stale++;
        return 0;
    }
    r = object_put(reader, look, &cause.object);
    if (r < 0)
        return r;
    cause.stack = found.stack;
    end_count(reader, thread, &found);
    if (waits)
        return user_threads_observe(t, look->end_ns, look->tid, &cause, look->owner);
    reader->nearby++;
    return user_threads_suppose(t, look->tid, &cause);
}

static bool is_same(const struct user_call *a, const struct user_call *b)
{
    return a->syscall == b->syscall && a->sp == b->sp && a->pc == b->pc &&
           memcmp(a->args, b->args, sizeof(a->args)) == 0;
}

/* Without switch records a thread is taken to sit where it was seen until it is seen elsewhere.
 * 1: it sits somewhere new. */
static int floor_step(struct user_reader *reader, const struct user_look *look)
{
    struct user_threads *t = reader->threads;
    struct user_thread *thread = user_threads_find(t, look->tid);
    if (!thread || thread->where == USER_GONE)
        return 0;
    bool blocked = thread->where == USER_BLOCKED && !thread->assumed;
    if (blocked && !look->ran && is_same(&thread->call, &look->call))
        return 0;
    bool on = thread->where == USER_ON && !thread->assumed;
    int r = on ? 0 : user_threads_switch(t, look->begin_ns, look->pid, look->tid, false, false);
    if (r < 0 || look->ran)
        return r;
    thread = user_threads_find(t, look->tid);
    thread->call = look->call;
    r = user_threads_switch(t, look->begin_ns, look->pid, look->tid, true, false);
    return r < 0 ? r : 1;
}

int user_reader_until(struct user_reader *reader, uint64_t time_ns)
{
    uint64_t begin_ns = 0;
    int r = 0;
    while (r == 0 && reader->count > 0 && reader->looks[reader->first].end_ns <= time_ns) {
        begin_ns = begin_ns ? begin_ns : own_ns();
        const struct user_look *look = &reader->looks[reader->first];
        r = reader->threads->floor ? floor_step(reader, look) : 1;
        if (r > 0)
            r = look_use(reader, look);
        reader->first = (reader->first + 1) % USER_LOOKS_MAX;
        reader->count--;
    }
    if (begin_ns) {
        uint64_t ns = own_ns() - begin_ns;
        reader->own_ns += ns;
        /* Reading the tables of a large program is no reason to look away for long. */
        reader->budget_ns = MAX(reader->budget_ns - (int64_t)ns, -(int64_t)NS_PER_MS);
    }
    return r;
}
