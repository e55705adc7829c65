/* Sites by their fields, processes by their ids, moments thinned as they come. */
#include "model/heap_book.h"

#include "base/macros.h"

#include <errno.h>
#include <math.h>
#include <string.h>

int heap_book_site(struct heap_book *book, const struct heap_site_info *info, uint32_t *ret_id)
{
    if ((unsigned)info->kind >= HEAP_KINDS)
        return -EINVAL;
    struct map_u64 *ids = &book->site_ids[info->kind];
    uint64_t key = (uint64_t)info->thread << 32 | info->stack;
    const uint64_t *known = map_u64_find(ids, key);
    if (known) {
        *ret_id = (uint32_t)*known;
        return 0;
    }
    if (book->sites.len >= HEAP_BOOK_SITES_MAX)
        return -E2BIG;
    /* First the room: an id without its row would be another's soon. */
    if (VEC_RESERVE(&book->sites, book->sites.len + 1) < 0)
        return -ENOMEM;
    uint64_t *id = map_u64_at(ids, key, NULL);
    if (!id)
        return -ENOMEM;
    book->sites.data[book->sites.len++] = (struct heap_site_row){.info = *info};
    *id = book->sites.len;
    *ret_id = (uint32_t)*id;
    return 0;
}

int heap_book_site_set(struct heap_book *book, uint32_t site, const struct heap_tally *tally,
                       bool *ret_changed)
{
    if (site == 0 || site > book->sites.len || !isfinite(tally->variance) || tally->variance < 0)
        return -EINVAL;
    struct heap_site_row *row = &book->sites.data[site - 1];
    *ret_changed = memcmp(&row->tally, tally, sizeof(*tally)) != 0;
    row->tally = *tally;
    return 0;
}

static int process_at(struct heap_book *book, uint32_t process, size_t *ret_at)
{
    const uint64_t *known = map_u64_find(&book->process_at, process);
    if (known) {
        *ret_at = (size_t)*known - 1;
        return 0;
    }
    if (process == 0)
        return -EINVAL;
    if (book->processes.len >= HEAP_BOOK_PROCESSES_MAX)
        return -E2BIG;
    if (VEC_RESERVE(&book->processes, book->processes.len + 1) < 0)
        return -ENOMEM;
    uint64_t *at = map_u64_at(&book->process_at, process, NULL);
    if (!at)
        return -ENOMEM;
    book->processes.data[book->processes.len++] = (struct heap_process_book){.process = process};
    *at = book->processes.len;
    *ret_at = book->processes.len - 1;
    return 0;
}

int heap_book_process_set(struct heap_book *book, uint32_t process,
                          const struct heap_process_tally *tally, size_t *ret_at)
{
    size_t at = 0;
    int r = process_at(book, process, &at);
    if (r < 0)
        return r;
    struct heap_process_book *row = &book->processes.data[at];
    if (!row->known || memcmp(&row->tally, tally, sizeof(*tally)) != 0) {
        row->known = row->tally_dirty = true;
        row->tally = *tally;
    }
    *ret_at = at;
    return 0;
}

/* The higher of two moments, whole: neither a sum nor a mean ever was. */
static struct heap_moment higher(struct heap_moment a, struct heap_moment b)
{
    return b.live_bytes > a.live_bytes ? b : a;
}

static void moments_thin(struct heap_process_book *row)
{
    size_t kept = 0;
    for (size_t i = 0; i < row->moments.len; i += 2)
        row->moments.data[kept++] = i + 1 < row->moments.len
                                        ? higher(row->moments.data[i], row->moments.data[i + 1])
                                        : row->moments.data[i];
    row->moments.len = kept;
    row->merged = MAX(row->merged, 1u) * 2;
    row->pending = 0;
    row->clean = 0;
    row->thinned = true;
}

static int moment_add(struct heap_book *book, struct heap_process_book *row,
                      const struct heap_moment *moment)
{
    if (row->moments.len >= HEAP_BOOK_PROCESS_MOMENTS) {
        book->moments -= row->moments.len;
        moments_thin(row);
        book->moments += row->moments.len;
    }
    if (book->moments >= HEAP_BOOK_MOMENTS_MAX)
        return -E2BIG;
    if (VEC_PUSH(&row->moments, *moment) < 0)
        return -ENOMEM;
    book->moments++;
    row->pending = row->merged > 1 ? 1 : 0;
    return 0;
}

static void moment_merge(struct heap_process_book *row, const struct heap_moment *moment)
{
    struct heap_moment *last = &row->moments.data[row->moments.len - 1];
    uint64_t time_ns = last->time_ns;
    *last = higher(*last, *moment);
    last->time_ns = MAX(last->time_ns, time_ns); /* one that came late */
    row->clean = MIN(row->clean, row->moments.len - 1);
    if (row->pending > 0)
        row->pending = (row->pending + 1) % row->merged;
}

int heap_book_moment(struct heap_book *book, const struct heap_moment *moment, size_t *ret_at)
{
    size_t at = 0;
    if (moment->time_ns > INT64_MAX)
        return -EINVAL;
    int r = process_at(book, moment->process, &at);
    if (r < 0)
        return r;
    struct heap_process_book *row = &book->processes.data[at];
    size_t len = row->moments.len;
    if (len > 0 && (row->pending > 0 || moment->time_ns <= row->moments.data[len - 1].time_ns))
        moment_merge(row, moment);
    else
        r = moment_add(book, row, moment);
    if (r == 0)
        *ret_at = at;
    return r;
}

bool heap_snapshot_is_good(const struct heap_snapshot_info *info)
{
    return (unsigned)info->why < HEAP_SNAPSHOT_WHYS && info->process > 0 &&
           info->time_ns <= INT64_MAX;
}

bool heap_event_is_good(const struct heap_event *event)
{
    return (unsigned)event->kind <= HEAP_EVENT_FREED && event->thread > 0 &&
           event->time_ns <= INT64_MAX;
}

void heap_book_deinit(struct heap_book *book)
{
    for (size_t i = 0; i < HEAP_KINDS; i++)
        map_u64_deinit(&book->site_ids[i]);
    VEC_FREE(&book->sites);
    map_u64_deinit(&book->process_at);
    for (size_t i = 0; i < book->processes.len; i++)
        VEC_FREE(&book->processes.data[i].moments);
    VEC_FREE(&book->processes);
}
