/* The only state of this layer: a signal handler has no argument to carry it. */
#include "target/interrupt.h"

#include "base/macros.h"

#include <signal.h>
#include <stddef.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction old_actions[ARRAY_SIZE(watched)];
static volatile sig_atomic_t last_signal;
static volatile sig_atomic_t signal_count;

static void note(int signal)
{
    last_signal = signal;
    if (signal_count < 1000)
        signal_count++;
}

void interrupt_watch(void)
{
    last_signal = 0;
    signal_count = 0;
    for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
        struct sigaction action = {.sa_handler = note};
        sigemptyset(&action.sa_mask);
        sigaction(watched[i], NULL, &old_actions[i]);
        if (old_actions[i].sa_handler != SIG_IGN)
            sigaction(watched[i], &action, NULL);
    }
}

void interrupt_unwatch(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
        sigaction(watched[i], &old_actions[i], NULL);
}

int interrupt_signal(void)
{
    return last_signal;
}

unsigned interrupt_count(void)
{
    return (unsigned)signal_count;
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
