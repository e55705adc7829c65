/* Records to announcements and samples. */
#include "base/clock.h"
#include "collect/cpu_parts.h"
#include "collect/perf_sample.h"

#include <errno.h>
#include <string.h>

struct task_record { /* FORK and EXIT */
    struct perf_event_header header;
    uint32_t pid, ppid, tid, ptid;
    uint64_t time;
};

struct comm_record {
    struct perf_event_header header;
    uint32_t pid, tid;
    char name[];
};

struct mmap2_record {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t address, size_bytes, file_offset;
    union {
        struct {
            uint32_t major, minor;
            uint64_t inode, generation;
        } file;
        struct {
            uint8_t len, unused1;
            uint16_t unused2;
            uint8_t bytes[20];
        } build_id;
    };
    uint32_t protection, flags;
    char path[];
};

/* The text at the end of a record, before the trailer; it need not end in a NUL. */
static struct str text_of(const struct perf_event_header *header, const char *text)
{
    size_t max = (size_t)((const char *)header + header->size - PERF_TRAILER_BYTES - text);
    return (struct str){text, strnlen(text, max)};
}

static int take_mmap2(struct collector *c, const struct perf_event_header *header, uint64_t time_ns)
{
    const struct mmap2_record *record = (const void *)header;
    if (header->size < sizeof(*record) + PERF_TRAILER_BYTES)
        return -EBADMSG;
    struct stacks_mmap mmap = {
        .time_ns = time_ns,
        .pid = (int)record->pid,
        .address = record->address,
        .size_bytes = record->size_bytes,
        .file_offset = record->file_offset,
        .executable = !(header->misc & PERF_RECORD_MISC_MMAP_DATA),
        .path = text_of(header, record->path),
    };
    if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
        mmap.build_id = record->build_id.bytes;
        mmap.build_id_len = MIN(record->build_id.len, sizeof(record->build_id.bytes));
    } else {
        mmap.inode = record->file.inode;
        mmap.device_major = record->file.major;
        mmap.device_minor = record->file.minor;
    }
    return stacks_mmap(c->stacks, &mmap);
}

static void deep_forget(struct collector *c, uint32_t tid)
{
    if (c->deep)
        cpu_tops_forget(cpu_deep_tops(c->deep), tid);
}

static int take_comm(struct collector *c, const struct perf_event_header *header, uint64_t time_ns)
{
    const struct comm_record *record = (const void *)header;
    if (header->size < sizeof(*record) + PERF_TRAILER_BYTES)
        return -EBADMSG;
    bool exec = header->misc & PERF_RECORD_MISC_COMM_EXEC;
    if (exec) {
        c->begun = true;
        cpu_source_forget(c, (int)record->pid);
        deep_forget(c, record->pid);
    }
    return stacks_comm(c->stacks, time_ns, (int)record->pid, (int)record->tid,
                       text_of(header, record->name), exec);
}

static int take_task(struct collector *c, const struct perf_event_header *header, uint64_t time_ns)
{
    const struct task_record *record = (const void *)header;
    if (header->size < sizeof(*record) + PERF_TRAILER_BYTES)
        return -EBADMSG;
    if (header->type == PERF_RECORD_EXIT) {
        cpu_source_forget(c, (int)record->tid);
        deep_forget(c, record->tid);
        return stacks_exit(c->stacks, time_ns, (int)record->pid, (int)record->tid);
    }
    c->processes_started |= record->pid != record->ppid;
    return stacks_fork(c->stacks, time_ns, (int)record->ppid, (int)record->pid, (int)record->tid);
}

static void ends_count(struct collector *c, const struct perf_sample *sample,
                       const struct stacks_found *found)
{
    c->samples++;
    c->turn_samples++;
    if (!sample->in_kernel)
        c->user_ns += sample->period;
    if (c->plan.stacks == PERF_STACKS_NONE)
        return;
    c->ends[found->end]++;
    if (found->end == UNWIND_ROOT)
        c->complete++;
    if (found->end == UNWIND_TRUNCATED) {
        c->truncated++;
        c->turn_truncated++;
    }
}

static int sample_put(struct collector *c, const struct perf_sample *sample, uint64_t time_ns,
                      const struct stacks_found *found)
{
    uint64_t weight_ns = c->plan.clock == PERF_CYCLES
                             ? (uint64_t)((double)sample->period * c->ns_per_cycle)
                             : sample->period;
    c->sampled_ns += weight_ns;
    struct sample out = {
        .series = c->series,
        .thread = found->thread,
        .stack = found->stack,
        .time_ns = time_ns,
        .weight = weight_ns,
    };
    return sink_sample(c->sink, &out);
}

/* What was copied of the stack beyond the slice; the parts live in the ring. */
static void deep_join(struct collector *c, const struct perf_sample *sample, uint64_t pc,
                      struct unwind_slice parts[CPU_DEEP_PARTS_MAX], struct unwind_slice *slice)
{
    struct cpu_moment moment = {
        .time_ns = sample->time_ns,
        .sp = slice->address,
        .pc = pc,
        .tid = (uint32_t)sample->tid,
    };
    slice->more = parts;
    slice->more_count = cpu_pieces_find(cpu_deep_pieces(c->deep), &moment, parts);
}

static void deep_count(struct collector *c, const struct perf_sample *sample,
                       const struct stacks_sample *in, const struct stacks_found *found)
{
    if (in->slice.len == 0)
        return;
    if (in->slice.more_count > 0 && found->end == UNWIND_ROOT &&
        found->slice_used_bytes > in->slice.len)
        c->deep_complete++;
    /* Of first threads, too: a child that a thread forks runs on that thread's stack. */
    cpu_tops_learn(cpu_deep_tops(c->deep), (uint32_t)sample->tid, found->end,
                   in->slice.more_count > 0, in->slice.address + found->slice_used_bytes);
}

static int take_sample(struct collector *c, const struct perf_event_header *header,
                       uint64_t time_ns)
{
    struct perf_sample sample;
    int r = perf_sample_parse(header, c->sample_type, c->registers_mask, &sample);
    if (r < 0)
        return r;
    if (cpu_is_doubled(c, sample.id, sample.tid)) {
        c->doubled++;
        return 0;
    }
    struct unwind_registers registers;
    struct unwind_slice parts[CPU_DEEP_PARTS_MAX];
    struct stacks_sample in = {
        .time_ns = time_ns,
        .pid = sample.pid,
        .tid = sample.tid,
        .kernel = sample.kernel,
        .kernel_count = sample.kernel_count,
        .user = sample.user,
        .user_count = sample.user_count,
    };
    if (c->plan.stacks == PERF_STACKS_NONE) {
        in.kernel = &sample.ip;
        in.kernel_count = sample.in_kernel;
        in.user = &sample.ip;
        in.user_count = !sample.in_kernel;
    }
    if (perf_sample_registers(&sample, c->registers_mask, &registers)) {
        in.registers = &registers;
        unsigned sp = unwind_machine_here() == UNWIND_X86_64 ? 7 : 31;
        in.slice = (struct unwind_slice){registers.reg[sp], sample.stack, sample.stack_bytes};
        if (c->deep)
            deep_join(c, &sample, registers.pc, parts, &in.slice);
    }
    struct stacks_found found;
    r = stacks_sample(c->stacks, &in, &found);
    if (r < 0)
        return r;
    c->begun = true;
    ends_count(c, &sample, &found);
    if (c->deep)
        deep_count(c, &sample, &in, &found);
    return sample_put(c, &sample, time_ns, &found);
}

/* LOST has an id before the count, LOST_SAMPLES has not. */
static int take_lost(struct collector *c, const struct perf_event_header *header)
{
    const uint64_t *words = (const uint64_t *)(header + 1);
    if (header->type == PERF_RECORD_LOST) {
        if (header->size < sizeof(*header) + 16 + PERF_TRAILER_BYTES)
            return -EBADMSG;
        c->lost += words[1];
        return 0;
    }
    c->lost_samples += words[0];
    return 0;
}

/* The trailer tells who. */
static int take_switch(struct collector *c, const struct perf_event_header *header,
                       uint64_t time_ns)
{
    struct {
        uint32_t pid, tid;
    } who;
    if (header->size < sizeof(*header) + PERF_TRAILER_BYTES)
        return -EBADMSG;
    memcpy(&who, (const char *)header + header->size - PERF_TRAILER_BYTES, sizeof(who));
    bool out = header->misc & PERF_RECORD_MISC_SWITCH_OUT;
    bool preempted = header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    for (size_t i = 0; i < c->follower_count; i++) {
        const struct cpu_follower *follower = &c->followers[i];
        int r = follower->on_switch ? follower->on_switch(follower->context, time_ns, (int)who.pid,
                                                          (int)who.tid, out, preempted)
                                    : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int cpu_followers_tell(struct collector *c, uint64_t time_ns)
{
    for (size_t i = 0; i < c->follower_count; i++) {
        int r = c->followers[i].until(c->followers[i].context, time_ns);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_announcement(const struct perf_event_header *header)
{
    return header->type == PERF_RECORD_MMAP2 || header->type == PERF_RECORD_COMM ||
           header->type == PERF_RECORD_FORK || header->type == PERF_RECORD_EXIT;
}

int cpu_tasks_tell(struct collector *c, uint64_t time_ns, enum cpu_task task, uint32_t pid,
                   uint32_t tid)
{
    for (size_t i = 0; i < c->follower_count; i++) {
        const struct cpu_follower *follower = &c->followers[i];
        int r = follower->on_task
                    ? follower->on_task(follower->context, time_ns, task, (int)pid, (int)tid)
                    : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int task_tell(struct collector *c, const struct perf_event_header *header, uint64_t time_ns)
{
    if (header->type == PERF_RECORD_COMM) {
        const struct comm_record *comm = (const void *)header;
        if (!(header->misc & PERF_RECORD_MISC_COMM_EXEC) ||
            header->size < sizeof(*comm) + PERF_TRAILER_BYTES)
            return 0;
        return cpu_tasks_tell(c, time_ns, CPU_TASK_EXEC, comm->pid, comm->tid);
    }
    const struct task_record *task = (const void *)header;
    if (header->type == PERF_RECORD_MMAP2 || header->size < sizeof(*task) + PERF_TRAILER_BYTES)
        return 0;
    return cpu_tasks_tell(c, time_ns,
                          header->type == PERF_RECORD_FORK ? CPU_TASK_FORK : CPU_TASK_EXIT,
                          task->pid, task->tid);
}

static int record_take(struct collector *c, const struct perf_event_header *header,
                       uint64_t time_ns)
{
    if (c->wide && is_announcement(header) && !cpu_tree_concerns(c, header))
        return 0;
    if (c->follower_count > 0 && is_announcement(header)) {
        int r = cpu_followers_tell(c, time_ns);
        if (r == 0)
            r = task_tell(c, header, time_ns);
        if (r < 0)
            return r;
    }
    switch (header->type) {
    case PERF_RECORD_SAMPLE:
        return take_sample(c, header, time_ns);
    case PERF_RECORD_MMAP2:
        return take_mmap2(c, header, time_ns);
    case PERF_RECORD_COMM:
        return take_comm(c, header, time_ns);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return take_task(c, header, time_ns);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return take_switch(c, header, time_ns);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        return take_lost(c, header);
    case PERF_RECORD_THROTTLE:
        c->throttled++;
        return 0;
    case PERF_RECORD_UNTHROTTLE:
        c->unthrottled++;
        return 0;
    default:
        return 0;
    }
}

int cpu_records_take(struct collector *c, bool all)
{
    const struct perf_event_header *header;
    uint64_t time_ns;
    int failed = 0;
    perf_rings_begin(&c->rings, clock_mono_ns(), all);
    if (c->deep)
        cpu_pieces_look(cpu_deep_pieces(c->deep));
    while ((header = perf_rings_next(&c->rings, &time_ns))) {
        int r = record_take(c, header, time_ns);
        if (r == -EBADMSG)
            c->malformed++;
        else if (r == -E2BIG || r == -EINVAL)
            c->refused++; /* beyond a bound of the sink: this one, not the recording */
        else if (r < 0 && failed == 0)
            failed = r; /* go on: the sink counts what it drops */
    }
    perf_rings_end(&c->rings);
    int r = cpu_followers_tell(c, all ? UINT64_MAX : c->rings.horizon_ns);
    if (failed == 0)
        failed = r;
    if (c->deep)
        cpu_pieces_settle(cpu_deep_pieces(c->deep), c->rings.horizon_ns);
    return failed;
}
