/* From what the program adds up to rows of calls in the sink. */
#include "collect/io_kernel_parts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)IO_BUCKETS == (int)WAIT_BUCKETS && (int)IO_SIZES == (int)CALL_SIZES,
               "the same buckets");

/* ---- rows ---- */

static void tally_make(const struct io_tally *tally, struct call_tally *ret)
{
    *ret = (struct call_tally){
        .count = tally->count,
        .total_ns = tally->total_ns,
        .max_ns = tally->max_ns,
        .first_ns = tally->first_ns,
        .last_ns = tally->last_ns,
        .bytes = tally->bytes,
        .asked_bytes = tally->asked_bytes,
        .partial = tally->partial,
        .placed = tally->placed,
        .sequential = tally->sequential,
        .missed = tally->missed,
        .missed_bytes = tally->missed_bytes,
    };
    memcpy(ret->buckets, tally->buckets, sizeof(ret->buckets));
    memcpy(ret->sizes, tally->sizes, sizeof(ret->sizes));
}

static int row_put(struct collector *c, const struct io_key *key, const struct io_tally *tally)
{
    struct told_thread *seen;
    struct call_tally sum;
    uint32_t row = 0;
    struct call_info info = {
        .syscall = key->call,
        .error = key->error,
        .flags = key->flags,
    };
    uint64_t now_ns = MIN(tally->last_ns, c->until_ns ? c->until_ns : tally->last_ns);
    int r = told_threads_get(&c->threads, key->tid, key->tgid, key->exec, now_ns, &seen);
    if (r < 0)
        return r;
    info.thread = seen->thread;
    if (key->stack != IO_STACK_MISSED)
        info.stack = told_stacks_find(&c->told, key->stack, tally->last_ns);
    bool stackless = key->stack != 0 && info.stack == 0;
    c->stackless += stackless ? tally->count : 0;
    r = objects_use(c->objects, &key->object, stackless ? 0 : tally->count, &info.object);
    if (r == 0)
        r = sink_call(c->sink, &info, &row);
    if (r < 0)
        return r;
    tally_make(tally, &sum);
    r = sink_call_add(c->sink, row, &sum);
    if (r == 0)
        r = io_files_row(c, key, info.object, tally);
    if (r < 0 || sum.total_ns == 0)
        return r;
    struct sample sample = {
        .series = c->series,
        .thread = info.thread,
        .stack = info.stack,
        .time_ns = tally->last_ns,
        .weight = sum.total_ns,
    };
    return sink_sample(c->sink, &sample);
}

/* What is beyond a bound of the sink concerns this row, not the recording. */
static int bounds_pass(struct collector *c, int r)
{
    if (r != -E2BIG && r != -EINVAL)
        return r;
    c->refused++;
    return 0;
}

int io_row_put(struct collector *c, const struct io_key *key, const struct io_tally *tally)
{
    return bounds_pass(c, row_put(c, key, tally));
}

/* ---- the ring ---- */

/* The last moment at which its names can be asked for. */
static int exit_take(struct collector *c, const struct offcpu_head *head)
{
    struct told_thread *seen;
    int r = told_threads_get(&c->threads, head->tid, head->tgid, head->exec, head->time_ns, &seen);
    if (r == 0)
        seen->ended = true;
    return r;
}

static int row_take(struct collector *c, const struct io_cell *cell, size_t bytes)
{
    if (bytes != sizeof(*cell)) {
        c->malformed++;
        return 0;
    }
    return row_put(c, &cell->key, &cell->tally);
}

/* One call: its buckets follow from what it took and moved. */
static int one_take(struct collector *c, const struct io_cell *cell, size_t bytes)
{
    const size_t told_bytes = offsetof(struct io_cell, tally.buckets);
    struct io_cell whole = {0};
    if (bytes != told_bytes) {
        c->malformed++;
        return 0;
    }
    memcpy(&whole, cell, told_bytes);
    struct io_tally *tally = &whole.tally;
    if (tally->total_ns > 0 || whole.head.tgid != 0)
        tally->buckets[wait_bucket(tally->total_ns)] = 1;
    if (tally->bytes > 0 || whole.head.tid != 0)
        tally->sizes[call_size(tally->bytes)] = 1;
    return row_put(c, &whole.key, tally);
}

/* As the process said it; what is relative stands behind the folder it was relative to. */
static int path_take(struct collector *c, const struct io_path *path, size_t bytes)
{
    const size_t path_at = offsetof(struct io_path, path);
    const size_t folder_at = offsetof(struct io_path, folder);
    char folder[OBJECT_NAME_BYTES], name[OBJECT_NAME_BYTES + IO_PATH_BYTES + 2];
    struct object_record around;
    if (bytes < path_at || path->bytes == 0 || path->bytes > sizeof(path->path) ||
        path->bytes > bytes - path_at ||
        (path->relative &&
         (bytes < folder_at || !object_record_read(&path->folder, bytes - folder_at, &around)))) {
        c->malformed++;
        return 0;
    }
    struct str said = {path->path, strnlen(path->path, path->bytes - 1)};
    struct str whole = said;
    if (path->relative) {
        struct str before = object_name(&around, folder, sizeof(folder));
        if (before.len == 1 && before.data[0] == '/')
            before.len = 0;
        int n = snprintf(name, sizeof(name), "%.*s/%.*s", (int)before.len, before.data,
                         (int)said.len, said.data);
        whole = (struct str){name, n > 0 ? MIN((size_t)n, sizeof(name) - 1) : 0};
    }
    return objects_name(c->objects, &path->id, whole);
}

static int record_take(struct collector *c, const struct offcpu_head *head, size_t bytes)
{
    switch (head->record) {
    case OFFCPU_COPY:
        return told_stacks_take(&c->told, (const void *)head, bytes);
    case OFFCPU_EXIT:
        return exit_take(c, head);
    case IO_ROW:
        return row_take(c, (const void *)head, bytes);
    case IO_ROW_ONE:
        return one_take(c, (const void *)head, bytes);
    default:
        return io_said_take(c, head, bytes);
    }
}

int io_records_take(struct collector *c, uint64_t time_ns)
{
    const struct offcpu_head *head;
    size_t bytes;
    uint64_t place;
    int failed = 0;
    bpf_ring_begin(&c->ring);
    /* What an announcement has changed counts from the moment we were told of it. */
    told_stacks_check(&c->told, c->until_ns);
    while ((head = bpf_ring_next(&c->ring, &bytes, &place))) {
        int r;
        if (bytes < sizeof(*head)) {
            c->malformed++;
            continue;
        }
        if (head->record == OBJECT_RECORD_TYPE) { /* names: any time is right */
            r = objects_take(c->objects, head, bytes);
            if (r == 0)
                r = io_files_told(c, (const void *)head, bytes);
        } else if (head->record == IO_PATH) {
            r = path_take(c, (const void *)head, bytes);
        } else if (head->time_ns > time_ns) { /* the next time */
            c->ring.at = place;
            break;
        } else {
            r = bounds_pass(c, record_take(c, head, bytes));
        }
        if (r < 0 && failed == 0)
            failed = r; /* go on: the sink counts what it drops */
        bpf_ring_release(&c->ring, UINT64_MAX);
    }
    bpf_ring_release(&c->ring, UINT64_MAX);
    if (time_ns != UINT64_MAX)
        c->until_ns = time_ns;
    return failed;
}

/* ---- cells ---- */

bool io_table_is_quiet(const struct collector *c)
{
    for (uint32_t i = 0; i < c->config.cpus; i++) {
        uint64_t busy = c->cpus[i].busy;
        if (busy == 1 || busy == c->round + 1) /* the round before, plus 2 */
            return false;
    }
    return true;
}

static int cell_take(struct collector *c, struct io_cell *cell)
{
    int r = cell->tally.count > 0 ? row_put(c, &cell->key, &cell->tally) : 0;
    memset(&cell->tally, 0, sizeof(cell->tally));
    return bounds_pass(c, r);
}

int io_table_take(struct collector *c, unsigned which)
{
    size_t words = (size_t)c->config.cpus * c->config.cells / 64, first = which * words;
    int failed = 0;
    for (size_t i = first; i < first + words; i++) {
        for (uint64_t bits = c->used[i]; bits != 0; bits &= bits - 1) {
            int r = cell_take(c, &c->cells[64 * i + (size_t)__builtin_ctzll(bits)]);
            failed = failed ? failed : r;
        }
        c->used[i] = 0;
    }
    return failed;
}

/* ---- at the end ---- */

static void tally_one(struct io_tally *tally, uint64_t start_ns, uint64_t end_ns)
{
    *tally = (struct io_tally){
        .count = 1,
        .total_ns = end_ns - start_ns,
        .max_ns = end_ns - start_ns,
        .first_ns = start_ns,
        .last_ns = end_ns,
    };
    tally->buckets[wait_bucket(end_ns - start_ns)]++;
}

static int open_put(struct collector *c, const struct io_thread *thread, uint64_t now_ns)
{
    struct io_tally tally;
    struct io_key key = {
        .tid = thread->tid,
        .tgid = thread->tgid,
        .exec = (uint16_t)thread->exec,
        .call = (int16_t)thread->call,
    };
    if (thread->start_ns == 0 || thread->start_ns >= now_ns || thread->since_ns > now_ns)
        return 0;
    if (thread->at < IO_FILES) {
        key.object = thread->files[thread->at].id;
        key.flags = (uint16_t)thread->files[thread->at].flags;
    }
    tally_one(&tally, thread->start_ns, now_ns);
    c->open_calls++;
    return row_put(c, &key, &tally);
}

int io_open_take(struct collector *c, uint64_t now_ns)
{
    uint32_t key, *previous = NULL;
    for (uint32_t i = 0; i < IO_THREADS_MAX; i++) {
        struct io_thread thread;
        uint32_t next;
        if (bpf_map_get_next_key(c->fds.threads, previous, &next) < 0)
            break;
        key = next;
        previous = &key;
        if (bpf_map_lookup_elem(c->fds.threads, &key, &thread) < 0)
            continue;
        int r = bounds_pass(c, open_put(c, &thread, now_ns));
        if (r < 0)
            return r;
    }
    return 0;
}

int io_folded_take(struct collector *c)
{
    for (uint32_t i = 0; i <= IO_CALLS_MAX; i++) {
        struct io_folded folded;
        if (bpf_map_lookup_elem(c->fds.folded, &i, &folded) < 0)
            return -errno;
        if (folded.tally.count == 0)
            continue;
        struct io_key key = {
            .tid = folded.tid,
            .tgid = folded.tgid,
            .exec = (uint16_t)folded.exec,
            .call = i < IO_CALLS_MAX ? (int16_t)i : (int16_t)IO_UNKNOWN_CALL,
        };
        int r = bounds_pass(c, row_put(c, &key, &folded.tally));
        if (r < 0)
            return r;
    }
    return 0;
}
