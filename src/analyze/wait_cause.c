/* What was waited for, in a few words for people. */
#include "analyze/wait_classes.h"

#include "analyze/wait_parts.h"

#include <inttypes.h>

/* The name of what is waited for; "" if nothing is known about it. */
static const char *object_text(struct arena *arena, const struct object_info *object)
{
    if (object->name.len > 0)
        return arena_dup_len(arena, object->name.data, object->name.len);
    if (object->kind == OBJECT_FUTEX || object->kind == OBJECT_KERNEL_LOCK)
        return arena_printf(arena, "0x%" PRIx64, object->key);
    return "";
}

static const char *word_for(enum wait_family family)
{
    switch (family) {
    case FAMILY_WRITE:
    case FAMILY_SEND:
    case FAMILY_CONNECT:
    case FAMILY_COPY:
        return "to";
    default:
        return "of";
    }
}

static const char *call_text(struct arena *arena, enum syscall_machine machine, int32_t syscall)
{
    const char *name = syscall_name_on(machine, syscall);
    if (name)
        return name;
    if (syscall == WAIT_SYSCALL_NONE)
        return "no system call";
    return syscall < 0 ? "not seen" : arena_printf(arena, "system call %d", syscall);
}

static const char *child_text(struct arena *arena, const struct object_info *object)
{
    return object->key == 0 ? "any child" : arena_printf(arena, "child %" PRIu64, object->key);
}

/* Which thread it was, if the one that ended is the one that woke us. */
static const char *thread_text(struct arena *arena, const struct waits *waits, uint32_t thread)
{
    const struct profile_thread *known = &waits->profile.threads[thread];
    if (thread == 0)
        return "end of a thread";
    return arena_printf(arena, "end of thread %.*s (%u)", STR_FMT(known->name), known->tid);
}

const char *wait_cause(struct arena *arena, const struct waits *waits, uint32_t row)
{
    const struct wait_info *info = &waits->rows[row].info;
    const struct object_info *object = &waits->objects[info->object];
    enum syscall_machine machine = wait_machine(waits);
    enum wait_family family = wait_family_on(machine, info->syscall);
    const char *name = object_text(arena, object);
    if (info->kind == WAIT_RUNQ)
        return "run queue";
    if (object->kind == OBJECT_KERNEL_LOCK)
        return arena_printf(arena, "kernel lock %s", name);
    if (info->flags & WAIT_FAULT)
        return *name ? arena_printf(arena, "page fault of %s", name) : "page fault";
    if (object->kind == OBJECT_PROCESS)
        return child_text(arena, object);
    if (family == FAMILY_FUTEX && wait_stack_read(&waits->profile, info->stack).sign == SIGN_JOIN)
        return thread_text(arena, waits, info->waker_thread);
    const char *call = call_text(arena, machine, info->syscall);
    if (!*name)
        return call;
    if (family == FAMILY_UNKNOWN || family == FAMILY_NONE)
        return name;
    return arena_printf(arena, "%s %s %s", call, word_for(family), name);
}
