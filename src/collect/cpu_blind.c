/* Who is there, where the kernel lets us open no events: /proc is read again and again.
 *
 * For collectors that follow, not for samples. Processes, threads and programs that come and go
 * between two looks are missed, times are those of the looks, and mappings are as they are when
 * we look. The looks take at most a twentieth of one CPU. */
#include "base/clock.h"
#include "collect/cpu_parts.h"
#include "target/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TIDS_MAX = 1 << 14, /* of one process */
    CHILDREN_MAX = 1 << 10,
    THREADS_MAX = 1 << 16,
    COST_FACTOR = 20,
};
#define SCAN_NS        (20 * NS_PER_MS)
#define START_SLACK_NS (50 * NS_PER_MS) /* /proc counts in ticks of another clock */
#define SETTLES_NS     NS_PER_SEC       /* a program maps its libraries in the beginning */

struct blind_process {
    int pid;
    uint64_t start_ns; /* as /proc says: tells a pid that came back */
    uint64_t program_device, program_inode;
    uint64_t changed_ns; /* when it became this program */
    uint64_t maps_ns;    /* when its mappings were last read */
    bool gone;
};

struct blind_thread {
    int pid, tid;
    uint32_t scan; /* when it was last seen */
};

struct cpu_blind {
    VEC(struct blind_process) processes;
    VEC(struct blind_thread) threads;
    struct map_u64 tids; /* to index + 1 */
    struct map_u64 pids; /* the same */
    int tids_read[TIDS_MAX];
    uint32_t scan;
    uint64_t next_ns;
    bool no_children; /* the kernel does not list them */
};

void cpu_blind_close(struct cpu_blind *blind)
{
    if (!blind)
        return;
    VEC_FREE(&blind->processes);
    VEC_FREE(&blind->threads);
    map_u64_deinit(&blind->tids);
    map_u64_deinit(&blind->pids);
    free(blind);
}

/* Which file it runs. */
static void program_read(int pid, uint64_t *ret_device, uint64_t *ret_inode)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    if (stat(path, &st) < 0)
        return;
    *ret_device = st.st_dev;
    *ret_inode = st.st_ino;
}

static int process_add(struct cpu_blind *blind, int pid, uint64_t now_ns)
{
    struct proc_stat stat;
    struct blind_process process = {.pid = pid, .changed_ns = now_ns};
    if (proc_stat_read(pid, 0, &stat) < 0 || blind->processes.len >= THREADS_MAX)
        return 0; /* it was faster than we */
    process.start_ns = stat.start_ns;
    program_read(pid, &process.program_device, &process.program_inode);
    uint64_t *slot = map_u64_at(&blind->pids, (uint64_t)(uint32_t)pid, NULL);
    if (!slot || VEC_PUSH(&blind->processes, process) < 0)
        return -ENOMEM;
    *slot = blind->processes.len;
    return 0;
}

/* `parent` 0: it was here before us. */
static int thread_see(struct collector *c, uint64_t now_ns, int parent, int pid, int tid)
{
    struct cpu_blind *blind = c->blind;
    uint64_t *slot = map_u64_at(&blind->tids, (uint64_t)(uint32_t)tid, NULL);
    if (!slot)
        return -ENOMEM;
    if (*slot) {
        blind->threads.data[*slot - 1].scan = blind->scan;
        return 0;
    }
    struct blind_thread thread = {pid, tid, blind->scan};
    if (blind->threads.len >= THREADS_MAX)
        return 0;
    if (VEC_PUSH(&blind->threads, thread) < 0)
        return -ENOMEM;
    *slot = blind->threads.len;
    if (parent == 0)
        return 0;
    int r = cpu_tasks_tell(c, now_ns, CPU_TASK_FORK, (uint32_t)pid, (uint32_t)tid);
    return r < 0 ? r : stacks_fork(c->stacks, now_ns, parent, pid, tid);
}

static int child_see(struct collector *c, uint64_t now_ns, int parent, int pid)
{
    const uint64_t *slot = map_u64_find(&c->blind->pids, (uint64_t)(uint32_t)pid);
    if (slot && *slot)
        return 0;
    c->processes_started = true;
    int r = process_add(c->blind, pid, now_ns);
    slot = map_u64_find(&c->blind->pids, (uint64_t)(uint32_t)pid);
    return r < 0 || !slot || !*slot ? r : thread_see(c, now_ns, parent, pid, pid);
}

static int children_see(struct collector *c, uint64_t now_ns, int pid, int tid)
{
    int pids[CHILDREN_MAX];
    size_t count = 0, left = 0;
    if (c->blind->no_children)
        return 0;
    int r = proc_children_read(pid, tid, pids, CHILDREN_MAX, &count, &left);
    c->blind->no_children = r == -ENOSYS;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = child_see(c, now_ns, pid, pids[i]);
    return r == -ENOMEM ? r : 0;
}

/* The long way round: whose parent is one of ours. */
static int all_see(struct collector *c, uint64_t now_ns)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int r = 0;
    while (dir && r == 0 && (entry = readdir(dir))) {
        struct proc_stat stat;
        uint64_t pid;
        if (str_to_u64(str_from(entry->d_name), 10, &pid) < 0 || pid > INT32_MAX ||
            proc_stat_read((int)pid, 0, &stat) < 0)
            continue;
        const uint64_t *slot = map_u64_find(&c->blind->pids, (uint64_t)(uint32_t)stat.parent);
        if (slot && *slot)
            r = child_see(c, now_ns, stat.parent, (int)pid);
    }
    if (dir)
        closedir(dir);
    return r;
}

static int program_see(struct collector *c, struct blind_process *process,
                       const struct proc_stat *stat, uint64_t now_ns)
{
    uint64_t device = process->program_device, inode = process->program_inode;
    program_read(process->pid, &device, &inode);
    int r = 0;
    if (device != process->program_device || inode != process->program_inode) {
        process->program_device = device;
        process->program_inode = inode;
        process->changed_ns = now_ns;
        process->maps_ns = 0;
        c->begun = true;
        r = cpu_tasks_tell(c, now_ns, CPU_TASK_EXEC, (uint32_t)process->pid,
                           (uint32_t)process->pid);
        if (r == 0)
            r = stacks_comm(c->stacks, now_ns, process->pid, process->pid, str_from(stat->name),
                            true);
    }
    bool settles = now_ns - process->changed_ns < SETTLES_NS;
    if (r == 0 && c->begun && (settles || now_ns - process->maps_ns > SETTLES_NS)) {
        process->maps_ns = now_ns;
        r = stacks_read_again(c->stacks, process->pid, now_ns);
    }
    return r;
}

static int process_see(struct collector *c, size_t index, uint64_t now_ns)
{
    struct cpu_blind *blind = c->blind;
    struct blind_process *process = &blind->processes.data[index];
    struct proc_stat stat;
    int pid = process->pid;
    size_t count = 0, left = 0;
    int r = proc_stat_read(pid, 0, &stat);
    if (r < 0 || stat.state == 'Z' || stat.state == 'X' ||
        stat.start_ns > process->start_ns + START_SLACK_NS) {
        process->gone = true;
        return 0;
    }
    r = program_see(c, process, &stat, now_ns);
    if (r == 0 && proc_threads_read(pid, blind->tids_read, TIDS_MAX, &count, &left) < 0)
        count = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        r = thread_see(c, now_ns, pid, pid, blind->tids_read[i]);
        if (r == 0)
            r = children_see(c, now_ns, pid, blind->tids_read[i]);
    }
    return r;
}

static int thread_end(struct collector *c, uint64_t now_ns, size_t index)
{
    struct cpu_blind *blind = c->blind;
    struct blind_thread thread = blind->threads.data[index];
    struct blind_thread last = blind->threads.data[--blind->threads.len];
    uint64_t *slot = map_u64_find(&blind->tids, (uint64_t)(uint32_t)thread.tid);
    uint64_t *moved = map_u64_find(&blind->tids, (uint64_t)(uint32_t)last.tid);
    blind->threads.data[index] = last;
    if (moved)
        *moved = index + 1;
    if (slot)
        *slot = 0;
    int r = cpu_tasks_tell(c, now_ns, CPU_TASK_EXIT, (uint32_t)thread.pid, (uint32_t)thread.tid);
    return r < 0 ? r : stacks_exit(c->stacks, now_ns, thread.pid, thread.tid);
}

static void processes_forget(struct cpu_blind *blind)
{
    for (size_t i = 0; i < blind->processes.len;) {
        struct blind_process gone = blind->processes.data[i];
        if (!gone.gone) {
            i++;
            continue;
        }
        struct blind_process last = blind->processes.data[--blind->processes.len];
        blind->processes.data[i] = last;
        uint64_t *moved = map_u64_find(&blind->pids, (uint64_t)(uint32_t)last.pid);
        uint64_t *slot = map_u64_find(&blind->pids, (uint64_t)(uint32_t)gone.pid);
        if (moved)
            *moved = i + 1;
        if (slot)
            *slot = 0;
    }
}

int cpu_blind_scan(struct collector *c, uint64_t now_ns, bool last)
{
    struct cpu_blind *blind = c->blind;
    if (now_ns < blind->next_ns && !last)
        return 0;
    int r = 0;
    blind->scan++;
    for (size_t i = 0; i < blind->processes.len && r == 0; i++) /* it may grow meanwhile */
        r = process_see(c, i, now_ns);
    if (r == 0 && blind->no_children)
        r = all_see(c, now_ns);
    for (size_t i = 0; i < blind->threads.len && r == 0;)
        if (blind->threads.data[i].scan == blind->scan)
            i++;
        else
            r = thread_end(c, now_ns, i);
    processes_forget(blind);
    uint64_t cost_ns = clock_mono_ns() - now_ns;
    blind->next_ns = now_ns + MAX(SCAN_NS, MIN(COST_FACTOR * cost_ns, NS_PER_SEC));
    return r;
}

int cpu_blind_open(struct collector *c)
{
    uint64_t now_ns = clock_mono_ns();
    struct cpu_blind *blind = calloc(1, sizeof(*blind));
    if (!blind)
        return -ENOMEM;
    c->blind = blind;
    c->begun = c->opts.scope == TARGET_ATTACHED;
    int r = process_add(blind, c->opts.pid, now_ns);
    size_t count = 0, left = 0;
    if (r == 0 && proc_threads_read(c->opts.pid, blind->tids_read, TIDS_MAX, &count, &left) < 0)
        return -ESRCH;
    for (size_t i = 0; i < count && r == 0; i++)
        r = thread_see(c, now_ns, 0, c->opts.pid, blind->tids_read[i]);
    return r;
}
