/* The rules that give a wait its class, and the sums. docs/waits.md has the rules as a table.
 *
 * facts (what else happened at the stack, what lies on the critical path) → one verdict a row →
 * threads that only sleep are idle → sums */
#include "analyze/wait_classes.h"

#include "analyze/wait_parts.h"
#include "base/map.h"

#include <errno.h>

enum {
    PATH_SHARE = 100, /* on the critical path: at least 1/100 of it */
    TIMER_COUNT = 3,  /* as often at one stack: a habit */
    CUTS_MAX = 2,     /* a run is ended by one signal, and by a second when it does not heed it */
    TIMER_LIFE_TENTHS = 9, /* a timer thread: so much of its life is sleep */
    GUESSED_SHARE = 10,    /* below 1/10 of the time: no evidence */
};
/* Longer waits are only told of what they were seen in (collect/offcpu_user_parts.h). */
static const uint64_t guessed_ns_max = 52000000;

enum waker { WAKER_NONE, WAKER_OUTSIDE, WAKER_OTHER_PROCESS, WAKER_SAME_PROCESS };

struct verdict {
    enum wait_class class;
    const char *reason;
};

struct judge {
    const struct waits *waits;
    const struct critical_path *path;
    struct wait_families families;
    struct wait_stacks stacks;
    struct map_u64 path_at;  /* thread and stack to ns on the path */
    struct map_u64 timed_at; /* process and stack to waits that a time limit ended */
    struct map_u64 cut_at;   /* the same to waits that a signal from outside ended */
    struct map_u64 other_at; /* the same to waits that something else ended */
    /* The same to ns: of waits that a time limit ended, and of those that nobody may have seen. */
    struct map_u64 timed_ns_at, guessed_ns_at;
    struct map_u64 waits_at; /* object and thread to waits */
    struct map_u64 given_at; /* object to waits that a thread of the tree ended */
    struct map_u64 held_at;  /* the same of a thread that waits there itself */
};

/* One wait with all that the rules ask about. */
struct view {
    const struct judge *judge;
    const struct wait_info *info;
    const struct object_info *object;
    struct wait_stack stack;
    struct wait_stack waker_stack;
    enum wait_family family;
    enum waker waker;
    bool matters;    /* on the critical path, or the root's main thread */
    bool only_timed; /* at this stack nothing but time limits, and the run's end, ended a wait */
    uint64_t timed;  /* how often */
};

const char *wait_class_name(enum wait_class class)
{
    static const char *const names[] = {
        [WAIT_CLASS_RUNNING] = "running", [WAIT_CLASS_RUNQ] = "runq",
        [WAIT_CLASS_LOCK] = "lock",       [WAIT_CLASS_DISK] = "disk",
        [WAIT_CLASS_NET] = "net",         [WAIT_CLASS_PAGEFAULT] = "pagefault",
        [WAIT_CLASS_CHILD] = "child",     [WAIT_CLASS_PIPE] = "pipe",
        [WAIT_CLASS_TIMER] = "timer",     [WAIT_CLASS_IDLE] = "idle",
        [WAIT_CLASS_UNKNOWN] = "unknown",
    };
    return names[class];
}

static uint64_t key_of(uint32_t owner, uint32_t stack)
{
    return (uint64_t)owner << 32 | stack;
}

static uint64_t found(const struct map_u64 *map, uint64_t key)
{
    const uint64_t *value = map_u64_find(map, key);
    return value ? *value : 0;
}

static int add(struct map_u64 *map, uint64_t key, uint64_t value)
{
    uint64_t *at = value > 0 ? map_u64_at(map, key, NULL) : NULL;
    if (value > 0 && !at)
        return -ENOMEM;
    if (at)
        *at += value;
    return 0;
}

static bool is_timed(const struct wait_info *info)
{
    return (info->flags & WAIT_LIMITED) && (info->flags & WAIT_BY_INTERRUPT);
}

static uint32_t process_of(const struct waits *waits, uint32_t thread)
{
    return waits->profile.threads[thread].process;
}

static int timed_add(struct judge *judge, uint64_t at, const struct wait_tally *tally)
{
    int r = add(&judge->timed_at, at, tally->count);
    return r < 0 ? r : add(&judge->timed_ns_at, at, tally->total_ns);
}

/* User tier: a short wait that nobody looked at is taken for what was seen of its thread before,
 * and may have been for something else. */
static bool maybe_guessed(const struct wait_row *row)
{
    return (row->info.flags & WAIT_SAMPLED) && !(row->info.flags & WAIT_OPEN) &&
           row->tally.max_ns <= guessed_ns_max;
}

static int facts_gather(struct judge *judge)
{
    const struct waits *waits = judge->waits;
    for (uint32_t i = 1; i < waits->row_count; i++) {
        const struct wait_info *info = &waits->rows[i].info;
        if (info->kind != WAIT_BLOCKED)
            continue;
        uint64_t count = waits->rows[i].tally.count;
        uint64_t at = key_of(process_of(waits, info->thread), info->stack);
        uint64_t on_path = judge->path && !judge->path->na ? judge->path->waits[i] : 0;
        bool open = info->flags & WAIT_OPEN;
        int r = add(&judge->path_at, key_of(info->thread, info->stack), on_path);
        if (r == 0 && is_timed(info))
            r = timed_add(judge, at, &waits->rows[i].tally);
        else if (r == 0 && maybe_guessed(&waits->rows[i]))
            r = add(&judge->guessed_ns_at, at, waits->rows[i].tally.total_ns);
        else if (r == 0 && !open)
            r = add(waits_is_cut(waits, info) ? &judge->cut_at : &judge->other_at, at, count);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Where only limits end waits the one that the run's own end ended would have gone on to its limit,
 * too. */
static bool is_only_timed(const struct judge *judge, const struct wait_info *info, uint64_t at)
{
    bool timed = is_timed(info) ||
                 (waits_is_cut(judge->waits, info) && found(&judge->timed_at, at) > 0);
    return timed && found(&judge->other_at, at) == 0 && found(&judge->cut_at, at) <= CUTS_MAX &&
           found(&judge->guessed_ns_at, at) * GUESSED_SHARE <= found(&judge->timed_ns_at, at);
}

/* Who gives at a futex, and do they take there, too? */
static int givers_gather(struct judge *judge)
{
    const struct waits *waits = judge->waits;
    int r = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 1; i < waits->row_count && r == 0; i++) {
            const struct wait_info *info = &waits->rows[i].info;
            uint64_t count = waits->rows[i].tally.count;
            if (info->kind != WAIT_BLOCKED || waits->objects[info->object].kind != OBJECT_FUTEX)
                continue;
            if (pass == 0) {
                r = add(&judge->waits_at, key_of(info->object, info->thread), count);
                continue;
            }
            if (info->waker_thread == 0)
                continue;
            r = add(&judge->given_at, info->object, count);
            if (r == 0 && found(&judge->waits_at, key_of(info->object, info->waker_thread)) > 0)
                r = add(&judge->held_at, info->object, count);
        }
    return r;
}

static bool is_on_path(const struct judge *judge, uint32_t thread, uint32_t stack)
{
    if (!judge->path || judge->path->na || judge->path->ns == 0)
        return false;
    return found(&judge->path_at, key_of(thread, stack)) * PATH_SHARE >= judge->path->ns;
}

static bool is_blocked_on_disk(const struct view *view)
{
    return view->info->flags & (WAIT_UNINTERRUPTIBLE | WAIT_IO);
}

static struct verdict unknown(const struct view *view, const char *reason)
{
    if (is_blocked_on_disk(view))
        return (struct verdict){WAIT_CLASS_DISK, "uninterruptible: as waits for a device are"};
    return (struct verdict){WAIT_CLASS_UNKNOWN, reason};
}

/* Signalled by another thread of the process: a condition variable, an eventfd, a pipe to itself.
 */
static struct verdict judge_condition(const struct view *view)
{
    if (view->only_timed)
        return (struct verdict){WAIT_CLASS_TIMER, "a condition that only its time limit ended"};
    if (view->matters)
        return (struct verdict){WAIT_CLASS_LOCK, "a condition on the critical path"};
    return (struct verdict){WAIT_CLASS_IDLE, "a condition of an idle worker"};
}

/* Signalled as a condition is, and held by nobody: unless those who post it take it, too, as they
 * do with a lock. */
static struct verdict judge_semaphore(const struct view *view)
{
    uint64_t given = found(&view->judge->given_at, view->info->object);
    if (given > 0 && found(&view->judge->held_at, view->info->object) * 2 >= given)
        return (struct verdict){WAIT_CLASS_LOCK, "a semaphore that those who take it post"};
    if (view->only_timed)
        return (struct verdict){WAIT_CLASS_TIMER, "a semaphore that only its time limit ended"};
    if (view->matters)
        return (struct verdict){WAIT_CLASS_LOCK, "a semaphore on the critical path"};
    return (struct verdict){WAIT_CLASS_IDLE, "a semaphore of an idle worker"};
}

static struct verdict judge_futex(const struct view *view)
{
    uint32_t detail = view->info->detail;
    enum wait_sign sign = view->stack.sign;
    bool joined = detail == WAIT_FUTEX_BITSET && view->waker == WAKER_SAME_PROCESS &&
                  view->waker_stack.exits;
    if (view->stack.surely_lock)
        return (struct verdict){WAIT_CLASS_LOCK, "a lock made of other things"};
    if (sign == SIGN_JOIN || (sign == SIGN_NONE && joined))
        return (struct verdict){WAIT_CLASS_CHILD, "the end of a thread"};
    if (sign == SIGN_GO_IDLE)
        return (struct verdict){WAIT_CLASS_IDLE, "Go's runtime has nothing for the thread"};
    if (sign == SIGN_LOCK)
        return (struct verdict){WAIT_CLASS_LOCK, "held by another thread"};
    if (sign == SIGN_CONDITION)
        return judge_condition(view);
    if (sign == SIGN_SEMAPHORE)
        return judge_semaphore(view);
    if (detail == WAIT_FUTEX_VALUE_2 || detail == WAIT_FUTEX_PI)
        return (struct verdict){WAIT_CLASS_LOCK, "waited for as a mutex is"};
    if (detail == WAIT_FUTEX_VALUE_0)
        return (struct verdict){WAIT_CLASS_LOCK, "waited for as a barrier is"};
    if (view->only_timed)
        return (struct verdict){WAIT_CLASS_TIMER, "a futex that only its time limit ended"};
    return (struct verdict){WAIT_CLASS_LOCK, "a futex of unknown use"};
}

/* A pipe, or a pair of sockets without roles: its other end is a process, or the same one. */
static struct verdict judge_pipe(const struct view *view, bool reading)
{
    bool same = view->waker == WAKER_SAME_PROCESS;
    if (!reading && same)
        return (struct verdict){WAIT_CLASS_LOCK, "another thread does not read"};
    if (!reading && str_ends(view->object->name, OBJECT_TO_WHYSLOW))
        return (struct verdict){WAIT_CLASS_PIPE, "whyslow has not read its output yet: our cost"};
    if (!reading)
        return (struct verdict){WAIT_CLASS_PIPE, "the reader of the pipe does not keep up"};
    if (same)
        return judge_condition(view);
    if (!view->matters)
        return (struct verdict){WAIT_CLASS_IDLE, "nothing was asked for"};
    return (struct verdict){WAIT_CLASS_CHILD, view->waker == WAKER_OTHER_PROCESS
                                                  ? "what another process of the tree writes"
                                                  : "what a process outside of the tree writes"};
}

static struct verdict judge_socket(const struct view *view, bool reading)
{
    uint32_t flags = view->object->flags;
    bool local = str_starts(view->object->name, "unix:");
    bool paired = (flags & OBJECT_LOCAL) && !(flags & (OBJECT_CLIENT | OBJECT_SERVER));
    if (flags & OBJECT_LISTENING)
        return (struct verdict){WAIT_CLASS_IDLE, "connections to come"};
    if (view->info->flags & WAIT_ASKED)
        return (struct verdict){WAIT_CLASS_NET, "an answer was outstanding"};
    if (paired)
        return judge_pipe(view, reading);
    if (!reading)
        return (struct verdict){WAIT_CLASS_NET, "the peer does not read"};
    if (local && view->waker == WAKER_OTHER_PROCESS && view->matters)
        return (struct verdict){WAIT_CLASS_CHILD, "what another process of the tree sends"};
    if (flags & OBJECT_CLIENT)
        return (struct verdict){WAIT_CLASS_NET, "the reply of a server"};
    if (flags & OBJECT_SERVER)
        return (struct verdict){WAIT_CLASS_IDLE, "the next request of a client"};
    if (view->matters)
        return (struct verdict){WAIT_CLASS_NET, "what a peer sends"};
    return (struct verdict){WAIT_CLASS_IDLE, "nothing was asked for"};
}

/* read, write, recv, send, sendfile: what the descriptor is decides. */
static struct verdict judge_transfer(const struct view *view, bool reading)
{
    switch (view->object->kind) {
    case OBJECT_FILE:
    case OBJECT_DIRECTORY:
    case OBJECT_BLOCK_DEVICE:
        return (struct verdict){WAIT_CLASS_DISK, "a file's data"};
    case OBJECT_SOCKET:
        return judge_socket(view, reading);
    case OBJECT_PIPE:
        return judge_pipe(view, reading);
    case OBJECT_EVENT:
        return judge_condition(view);
    case OBJECT_TIMER:
        return (struct verdict){WAIT_CLASS_TIMER, "a timer"};
    case OBJECT_CHAR_DEVICE:
        if (reading && !is_blocked_on_disk(view))
            return (struct verdict){WAIT_CLASS_IDLE, "input of a terminal or device"};
        return unknown(view, "a terminal or device takes no more");
    default:
        if (view->family == FAMILY_RECEIVE || view->family == FAMILY_SEND)
            return judge_socket(view, reading);
        return unknown(view, "what it is about is not known");
    }
}

/* poll, select, epoll. A loop that only its time limit ends sleeps; but an epoll set is mostly a
 * server's, and what a network card brings looks like a timer: there it must be a few times. */
static struct verdict judge_poll(const struct view *view)
{
    const struct object_info *object = view->object;
    bool by_pipe = view->waker_stack.pipe || view->waker_stack.exits;
    if (view->info->flags & WAIT_ASKED)
        return (struct verdict){WAIT_CLASS_NET, "an answer was outstanding"};
    if (view->stack.surely_lock)
        return (struct verdict){WAIT_CLASS_LOCK, "a lock made of other things"};
    if (view->stack.sign == SIGN_GO_IDLE)
        return (struct verdict){WAIT_CLASS_IDLE, "Go's runtime has nothing for the thread"};
    if (object->kind == OBJECT_SOCKET && (object->flags & OBJECT_CLIENT))
        return (struct verdict){WAIT_CLASS_NET, "the reply of a server"};
    if (object->kind == OBJECT_TIMER)
        return (struct verdict){WAIT_CLASS_TIMER, "a timer"};
    if (view->matters && view->waker == WAKER_OTHER_PROCESS && by_pipe)
        return (struct verdict){WAIT_CLASS_CHILD, "what another process of the tree writes"};
    if (view->only_timed && (view->family != FAMILY_EPOLL || view->timed < TIMER_COUNT))
        return (struct verdict){WAIT_CLASS_TIMER, "only its time limit ended it"};
    return (struct verdict){WAIT_CLASS_IDLE, "nothing was asked for"};
}

static struct verdict judge_signal(const struct view *view)
{
    if (view->waker == WAKER_OTHER_PROCESS)
        return (struct verdict){WAIT_CLASS_CHILD, "a signal of another process of the tree"};
    if (view->info->flags & WAIT_BY_INTERRUPT)
        return (struct verdict){WAIT_CLASS_TIMER, "a signal that a timer sent"};
    return (struct verdict){WAIT_CLASS_IDLE, "a signal to come"};
}

/* io_uring and AIO: what was asked of them is in the rings, not in the call. */
static struct verdict judge_ring(const struct view *view)
{
    if (view->info->flags & WAIT_ASKED)
        return (struct verdict){WAIT_CLASS_NET, "an answer was outstanding"};
    if (is_blocked_on_disk(view) || view->matters)
        return (struct verdict){WAIT_CLASS_DISK, "completions of a ring"};
    return (struct verdict){WAIT_CLASS_IDLE, "completions of a ring, off the critical path"};
}

static struct verdict judge_memory(const struct view *view)
{
    if (view->info->flags & WAIT_IO)
        return (struct verdict){WAIT_CLASS_DISK, "pages of a file"};
    if (view->info->flags & WAIT_UNINTERRUPTIBLE)
        return (struct verdict){WAIT_CLASS_LOCK, "the process's memory map"};
    return unknown(view, "a call without a rule");
}

static struct verdict judge_restart(const struct view *view)
{
    if (view->object->kind == OBJECT_FUTEX)
        return judge_futex(view);
    return (struct verdict){WAIT_CLASS_TIMER, "a sleep that a signal had interrupted"};
}

static struct verdict judge_unseen(const struct view *view)
{
    if (view->object->kind == OBJECT_FUTEX)
        return judge_futex(view);
    if (view->stack.sign == SIGN_GO_IDLE)
        return (struct verdict){WAIT_CLASS_IDLE, "Go's runtime has nothing for the thread"};
    return unknown(view, view->family == FAMILY_NONE ? "in no system call" : "not seen");
}

static struct verdict judge_call(const struct view *view)
{
    switch (view->family) {
    case FAMILY_FUTEX:
        return judge_futex(view);
    case FAMILY_SLEEP:
        return (struct verdict){WAIT_CLASS_TIMER, "a sleep"};
    case FAMILY_EPOLL:
    case FAMILY_POLL:
        return judge_poll(view);
    case FAMILY_SIGNAL:
        return judge_signal(view);
    case FAMILY_CHILD:
        return (struct verdict){WAIT_CLASS_CHILD, "a child"};
    case FAMILY_ACCEPT:
        return (struct verdict){WAIT_CLASS_IDLE, "connections to come"};
    case FAMILY_CONNECT:
        return (struct verdict){WAIT_CLASS_NET, "a connection"};
    case FAMILY_READ:
    case FAMILY_RECEIVE:
        return judge_transfer(view, true);
    case FAMILY_WRITE:
    case FAMILY_SEND:
    case FAMILY_COPY:
        return judge_transfer(view, false);
    case FAMILY_FILE:
        return view->object->kind == OBJECT_PIPE
                   ? judge_pipe(view, true)
                   : (struct verdict){WAIT_CLASS_DISK, "a file system"};
    case FAMILY_LOCK:
        return (struct verdict){WAIT_CLASS_LOCK, "held by somebody else"};
    case FAMILY_RING:
        return judge_ring(view);
    case FAMILY_MEMORY:
        return judge_memory(view);
    case FAMILY_RESTART:
        return judge_restart(view);
    case FAMILY_NONE:
    case FAMILY_UNKNOWN:
        return judge_unseen(view);
    case FAMILY_OTHER:
        break;
    }
    return unknown(view, "a call without a rule");
}

static struct verdict judge_view(const struct view *view)
{
    if (view->info->kind == WAIT_RUNQ)
        return (struct verdict){WAIT_CLASS_RUNQ, "ready to run, no CPU was free"};
    if (view->object->kind == OBJECT_KERNEL_LOCK)
        return (struct verdict){WAIT_CLASS_LOCK, "a lock of the kernel"};
    if (view->info->flags & WAIT_FAULT)
        return (struct verdict){WAIT_CLASS_PAGEFAULT, "a page that was not there"};
    if (view->object->kind == OBJECT_PROCESS)
        return (struct verdict){WAIT_CLASS_CHILD, "the end of a process"};
    if (view->stack.kernel_lock && view->family != FAMILY_FUTEX)
        return (struct verdict){WAIT_CLASS_LOCK, "a lock of the kernel"};
    return judge_call(view);
}

/* The root's main thread: by its number, since a thread with a new name is another row. */
static bool is_main(const struct waits *waits, uint32_t thread)
{
    return waits->root_thread != 0 &&
           waits->profile.threads[thread].tid == waits->profile.threads[waits->root_thread].tid;
}

static enum waker waker_of(const struct waits *waits, const struct wait_info *info)
{
    if (info->waker_thread != 0)
        return process_of(waits, info->waker_thread) == process_of(waits, info->thread)
                   ? WAKER_SAME_PROCESS
                   : WAKER_OTHER_PROCESS;
    return info->flags & WAIT_BY_INTERRUPT ? WAKER_NONE : WAKER_OUTSIDE;
}

static struct view view_of(struct judge *judge, const struct wait_info *info)
{
    const struct waits *waits = judge->waits;
    uint64_t at = key_of(process_of(waits, info->thread), info->stack);
    return (struct view){
        .judge = judge,
        .info = info,
        .object = &waits->objects[info->object],
        .stack = wait_stack_of(&judge->stacks, info->stack),
        .waker_stack = wait_stack_of(&judge->stacks, info->waker_stack),
        .family = wait_family_of(&judge->families, info->syscall),
        .waker = waker_of(waits, info),
        .matters = is_main(waits, info->thread) || is_on_path(judge, info->thread, info->stack),
        .only_timed = is_only_timed(judge, info, at),
        .timed = found(&judge->timed_at, at),
    };
}

/* What the sleeps of a thread come to. */
struct sleeper {
    uint64_t total_ns, path_ns;
    uint64_t longest_ns;
    uint64_t most; /* sleeps at one stack */
};

static int sleepers_gather(struct judge *judge, const struct wait_classes *classes,
                           struct sleeper *sleepers)
{
    const struct waits *waits = judge->waits;
    struct map_u64 count_at = {0};
    int r = 0;
    for (uint32_t i = 1; i < waits->row_count && r == 0; i++) {
        const struct wait_row *row = &waits->rows[i];
        if (row->info.kind != WAIT_BLOCKED || classes->rows[i] != WAIT_CLASS_TIMER)
            continue;
        struct sleeper *sleeper = &sleepers[row->info.thread];
        uint64_t key = key_of(row->info.thread, row->info.stack);
        sleeper->total_ns += row->tally.total_ns;
        sleeper->longest_ns = MAX(sleeper->longest_ns, row->tally.max_ns);
        sleeper->path_ns += judge->path && !judge->path->na ? judge->path->waits[i] : 0;
        r = add(&count_at, key, row->tally.count);
        uint64_t count = found(&count_at, key);
        sleeper->most = MAX(sleeper->most, count);
    }
    map_u64_deinit(&count_at);
    return r;
}

static bool is_timer_thread(const struct judge *judge, uint32_t thread,
                            const struct sleeper *sleeper)
{
    const struct waits_thread *life = &judge->waits->threads[thread];
    uint64_t life_ns = life->end_ns > life->start_ns ? life->end_ns - life->start_ns : 0;
    bool on_path = judge->path && !judge->path->na && judge->path->ns > 0 &&
                   sleeper->path_ns * PATH_SHARE >= judge->path->ns;
    /* One sleep that outweighs all others is no habit: what else is counted at its stack may be
     * moments that nobody looked at (user tier). */
    bool habit = sleeper->most >= TIMER_COUNT && sleeper->longest_ns < sleeper->total_ns / 2;
    return !is_main(judge->waits, thread) && !on_path && habit &&
           sleeper->total_ns / TIMER_LIFE_TENTHS >= life_ns / 10;
}

/* A thread that does little but sleep, and that nothing waits for, is idle. */
static int timer_threads_find(struct arena *arena, struct judge *judge,
                              struct wait_classes *classes)
{
    const struct waits *waits = judge->waits;
    struct sleeper *sleepers = arena_alloc(arena, waits->profile.thread_count * sizeof(*sleepers));
    int r = sleepers ? sleepers_gather(judge, classes, sleepers) : -ENOMEM;
    for (uint32_t i = 1; i < waits->row_count && r == 0; i++) {
        const struct wait_info *info = &waits->rows[i].info;
        if (info->kind == WAIT_BLOCKED && classes->rows[i] == WAIT_CLASS_TIMER &&
            is_timer_thread(judge, info->thread, &sleepers[info->thread])) {
            classes->rows[i] = WAIT_CLASS_IDLE;
            classes->reasons[i] = "the sleep of a timer thread";
        }
    }
    return r;
}

/* Contention in the kernel is told beside the switches: a sleeping lock is in a row of blocked
 * time already, a spinning one is running time. */
static bool is_summed(const struct waits *waits, const struct wait_info *info)
{
    return info->kind != WAIT_HOLD && waits->objects[info->object].kind != OBJECT_KERNEL_LOCK;
}

static void sum(const struct waits *waits, struct wait_classes *classes)
{
    for (uint32_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        if (is_summed(waits, &row->info) && classes->rows[i] < WAIT_CLASSES)
            classes->threads[row->info.thread][classes->rows[i]] += row->tally.total_ns;
    }
    for (size_t t = 0; t < waits->profile.thread_count; t++) {
        const struct waits_thread *thread = &waits->threads[t];
        uint64_t *sums = classes->threads[t], all = 0;
        sums[WAIT_CLASS_RUNNING] = thread->running_ns;
        for (unsigned c = 0; c < WAIT_CLASSES; c++) {
            all += sums[c];
            classes->tree[c] += sums[c];
        }
        uint64_t life = thread->end_ns > thread->start_ns ? thread->end_ns - thread->start_ns : 0;
        classes->unaccounted[t] = life > all ? life - all : 0;
        classes->unaccounted_ns += classes->unaccounted[t];
        classes->life_ns += MAX(life, all);
    }
}

int wait_classes_build(struct arena *arena, const struct waits *waits,
                       const struct critical_path *path, struct wait_classes *ret)
{
    struct judge judge = {.waits = waits, .path = path};
    size_t rows = waits->row_count, threads = waits->profile.thread_count;
    struct wait_classes classes = {
        .rows = arena_alloc(arena, rows * sizeof(*classes.rows)),
        .reasons = arena_alloc(arena, rows * sizeof(*classes.reasons)),
        .threads = arena_alloc(arena, threads * sizeof(*classes.threads)),
        .unaccounted = arena_alloc(arena, threads * sizeof(*classes.unaccounted)),
    };
    bool made = classes.rows && classes.reasons && classes.threads && classes.unaccounted;
    wait_families_init(waits, &judge.families);
    int r = made ? wait_stacks_init(arena, &waits->profile, &judge.stacks) : -ENOMEM;
    if (r == 0)
        r = facts_gather(&judge);
    if (r == 0)
        r = givers_gather(&judge);
    for (uint32_t i = 1; i < rows && r == 0; i++) {
        struct view view = view_of(&judge, &waits->rows[i].info);
        struct verdict verdict = waits->rows[i].info.kind == WAIT_HOLD
                                     ? (struct verdict){WAIT_CLASS_RUNNING, "no wait: a lock held"}
                                     : judge_view(&view);
        classes.rows[i] = verdict.class;
        classes.reasons[i] = verdict.reason;
    }
    if (r == 0)
        r = timer_threads_find(arena, &judge, &classes);
    if (r == 0)
        sum(waits, &classes);
    map_u64_deinit(&judge.path_at);
    map_u64_deinit(&judge.timed_at);
    map_u64_deinit(&judge.cut_at);
    map_u64_deinit(&judge.other_at);
    map_u64_deinit(&judge.timed_ns_at);
    map_u64_deinit(&judge.guessed_ns_at);
    map_u64_deinit(&judge.waits_at);
    map_u64_deinit(&judge.given_at);
    map_u64_deinit(&judge.held_at);
    if (r == 0)
        *ret = classes;
    return r;
}
