/* Stops a tree from its root on, round by round, until a round finds nobody new; then ends it. */
#include "target/tree.h"

#include "base/vec.h"
#include "target/proc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

enum { ROUNDS_MAX = 64 };

typedef VEC(int) tree_pids;

static bool has(const tree_pids *pids, int pid)
{
    for (size_t i = 0; i < pids->len; i++)
        if (pids->data[i] == pid)
            return true;
    return false;
}

static void add(tree_pids *pids, int pid)
{
    if (kill(pid, SIGSTOP) == 0)
        (void)!VEC_PUSH(pids, pid); /* out of memory: the rest of them is ended */
}

static bool is_child(const tree_pids *pids, int pid)
{
    struct proc_stat stat;
    return proc_stat_read(pid, 0, &stat) == 0 && has(pids, stat.parent);
}

/* Between the look at its parent and the signal its number may have become another's, which goes
 * on. Stopped it is what it is. */
static void add_child(tree_pids *pids, int pid)
{
    if (kill(pid, SIGSTOP) < 0)
        return;
    if (is_child(pids, pid))
        (void)!VEC_PUSH(pids, pid);
    else
        kill(pid, SIGCONT);
}

/* True when somebody was found. */
static bool round_of(tree_pids *pids)
{
    DIR *dir = opendir("/proc");
    size_t before = pids->len;
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        int pid = atoi(entry->d_name);
        if (pid > 0 && !has(pids, pid) && is_child(pids, pid))
            add_child(pids, pid);
    }
    if (dir)
        closedir(dir);
    return pids->len > before;
}

void tree_kill(int pid)
{
    tree_pids pids = {0};
    add(&pids, pid);
    for (int i = 0; i < ROUNDS_MAX && round_of(&pids); i++)
        ;
    for (size_t i = 0; i < pids.len; i++)
        kill(pids.data[i], SIGKILL);
    VEC_FREE(&pids);
}
