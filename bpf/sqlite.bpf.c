// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Statements of SQLite: what was prepared, and each run of it from the first step to the last.
 *
 * Functions of the library call each other (the first statement reads the schema with statements
 * of its own), so what a thread is in is known by where its stack stands. */
#include "kernel.h"

#include "format/io.h"
#include "format/sqlite.h"

char sqlite_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct sqlite_config config;

#include "begun.h" /* shared with io.bpf.c */
#include "uprobe.h"

#define told_thread io_thread

/* These are io.bpf.c's, for stacks. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct offcpu_control);
} control SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, IO_THREADS_MAX);
    __type(key, __u32);
    __type(value, __u8);
} deep SEC(".maps");

/* And ours. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, SQLITE_CALLS_MAX);
    __type(key, struct sqlite_call_key);
    __type(value, struct sqlite_call);
} calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, SQLITE_RUNS_MAX);
    __type(key, struct sqlite_run_key);
    __type(value, struct sqlite_run);
} runs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, SQLITE_COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} sqlite_counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} refs SEC(".maps");

enum {
    STEP_ROW = 100,
    STEP_DONE = 101,
};
/* Refs of stacks: far above those that io.bpf.c counts up. */
#define REFS_FIRST (1ULL << 40)

static __always_inline void sqlite_tally(__u32 which)
{
    __u64 *count = bpf_map_lookup_elem(&sqlite_counts, &which);
    if (count)
        *count += 1;
}

static __always_inline void count_add(__u32 what, __u64 value)
{
    (void)what, (void)value;
}

static __always_inline struct offcpu_control *control_get(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline __u64 ref_next(void)
{
    __u32 zero = 0;
    __u64 *next = bpf_map_lookup_elem(&refs, &zero);
    return next ? REFS_FIRST + __sync_fetch_and_add(next, 1) : 0;
}

#include "told.h"

static __always_inline bool copy_allowed(struct io_thread *thread, __u64 place)
{
    return io_copy_allowed(thread, place, ring_is_roomy());
}

#include "user_stacks.h"

/* ---- functions that a thread is in ---- */

/* By where the stack stands when the function has returned. */
static __always_inline struct sqlite_call_key call_key(const struct pt_regs *regs, bool returned)
{
    struct sqlite_call_key key = {
        .sp = regs->sp,
        .pid = (__u32)bpf_get_current_pid_tgid(),
    };
#if defined(TARGET_x86_64)
    if (!returned)
        key.sp += 8; /* the return address is on it */
#else
    (void)returned;
#endif
    return key;
}

static __always_inline void call_enter(const struct pt_regs *regs, const struct sqlite_call *call)
{
    struct sqlite_call_key key = call_key(regs, false);
    bpf_map_update_elem(&calls, &key, call, BPF_ANY);
}

static __always_inline bool call_take(struct sqlite_call_key key, struct sqlite_call *ret)
{
    const struct sqlite_call *call = bpf_map_lookup_elem(&calls, &key);
    if (!call)
        return false;
    *ret = *call;
    bpf_map_delete_elem(&calls, &key);
    return true;
}

/* Before its last instruction, as a rule. A function of which only the return itself is known
 * has returned by now; no other can stand eight bytes above. */
static __always_inline bool call_leave(const struct pt_regs *regs, struct sqlite_call *ret)
{
    return call_take(call_key(regs, false), ret) || call_take(call_key(regs, true), ret);
}

static __always_inline struct sqlite_run_key run_key(__u64 statement)
{
    struct sqlite_run_key key = {
        .statement = statement,
        .kernel_tgid = bpf_get_current_pid_tgid() >> 32,
    };
    return key;
}

/* ---- databases: sqlite3_open(path, &db), sqlite3_open_v2(path, &db, flags, vfs) ---- */

SEC("uprobe")
int sqlite_open(struct pt_regs *regs)
{
    const struct sqlite_call call = {
        .text = uprobe_argument(regs, 1),
        .result = uprobe_argument(regs, 2),
    };
    if (uprobe_thread())
        call_enter(regs, &call);
    return 0;
}

SEC("uretprobe")
int sqlite_open_done(struct pt_regs *regs)
{
    struct sqlite_call call;
    const struct io_thread *thread = uprobe_thread();
    if (!thread || !call_leave(regs, &call))
        return 0;
    struct sqlite_opened *opened = bpf_ringbuf_reserve(&told, sizeof(*opened), 0);
    if (!opened) {
        sqlite_tally(SQLITE_LOST);
        return 0;
    }
    uprobe_begin(&opened->head, thread, SQLITE_OPENED, bpf_ktime_get_ns());
    opened->database = 0;
    bpf_probe_read_user(&opened->database, sizeof(opened->database), (const void *)call.result);
    long len = bpf_probe_read_user_str(opened->path, sizeof(opened->path), (const void *)call.text);
    opened->len = len > 0 ? (__u32)len - 1 : 0;
    opened->unused = 0;
    bpf_ringbuf_submit(opened, uprobe_wake());
    return 0;
}

/* ---- statements ---- */

static __always_inline int prepare_enter(const struct pt_regs *regs, __u32 result)
{
    const struct sqlite_call call = {
        .subject = uprobe_argument(regs, 1),
        .text = uprobe_argument(regs, 2),
        .text_bytes = (__u64)(__s64)(__s32)uprobe_argument(regs, 3),
        .result = uprobe_argument(regs, result),
    };
    if (uprobe_thread())
        call_enter(regs, &call);
    return 0;
}

/* sqlite3_prepare_v2(db, sql, bytes, &statement, &tail) */
SEC("uprobe")
int sqlite_prepare(struct pt_regs *regs)
{
    return prepare_enter(regs, 4);
}

/* sqlite3_prepare_v3(db, sql, bytes, flags, &statement, &tail) */
SEC("uprobe")
int sqlite_prepare_v3(struct pt_regs *regs)
{
    return prepare_enter(regs, 5);
}

SEC("uretprobe")
int sqlite_prepare_done(struct pt_regs *regs)
{
    struct sqlite_call call;
    __u64 statement = 0;
    const struct io_thread *thread = uprobe_thread();
    if (!thread || !call_leave(regs, &call) || (__s32)uprobe_result(regs) != 0)
        return 0;
    bpf_probe_read_user(&statement, sizeof(statement), (const void *)call.result);
    if (statement == 0)
        return 0; /* a comment, or nothing */
    struct sqlite_run_key key = run_key(statement);
    bpf_map_delete_elem(&runs, &key);
    struct sqlite_prepared *prepared = bpf_ringbuf_reserve(&told, sizeof(*prepared), 0);
    if (!prepared) {
        sqlite_tally(SQLITE_LOST);
        return 0;
    }
    uprobe_begin(&prepared->head, thread, SQLITE_PREPARED, bpf_ktime_get_ns());
    prepared->database = call.subject;
    prepared->statement = statement;
    prepared->unused = 0;
    long len = bpf_probe_read_user_str(prepared->text, sizeof(prepared->text),
                                       (const void *)call.text);
    prepared->len = len > 0 ? (__u32)len - 1 : 0;
    if ((__s64)call.text_bytes >= 0 && call.text_bytes < prepared->len)
        prepared->len = (__u32)call.text_bytes;
    bpf_ringbuf_submit(prepared, uprobe_wake());
    return 0;
}

/* ---- runs ---- */

static __always_inline void run_tell(const struct io_thread *thread, __u64 statement,
                                     const struct sqlite_run *run, __s32 error)
{
    struct sqlite_ran *ran = bpf_ringbuf_reserve(&told, sizeof(*ran), 0);
    if (!ran) {
        sqlite_tally(SQLITE_LOST);
        return;
    }
    uprobe_begin(&ran->head, thread, SQLITE_RAN, bpf_ktime_get_ns());
    ran->statement = statement;
    ran->run = *run;
    ran->error = error;
    ran->unused = 0;
    bpf_ringbuf_submit(ran, uprobe_wake());
    sqlite_tally(SQLITE_TOLD);
}

/* int sqlite3_step(statement) */
SEC("uprobe")
int sqlite_step(struct pt_regs *regs)
{
    const struct sqlite_call call = {.subject = uprobe_argument(regs, 1)};
    const struct io_thread *thread = uprobe_thread();
    if (!thread || begun_ns() == 0)
        return 0;
    call_enter(regs, &call);
    struct sqlite_run_key key = run_key(call.subject);
    struct sqlite_run *run = bpf_map_lookup_elem(&runs, &key);
    if (run && run->start_ns != 0)
        return 0;
    struct sqlite_run first = {.parameters = run ? run->parameters : 0};
    if (config.stacks)
        first.stack = stack_of(regs, thread, bpf_ktime_get_ns());
    first.start_ns = bpf_ktime_get_ns();
    bpf_map_update_elem(&runs, &key, &first, BPF_ANY);
    return 0;
}

SEC("uretprobe")
int sqlite_step_done(struct pt_regs *regs)
{
    struct sqlite_call call;
    const struct io_thread *thread = uprobe_thread();
    __s32 result = (__s32)uprobe_result(regs);
    if (!thread || !call_leave(regs, &call))
        return 0;
    struct sqlite_run_key key = run_key(call.subject);
    struct sqlite_run *run = bpf_map_lookup_elem(&runs, &key);
    if (!run || run->start_ns == 0)
        return 0;
    if (result == STEP_ROW) {
        run->rows++;
        return 0;
    }
    run_tell(thread, call.subject, run, result == STEP_DONE ? 0 : result);
    run->start_ns = run->rows = run->parameters = 0;
    return 0;
}

/* A statement that was left before its last row is over now. */
static __always_inline int run_end(const struct pt_regs *regs, bool gone)
{
    __u64 statement = uprobe_argument(regs, 1);
    const struct io_thread *thread = uprobe_thread();
    if (!thread || statement == 0)
        return 0;
    struct sqlite_run_key key = run_key(statement);
    struct sqlite_run *run = bpf_map_lookup_elem(&runs, &key);
    if (run && run->start_ns != 0) {
        run_tell(thread, statement, run, 0);
        run->start_ns = run->rows = run->parameters = 0;
    }
    if (!gone)
        return 0;
    bpf_map_delete_elem(&runs, &key);
    struct sqlite_ran *ran = bpf_ringbuf_reserve(&told, sizeof(*ran), 0);
    if (!ran) {
        sqlite_tally(SQLITE_LOST);
        return 0;
    }
    __builtin_memset(ran, 0, sizeof(*ran));
    uprobe_begin(&ran->head, thread, SQLITE_GONE, bpf_ktime_get_ns());
    ran->statement = statement;
    bpf_ringbuf_submit(ran, uprobe_wake());
    return 0;
}

SEC("uprobe")
int sqlite_reset(struct pt_regs *regs)
{
    return run_end(regs, false);
}

SEC("uprobe")
int sqlite_finalize(struct pt_regs *regs)
{
    return run_end(regs, true);
}

/* ---- parameters ---- */

static __always_inline __u64 mixed(__u64 value)
{
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93ULL;
    value ^= value >> 32;
    return value;
}

static __always_inline int bind(const struct pt_regs *regs, __u64 value)
{
    if (!uprobe_thread())
        return 0;
    struct sqlite_run_key key = run_key(uprobe_argument(regs, 1));
    __u64 hash = mixed(mixed(value) + (__u32)uprobe_argument(regs, 2) + 1);
    struct sqlite_run *run = bpf_map_lookup_elem(&runs, &key);
    if (run) {
        run->parameters += hash;
        return 0;
    }
    struct sqlite_run first = {.parameters = hash};
    bpf_map_update_elem(&runs, &key, &first, BPF_ANY);
    return 0;
}

/* sqlite3_bind_int(statement, index, int), sqlite3_bind_int64(statement, index, int64) */
SEC("uprobe")
int sqlite_bind_int(struct pt_regs *regs)
{
    return bind(regs, uprobe_argument(regs, 3));
}

/* sqlite3_bind_text(statement, index, text, bytes, …), and _blob */
SEC("uprobe")
int sqlite_bind_text(struct pt_regs *regs)
{
    __u64 words[SQLITE_BOUND_WORDS] = {0}, hash = 0;
    __s32 bytes = (__s32)uprobe_argument(regs, 4);
    const void *text = (const void *)uprobe_argument(regs, 3);
    if (bytes < 0)
        bpf_probe_read_user_str(words, sizeof(words), text);
    else if (bytes >= (__s32)sizeof(words))
        bpf_probe_read_user(words, sizeof(words), text);
    else if (bytes > 0)
        bpf_probe_read_user(words, (__u32)bytes & (sizeof(words) - 1), text);
    for (__u32 i = 0; i < SQLITE_BOUND_WORDS; i++)
        hash = mixed(hash + words[i] + 1);
    return bind(regs, hash + (__u64)(__s64)bytes);
}
