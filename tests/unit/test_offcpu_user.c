/* Promises of the user tier of waits: switches made up here become the intervals that they stand
 * for. What calls wait for is in test_offcpu_user_call.c. */
#include "unit.h"

#include "base/clock.h"
#include "collect/offcpu_user_parts.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PID = 100, OTHER = 101 };
#define MS NS_PER_MS

struct fixture {
    struct sink_memory memory;
    struct stacks *stacks;
    struct user_threads threads;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->memory = SINK_MEMORY_INIT;
    struct stacks_opts opts = {.machine = unwind_machine_here()};
    struct series_info offcpu = {.name = "offcpu", .about = "-"},
                       running = {.name = "running", .about = "-"};
    *state = f;
    if (stacks_open(&opts, &f->memory.sink, &f->stacks, NULL) < 0 ||
        sink_series(&f->memory.sink, &offcpu, &f->threads.offcpu) < 0 ||
        sink_series(&f->memory.sink, &running, &f->threads.running) < 0)
        return -1;
    f->threads.sink = &f->memory.sink;
    f->threads.stacks = f->stacks;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    user_threads_deinit(&f->threads);
    stacks_close(f->stacks);
    sink_memory_deinit(&f->memory);
    free(f);
    return 0;
}

static void off(struct fixture *f, uint64_t ms, int tid)
{
    assert_int_equal(user_threads_switch(&f->threads, ms * MS, PID, tid, true, false), 0);
}

static void preempt(struct fixture *f, uint64_t ms, int tid)
{
    assert_int_equal(user_threads_switch(&f->threads, ms * MS, PID, tid, true, true), 0);
}

static void on(struct fixture *f, uint64_t ms, int tid)
{
    assert_int_equal(user_threads_switch(&f->threads, ms * MS, PID, tid, false, false), 0);
}

static void observe(struct fixture *f, uint64_t ms, int tid, int32_t syscall)
{
    struct user_cause cause = {.syscall = syscall};
    assert_true(user_threads_waits(&f->threads, tid, ms * MS));
    assert_int_equal(user_threads_observe(&f->threads, ms * MS, tid, &cause, 0), 0);
}

static uint64_t running_of(const struct fixture *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->memory.samples.len; i++)
        if (f->memory.samples.data[i].series == f->threads.running)
            sum += f->memory.samples.data[i].weight;
    return sum;
}

/* The only row of that kind and call; NULL: none. */
static const struct wait_row *row_of(const struct fixture *f, enum wait_kind kind, int32_t syscall)
{
    const struct wait_row *found = NULL;
    for (size_t i = 0; i < f->memory.book.waits.len; i++) {
        const struct wait_row *row = &f->memory.book.waits.data[i];
        if (row->info.kind != kind || row->info.syscall != syscall)
            continue;
        assert_null(found);
        found = row;
    }
    return found;
}

static void a_wait_that_was_looked_at_has_its_times_and_its_cause(void **state)
{
    struct fixture *f = *state;
    on(f, 10, PID);
    off(f, 20, PID);
    observe(f, 100, PID, SYS_read);
    on(f, 320, PID);
    assert_int_equal(user_threads_end(&f->threads, 330 * MS), 0);
    const struct wait_row *row = row_of(f, WAIT_BLOCKED, SYS_read);
    assert_non_null(row);
    assert_int_equal(row->tally.count, 1);
    assert_int_equal(row->tally.total_ns, 300 * MS);
    assert_int_equal(row->tally.first_ns, 20 * MS);
    assert_int_equal(row->tally.last_ns, 320 * MS);
    assert_int_equal(row->info.flags, WAIT_SAMPLED);
    assert_int_equal(running_of(f), 20 * MS);
    assert_int_equal(f->memory.wait_events.len, 1);
    const struct wait_event *event = &f->memory.wait_events.data[0];
    assert_int_equal(event->start_ns, 20 * MS);
    assert_int_equal(event->wake_ns, 320 * MS);
    assert_int_equal(event->run_ns, 320 * MS);
}

/* What is told of a wait of `ms` with a limit. */
static uint32_t flags_of(struct fixture *f, uint64_t limit_ms, uint64_t until_ms, uint64_t ms)
{
    struct user_cause cause = {.syscall = SYS_ppoll,
                               .flags = WAIT_LIMITED,
                               .limit_ns = limit_ms * MS,
                               .until_ns = until_ms * MS};
    on(f, 10, PID);
    off(f, 1000, PID);
    assert_int_equal(user_threads_observe(&f->threads, 1001 * MS, PID, &cause, 0), 0);
    on(f, 1000 + ms, PID);
    size_t count = f->memory.book.waits.len;
    assert_true(count > 0);
    return f->memory.book.waits.data[count - 1].info.flags;
}

static void a_wait_as_long_as_its_time_limit_was_ended_by_that(void **state)
{
    const uint32_t other = WAIT_LIMITED | WAIT_SAMPLED, limit = other | WAIT_BY_INTERRUPT;
    static const struct {
        uint64_t limit_ms, until_ms, ms;
        bool by_limit;
    } waits[] = {
        {300, 0, 300, true},   {300, 0, 296, true}, /* a part of it was before the switch */
        {300, 0, 420, true},                        /* until there was a CPU */
        {300, 0, 290, false},  {0, 1300, 300, true},
        {0, 1300, 200, false}, {0, 0, 300, false}, /* not known */
    };
    for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
        uint32_t flags = flags_of(*state, waits[i].limit_ms, waits[i].until_ms, waits[i].ms);
        assert_int_equal(flags, waits[i].by_limit ? limit : other);
        teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

static void preemption_is_run_queue_time_and_no_wait(void **state)
{
    struct fixture *f = *state;
    on(f, 10, PID);
    preempt(f, 20, PID);
    assert_false(user_threads_waits(&f->threads, PID, 25 * MS));
    on(f, 60, PID);
    assert_int_equal(user_threads_end(&f->threads, 70 * MS), 0);
    assert_int_equal(f->memory.book.waits.len, 1);
    const struct wait_row *row = row_of(f, WAIT_RUNQ, WAIT_SYSCALL_UNKNOWN);
    assert_int_equal(row->tally.total_ns, 40 * MS);
    assert_int_equal(row->info.stack, 0);
    assert_int_equal(running_of(f), 20 * MS);
    assert_int_equal(f->memory.wait_events.len, 0);
}

static void short_waits_are_taken_for_what_was_last_seen_of_their_thread(void **state)
{
    struct fixture *f = *state;
    on(f, 0, PID);
    for (uint64_t us = 1000; us < 5000; us += 200) { /* twenty, before anybody looked */
        assert_int_equal(user_threads_switch(&f->threads, us * 1000, PID, PID, true, false), 0);
        assert_int_equal(user_threads_switch(&f->threads, us * 1000 + 100000, PID, PID, false, 0),
                         0);
    }
    off(f, 10, PID);
    observe(f, 11, PID, SYS_read);
    on(f, 12, PID);
    off(f, 20, PID);
    on(f, 23, PID); /* 3 ms, nobody looked */
    assert_int_equal(user_threads_end(&f->threads, 30 * MS), 0);
    assert_int_equal(f->memory.book.waits.len, 1);
    const struct wait_row *row = row_of(f, WAIT_BLOCKED, SYS_read);
    assert_int_equal(row->tally.count, 22);
    assert_int_equal(row->tally.total_ns, 20 * 100000 + 2 * MS + 3 * MS);
    assert_int_equal(f->threads.seen, 22);
    assert_int_equal(f->threads.observed, 1);
    assert_int_equal(f->threads.alike, 21);
    assert_int_equal(f->threads.unknown, 0);
}

static void a_long_wait_that_nobody_looked_at_has_no_cause(void **state)
{
    struct fixture *f = *state;
    on(f, 0, PID);
    off(f, 10, PID);
    observe(f, 11, PID, SYS_read);
    on(f, 12, PID);
    off(f, 20, PID);
    on(f, 520, PID);
    assert_int_equal(user_threads_end(&f->threads, 600 * MS), 0);
    const struct wait_row *row = row_of(f, WAIT_BLOCKED, WAIT_SYSCALL_UNKNOWN);
    assert_non_null(row);
    assert_int_equal(row->tally.total_ns, 500 * MS);
    assert_int_equal(row->info.stack, 0);
    assert_int_equal(f->threads.unknown, 1);
}

static void a_thread_nobody_ever_looked_at_keeps_its_time(void **state)
{
    struct fixture *f = *state;
    on(f, 0, PID);
    assert_int_equal(user_threads_switch(&f->threads, 1 * MS, PID, PID, true, false), 0);
    assert_int_equal(user_threads_switch(&f->threads, 1 * MS + 5000, PID, PID, false, false), 0);
    assert_int_equal(user_threads_exit(&f->threads, 2 * MS, PID), 0);
    const struct wait_row *row = row_of(f, WAIT_BLOCKED, WAIT_SYSCALL_UNKNOWN);
    assert_int_equal(row->tally.total_ns, 5000);
    assert_int_equal(running_of(f), 2 * MS - 5000);
}

static void a_wait_that_goes_on_at_the_end_is_open(void **state)
{
    struct fixture *f = *state;
    on(f, 0, PID);
    off(f, 10, PID);
    observe(f, 20, PID, SYS_read);
    assert_int_equal(user_threads_end(&f->threads, 110 * MS), 0);
    const struct wait_row *row = row_of(f, WAIT_BLOCKED, SYS_read);
    assert_int_equal(row->info.flags, WAIT_SAMPLED | WAIT_OPEN);
    assert_int_equal(row->tally.total_ns, 100 * MS);
    assert_int_equal(f->memory.wait_events.len, 1);
}

static void a_look_that_began_before_the_wait_is_not_its(void **state)
{
    struct fixture *f = *state;
    on(f, 0, PID);
    assert_false(user_threads_waits(&f->threads, PID, 5 * MS));
    off(f, 10, PID);
    assert_false(user_threads_waits(&f->threads, PID, 9 * MS));
    assert_true(user_threads_waits(&f->threads, PID, 10 * MS));
    on(f, 12, PID);
    assert_false(user_threads_waits(&f->threads, PID, 11 * MS));
    assert_false(user_threads_waits(&f->threads, OTHER, 11 * MS));
}

static void one_look_a_wait_is_enough(void **state)
{
    struct fixture *f = *state;
    on(f, 0, PID);
    assert_int_equal(f->threads.wanted.data[0], 0);
    off(f, 10, PID);
    assert_int_equal(f->threads.wanted.data[0], 1);
    user_threads_find(&f->threads, PID)->looked_ns = 15 * MS;
    f->threads.wanted.data[0] = 0;
    on(f, 20, PID);
    assert_int_equal(f->threads.wanted.data[0], 0);
    /* Somebody looked at 40 ms, and only now we hear what happened before. */
    user_threads_find(&f->threads, PID)->looked_ns = 40 * MS;
    off(f, 30, PID);
    assert_int_equal(f->threads.wanted.data[0], 0);
    on(f, 50, PID);
    off(f, 60, PID);
    assert_int_equal(f->threads.wanted.data[0], 1);
}

static void a_wait_that_was_missed_is_a_reason_to_look_at_the_next(void **state)
{
    struct fixture *f = *state;
    on(f, 0, PID);
    off(f, 10, PID);
    on(f, 11, PID);
    assert_int_equal(f->threads.wanted.data[0], 1);
    preempt(f, 12, PID);
    on(f, 13, PID);
    assert_int_equal(f->threads.wanted.data[0], 1);
    f->threads.wanted.data[0] = 0; /* somebody looked */
    user_threads_find(&f->threads, PID)->looked_ns = 20 * MS;
    preempt(f, 14, PID);
    on(f, 15, PID);
    assert_int_equal(f->threads.wanted.data[0], 0); /* to be preempted is no wait */
}

/* It ran when we looked: if it falls asleep before we are done, we have to look again. */
static void a_look_counts_from_its_beginning(void **state)
{
    struct fixture *f = *state;
    struct user_reader *reader = calloc(1, sizeof(*reader));
    assert_non_null(reader);
    assert_int_equal(user_reader_init(reader, &f->memory.sink), 0);
    reader->threads = &f->threads;
    int pid = getpid(), tid = (int)syscall(SYS_gettid);
    assert_int_equal(user_threads_switch(&f->threads, 1, pid, tid, true, false), 0);
    assert_int_equal(f->threads.wanted.data[0], 1);
    assert_int_equal(user_reader_round(reader, clock_mono_ns()), 0);
    assert_int_equal(reader->ran, 1);
    uint64_t began_ns = reader->looks[0].begin_ns; /* it found us running after this */
    assert_int_equal(f->threads.wanted.data[0], 0);
    assert_int_equal(user_threads_switch(&f->threads, began_ns, pid, tid, false, false), 0);
    assert_int_equal(user_threads_switch(&f->threads, began_ns + 1, pid, tid, true, false), 0);
    assert_int_equal(f->threads.wanted.data[0], 1);
    user_reader_deinit(reader);
    free(reader);
}

static void a_thread_that_dies_leaves_what_it_had(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 0, PID, PID, STR("parent"), true), 0);
    on(f, 0, PID);
    assert_int_equal(user_threads_fork(&f->threads, 5 * MS, PID, OTHER), 0);
    assert_int_equal(stacks_fork(f->stacks, 5 * MS, PID, PID, OTHER), 0);
    on(f, 7, OTHER); /* 2 ms until it ran */
    off(f, 10, OTHER);
    on(f, 60, OTHER);
    assert_int_equal(user_threads_exit(&f->threads, 70 * MS, OTHER), 0);
    assert_int_equal(stacks_exit(f->stacks, 70 * MS, PID, OTHER), 0);
    size_t threads = f->memory.threads.len;
    on(f, 80, OTHER); /* a record that comes late is nobody's */
    assert_int_equal(user_threads_end(&f->threads, 90 * MS), 0);
    assert_int_equal(row_of(f, WAIT_RUNQ, WAIT_SYSCALL_UNKNOWN)->tally.total_ns, 2 * MS);
    assert_int_equal(row_of(f, WAIT_BLOCKED, WAIT_SYSCALL_UNKNOWN)->tally.total_ns, 50 * MS);
    assert_int_equal(running_of(f), (3 + 10 + 90) * MS);
    assert_true(f->memory.threads.len <= threads + 1); /* the parent is told at the end */
}

static void a_tid_that_comes_back_is_another_thread(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 0, PID, PID, STR("parent"), true), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t ms = 10 + i * 10;
        int tid = OTHER + (int)(i % 300);
        assert_int_equal(user_threads_fork(&f->threads, ms * MS, PID, tid), 0);
        assert_int_equal(stacks_fork(f->stacks, ms * MS, PID, PID, tid), 0);
        on(f, ms + 1, tid);
        off(f, ms + 2, tid);
        on(f, ms + 4, tid);
        assert_int_equal(user_threads_exit(&f->threads, (ms + 5) * MS, tid), 0);
        assert_int_equal(stacks_exit(f->stacks, (ms + 5) * MS, PID, tid), 0);
    }
    assert_int_equal(user_threads_end(&f->threads, 99999 * MS), 0);
    assert_int_equal(f->memory.threads.len, 1000);
    assert_int_equal(f->memory.book.waits.len, 2000); /* a wait and a run queue each */
    assert_int_equal(f->threads.blocked_ns, 2000 * MS);
    assert_int_equal(running_of(f), 2000 * MS);
    assert_true(f->threads.threads.len <= 300);
}

static void a_slot_that_is_in_use_again_is_not_given_away(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 0, PID, PID, STR("parent"), true), 0);
    uint64_t ms = 10;
    for (int i = 0; i < 600; i++, ms++) { /* each tid six times, more than are remembered */
        int tid = OTHER + i % 100;
        assert_int_equal(user_threads_fork(&f->threads, ms * MS, PID, tid), 0);
        assert_int_equal(stacks_fork(f->stacks, ms * MS, PID, PID, tid), 0);
        assert_int_equal(user_threads_exit(&f->threads, ms * MS, tid), 0);
        assert_int_equal(stacks_exit(f->stacks, ms * MS, PID, tid), 0);
    }
    for (int tid = OTHER; tid < OTHER + 200; tid++) { /* the same and others, all at once */
        assert_int_equal(user_threads_fork(&f->threads, ms * MS, PID, tid), 0);
        assert_int_equal(stacks_fork(f->stacks, ms * MS, PID, PID, tid), 0);
        on(f, ms, tid);
        off(f, ms + 10, tid);
    }
    for (int tid = OTHER; tid < OTHER + 200; tid++) {
        const struct user_thread *thread = user_threads_find(&f->threads, tid);
        assert_non_null(thread);
        assert_int_equal(thread->tid, tid);
        assert_int_equal(thread->where, USER_BLOCKED);
        on(f, ms + 30, tid);
    }
    assert_int_equal(f->threads.seen, 200);
    assert_int_equal(f->threads.blocked_ns, 200 * 20 * MS);
}

static void before_its_exec_a_held_target_is_not_recorded(void **state)
{
    struct fixture *f = *state;
    f->threads.root_pid = PID;
    assert_int_equal(stacks_comm(f->stacks, 0, PID, PID, STR("holder"), false), 0);
    on(f, 10, PID);
    off(f, 20, PID);
    on(f, 80, PID);
    assert_int_equal(f->threads.threads.len, 0);
    assert_int_equal(user_threads_exec(&f->threads, 100 * MS, PID), 0);
    assert_int_equal(stacks_comm(f->stacks, 100 * MS, PID, PID, STR("program"), true), 0);
    off(f, 130, PID);
    on(f, 140, PID);
    assert_int_equal(user_threads_exit(&f->threads, 150 * MS, PID), 0);
    assert_int_equal(running_of(f), 40 * MS);
    assert_int_equal(f->threads.blocked_ns, 10 * MS);
}

static void what_a_fork_does_before_its_exec_is_the_programs(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 0, PID, PID, STR("shell"), true), 0);
    assert_int_equal(user_threads_fork(&f->threads, 10 * MS, OTHER, OTHER), 0);
    assert_int_equal(stacks_fork(f->stacks, 10 * MS, PID, OTHER, OTHER), 0);
    assert_int_equal(user_threads_switch(&f->threads, 11 * MS, OTHER, OTHER, false, false), 0);
    assert_int_equal(user_threads_until(&f->threads, 12 * MS), 0);
    assert_int_equal(user_threads_exec(&f->threads, 15 * MS, OTHER), 0);
    assert_int_equal(stacks_comm(f->stacks, 15 * MS, OTHER, OTHER, STR("child"), true), 0);
    assert_int_equal(user_threads_exit(&f->threads, 30 * MS, OTHER), 0);
    assert_int_equal(stacks_exit(f->stacks, 30 * MS, OTHER, OTHER), 0);
    assert_int_equal(running_of(f), 19 * MS);
    assert_int_equal(f->memory.threads.len, 1);
    assert_true(str_is(f->memory.threads.data[0].info.name, "child"));
}

static void a_cause_does_not_outlive_the_program_it_was_seen_in(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 0, PID, PID, STR("one"), true), 0);
    on(f, 0, PID);
    off(f, 10, PID);
    observe(f, 15, PID, SYS_read);
    on(f, 20, PID);
    assert_int_equal(user_threads_exec(&f->threads, 30 * MS, PID), 0);
    assert_int_equal(stacks_comm(f->stacks, 30 * MS, PID, PID, STR("two"), true), 0);
    off(f, 40, PID);
    on(f, 45, PID);
    assert_int_equal(user_threads_exit(&f->threads, 50 * MS, PID), 0);
    assert_int_equal(row_of(f, WAIT_BLOCKED, SYS_read)->tally.total_ns, 10 * MS);
    assert_int_equal(row_of(f, WAIT_BLOCKED, WAIT_SYSCALL_UNKNOWN)->tally.total_ns, 5 * MS);
    assert_int_equal(f->memory.threads.len, 2);
}

static void threads_that_were_here_before_us_waited_since_the_start(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(user_threads_present(&f->threads, 100 * MS, PID, PID, false), 0);
    assert_int_equal(user_threads_present(&f->threads, 100 * MS, PID, OTHER, false), 0);
    assert_int_equal(user_threads_present(&f->threads, 100 * MS, PID, OTHER + 1, true), 0);
    assert_int_equal(f->threads.wanted.data[0], 1);
    assert_int_equal(f->threads.wanted.data[2], 0);
    observe(f, 110, PID, SYS_read); /* never heard of again */
    off(f, 150, OTHER);             /* so it ran until here, whatever /proc said */
    on(f, 160, OTHER);
    on(f, 130, OTHER + 1); /* and this one was only about to */
    assert_int_equal(user_threads_end(&f->threads, 200 * MS), 0);
    assert_int_equal(row_of(f, WAIT_BLOCKED, SYS_read)->tally.total_ns, 100 * MS);
    assert_int_equal(row_of(f, WAIT_BLOCKED, WAIT_SYSCALL_UNKNOWN)->tally.total_ns, 10 * MS);
    assert_int_equal(row_of(f, WAIT_RUNQ, WAIT_SYSCALL_UNKNOWN)->tally.total_ns, 30 * MS);
    assert_int_equal(running_of(f), (50 + 40 + 70) * MS);
}

static void a_record_told_twice_counts_once_and_a_lost_one_breaks_the_interval(void **state)
{
    struct fixture *f = *state;
    on(f, 0, PID);
    off(f, 10, PID);
    assert_int_equal(user_threads_switch(&f->threads, 10 * MS + 400, PID, PID, true, false), 0);
    on(f, 30, PID);
    assert_int_equal(user_threads_switch(&f->threads, 30 * MS + 400, PID, PID, false, false), 0);
    assert_int_equal(f->threads.broken, 0);
    assert_int_equal(f->threads.blocked_ns, 20 * MS);
    off(f, 40, PID);
    off(f, 60, PID); /* it came back in between, nobody knows when */
    on(f, 65, PID);
    assert_int_equal(f->threads.broken, 1);
    assert_int_equal(f->threads.blocked_ns, 25 * MS);
    on(f, 80, PID);
    assert_int_equal(f->threads.broken, 2);
    assert_int_equal(user_threads_end(&f->threads, 81 * MS), 0);
    assert_int_equal(running_of(f), (10 + 10 + 1) * MS);
}

static void the_owner_of_a_mutex_is_charged_for_its_time_off_the_cpu(void **state)
{
    struct fixture *f = *state;
    struct user_cause cause = {.syscall = SYS_futex, .detail = WAIT_FUTEX_VALUE_2};
    on(f, 0, PID);
    on(f, 0, OTHER);
    off(f, 10, PID); /* waits for OTHER */
    off(f, 20, OTHER);
    observe(f, 25, OTHER, SYS_read);
    assert_int_equal(user_threads_observe(&f->threads, 30 * MS, PID, &cause, OTHER), 0);
    on(f, 70, OTHER);
    on(f, 110, PID);
    assert_int_equal(user_threads_end(&f->threads, 120 * MS), 0);
    const struct wait_row *row = row_of(f, WAIT_BLOCKED, SYS_futex);
    assert_int_equal(row->tally.total_ns, 100 * MS);
    assert_int_equal(row->tally.owned_ns, 80 * MS); /* known since the look */
    assert_int_equal(row->tally.owner_off_ns, 40 * MS);
    assert_int_equal(f->memory.threads.data[row->info.waker_thread - 1].info.tid, OTHER);
}

static void a_word_that_is_no_thread_of_the_process_is_no_owner(void **state)
{
    struct fixture *f = *state;
    struct user_cause cause = {.syscall = SYS_futex, .detail = WAIT_FUTEX_VALUE_2};
    on(f, 0, PID);
    off(f, 10, PID);
    assert_int_equal(user_threads_observe(&f->threads, 30 * MS, PID, &cause, 123456), 0);
    assert_int_equal(user_threads_observe(&f->threads, 30 * MS, PID, &cause, PID), 0);
    on(f, 110, PID);
    const struct wait_row *row = row_of(f, WAIT_BLOCKED, SYS_futex);
    assert_int_equal(row->info.waker_thread, 0);
    assert_int_equal(row->tally.owned_ns, 0);
}

static bool covered_other(void *context, int pid, int tid)
{
    (void)context, (void)pid;
    return tid == OTHER;
}

static void futexes_that_somebody_else_reports_are_left_out(void **state)
{
    struct fixture *f = *state;
    f->threads.covered = covered_other;
    for (int tid = PID; tid <= OTHER; tid++) {
        on(f, 0, tid);
        off(f, 10, tid);
        observe(f, 11, tid, SYS_futex);
        on(f, 20, tid);
        off(f, 30, tid);
        observe(f, 31, tid, SYS_read);
        on(f, 50, tid);
    }
    size_t futexes = 0, reads = 0;
    for (size_t i = 0; i < f->memory.book.waits.len; i++) {
        futexes += f->memory.book.waits.data[i].info.syscall == SYS_futex;
        reads += f->memory.book.waits.data[i].info.syscall == SYS_read;
    }
    assert_int_equal(futexes, 1);
    assert_int_equal(reads, 2);
}

static void threads_beyond_the_bound_are_counted(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < USER_THREADS_MAX + 10; i++)
        assert_int_equal(user_threads_switch(&f->threads, MS, PID, 1000 + i, false, false), 0);
    assert_int_equal(f->threads.threads.len, USER_THREADS_MAX);
    assert_int_equal(f->threads.too_many, 10);
}

/* ---- a look at a real thread ---- */

struct sleeper {
    int pipe[2];
    pid_t tid;
};

static void *sleeper_run(void *context)
{
    struct sleeper *sleeper = context;
    char byte;
    __atomic_store_n(&sleeper->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    return read(sleeper->pipe[0], &byte, 1) == 1 ? sleeper : NULL;
}

static void a_look_finds_the_call_its_fd_and_the_stack(void **state)
{
    (void)state;
    struct sleeper sleeper = {0};
    pthread_t thread;
    uint8_t bytes[USER_SLICE_BYTES];
    struct user_look look = {.bytes = bytes, .cap = sizeof(bytes)};
    assert_int_equal(pipe(sleeper.pipe), 0);
    assert_int_equal(pthread_create(&thread, NULL, sleeper_run, &sleeper), 0);
    int r = -EAGAIN;
    for (int i = 0; i < 10000 && (r != 0 || look.call.syscall != SYS_read); i++) {
        pid_t tid = __atomic_load_n(&sleeper.tid, __ATOMIC_ACQUIRE);
        r = tid ? user_look(getpid(), tid, &look) : -EAGAIN;
        usleep(1000);
    }
    assert_int_equal(r, 0);
    assert_int_equal(look.fd, sleeper.pipe[0]);
    assert_true(look.begin_ns < look.end_ns);
    assert_true(look.len > 256);
    assert_memory_equal(bytes, (const void *)(uintptr_t)look.call.sp, 64);
    assert_int_equal(write(sleeper.pipe[1], "x", 1), 1);
    void *result;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &sleeper);
    /* Whoever joins it may be faster than the kernel is with its end. */
    for (int i = 0; i < 10000 && r != -ENOENT && r != -ESRCH; i++) {
        r = user_look(getpid(), sleeper.tid, &look);
        usleep(1000);
    }
    assert_true(r == -ENOENT || r == -ESRCH);
    /* Ourselves, who run. */
    assert_int_equal(user_look(getpid(), (int)syscall(SYS_gettid), &look), -EAGAIN);
    close(sleeper.pipe[0]);
    close(sleeper.pipe[1]);
}

int main(void)
{
#define SWITCHES(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        SWITCHES(a_wait_that_was_looked_at_has_its_times_and_its_cause),
        SWITCHES(a_wait_as_long_as_its_time_limit_was_ended_by_that),
        SWITCHES(preemption_is_run_queue_time_and_no_wait),
        SWITCHES(short_waits_are_taken_for_what_was_last_seen_of_their_thread),
        SWITCHES(a_long_wait_that_nobody_looked_at_has_no_cause),
        SWITCHES(a_thread_nobody_ever_looked_at_keeps_its_time),
        SWITCHES(a_wait_that_goes_on_at_the_end_is_open),
        SWITCHES(a_look_that_began_before_the_wait_is_not_its),
        SWITCHES(one_look_a_wait_is_enough),
        SWITCHES(a_wait_that_was_missed_is_a_reason_to_look_at_the_next),
        SWITCHES(a_look_counts_from_its_beginning),
        SWITCHES(a_thread_that_dies_leaves_what_it_had),
        SWITCHES(a_tid_that_comes_back_is_another_thread),
        SWITCHES(a_slot_that_is_in_use_again_is_not_given_away),
        SWITCHES(before_its_exec_a_held_target_is_not_recorded),
        SWITCHES(what_a_fork_does_before_its_exec_is_the_programs),
        SWITCHES(a_cause_does_not_outlive_the_program_it_was_seen_in),
        SWITCHES(threads_that_were_here_before_us_waited_since_the_start),
        SWITCHES(a_record_told_twice_counts_once_and_a_lost_one_breaks_the_interval),
        SWITCHES(the_owner_of_a_mutex_is_charged_for_its_time_off_the_cpu),
        SWITCHES(a_word_that_is_no_thread_of_the_process_is_no_owner),
        SWITCHES(futexes_that_somebody_else_reports_are_left_out),
        SWITCHES(threads_beyond_the_bound_are_counted),
        cmocka_unit_test(a_look_finds_the_call_its_fd_and_the_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
