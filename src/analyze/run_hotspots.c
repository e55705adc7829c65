/* Rows of all axes, ranked by their time on the critical path. */
#include "analyze/run_hotspots.h"

#include "analyze/categories.h"
#include "analyze/places.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What rows of the path are put together by. */
enum spot_kind { SPOT_FUNCTION, SPOT_WAITS, SPOT_LOCK, SPOT_CALL, SPOT_SPAN };

struct spot {
    enum spot_kind kind;
    uint32_t id; /* function; index of the lock, the call site or the span; 0 of waits */
    double running_ns, waits_ns;
    double sleeps;
    const struct path_cost *row; /* speaks for them; NULL: not on the path */
};

struct spots {
    const struct evidence *evidence;
    struct map_u64 at;
    VEC(struct spot) items;
};

/* Waits of one class in one call at one place, whatever way the kernel went: one row. */
static uint64_t waits_key(const struct path_cost *row)
{
    const struct place *place = &row->place;
    uint64_t key = hash_u64((uint64_t)row->class);
    key = hash_u64(key ^ hash_bytes(place->function.data, place->function.len));
    key = hash_u64(key ^ hash_bytes(place->image.data, place->image.len));
    return hash_u64(key ^ hash_bytes(row->syscall.data, row->syscall.len)) >> 4;
}

/* Of several groups of waits in one row the largest speaks for it. */
static uint64_t group_ns(const struct evidence *e, const struct path_cost *row)
{
    uint32_t group = e->groups.of_row ? e->groups.of_row[row->wait] : 0;
    return group ? e->groups.groups[group - 1].path_ns : 0;
}

static int spot_add(struct spots *spots, enum spot_kind kind, uint32_t id,
                    const struct path_cost *row, double ns)
{
    bool fresh;
    uint64_t key = kind == SPOT_WAITS ? waits_key(row) : id;
    uint64_t *at = map_u64_at(&spots->at, (uint64_t)kind << 60 | key, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        *at = spots->items.len;
        struct spot made = {.kind = kind, .id = id, .row = row}; /* rows come longest first */
        if (VEC_PUSH(&spots->items, made) < 0)
            return -ENOMEM;
    }
    struct spot *spot = &spots->items.data[*at];
    if (kind == SPOT_WAITS && group_ns(spots->evidence, row) > group_ns(spots->evidence, spot->row))
        spot->row = row;
    *(kind == SPOT_FUNCTION ? &spot->running_ns : &spot->waits_ns) += ns;
    spot->sleeps += row ? row->sleeps : 0;
    return 0;
}

static uint32_t leaf_function(const struct path_costs *costs, uint32_t stack)
{
    const struct profile *profile = costs->profile;
    const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
    return stack ? profile->places[frame->places].function : 0;
}

static int row_add(struct spots *spots, const struct path_cost *row)
{
    const struct evidence *e = spots->evidence;
    /* Waiting for a CPU is no place in the program: the path shows it, and where others are to
     * blame the environment says so. */
    if (row->class == WAIT_CLASS_IDLE || row->class == WAIT_CLASS_RUNQ)
        return 0;
    if (row->class == WAIT_CLASS_RUNNING || row->wait == 0)
        return spot_add(spots, SPOT_FUNCTION, leaf_function(&e->costs_on_path, row->stack), row,
                        row->ns);
    uint32_t lock = e->locks.of_wait ? e->locks.of_wait[row->wait] : 0;
    if (row->class == WAIT_CLASS_LOCK && lock)
        return spot_add(spots, SPOT_LOCK, lock - 1, row, row->ns);
    return spot_add(spots, SPOT_WAITS, 0, row, row->ns);
}

/* Calls stand in where the critical path is not known: else the same time is in rows of it. */
static int calls_add(struct spots *spots)
{
    const struct evidence *e = spots->evidence;
    if (!e->costs_on_path.na || !evidence_has(e, AXIS_IO) || e->axes[AXIS_IO].disturbed)
        return 0;
    int r = 0;
    for (size_t i = 0; i < e->io_sums.site_count && r == 0; i++)
        r = spot_add(spots, SPOT_CALL, (uint32_t)i, NULL,
                     (double)e->io_sums.sites[i].tally.total_ns * e->axes[AXIS_IO].scale);
    return r;
}

static int spans_add(struct spots *spots)
{
    const struct spans *spans = spots->evidence->spans;
    int r = 0;
    for (size_t i = 0; i < spans->count && r == 0; i++)
        if (spans->items[i].cumulative_us > 0)
            r = spot_add(spots, SPOT_SPAN, (uint32_t)i, NULL, spans->items[i].cumulative_us * 1e3);
    return r;
}

static int longer(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;
    double left = x->running_ns + x->waits_ns, right = y->running_ns + y->waits_ns;
    if (left != right)
        return left > right ? -1 : 1;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static const struct {
    const char *metric, *category;
} classes[] = {
    [WAIT_CLASS_RUNNING] = {"self CPU", "CPU"},
    [WAIT_CLASS_LOCK] = {"wait for a lock", "lock"},
    [WAIT_CLASS_DISK] = {"wait on disk", "I/O"},
    [WAIT_CLASS_NET] = {"wait on network", "I/O"},
    [WAIT_CLASS_PAGEFAULT] = {"wait in a page fault", "I/O"},
    [WAIT_CLASS_CHILD] = {"wait for a child", "wait"},
    [WAIT_CLASS_PIPE] = {"wait for the reader of a pipe", "wait"},
    [WAIT_CLASS_TIMER] = {"sleep", "wait"},
    [WAIT_CLASS_IDLE] = {"idle", "idle"},
    [WAIT_CLASS_UNKNOWN] = {"wait, cause not seen", "wait"},
};

/* In `ret` what is known of every row on the path. */
static void waits_describe(struct arena *arena, const struct evidence *e, const struct spot *spot,
                           struct run_hotspot *ret)
{
    const char *path = e->axes[AXIS_WAITS].path;
    ret->artifact = e->axes[AXIS_WAITS].artifact;
    ret->place = spot->row->place;
    ret->metric = classes[spot->row->class].metric;
    ret->category = classes[spot->row->class].category;
    if (spot->kind == SPOT_LOCK) {
        const struct lock_row *lock = &e->locks.rows[spot->id];
        ret->location = arena_printf(arena, "%s in %s", lock->name, place_text(arena, &ret->place));
        ret->id = arena_printf(arena, "l%u", lock->object);
        ret->command = arena_printf(arena, "whyslow locks --lock %s %s", ret->id, path);
        return;
    }
    ret->location = arena_printf(arena, "%s: %s", place_text(arena, &ret->place),
                                 wait_cause(arena, &e->waits, spot->row->wait));
    if (spot->row->class == WAIT_CLASS_PIPE && str_ends(str_from(ret->location), OBJECT_TO_WHYSLOW))
        ret->metric = "wait for whyslow to read: our cost";
    uint32_t group = e->groups.of_row[spot->row->wait];
    ret->id = arena_printf(arena, "w%u", group ? e->groups.groups[group - 1].id : spot->row->wait);
    ret->command = arena_printf(arena, "whyslow waits --stack %s %s", ret->id, path);
}

static void function_describe(struct arena *arena, const struct evidence *e,
                              const struct spot *spot, struct run_hotspot *ret)
{
    const struct path_costs *costs = &e->costs_on_path;
    bool sampled = costs->profile == &e->cpu && spot->id != 0;
    const struct hotspot *top = sampled ? hotspots_find(&e->hotspots, spot->id) : NULL;
    enum axis axis = costs->profile == &e->cpu ? AXIS_CPU : AXIS_WAITS;
    ret->artifact = e->axes[axis].artifact;
    ret->metric = "self CPU";
    ret->category = "CPU";
    if (spot->id == 0) {
        ret->location = sampled || axis == AXIS_CPU ? "[running, no stack]"
                                                    : "[running, not sampled]";
        ret->id = "f0";
        ret->command = arena_printf(arena, "whyslow report %s", e->axes[axis].path);
        return;
    }
    const struct profile_function *function = &costs->profile->functions[spot->id];
    const char *category = category_of(function);
    if (category)
        ret->category = arena_printf(arena, "CPU/%s", category);
    ret->place = place_of_function(costs->profile, spot->id);
    if (top && top->line) {
        ret->place.file = top->file;
        ret->place.line = top->line;
    }
    ret->location = place_text(arena, &ret->place);
    ret->id = arena_printf(arena, "f%u", spot->id);
    ret->command = arena_printf(arena, "whyslow report --callers %s %s", ret->id,
                                e->axes[axis].path);
}

static void call_describe(struct arena *arena, const struct evidence *e, const struct spot *spot,
                          struct run_hotspot *ret)
{
    const struct io_site *site = &e->io_sums.sites[spot->id];
    const char *call = io_call_name(arena, &e->io_sums.kinds, site->syscall);
    ret->place = place_of_stack(&e->io.profile, site->stack);
    ret->location = place_text(arena, &ret->place);
    ret->metric = arena_printf(arena, "%s, all threads", call);
    ret->category = "I/O";
    ret->artifact = e->axes[AXIS_IO].artifact;
    ret->id = arena_printf(arena, "%s@%u", call, site->stack);
    ret->command = arena_printf(arena, "whyslow io --stacks %s", e->axes[AXIS_IO].path);
}

static void span_describe(struct arena *arena, const struct evidence *e, const struct spot *spot,
                          struct run_hotspot *ret)
{
    const struct span *span = &e->spans->items[spot->id];
    ret->location = arena_dup_len(arena, span->name.data, span->name.len);
    ret->place.function = span->name;
    ret->metric = "span, as the program says";
    ret->category = span->category.len > 0
                        ? arena_dup_len(arena, span->category.data, span->category.len)
                        : "span";
    ret->artifact = e->spans->artifact ? e->spans->artifact : "the program's output";
    ret->id = ret->location;
    ret->command = span->evidence.len > 0
                       ? arena_dup_len(arena, span->evidence.data, span->evidence.len)
                       : "";
}

static struct run_hotspot spot_describe(struct arena *arena, const struct evidence *e,
                                        const struct spot *spot)
{
    const struct path_costs *costs = &e->costs_on_path;
    double ns = spot->running_ns + spot->waits_ns, wall = costs->ns;
    struct run_hotspot ret = {.value = {ns, NAN, NAN}};
    if (spot->kind <= SPOT_LOCK)
        ret.value = path_costs_sure(
            costs, path_costs_estimate(costs, spot->running_ns, spot->waits_ns, spot->sleeps));
    ret.share = wall > 0 ? ret.value.ns / wall : NAN;
    ret.share_low = wall > 0 ? ret.value.low_ns / wall : NAN;
    ret.share_high = wall > 0 ? ret.value.high_ns / wall : NAN;
    if (spot->kind == SPOT_FUNCTION)
        function_describe(arena, e, spot, &ret);
    else if (spot->kind == SPOT_CALL)
        call_describe(arena, e, spot, &ret);
    else if (spot->kind == SPOT_SPAN)
        span_describe(arena, e, spot, &ret);
    else
        waits_describe(arena, e, spot, &ret);
    return ret;
}

static int spots_fill(struct spots *spots)
{
    const struct path_costs *costs = &spots->evidence->costs_on_path;
    int r = 0;
    for (size_t i = 0; i < costs->count && r == 0; i++)
        r = row_add(spots, &costs->rows[i]);
    if (r == 0)
        r = calls_add(spots);
    return r == 0 ? spans_add(spots) : r;
}

int run_hotspots_build(struct arena *arena, const struct evidence *evidence, size_t max,
                       struct run_hotspots *ret)
{
    struct spots spots = {.evidence = evidence};
    struct run_hotspots made = {0};
    int r = spots_fill(&spots);
    size_t count = MIN(spots.items.len, max);
    made.rows = arena_alloc(arena, (count + 1) * sizeof(*made.rows));
    if (!made.rows)
        r = -ENOMEM;
    if (r == 0 && spots.items.len > 0)
        qsort(spots.items.data, spots.items.len, sizeof(*spots.items.data), longer);
    for (size_t i = 0; i < count && r == 0; i++) {
        made.rows[i] = spot_describe(arena, evidence, &spots.items.data[i]);
        made.rows[i].rank = (uint32_t)i + 1;
    }
    made.count = count;
    made.left_out = spots.items.len - count;
    map_u64_deinit(&spots.at);
    VEC_FREE(&spots.items);
    if (r == 0 && arena_failed(arena))
        r = -ENOMEM;
    if (r == 0)
        *ret = made;
    return r;
}
