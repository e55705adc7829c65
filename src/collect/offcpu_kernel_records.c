/* The ring in the order of time: stacks are walked while the mappings are those of their moment. */
#include "collect/offcpu_kernel_parts.h"

#include <bpf/bpf.h>
#include <errno.h>

_Static_assert((int)UNWIND_REGISTERS == (int)OFFCPU_REGISTERS, "all of them");

int offcpu_ref_put(struct collector *c, uint64_t ref, uint32_t stack)
{
    struct offcpu_ref entry = {.stack = stack, .until_ns = UINT64_MAX};
    bool fresh;
    if (c->refs.len >= OFFCPU_REFS_MAX) {
        c->refs_lost++;
        return 0;
    }
    uint64_t *at = map_u64_at(&c->ref_at, ref, &fresh);
    if (!at || VEC_PUSH(&c->refs, entry) < 0)
        return -ENOMEM;
    *at = c->refs.len;
    return 0;
}

/* ---- what was mapped then ---- */

struct code_context {
    struct collector *collector;
    int pid;
    uint64_t since_ns;
};

static uint64_t code_at(void *context, uint64_t address)
{
    const struct code_context *code = context;
    return stacks_code_at(code->collector->stacks, code->pid, address);
}

static void code_gone(void *context, uint64_t ref)
{
    const struct code_context *code = context;
    const uint64_t *at = map_u64_find(&code->collector->ref_at, ref);
    if (at)
        code->collector->refs.data[*at - 1].until_ns = code->since_ns;
}

static void process_drop(struct collector *c, size_t index)
{
    const struct offcpu_process *p = &c->processes.data[index];
    known_stacks_forget(c->known, p->kernel_tgid, p->exec);
    c->processes.data[index] = c->processes.data[--c->processes.len];
}

void offcpu_code_check(struct collector *c, uint64_t since_ns)
{
    for (size_t i = 0; i < c->processes.len;) {
        struct offcpu_process *p = &c->processes.data[i];
        uint64_t generation = stacks_generation(c->stacks, p->pid);
        if (generation == 0) {
            process_drop(c, i);
            continue;
        }
        if (generation != p->generation) {
            struct code_context context = {c, p->pid, since_ns};
            struct known_code code = {code_at, code_gone, &context};
            known_stacks_check(c->known, p->kernel_tgid, p->exec, &code);
            p->generation = generation;
        }
        i++;
    }
}

/* The process of a copy: one that has become another program takes its old stacks along. */
static int process_note(struct collector *c, const struct offcpu_copy *copy)
{
    for (size_t i = 0; i < c->processes.len; i++) {
        struct offcpu_process *p = &c->processes.data[i];
        if (p->kernel_tgid != copy->kernel_tgid)
            continue;
        if (p->exec == copy->head.exec)
            return 0;
        process_drop(c, i);
        break;
    }
    struct offcpu_process p = {
        .kernel_tgid = copy->kernel_tgid,
        .exec = copy->head.exec,
        .pid = (int)copy->head.tgid,
        .generation = stacks_generation(c->stacks, (int)copy->head.tgid),
    };
    return VEC_PUSH(&c->processes, p);
}

/* ---- stacks ---- */

static int learn(struct collector *c, const struct offcpu_copy *copy,
                 const struct offcpu_known_key *place, const struct unwind_registers *registers)
{
    struct code_context context = {c, (int)copy->head.tgid, copy->head.time_ns};
    struct known_code code = {code_at, NULL, &context};
    struct known_walk walk = {
        .place = place,
        .registers = registers,
        .trace = c->trace,
        .code = &code,
        .ref = copy->ref,
        .machine = unwind_machine_here(),
    };
    uint64_t ref;
    int r = process_note(c, copy);
    if (r == 0)
        r = known_stacks_learn(c->known, &walk, &ref);
    return r;
}

/* So much is copied the next time. The stack the process began with needs no telling. */
static void pages_tell(struct collector *c, uint32_t kernel_tid, const struct stacks_found *found)
{
    uint64_t pages = found->slice_used_bytes / OFFCPU_PAGE_BYTES + 1;
    if (found->end != UNWIND_ROOT)
        pages = OFFCPU_COPY_PAGES_DEEP;
    uint8_t told = (uint8_t)MIN(pages, (uint64_t)OFFCPU_COPY_PAGES_DEEP);
    (void)bpf_map_update_elem(c->fds.deep, &kernel_tid, &told, BPF_ANY);
}

static int walk(struct collector *c, const struct offcpu_copy *copy,
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
        .trace = c->trace,
    };
    int r = stacks_sample(c->stacks, &sample, &found);
    if (r < 0)
        return r;
    c->walked++;
    c->complete += found.end == UNWIND_ROOT;
    c->truncated += found.end == UNWIND_TRUNCATED;
    pages_tell(c, copy->kernel_tid, &found);
    r = offcpu_ref_put(c, copy->ref, found.stack);
    return r < 0 ? r : learn(c, copy, place, registers);
}

static int copy_take(struct collector *c, const struct offcpu_copy *copy, size_t bytes)
{
    struct offcpu_seen *seen;
    if (bytes < sizeof(*copy) || copy->len > bytes - sizeof(*copy)) {
        c->malformed++;
        return 0;
    }
    struct unwind_registers registers = {.pc = copy->pc, .known = copy->known};
    for (unsigned i = 0; i < OFFCPU_REGISTERS; i++)
        registers.reg[i] = copy->registers[i];
    struct unwind_slice slice = {.address = copy->address, .bytes = copy->bytes, .len = copy->len};
    struct offcpu_known_key place = {
        .pc = copy->pc,
        .sp = copy->address,
        .kernel_tgid = copy->kernel_tgid,
        .exec = copy->head.exec,
    };
    int r = offcpu_seen_get(c, copy->head.tid, copy->head.tgid, copy->head.exec, copy->head.time_ns,
                            &seen);
    if (r < 0)
        return r;
    /* Many of a kind come before the program is told of the first. */
    uint64_t ref = known_stacks_find(c->known, &place, &registers, &slice, unwind_machine_here());
    const uint64_t *at = ref ? map_u64_find(&c->ref_at, ref) : NULL;
    if (at)
        return offcpu_ref_put(c, copy->ref, c->refs.data[*at - 1].stack);
    return walk(c, copy, &place, &registers, &slice);
}

static int event_take(struct collector *c, const struct offcpu_event *event, size_t bytes)
{
    if (bytes != sizeof(*event)) {
        c->malformed++;
        return 0;
    }
    struct offcpu_span span = {event->start_ns, event->wake_ns, event->head.time_ns};
    c->events++;
    return offcpu_event_put(c, &event->key, &span, event->owned_ns, event->owner_off_ns);
}

/* The last moment at which its names can be asked for. */
static int exit_take(struct collector *c, const struct offcpu_head *head)
{
    struct offcpu_seen *seen;
    int r = offcpu_seen_get(c, head->tid, head->tgid, head->exec, head->time_ns, &seen);
    if (r == 0)
        seen->ended = true;
    return r;
}

static int record_take(struct collector *c, const struct offcpu_head *head, size_t bytes)
{
    switch (head->record) {
    case OFFCPU_COPY:
        return copy_take(c, (const void *)head, bytes);
    case OFFCPU_EVENT:
        return event_take(c, (const void *)head, bytes);
    case OFFCPU_EXIT:
        return exit_take(c, head);
    case OFFCPU_KERNEL:
        if (bytes == sizeof(struct offcpu_kernel))
            offcpu_kernel_learn(c, (const void *)head);
        else
            c->malformed++;
        return 0;
    default:
        c->malformed++;
        return 0;
    }
}

int offcpu_records_take(struct collector *c, uint64_t time_ns)
{
    const struct offcpu_head *head;
    size_t bytes;
    uint64_t place;
    int failed = 0;
    bpf_ring_begin(&c->ring);
    /* What an announcement has changed counts from the moment we were told of it. */
    offcpu_code_check(c, c->until_ns);
    while ((head = bpf_ring_next(&c->ring, &bytes, &place))) {
        if (bytes < sizeof(*head)) {
            c->malformed++;
            continue;
        }
        if (head->record == OBJECT_RECORD_TYPE) { /* what it is called: any time is right */
            int r = objects_take(c->objects, head, bytes);
            failed = failed ? failed : r;
            continue;
        }
        if (head->time_ns > time_ns) { /* the next time */
            c->ring.at = place;
            break;
        }
        int r = record_take(c, head, bytes);
        if (r == -E2BIG || r == -EINVAL)
            c->refused++; /* beyond a bound of the sink: this one, not the recording */
        else if (r < 0 && failed == 0)
            failed = r; /* go on: the sink counts what it drops */
        bpf_ring_release(&c->ring, UINT64_MAX);
    }
    bpf_ring_release(&c->ring, UINT64_MAX);
    if (time_ns != UINT64_MAX)
        c->until_ns = time_ns;
    return failed;
}
