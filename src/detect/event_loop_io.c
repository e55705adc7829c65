/* A thread that serves events waits for the disk, or sleeps, between two of them: meanwhile nobody
 * is served. */
#include "detect/each.h"
#include "detect/io_common.h"

#include <errno.h>
#include <math.h>

enum { POLLS_MIN = 20, BLOCKS_MIN = 10 };
#define SERVED_MIN 0.5  /* of polls: followed by something that was read or accepted */
#define SHARE_MIN  0.02 /* of the wall time */

struct loop {
    uint64_t polls, served;
    uint64_t first_ns, last_ns; /* of polls */
    uint64_t blocks, syncs, sleeps, reads;
    uint64_t block_ns;
    uint32_t stack, poll_stack; /* the heaviest that blocks; of a poll */
    uint64_t stack_ns;
    uint32_t object;
};

static bool is_named(const struct io_shares *shares, const struct call_row *row, const char *names)
{
    const char *name = row->info.flags & CALL_FAULT
                           ? NULL
                           : syscall_name_on(shares->evidence->io_sums.kinds.machine,
                                             row->info.syscall);
    struct str rest = str_from(names);
    while (name && rest.len > 0)
        if (str_is(str_word(&rest), name))
            return true;
    return false;
}

static bool is_poll(const struct io_shares *shares, const struct call_row *row)
{
    return is_named(shares, row,
                    "epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6 _newselect");
}

static bool is_sleep(const struct io_shares *shares, const struct call_row *row)
{
    return is_named(shares, row, "nanosleep clock_nanosleep");
}

/* Syncs that should not be there in the first place are another detector's: to have them done
 * elsewhere would be the second best remedy. */
static bool is_needless(const struct io_shares *shares, const bool *needless,
                        const struct call_row *row)
{
    uint32_t file = shares->files[row->info.object];
    return file && needless[file - 1];
}

/* It waits for a disk, or for time to pass: not for an event. */
static bool is_block(const struct io_shares *shares, const bool *needless,
                     const struct call_row *row)
{
    enum io_kind kind = io_shares_kind(shares, row);
    if (is_needless(shares, needless, row))
        return false;
    bool file = shares->evidence->io.objects[row->info.object].kind == OBJECT_FILE;
    return kind == IO_SYNC || (kind == IO_WRITE && row->info.flags & CALL_SYNC) ||
           (file && (kind == IO_READ || kind == IO_FAULT) && row->tally.missed > 0) ||
           is_sleep(shares, row);
}

/* Something came: a message, a connection, a tick. */
static bool is_served(const struct io_shares *shares, const struct call_row *row)
{
    enum io_kind kind = io_shares_kind(shares, row);
    enum object_kind of = shares->evidence->io.objects[row->info.object].kind;
    bool events = of == OBJECT_PIPE || of == OBJECT_SOCKET || of == OBJECT_EVENT ||
                  of == OBJECT_TIMER || of == OBJECT_CHAR_DEVICE || of == OBJECT_OTHER;
    return row->info.error == 0 && (kind == IO_ACCEPT || (kind == IO_READ && events));
}

static void polls_add(const struct io_shares *shares, struct loop *loops)
{
    const struct io *io = &shares->evidence->io;
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        struct loop *loop = &loops[row->info.thread];
        if (is_served(shares, row))
            loop->served += row->tally.count;
        if (!is_poll(shares, row))
            continue;
        if (loop->polls == 0 || row->tally.first_ns < loop->first_ns)
            loop->first_ns = row->tally.first_ns;
        loop->last_ns = MAX(loop->last_ns, row->tally.last_ns);
        loop->polls += row->tally.count;
        loop->poll_stack = row->info.stack;
    }
}

/* Between its first poll and its last. */
static bool is_between(const struct loop *loop, const struct call_row *row)
{
    return row->tally.last_ns > loop->first_ns && row->tally.first_ns < loop->last_ns;
}

static void blocks_add(const struct io_shares *shares, const bool *needless, struct loop *loops)
{
    const struct io *io = &shares->evidence->io;
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        struct loop *loop = &loops[row->info.thread];
        if (loop->polls == 0 || !is_block(shares, needless, row) || !is_between(loop, row))
            continue;
        bool sleep = is_sleep(shares, row);
        bool read = row->tally.missed > 0;
        uint64_t count = read ? row->tally.missed : row->tally.count;
        loop->blocks += count;
        *(sleep ? &loop->sleeps : read ? &loop->reads : &loop->syncs) += count;
        loop->block_ns += row->tally.total_ns;
        if (row->tally.total_ns > loop->stack_ns) {
            loop->stack = row->info.stack;
            loop->stack_ns = row->tally.total_ns;
            loop->object = row->info.object;
        }
    }
}

static void mean_loop(struct io_shares *shares, const bool *needless, const struct loop *loop,
                      uint32_t thread)
{
    const struct io *io = &shares->evidence->io;
    io_shares_clear(shares);
    shares->waits_only = true;
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        if (row->info.thread == thread && is_block(shares, needless, row) && is_between(loop, row))
            io_shares_mean(shares, i, 1);
    }
}

static const char *blocks_text(struct arena *arena, const struct loop *loop)
{
    const char *text = "";
    const struct {
        uint64_t count;
        const char *name;
    } parts[] = {
        {loop->syncs, "syncs"}, {loop->reads, "reads from the disk"}, {loop->sleeps, "sleeps"}};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (parts[i].count > 0)
            text = arena_printf(arena, "%s%s%s %s", text, text[0] ? ", " : "",
                                io_count_text(arena, (double)parts[i].count), parts[i].name);
    return text;
}

static void say(struct io_shares *shares, struct findings *ret, struct finding *finding,
                const struct loop *loop, const char *thread)
{
    const struct evidence *evidence = shares->evidence;
    struct arena *arena = ret->arena;
    const char *artifact = evidence->axes[AXIS_IO].artifact;
    struct place poll = io_place(evidence, loop->poll_stack);
    const char *where = place_text(arena, &finding->place), *polls = place_text(arena, &poll);
    const char *blocks = blocks_text(arena, loop);
    double share = finding->cost_ns / evidence->costs_on_path.ns * 100;
    finding->title = arena_printf(arena,
                                  "the event loop of %s stands still for %.0f%% of the wall time: "
                                  "%s",
                                  thread, share, blocks);
    finding_fact(ret, finding, "polls", "times it asked for events",
                 value_uint(loop->polls, UNIT_COUNT), artifact, thread);
    finding_fact(ret, finding, "syncs", "syncs in between", value_uint(loop->syncs, UNIT_COUNT),
                 artifact, thread);
    finding_fact(ret, finding, "disk_reads", "reads from the disk in between",
                 value_uint(loop->reads, UNIT_COUNT), artifact, thread);
    finding_fact(ret, finding, "sleeps", "sleeps in between", value_uint(loop->sleeps, UNIT_COUNT),
                 artifact, thread);
    finding_why(ret, finding, evidence->axes[AXIS_WAITS].artifact,
                "%.1f%% of the wall time the thread waits at %s", share, where);
    finding_why(ret, finding, artifact, "the same thread asks for events %s times at %s",
                io_count_text(arena, (double)loop->polls), polls);
    finding_why(ret, finding, artifact, "in between it waits %s times for something else: %s",
                io_count_text(arena, (double)loop->blocks), blocks);
    if (loop->object)
        finding_why(ret, finding, artifact, "most of it on %.*s",
                    STR_FMT(io_name(evidence, loop->object)));
    finding_why(ret, finding, artifact,
                "what blocks is called by the loop itself, so that every event behind it waits");
    double off = io_off_cpu_ns(evidence);
    io_angles(shares, finding, arena_printf(arena, "%s between polls of one thread", blocks), off,
              isnan(off) ? "several threads at once hide what waits"
                         : "time off the CPU or in the kernel");
    finding->measure_next = arena_printf(arena, "whyslow waits %s",
                                         evidence->axes[AXIS_WAITS].artifact);
    finding->advice = arena_printf(arena,
                                   "Let another thread do what waits at %s (or a timer of the "
                                   "loop, or io_uring), and go on with the next event meanwhile.",
                                   where);
    finding->caution = "Who is answered before the data is durable may lose it in a crash: answer "
                       "when the other thread is done.";
}

static int loop_judge(struct io_shares *shares, const bool *needless, const struct detector *self,
                      const struct loop *loop, uint32_t thread, struct findings *ret)
{
    const struct evidence *evidence = shares->evidence;
    double wall = evidence->costs_on_path.ns;
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    mean_loop(shares, needless, loop, thread);
    io_cost(shares, finding, 1);
    /* Elsewhere it still takes its time: what is gained is where both go on at once. */
    double cost = finding->cost_ns;
    if (cost > 0)
        finding->recoverable = estimate_scale(finding->recoverable, fmin(1, (wall - cost) / cost));
    io_place_set(shares, finding, loop->stack);
    finding->occurrences = loop->blocks;
    struct str name = evidence->io.profile.threads[thread].name;
    say(shares, ret, finding, loop,
        name.len > 0 ? arena_dup_len(ret->arena, name.data, name.len) : "a thread");
    if (!(cost >= SHARE_MIN * wall))
        io_dismiss(ret->arena, finding,
                   "%s between polls take %.1f%% of the wall time; from %.0f%% on it counts",
                   blocks_text(ret->arena, loop), cost / wall * 100, SHARE_MIN * 100);
    return 0;
}

static int rest_dismiss(const struct loop *loops, size_t count, const struct detector *self,
                        struct findings *ret)
{
    const struct loop *most = &loops[0];
    for (size_t i = 1; i < count; i++)
        if (loops[i].polls > 0 && (loops[i].blocks > most->blocks || most->polls == 0))
            most = &loops[i];
    if (most->polls == 0)
        return dismissed(ret, self, "no thread asks for events") ? 0 : -ENOMEM;
    return dismissed(ret, self,
                     "a thread asked for events %llu times, something came %llu times, and it "
                     "waited for a disk or slept %llu times in between; from %d, half of them and "
                     "%d on it counts",
                     (unsigned long long)most->polls, (unsigned long long)most->served,
                     (unsigned long long)most->blocks, POLLS_MIN, BLOCKS_MIN)
               ? 0
               : -ENOMEM;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct io_shares shares;
    size_t count = evidence->io.profile.thread_count, shown = 0;
    struct loop *loops = arena_alloc(ret->arena, (count + 1) * sizeof(*loops));
    size_t files = evidence->io_sums.file_count;
    bool *needless = arena_alloc(ret->arena, (files + 1) * sizeof(*needless));
    if (!loops || !needless || io_shares_init(evidence, &shares) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < files; i++)
        needless[i] = io_file_syncs_messages(evidence, &evidence->io_sums.files[i]);
    polls_add(&shares, loops);
    blocks_add(&shares, needless, loops);
    int r = 0;
    for (uint32_t i = 1; i < count && shown < IO_SHOWN_MAX && r == 0; i++) {
        if (loops[i].polls < POLLS_MIN || loops[i].blocks < BLOCKS_MIN ||
            (double)loops[i].served < SERVED_MIN * (double)loops[i].polls)
            continue;
        shown++;
        r = loop_judge(&shares, needless, self, &loops[i], i, ret);
    }
    return r == 0 && shown == 0 ? rest_dismiss(loops, count, self, ret) : r;
}

const struct detector detect_event_loop_io = {
    .id = "event_loop_io",
    .title = "an event loop waits for a disk",
    .category = CATEGORY_ARCHITECTURE,
    .remedy = REMEDY_REDESIGN,
    .axes = AXIS_BIT_WAITS | AXIS_BIT_IO,
    .judge = judge,
};
