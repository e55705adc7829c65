/* Processes and threads as the kernel announces them: fork, exec, names, exit.
 *
 * The sink is told about a process or thread when there is something to tell: at its first
 * sample, when it has a child, or at its end. By then a forked shell has become the program
 * it was forked for, and its thread has its name. */
#include "collect/stacks_parts.h"
#include "target/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { THREADS_READ_MAX = 1 << 16, START_SLACK_NS = 50 * 1000000 };

uint32_t process_find(const struct stacks *st, int pid)
{
    const uint64_t *slot = map_u64_find(&st->pids, (uint64_t)(uint32_t)pid);
    return slot && *slot ? (uint32_t)(*slot - 1) : STACKS_NONE;
}

uint32_t thread_find(const struct stacks *st, int tid)
{
    const uint64_t *slot = map_u64_find(&st->tids, (uint64_t)(uint32_t)tid);
    return slot && *slot ? (uint32_t)(*slot - 1) : STACKS_NONE;
}

static void name_set(char to[STACKS_NAME_BYTES], struct str name)
{
    size_t len = MIN(name.len, (size_t)STACKS_NAME_BYTES - 1);
    memcpy(to, name.data, len);
    to[len] = '\0';
}

/* What is under that pid now has ended without our being told. */
static int process_replace(struct stacks *st, int pid, uint64_t time_ns)
{
    uint32_t old = process_find(st, pid);
    return old == STACKS_NONE ? 0 : process_end(st, old, time_ns);
}

static int process_new(struct stacks *st, int pid, uint32_t parent, uint64_t time_ns, uint32_t *ret)
{
    int r = process_replace(st, pid, time_ns);
    if (r < 0)
        return r;
    struct stack_process process = {
        .pid = pid,
        .parent = parent,
        .start_ns = time_ns,
        .main_thread = STACKS_NONE,
        .jit = STACKS_NONE,
    };
    if (parent != STACKS_NONE) {
        struct stack_process *from = &st->processes.data[parent];
        process.exe = from->exe;
        process.file = from->file;
        process.command = from->command;
        memcpy(process.name, from->name, sizeof(process.name));
        if (from->space)
            r = unwind_space_clone(from->space, &process.space);
    } else {
        r = unwind_space_new(st->opts.machine, &process.space);
    }
    if (r < 0)
        return r;
    uint64_t *slot = map_u64_at(&st->pids, (uint64_t)(uint32_t)pid, NULL);
    if (!slot || VEC_PUSH(&st->processes, process) < 0) {
        unwind_space_free(process.space);
        return -ENOMEM;
    }
    *slot = st->processes.len;
    *ret = (uint32_t)st->processes.len - 1;
    return 0;
}

static int thread_new(struct stacks *st, uint64_t time_ns, uint32_t process, int tid, uint32_t *ret)
{
    uint32_t old = thread_find(st, tid);
    if (old != STACKS_NONE && !st->threads.data[old].ended) {
        struct stack_thread *gone = &st->threads.data[old];
        gone->ended = true;
        if (st->processes.data[gone->process].threads > 0)
            st->processes.data[gone->process].threads--;
        int r = gone->id ? sink_thread_end(st->sink, gone->id, time_ns) : 0;
        if (r < 0)
            return r;
    }
    struct stack_process *owner = &st->processes.data[process];
    struct stack_thread thread = {.tid = tid, .process = process, .start_ns = time_ns};
    memcpy(thread.name, owner->name, sizeof(thread.name));
    uint64_t *slot = map_u64_at(&st->tids, (uint64_t)(uint32_t)tid, NULL);
    if (!slot || VEC_PUSH(&st->threads, thread) < 0)
        return -ENOMEM;
    *slot = st->threads.len;
    owner->threads++;
    if (tid == owner->pid)
        owner->main_thread = (uint32_t)st->threads.len - 1;
    *ret = (uint32_t)st->threads.len - 1;
    return 0;
}

int thread_need(struct stacks *st, uint64_t time_ns, uint32_t process, int tid, uint32_t *ret)
{
    uint32_t found = thread_find(st, tid);
    if (found != STACKS_NONE && st->threads.data[found].process == process) {
        *ret = found;
        return 0;
    }
    return thread_new(st, time_ns, process, tid, ret);
}

/* A file of several names (redis-server is a link to redis-check-rdb) is called as it was started.
 * The kernel maps it by one of them, but names the process after the one it was asked for. A name
 * that only says more (python3.11 for python3) stays. */
static struct str started_as(struct stacks *st, const struct stack_process *p, struct str file)
{
    char path[4096], whole[4096];
    struct stat by_name, by_file;
    size_t folder = file.len, name = strnlen(p->name, sizeof(p->name));
    while (folder > 0 && file.data[folder - 1] != '/')
        folder--;
    struct str base = {file.data + folder, file.len - folder};
    if (!st->opts.live || folder == 0 || name == 0 || file.len >= sizeof(whole) ||
        folder + name >= sizeof(path) || memchr(p->name, '/', name) ||
        memmem(base.data, base.len, p->name, name))
        return file;
    snprintf(path, sizeof(path), "%.*s%s", (int)folder, file.data, p->name);
    snprintf(whole, sizeof(whole), "%.*s", STR_FMT(file));
    if (stat(path, &by_name) < 0 || stat(whole, &by_file) < 0 || by_name.st_ino != by_file.st_ino ||
        by_name.st_dev != by_file.st_dev)
        return file;
    return str_from(arena_dup(&st->arena, path));
}

/* A process that was here before us. Nothing of it may be readable: then it has only a pid. */
static int process_read(struct stacks *st, uint64_t time_ns, int pid, uint32_t *ret)
{
    struct proc_stat stat;
    int seen = proc_stat_read(pid, 0, &stat);
    uint32_t process = 0;
    int r = process_new(st, pid, STACKS_NONE, time_ns, &process);
    if (r < 0)
        return r;
    *ret = process;
    if (seen < 0 || !st->opts.live)
        return 0;
    struct stack_process *p = &st->processes.data[process];
    p->parent = process_find(st, stat.parent);
    if (stat.start_ns < time_ns)
        p->start_ns = stat.start_ns;
    name_set(p->name, str_from(stat.name));
    char text[4096];
    proc_exe_read(pid, text, sizeof(text));
    p->file = str_from(arena_dup(&st->arena, text));
    p->exe = started_as(st, p, p->file);
    proc_command_read(pid, text, sizeof(text));
    p->command = str_from(arena_dup(&st->arena, text));
    return mappings_read(st, process, time_ns);
}

static int threads_read(struct stacks *st, uint64_t time_ns, uint32_t process)
{
    int *tids = malloc(THREADS_READ_MAX * sizeof(*tids));
    if (!tids)
        return -ENOMEM;
    size_t count = 0, left = 0;
    int r = proc_threads_read(st->processes.data[process].pid, tids, THREADS_READ_MAX, &count,
                              &left);
    st->refused += left;
    for (size_t i = 0; i < count && r == 0; i++) {
        uint32_t thread;
        r = thread_need(st, time_ns, process, tids[i], &thread);
    }
    free(tids);
    return r == -ENOENT || r == -ESRCH ? 0 : r;
}

int process_need(struct stacks *st, uint64_t time_ns, int pid, uint32_t *ret)
{
    uint32_t found = process_find(st, pid);
    if (found == STACKS_NONE)
        return process_read(st, time_ns, pid, ret);
    *ret = found;
    return 0;
}

/* The command line is read late, so that it may be another program's by now, or another
 * process's: it counts only if the file that runs is the one we saw mapped. */
static void command_read(struct stacks *st, struct stack_process *p)
{
    struct proc_stat stat;
    char text[4096];
    if (p->command.len > 0 || !st->opts.live)
        return;
    if (proc_stat_read(p->pid, 0, &stat) < 0 || stat.start_ns > p->start_ns + START_SLACK_NS)
        return;
    proc_exe_read(p->pid, text, sizeof(text));
    if (!str_is(p->file, text))
        return;
    proc_command_read(p->pid, text, sizeof(text));
    p->command = str_from(arena_dup(&st->arena, text));
}

static struct str process_command(const struct stack_process *p)
{
    return p->command.len > 0 ? p->command : str_from(p->name);
}

int process_program(struct stacks *st, uint32_t process, struct str file)
{
    struct stack_process *p = &st->processes.data[process];
    p->file = str_from(arena_dup_len(&st->arena, file.data, file.len));
    p->exe = started_as(st, p, p->file);
    if (!p->id)
        return 0;
    command_read(st, p);
    return sink_process_program(st->sink, p->id, p->exe, process_command(p));
}

struct str process_path(struct stacks *st, uint32_t process, struct str file)
{
    const struct stack_process *p = &st->processes.data[process];
    if (p->file.len == 0) /* the first one that is mapped is its program */
        return started_as(st, p, file);
    return str_eq(p->file, file) ? p->exe : file;
}

int process_tell(struct stacks *st, uint32_t process)
{
    struct stack_process *p = &st->processes.data[process];
    if (p->id)
        return 0;
    command_read(st, p);
    struct process_info info = {
        .pid = (uint32_t)p->pid,
        .parent = p->parent != STACKS_NONE ? st->processes.data[p->parent].id : 0,
        .start_ns = p->start_ns,
        .exe = p->exe,
        .command = process_command(p),
    };
    return sink_process(st->sink, &info, &p->id);
}

static void thread_name_read(const struct stacks *st, struct stack_thread *thread)
{
    struct proc_stat stat;
    int pid = st->processes.data[thread->process].pid;
    if (thread->named || !st->opts.live || thread->tid == pid)
        return;
    if (proc_stat_read(pid, thread->tid, &stat) == 0 &&
        stat.start_ns <= thread->start_ns + START_SLACK_NS)
        name_set(thread->name, str_from(stat.name));
}

int thread_tell(struct stacks *st, uint32_t thread)
{
    struct stack_thread *t = &st->threads.data[thread];
    if (t->id)
        return 0;
    int r = process_tell(st, t->process);
    if (r < 0)
        return r;
    thread_name_read(st, t);
    struct thread_info info = {
        .process = st->processes.data[t->process].id,
        .tid = (uint32_t)t->tid,
        .start_ns = t->start_ns,
        .name = str_from(t->name),
    };
    return sink_thread(st->sink, &info, &t->id);
}

static int thread_end(struct stacks *st, uint32_t thread, uint64_t time_ns)
{
    struct stack_thread *t = &st->threads.data[thread];
    if (t->ended)
        return 0;
    t->ended = true;
    uint64_t *slot = map_u64_find(&st->tids, (uint64_t)(uint32_t)t->tid);
    if (slot && *slot == thread + 1)
        *slot = 0;
    struct stack_process *p = &st->processes.data[t->process];
    if (p->threads > 0)
        p->threads--;
    int r = thread_tell(st, thread); /* also one that was never sampled existed */
    return r < 0 ? r : sink_thread_end(st->sink, t->id, time_ns);
}

static void process_release(struct stacks *st, struct stack_process *p)
{
    unwind_space_free(p->space);
    p->space = NULL;
    if (p->cache) {
        unwind_cache_free(p->cache);
        p->cache = NULL;
        st->caches--;
    }
    VEC_FREE(&p->mappings);
}

int process_end(struct stacks *st, uint32_t process, uint64_t time_ns)
{
    struct stack_process *p = &st->processes.data[process];
    if (p->ended)
        return 0;
    p->ended = true;
    uint64_t *slot = map_u64_find(&st->pids, (uint64_t)(uint32_t)p->pid);
    if (slot && *slot == process + 1)
        *slot = 0;
    int r = p->silent ? 0 : process_tell(st, process);
    if (r == 0)
        r = mappings_end(st, process, time_ns);
    if (r == 0 && p->id)
        r = sink_process_end(st->sink, p->id, time_ns, -1);
    process_release(st, &st->processes.data[process]);
    return r;
}

int stacks_fork(struct stacks *st, uint64_t time_ns, int parent_pid, int pid, int tid)
{
    uint32_t parent = 0, process = 0, thread = 0;
    int r = process_need(st, time_ns, parent_pid, &parent);
    if (r < 0)
        return r;
    if (pid == parent_pid)
        return thread_new(st, time_ns, parent, tid, &thread);
    r = process_tell(st, parent);
    if (r == 0)
        r = process_new(st, pid, parent, time_ns, &process);
    if (r < 0)
        return r;
    /* The copy of the address space is in process_new(); here the mappings behind it. */
    struct stack_process *from = &st->processes.data[parent], *to = &st->processes.data[process];
    if (VEC_RESERVE(&to->mappings, from->mappings.len) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < from->mappings.len; i++) {
        to->mappings.data[i] = from->mappings.data[i];
        to->mappings.data[i].id = 0;
        to->mappings.data[i].start_ns = time_ns;
    }
    to->mappings.len = from->mappings.len;
    return thread_new(st, time_ns, process, tid, &thread);
}

/* The same pid, another program: for the sink another process. */
static int process_exec(struct stacks *st, uint64_t time_ns, uint32_t process, struct str name)
{
    struct stack_process *old = &st->processes.data[process];
    int pid = old->pid;
    uint32_t parent = old->parent, next = 0;
    /* A fork that only lived to exec is not worth a row of its own. */
    bool begun = old->id != 0;
    uint64_t start_ns = begun ? time_ns : old->start_ns;
    if (!begun)
        old->silent = true;
    uint32_t main_thread = old->main_thread;
    if (main_thread != STACKS_NONE && st->threads.data[main_thread].id == 0)
        st->threads.data[main_thread].ended = true;
    int r = main_thread != STACKS_NONE ? thread_end(st, main_thread, time_ns) : 0;
    if (r == 0)
        r = process_end(st, process, time_ns);
    if (r == 0)
        r = process_new(st, pid, STACKS_NONE, start_ns, &next);
    if (r < 0)
        return r;
    struct stack_process *p = &st->processes.data[next];
    p->parent = parent;
    name_set(p->name, name);
    /* Its first exec, also when something was seen of it before. */
    if (pid == st->opts.root_pid && st->opts.root_command && !st->root_named) {
        p->command = str_from(st->opts.root_command);
        st->root_named = true;
    }
    uint32_t thread;
    r = thread_new(st, start_ns, next, pid, &thread);
    if (r == 0)
        st->threads.data[thread].named = true;
    return r;
}

static int thread_rename(struct stacks *st, uint64_t time_ns, uint32_t process, int tid,
                         struct str name)
{
    uint32_t index;
    int r = thread_need(st, time_ns, process, tid, &index);
    if (r < 0)
        return r;
    struct stack_thread *t = &st->threads.data[index];
    char text[STACKS_NAME_BYTES];
    name_set(text, name);
    bool same = strcmp(t->name, text) == 0;
    if (t->id && !same) {
        /* What was sampled under the old name keeps it. */
        r = thread_new(st, time_ns, process, tid, &index);
        if (r < 0)
            return r;
        t = &st->threads.data[index];
    }
    t->named = true;
    name_set(t->name, name);
    struct stack_process *p = &st->processes.data[process];
    if (tid == p->pid)
        name_set(p->name, name);
    return 0;
}

int stacks_comm(struct stacks *st, uint64_t time_ns, int pid, int tid, struct str name, bool exec)
{
    uint32_t process = process_find(st, pid);
    int r;
    if (process == STACKS_NONE) {
        r = exec ? process_new(st, pid, STACKS_NONE, time_ns, &process)
                 : process_read(st, time_ns, pid, &process);
        if (r < 0)
            return r;
    }
    return exec ? process_exec(st, time_ns, process, name)
                : thread_rename(st, time_ns, process, tid, name);
}

int stacks_exit(struct stacks *st, uint64_t time_ns, int pid, int tid)
{
    uint32_t thread = thread_find(st, tid), process = process_find(st, pid);
    int r = 0;
    if (thread != STACKS_NONE &&
        (process == STACKS_NONE || st->threads.data[thread].process == process))
        r = thread_end(st, thread, time_ns);
    if (r == 0 && process != STACKS_NONE && st->processes.data[process].threads == 0)
        r = process_end(st, process, time_ns);
    return r;
}

int stacks_attach(struct stacks *st, int pid, uint64_t time_ns, struct why *why)
{
    struct proc_stat stat;
    int r = proc_stat_read(pid, 0, &stat);
    if (r < 0)
        return why_set(why, WHY_USAGE, -r, "'ps -e' lists the processes", "no process %d", pid);
    uint32_t process = 0;
    r = process_need(st, time_ns, pid, &process);
    if (r == 0)
        r = threads_read(st, time_ns, process);
    return r < 0 ? why_errno(why, -r, NULL, "cannot read about process %d", pid) : 0;
}

size_t stacks_live_tids(const struct stacks *st, int *tids, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < st->threads.len && count < max; i++)
        if (!st->threads.data[i].ended)
            tids[count++] = st->threads.data[i].tid;
    return count;
}

bool stacks_has_thread(const struct stacks *st, int pid, int tid)
{
    uint32_t thread = thread_find(st, tid);
    return thread != STACKS_NONE && st->processes.data[st->threads.data[thread].process].pid == pid;
}

int stacks_process(struct stacks *st, uint64_t time_ns, int pid, uint32_t *ret_process)
{
    uint32_t process = 0;
    int r = process_need(st, time_ns, pid, &process);
    if (r == 0)
        r = process_tell(st, process);
    if (r < 0)
        return r;
    *ret_process = st->processes.data[process].id;
    return 0;
}

int stacks_thread(struct stacks *st, uint64_t time_ns, int pid, int tid, uint32_t *ret_thread)
{
    uint32_t process = 0, thread = 0;
    int r = process_need(st, time_ns, pid, &process);
    if (r == 0)
        r = thread_need(st, time_ns, process, tid, &thread);
    if (r == 0)
        r = thread_tell(st, thread);
    if (r < 0)
        return r;
    *ret_thread = st->threads.data[thread].id;
    return 0;
}

void stacks_processes_deinit(struct stacks *st)
{
    for (size_t i = 0; i < st->processes.len; i++)
        process_release(st, &st->processes.data[i]);
    VEC_FREE(&st->processes);
    VEC_FREE(&st->threads);
    map_u64_deinit(&st->pids);
    map_u64_deinit(&st->tids);
}
