/* Threads that were here before us and wait already: what they wait for is read from /proc, as the
 * user tier does, and handed to the program, which sees them when they wake. */
#include "base/clock.h"
#include "collect/offcpu_kernel_parts.h"
#include "collect/offcpu_user_parts.h"
#include "target/proc.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

enum { SLICE_BYTES = 64 << 10 };

/* Refs of ours: those of the program are counted from below. */
#define REF_OURS (UINT64_C(1) << 63)

static int stack_walk(struct collector *c, const struct user_look *look, uint64_t *ret_ref)
{
    const unsigned sp = unwind_machine_here() == UNWIND_X86_64 ? 7 : 31;
    struct unwind_registers registers = {.pc = look->call.pc, .known = 1u << sp};
    struct stacks_found found;
    registers.reg[sp] = look->call.sp;
    struct stacks_sample sample = {
        .time_ns = look->begin_ns,
        .pid = look->pid,
        .tid = look->tid,
        .registers = &registers,
        .slice = {.address = look->call.sp, .bytes = look->bytes, .len = look->len},
    };
    int r = stacks_sample(c->stacks, &sample, &found);
    if (r < 0)
        return r;
    *ret_ref = REF_OURS | (c->told.refs.len + 1);
    return told_stacks_put(&c->told, *ret_ref, found.stack);
}

static int key_fill(struct collector *c, const struct user_look *look, struct offcpu_key *key)
{
    *key = (struct offcpu_key){
        .tid = (uint32_t)look->tid,
        .tgid = (uint32_t)look->pid,
        .kind = WAIT_BLOCKED,
        .kernel_stack = -1,
        .syscall = look->call.syscall,
        .flags = look->flags,
        .detail = (uint8_t)look->facts.detail,
    };
    uint32_t object = 0;
    if (look->facts.on == USER_CALL_ON_FUTEX) {
        key->object_kind = OBJECT_FUTEX;
        key->object = look->facts.address;
    } else if (look->facts.on == USER_CALL_ON_CHILD) {
        key->object_kind = OBJECT_PROCESS;
        key->object = (uint64_t)look->facts.child;
    } else if (look->fd >= 0 && objects_of_fd(c->objects, look->pid, look->fd, &object) == 0) {
        key->object_kind = OFFCPU_OBJECT_OURS;
        key->object = object;
    }
    return stack_walk(c, look, &key->stack);
}

static int thread_fill(struct collector *c, struct user_look *look, int pid, int tid)
{
    int r = user_look(pid, tid, look);
    if (r < 0)
        return 0; /* it runs, or is gone, or may not be looked at: the program will see it */
    struct offcpu_thread thread = {
        .since_ns = c->start_ns,
        .off_ns = c->start_ns,
        .tid = (uint32_t)tid,
        .tgid = (uint32_t)pid,
        .kernel_tgid = (uint32_t)pid,
        .flags = OFFCPU_THREAD_FILLED,
    };
    uint32_t key = (uint32_t)tid;
    r = key_fill(c, look, &thread.key);
    if (r < 0)
        return r;
    if (!c->opts.waits && thread.key.object_kind != OBJECT_FUTEX)
        thread.flags |= OFFCPU_THREAD_LEFT_OUT;
    /* Not where the program was quicker: it knows better. */
    if (bpf_map_update_elem(c->fds.threads, &key, &thread, BPF_NOEXIST) == 0)
        c->filled++;
    return 0;
}

int offcpu_attach_fill(struct collector *c, int pid)
{
    size_t count = 0, left = 0;
    int *tids = calloc(OFFCPU_THREADS_MAX, sizeof(*tids));
    struct user_look look = {.bytes = malloc(SLICE_BYTES), .cap = SLICE_BYTES};
    int r = tids && look.bytes ? 0 : -ENOMEM;
    if (r == 0 && proc_threads_read(pid, tids, OFFCPU_THREADS_MAX, &count, &left) < 0)
        count = 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = thread_fill(c, &look, pid, tids[i]);
    free(look.bytes);
    free(tids);
    return r;
}
