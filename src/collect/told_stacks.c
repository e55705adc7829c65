/* From copies of stacks to ids, walked while the mappings are those of their moment. */
#include "collect/told_stacks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

_Static_assert((int)UNWIND_REGISTERS == (int)OFFCPU_REGISTERS, "all of them");

int told_stacks_init(struct told_stacks *told, const struct told_stacks_fds *fds,
                     struct stacks *stacks, struct told_threads *threads)
{
    told->stacks = stacks;
    told->threads = threads;
    told->deep_fd = fds->deep;
    told->trace = calloc(1, sizeof(*told->trace));
    return told->trace ? known_stacks_open(fds->known, fds->known_long, &told->known) : -ENOMEM;
}

void told_stacks_deinit(struct told_stacks *told)
{
    known_stacks_close(told->known);
    map_u64_deinit(&told->ref_at);
    VEC_FREE(&told->refs);
    VEC_FREE(&told->processes);
    free(told->trace);
}

int told_stacks_put(struct told_stacks *told, uint64_t ref, uint32_t stack)
{
    struct told_ref entry = {.stack = stack, .until_ns = UINT64_MAX};
    bool fresh;
    if (told->refs.len >= TOLD_REFS_MAX) {
        told->lost++;
        return 0;
    }
    uint64_t *at = map_u64_at(&told->ref_at, ref, &fresh);
    if (!at || VEC_PUSH(&told->refs, entry) < 0)
        return -ENOMEM;
    *at = told->refs.len;
    return 0;
}

/* ---- what was mapped then ---- */

struct code_context {
    struct told_stacks *told;
    int pid;
    uint64_t since_ns;
};

static uint64_t code_at(void *context, uint64_t address)
{
    const struct code_context *code = context;
    return stacks_code_at(code->told->stacks, code->pid, address);
}

static void code_gone(void *context, uint64_t ref)
{
    const struct code_context *code = context;
    const uint64_t *at = map_u64_find(&code->told->ref_at, ref);
    if (at)
        code->told->refs.data[*at - 1].until_ns = code->since_ns;
}

static void process_drop(struct told_stacks *told, size_t index)
{
    const struct told_process *p = &told->processes.data[index];
    known_stacks_forget(told->known, p->kernel_tgid, p->exec);
    told->processes.data[index] = told->processes.data[--told->processes.len];
}

void told_stacks_check(struct told_stacks *told, uint64_t since_ns)
{
    for (size_t i = 0; i < told->processes.len;) {
        struct told_process *p = &told->processes.data[i];
        uint64_t generation = stacks_generation(told->stacks, p->pid);
        if (generation == 0) {
            process_drop(told, i);
            continue;
        }
        if (generation != p->generation) {
            struct code_context context = {told, p->pid, since_ns};
            struct known_code code = {code_at, code_gone, &context};
            known_stacks_check(told->known, p->kernel_tgid, p->exec, &code);
            p->generation = generation;
        }
        i++;
    }
}

/* The process of a copy: one that has become another program takes its old stacks along. */
static int process_note(struct told_stacks *told, const struct offcpu_copy *copy)
{
    for (size_t i = 0; i < told->processes.len; i++) {
        struct told_process *p = &told->processes.data[i];
        if (p->kernel_tgid != copy->kernel_tgid)
            continue;
        if (p->exec == copy->head.exec)
            return 0;
        process_drop(told, i);
        break;
    }
    struct told_process p = {
        .kernel_tgid = copy->kernel_tgid,
        .exec = copy->head.exec,
        .pid = (int)copy->head.tgid,
        .generation = stacks_generation(told->stacks, (int)copy->head.tgid),
    };
    return VEC_PUSH(&told->processes, p);
}

/* ---- stacks ---- */

static int learn(struct told_stacks *told, const struct offcpu_copy *copy,
                 const struct offcpu_known_key *place, const struct unwind_registers *registers)
{
    struct code_context context = {told, (int)copy->head.tgid, copy->head.time_ns};
    struct known_code code = {code_at, NULL, &context};
    struct known_walk walk = {
        .place = place,
        .registers = registers,
        .trace = told->trace,
        .code = &code,
        .ref = copy->ref,
        .machine = unwind_machine_here(),
    };
    uint64_t ref;
    int r = process_note(told, copy);
    if (r == 0)
        r = known_stacks_learn(told->known, &walk, &ref);
    return r;
}

/* So much is copied the next time. The stack the process began with needs no telling. */
static void pages_tell(struct told_stacks *told, uint32_t kernel_tid,
                       const struct stacks_found *found)
{
    uint64_t pages = found->slice_used_bytes / OFFCPU_PAGE_BYTES + 1;
    if (found->end != UNWIND_ROOT)
        pages = OFFCPU_COPY_PAGES_DEEP;
    uint8_t enough = (uint8_t)MIN(pages, (uint64_t)OFFCPU_COPY_PAGES_DEEP);
    (void)bpf_map_update_elem(told->deep_fd, &kernel_tid, &enough, BPF_ANY);
}

static int walk(struct told_stacks *told, const struct offcpu_copy *copy,
                const struct offcpu_known_key *place, const struct unwind_registers *registers,
                const struct unwind_slice *slice)
{
    struct stacks_found found;
    struct stacks_sample sample = {
        .time_ns = copy->head.time_ns,
        .pid = (int)copy->head.tgid,
        .tid = (int)copy->head.tid,
        .registers = registers,
        .slice = *slice,
        .trace = told->trace,
    };
    int r = stacks_sample(told->stacks, &sample, &found);
    if (r < 0)
        return r;
    told->walked++;
    told->complete += found.end == UNWIND_ROOT;
    told->truncated += found.end == UNWIND_TRUNCATED;
    pages_tell(told, copy->kernel_tid, &found);
    r = told_stacks_put(told, copy->ref, found.stack);
    return r < 0 ? r : learn(told, copy, place, registers);
}

int told_stacks_take(struct told_stacks *told, const struct offcpu_copy *copy, size_t bytes)
{
    struct told_thread *seen;
    if (bytes < sizeof(*copy) || copy->len > bytes - sizeof(*copy)) {
        told->malformed++;
        return 0;
    }
    struct unwind_registers registers = {.pc = copy->pc, .known = copy->known};
    for (unsigned i = 0; i < OFFCPU_REGISTERS; i++)
        registers.reg[i] = copy->registers[i];
    struct unwind_slice slice = {.address = copy->address, .bytes = copy->bytes, .len = copy->len};
    struct offcpu_known_key place = {
        .pc = offcpu_place_pc(copy->pc, copy->caller),
        .sp = copy->address,
        .kernel_tgid = copy->kernel_tgid,
        .exec = copy->head.exec,
    };
    int r = told_threads_get(told->threads, copy->head.tid, copy->head.tgid, copy->head.exec,
                             copy->head.time_ns, &seen);
    if (r < 0)
        return r;
    /* Many of a kind come before the program is told of the first. */
    uint64_t ref = known_stacks_find(told->known, &place, &registers, &slice,
                                     unwind_machine_here());
    const uint64_t *at = ref ? map_u64_find(&told->ref_at, ref) : NULL;
    if (at)
        return told_stacks_put(told, copy->ref, told->refs.data[*at - 1].stack);
    return walk(told, copy, &place, &registers, &slice);
}

/* A stack by its ref, as of the moment when it was seen. */
uint32_t told_stacks_find(struct told_stacks *told, uint64_t ref, uint64_t time_ns)
{
    const uint64_t *at = ref ? map_u64_find(&told->ref_at, ref) : NULL;
    if (!at) {
        told->stray += ref != 0;
        return 0;
    }
    const struct told_ref *entry = &told->refs.data[*at - 1];
    if (time_ns < entry->until_ns)
        return entry->stack;
    told->stale++;
    return 0;
}
