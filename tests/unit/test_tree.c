/* A tree of processes ends whole, and nobody else with it. */
#include "unit.h"

#include "base/clock.h"
#include "target/proc.h"
#include "target/tree.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t root_pid, child_pid;
static bool root_ends; /* just before the child is stopped: from then on it is not its child */

/* In the place of libc's. */
int kill(pid_t pid, int sig)
{
    if (root_ends && pid == child_pid && sig == SIGSTOP) {
        syscall(SYS_kill, root_pid, SIGKILL);
        waitpid(root_pid, NULL, 0);
        root_ends = false;
    }
    return (int)syscall(SYS_kill, pid, sig);
}

/* Two processes that wait for ever; orphans of this one are given to us. */
static void tree_make(void)
{
    int fds[2];
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(fds), 0);
    root_pid = fork();
    if (root_pid == 0) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                pause();
        if (write(fds[1], &child, sizeof(child)) != (ssize_t)sizeof(child))
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(fds[0], &child_pid, sizeof(child_pid)), (int)sizeof(child_pid));
    close(fds[0]);
    close(fds[1]);
}

static void children_end_with_it(void **state)
{
    (void)state;
    int status = 0;
    tree_make();
    tree_kill(root_pid);
    assert_int_equal(waitpid(root_pid, &status, 0), root_pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(waitpid(child_pid, &status, 0), child_pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void whose_number_is_anothers_by_then_goes_on(void **state)
{
    (void)state;
    struct proc_stat stat = {0};
    int status = 0;
    tree_make();
    root_ends = true;
    tree_kill(root_pid);
    assert_false(root_ends);
    assert_int_equal(waitpid(child_pid, &status, WNOHANG), 0);
    assert_int_equal(proc_stat_read(child_pid, 0, &stat), 0);
    assert_int_not_equal(stat.state, 'T');
    kill(child_pid, SIGTERM);
    assert_int_equal(waitpid(child_pid, &status, 0), child_pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_end_with_it),
        cmocka_unit_test(whose_number_is_anothers_by_then_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
