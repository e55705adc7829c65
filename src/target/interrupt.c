/* The only state of this layer: a signal handler has no argument to carry it. */
#include "target/interrupt.h"

#include "base/clock.h"
#include "base/macros.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction old_actions[ARRAY_SIZE(watched)];
static struct sigaction old_pipe;
static atomic_int last_signal;
static atomic_uint signal_count;
static atomic_bool has_reached_target;
static interrupt_tell_fn *tell_fn;
/* Of the last one: only the handler looks at them. */
static pid_t last_sender;
static uint64_t last_ns;
/* Two threads may take two signals at once; in each all are blocked meanwhile. */
static atomic_flag handling = ATOMIC_FLAG_INIT;

/* What signals are about. */
static struct about {
    _Atomic(const void *) owner; /* NULL: free */
    atomic_int target, pid;
} abouts[INTERRUPT_TARGETS];

/* What is sent to whyslow and then to its group reaches it twice. When a terminal closes, its shell
 * sends SIGHUP to its jobs and the kernel sends it to the foreground group, each in its own time.
 */
static bool is_echo(int signal, const siginfo_t *info)
{
    uint64_t now_ns = clock_mono_ns();
    bool at_once = info->si_code != SI_KERNEL && info->si_pid == last_sender &&
                   now_ns - last_ns < INTERRUPT_ECHO_MS * NS_PER_MS;
    bool echo = signal_count > 0 && signal == last_signal && (at_once || signal == SIGHUP);
    last_sender = info->si_pid;
    last_ns = now_ns;
    return echo;
}

/* The targets were to be ended with the signal before this one: they are now, should we have been
 * busy. */
static void leave(int signal, const struct interrupt_note *note)
{
    for (unsigned i = 0; i < note->running; i++)
        if (note->pids[i] > 0)
            kill(note->target == INTERRUPT_APART ? -note->pids[i] : note->pids[i], SIGKILL);
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t one;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
    sigemptyset(&one);
    sigaddset(&one, signal);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(signal);
    _exit(128 + signal); /* the first process of a container: the kernel ends it by no signal */
}

static struct interrupt_note note_make(int signal, unsigned count, bool terminal)
{
    struct interrupt_note note = {.signal = signal, .count = count, .terminal = terminal};
    for (size_t i = 0; i < ARRAY_SIZE(abouts); i++) {
        enum interrupt_target target = (enum interrupt_target)abouts[i].target;
        if (target == INTERRUPT_NONE)
            continue;
        note.target = target;
        if (target != INTERRUPT_OTHERS)
            note.pids[note.running++] = abouts[i].pid;
    }
    note.leaves = note.count > (note.running > 0 ? 2 : 1);
    return note;
}

/* Ctrl-C in a terminal reaches all of the foreground group: who is in it with us has got it. A
 * SIGHUP of the kernel may be for the leader of the session alone. */
static bool has_reached(const struct interrupt_note *note)
{
    return note->target == INTERRUPT_OWN && note->signal == SIGINT && note->terminal &&
           note->pids[0] > 0 && getpgid(note->pids[0]) == getpgrp();
}

static void note(int signal, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    while (atomic_flag_test_and_set(&handling))
        ;
    if (!is_echo(signal, info)) {
        unsigned count = MIN(signal_count + 1, 1000u);
        struct interrupt_note about = note_make(signal, count, info->si_code == SI_KERNEL);
        last_signal = signal;
        has_reached_target = about.reached = has_reached(&about);
        signal_count = count; /* last: others look at it first */
        if (tell_fn)
            tell_fn(&about);
        if (about.leaves)
            leave(signal, &about);
    }
    atomic_flag_clear(&handling);
    errno = saved;
}

static void pipe_note(int signal)
{
    (void)signal;
}

/* Whoever read our messages may have got the same Ctrl-C and ended: a message that cannot be
 * written is lost, and nothing else. A handler, since SIG_IGN would be the target's, too. */
static void pipe_watch(void)
{
    struct sigaction action = {.sa_handler = pipe_note, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGPIPE, NULL, &old_pipe);
    if (old_pipe.sa_handler != SIG_IGN)
        sigaction(SIGPIPE, &action, NULL);
}

static void abouts_clear(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(abouts); i++) {
        abouts[i].target = INTERRUPT_NONE;
        abouts[i].owner = NULL;
    }
}

void interrupt_watch(interrupt_tell_fn *tell)
{
    last_signal = 0;
    signal_count = 0;
    tell_fn = tell;
    abouts_clear();
    for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
        struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
        sigfillset(&action.sa_mask); /* one at a time */
        sigaction(watched[i], NULL, &old_actions[i]);
        if (old_actions[i].sa_handler != SIG_IGN)
            sigaction(watched[i], &action, NULL);
    }
    pipe_watch();
}

void interrupt_unwatch(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
        sigaction(watched[i], &old_actions[i], NULL);
    sigaction(SIGPIPE, &old_pipe, NULL);
    abouts_clear();
}

int interrupt_signal(void)
{
    return last_signal;
}

unsigned interrupt_count(void)
{
    return signal_count;
}

bool interrupt_has_reached_target(void)
{
    return has_reached_target;
}

static struct about *about_of(const void *owner)
{
    for (size_t i = 0; i < ARRAY_SIZE(abouts); i++)
        if (abouts[i].owner == owner)
            return &abouts[i];
    return NULL;
}

static struct about *about_new(const void *owner)
{
    for (size_t i = 0; i < ARRAY_SIZE(abouts); i++) {
        const void *nobody = NULL;
        if (atomic_compare_exchange_strong(&abouts[i].owner, &nobody, owner))
            return &abouts[i];
    }
    return NULL;
}

void interrupt_target_set(const void *owner, enum interrupt_target target, int pid)
{
    struct about *about = about_of(owner);
    if (!about && target != INTERRUPT_NONE)
        about = about_new(owner);
    if (!about)
        return;
    /* A signal in between finds no process that is not meant. */
    about->target = INTERRUPT_NONE;
    about->pid = pid;
    about->target = (int)target;
    if (target == INTERRUPT_NONE)
        about->owner = NULL;
}

static struct sigaction old_snapshot;
static volatile sig_atomic_t snapshot_count;

static void snapshot_note(int signal)
{
    (void)signal;
    if (snapshot_count < 1000000)
        snapshot_count++;
}

void interrupt_snapshot_watch(bool on)
{
    struct sigaction action = {.sa_handler = snapshot_note};
    sigemptyset(&action.sa_mask);
    if (!on) {
        sigaction(SIGUSR2, &old_snapshot, NULL);
        return;
    }
    snapshot_count = 0;
    sigaction(SIGUSR2, NULL, &old_snapshot);
    if (old_snapshot.sa_handler != SIG_IGN)
        sigaction(SIGUSR2, &action, NULL);
}

unsigned interrupt_snapshot_count(void)
{
    return (unsigned)snapshot_count;
}
