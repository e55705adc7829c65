/* Rows of calls become tables: one pass over the rows, each adding to everything it is part of. */
#include "analyze/io_parts.h"

#include "analyze/waits_load.h"

#include <stdlib.h>
#include <string.h>

double io_quantile(const uint32_t *buckets, uint64_t count, uint64_t max_ns, double quantile)
{
    struct wait_tally tally = {.count = count, .max_ns = max_ns};
    memcpy(tally.buckets, buckets, sizeof(tally.buckets));
    return wait_tally_quantile(&tally, quantile);
}

uint64_t io_median_size(const struct call_tally *tally)
{
    uint64_t count = 0, before = 0;
    for (unsigned i = 1; i < CALL_SIZES; i++)
        count += tally->sizes[i];
    for (unsigned i = 1; i < CALL_SIZES; i++) {
        before += tally->sizes[i];
        if (count > 0 && before * 2 >= count)
            return (1ull << i) - 1;
    }
    return 0;
}

struct str io_folder_of(struct str path)
{
    size_t len = path.len;
    while (len > 0 && path.data[len - 1] != '/')
        len--;
    if (len == 0)
        return STR(".");
    return (struct str){path.data, len > 1 ? len - 1 : 1};
}

int io_heaviest(struct map_u64 *sums, uint64_t owner, uint32_t id, uint64_t ns, uint32_t *heaviest,
                uint64_t *heaviest_ns)
{
    uint64_t *sum = map_u64_at(sums, owner << 32 | id, NULL);
    if (!sum)
        return -ENOMEM;
    *sum += ns;
    /* Sums only grow: whoever passes the heaviest is it. */
    if (*sum > *heaviest_ns || *heaviest == 0) {
        *heaviest = id;
        *heaviest_ns = *sum;
    }
    return 0;
}

static int syscall_add(struct io_adding *adding, const struct call_row *row, enum io_kind kind)
{
    bool fresh;
    uint64_t *at = map_u64_at(&adding->syscall_at, (uint32_t)row->info.syscall, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        struct io_syscall made = {.syscall = row->info.syscall, .kind = kind};
        if (VEC_PUSH(&adding->syscalls, made) < 0)
            return -ENOMEM;
        *at = adding->syscalls.len;
    }
    struct io_syscall *to = &adding->syscalls.data[*at - 1];
    uint64_t index = *at;
    call_tally_add(&to->tally, &row->tally);
    if (row->info.error == 0)
        return 0;
    to->errors += row->tally.count;
    uint64_t *count = map_u64_at(&adding->error_at, index << 32 | row->info.error, NULL);
    if (!count)
        return -ENOMEM;
    *count += row->tally.count;
    return 0;
}

int io_mark(struct io_adding *adding, enum io_pair pair, uint64_t owner, uint32_t id)
{
    bool fresh;
    uint64_t *at = map_u64_at(&adding->seen, (uint64_t)pair << 62 | owner << 32 | id, &fresh);
    return at ? fresh : -ENOMEM;
}

static int site_add(struct io_adding *adding, const struct call_row *row)
{
    const struct call_info *info = &row->info;
    bool fresh;
    uint64_t key = (uint64_t)(uint32_t)info->syscall << 32 | info->stack;
    uint64_t *at = map_u64_at(&adding->site_at, key, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        struct io_site made = {.syscall = info->syscall, .stack = info->stack};
        if (VEC_PUSH(&adding->sites, made) < 0)
            return -ENOMEM;
        *at = adding->sites.len;
    }
    uint64_t index = *at;
    struct io_site *to = &adding->sites.data[index - 1];
    call_tally_add(&to->tally, &row->tally);
    to->errors += info->error ? row->tally.count : 0;
    int r = io_mark(adding, PAIR_SITE_THREAD, index,
                    profile_life(&adding->io->profile, info->thread));
    if (r < 0)
        return r;
    to->threads += r > 0;
    if (info->object == 0)
        return 0;
    r = io_mark(adding, PAIR_SITE_OBJECT, index, info->object);
    if (r < 0)
        return r;
    to->objects += r > 0;
    return io_heaviest(&adding->object_ns, index, info->object, row->tally.total_ns, &to->object,
                       &to->object_ns);
}

static int row_add(struct io_adding *adding, const struct call_row *row)
{
    struct io_sums *sums = adding->sums;
    const struct object_info *object = &adding->io->objects[row->info.object];
    enum io_kind kind = io_kind_of(&sums->kinds, &row->info);
    bool idle = io_is_idle(&sums->kinds, &row->info, object);
    sums->placed = sums->placed || row->tally.placed > 0;
    bool fault = kind == IO_FAULT;
    *(fault ? &sums->faults : idle ? &sums->idle_calls : &sums->calls) += row->tally.count;
    *(fault ? &sums->faults_ns : idle ? &sums->idle_ns : &sums->calls_ns) += row->tally.total_ns;
    sums->busy_ns += idle ? 0 : row->tally.total_ns;
    int r = fault ? 0 : syscall_add(adding, row, kind);
    if (r == 0 && !idle)
        r = site_add(adding, row);
    if (r == 0)
        r = io_lookup_add(adding, row, kind);
    if (r == 0 && object->kind == OBJECT_SOCKET)
        r = io_peer_add(adding, row, kind, idle);
    else if (r == 0 && row->info.object != 0 && object->kind != OBJECT_PATH)
        r = io_file_add(adding, row, kind, idle);
    return r;
}

static int by_error(const void *left, const void *right)
{
    const struct io_error *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->error < b->error ? -1 : 1;
}

/* Errors of each call, from the map of pairs. Bounded by what is in it. */
static int errors_finish(struct io_adding *adding)
{
    for (size_t i = 0; i < adding->syscalls.len; i++) {
        struct io_syscall *call = &adding->syscalls.data[i];
        size_t at = 0;
        uint64_t key, count;
        call->error_first = (uint32_t)adding->errors.len;
        if (call->errors == 0)
            continue;
        while (map_u64_next(&adding->error_at, &at, &key, &count)) {
            struct io_error error = {(uint32_t)key, count};
            if (key >> 32 != i + 1)
                continue;
            if (VEC_PUSH(&adding->errors, error) < 0)
                return -ENOMEM;
        }
        call->error_count = (uint32_t)adding->errors.len - call->error_first;
        if (call->error_count > 1)
            qsort(adding->errors.data + call->error_first, call->error_count,
                  sizeof(struct io_error), by_error);
    }
    return 0;
}

/* The longest first; what took as long by how often, and then by how it came. */
static int order(const struct call_tally *a, const struct call_tally *b)
{
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return (a->count < b->count) - (a->count > b->count);
}

static int by_syscall(const void *left, const void *right)
{
    const struct io_syscall *a = left, *b = right;
    int r = order(&a->tally, &b->tally);
    return r ? r : (a->syscall > b->syscall) - (a->syscall < b->syscall);
}

static int by_file(const void *left, const void *right)
{
    const struct io_file *a = left, *b = right;
    int r = order(&a->tally, &b->tally);
    return r ? r : (a->object > b->object) - (a->object < b->object);
}

static int by_peer(const void *left, const void *right)
{
    const struct io_peer *a = left, *b = right;
    int r = order(&a->tally, &b->tally);
    return r ? r : (a->object > b->object) - (a->object < b->object);
}

static int by_site(const void *left, const void *right)
{
    const struct io_site *a = left, *b = right;
    int r = order(&a->tally, &b->tally);
    if (r == 0)
        r = (a->stack > b->stack) - (a->stack < b->stack);
    return r ? r : (a->syscall > b->syscall) - (a->syscall < b->syscall);
}

static int by_missing(const void *left, const void *right)
{
    const struct io_missing *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    if (a->example != b->example)
        return a->example < b->example ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

static int by_folder(const void *left, const void *right)
{
    const struct io_folder *a = left, *b = right;
    if (a->files != b->files)
        return a->files > b->files ? -1 : 1;
    size_t len = MIN(a->folder.len, b->folder.len);
    int r = memcmp(a->folder.data, b->folder.data, len);
    return r ? r : (a->folder.len > b->folder.len) - (a->folder.len < b->folder.len);
}

/* Sorted, into the arena. */
static void *taken(struct io_adding *adding, const void *data, size_t count, size_t size,
                   int (*compare)(const void *, const void *))
{
    void *copy = arena_alloc(adding->arena, (count + 1) * size);
    if (copy && count > 0)
        memcpy(copy, data, count * size);
    if (copy && count > 1 && compare)
        qsort(copy, count, size, compare);
    return copy;
}

#define TAKE(adding, list, to, counter, compare)                                                   \
    ((adding)->sums->counter = (adding)->list.len,                                                 \
     (adding)->sums->to = taken((adding), (adding)->list.data, (adding)->list.len,                 \
                                sizeof((adding)->list.data[0]), (compare)))

static int lists_take(struct io_adding *adding)
{
    TAKE(adding, errors, errors, error_count, NULL);
    TAKE(adding, syscalls, syscalls, syscall_count, by_syscall);
    TAKE(adding, files, files, file_count, by_file);
    TAKE(adding, peers, peers, peer_count, by_peer);
    TAKE(adding, sites, sites, site_count, by_site);
    TAKE(adding, missing, missing, missing_count, by_missing);
    TAKE(adding, folders, folders, folder_count, by_folder);
    return arena_failed(adding->arena) ? -ENOMEM : 0;
}

static int threads_count(struct io_adding *adding)
{
    struct map_u64 seen = {0};
    int r = 0;
    for (size_t i = 1; i < adding->io->call_count && r == 0; i++) {
        uint32_t life = profile_life(&adding->io->profile, adding->io->calls[i].info.thread);
        r = map_u64_at(&seen, life, NULL) ? 0 : -ENOMEM;
    }
    adding->sums->threads = (uint32_t)seen.len;
    map_u64_deinit(&seen);
    return r;
}

static void adding_deinit(struct io_adding *adding)
{
    VEC_FREE(&adding->syscalls);
    VEC_FREE(&adding->errors);
    VEC_FREE(&adding->files);
    VEC_FREE(&adding->peers);
    VEC_FREE(&adding->sites);
    VEC_FREE(&adding->missing);
    VEC_FREE(&adding->folders);
    map_u64_deinit(&adding->syscall_at);
    map_u64_deinit(&adding->error_at);
    map_u64_deinit(&adding->file_at);
    map_u64_deinit(&adding->peer_of);
    map_u64_deinit(&adding->site_at);
    map_u64_deinit(&adding->missing_at);
    map_u64_deinit(&adding->stack_ns);
    map_u64_deinit(&adding->object_ns);
    map_u64_deinit(&adding->seen);
    intern_deinit(&adding->file_names);
    intern_deinit(&adding->peer_names);
    intern_deinit(&adding->folder_names);
    intern_deinit(&adding->removed_names);
}

int io_sums_build(struct arena *arena, const struct io *io, struct io_sums *ret)
{
    struct io_sums sums = {.io = io, .wall_ns = io->end_ns - io->start_ns};
    struct io_adding adding = {.arena = arena, .io = io, .sums = &sums};
    io_kinds_init(&io->profile, &sums.kinds);
    int r = threads_count(&adding);
    for (size_t i = 1; i < io->call_count && r == 0; i++)
        if (io->calls[i].tally.count > 0)
            r = row_add(&adding, &io->calls[i]);
    if (r == 0)
        r = errors_finish(&adding);
    if (r == 0)
        r = io_objects_finish(&adding);
    if (r == 0)
        r = io_folders_add(&adding);
    if (r == 0)
        r = lists_take(&adding);
    adding_deinit(&adding);
    if (r == 0)
        *ret = sums;
    return r;
}
