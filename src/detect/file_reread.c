/* A file that does not change is read again and again by one process: it could be kept. */
#include "detect/each.h"
#include "detect/io_common.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { OPENS_MIN = 5 };
#define TIMES_MIN 3.0 /* its size, read */

/* A file as one process uses it: what another one reads cannot be kept for it. */
struct reading {
    uint32_t file; /* row of io_sums.files */
    uint32_t process;
    uint64_t opens, reads, bytes, ns;
    uint32_t stack; /* of the heaviest row, and its time */
    uint64_t stack_ns;
};

struct readings {
    struct map_u64 at; /* file and process to an index, plus one */
    VEC(struct reading) rows;
};

static uint32_t process_of(const struct io *io, const struct call_row *row)
{
    return row->info.thread < io->profile.thread_count
               ? io->profile.threads[row->info.thread].process
               : 0;
}

static bool is_kept_still(const struct evidence *evidence, const struct io_file *file)
{
    const struct object_info *object = &evidence->io.objects[file->object];
    return object->kind == OBJECT_FILE && !io_is_made_up(object->name) && file->writes.calls == 0 &&
           file->objects == 1 && !file->created;
}

static int readings_add(struct readings *readings, const struct io_shares *shares, size_t call)
{
    const struct io *io = &shares->evidence->io;
    const struct call_row *row = &io->calls[call];
    const struct io_file *file = io_shares_file(shares, row);
    enum io_kind kind = io_shares_kind(shares, row);
    if (!file || !is_kept_still(shares->evidence, file) || row->info.error)
        return 0;
    uint32_t index = shares->files[row->info.object] - 1, process = process_of(io, row);
    bool fresh;
    uint64_t *at = map_u64_at(&readings->at, (uint64_t)index << 32 | process, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        struct reading made = {.file = index, .process = process};
        if (VEC_PUSH(&readings->rows, made) < 0)
            return -ENOMEM;
        *at = readings->rows.len;
    }
    struct reading *to = &readings->rows.data[*at - 1];
    to->opens += kind == IO_OPEN ? row->tally.count : 0;
    to->reads += kind == IO_READ ? row->tally.count : 0;
    to->bytes += kind == IO_READ ? row->tally.bytes : 0;
    to->ns += row->tally.total_ns;
    if (row->tally.total_ns > to->stack_ns) {
        to->stack = row->info.stack;
        to->stack_ns = row->tally.total_ns;
    }
    return 0;
}

static int by_ns(const void *left, const void *right)
{
    const struct reading *a = left, *b = right;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a->file != b->file ? (a->file > b->file) - (a->file < b->file)
                              : (a->process > b->process) - (a->process < b->process);
}

/* How many times its size; NaN: that is not known. */
static double times_of(const struct evidence *evidence, const struct reading *reading)
{
    uint64_t size = evidence->io_sums.files[reading->file].size_bytes;
    return size == IO_FACT_UNKNOWN || size == 0 ? NAN : (double)reading->bytes / (double)size;
}

static bool is_again(const struct evidence *evidence, const struct reading *reading)
{
    return times_of(evidence, reading) >= TIMES_MIN ||
           (reading->opens >= OPENS_MIN && reading->bytes > 0);
}

static void mean_reading(struct io_shares *shares, const struct reading *reading)
{
    const struct io *io = &shares->evidence->io;
    io_shares_clear(shares);
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        if (shares->files[row->info.object] == reading->file + 1 &&
            process_of(io, row) == reading->process)
            io_shares_mean(shares, i, 1);
    }
}

static void say(struct io_shares *shares, struct findings *ret, struct finding *finding,
                const struct reading *reading, const char *name)
{
    const struct evidence *evidence = shares->evidence;
    struct arena *arena = ret->arena;
    const char *artifact = evidence->axes[AXIS_IO].artifact;
    const char *where = place_text(arena, &finding->place);
    double times = times_of(evidence, reading);
    double share = finding->cost_ns / evidence->costs_on_path.ns * 100;
    uint64_t size = evidence->io_sums.files[reading->file].size_bytes;
    const char *read = isnan(times) ? arena_printf(arena, "%s of it read",
                                                   io_bytes_text(arena, (double)reading->bytes))
                                    : arena_printf(arena, "read %.0f times its size", times);
    finding->title = arena_printf(arena,
                                  "%s, unchanged, is opened %s times and %s: %.0f%% of the "
                                  "wall time",
                                  name, io_count_text(arena, (double)reading->opens), read, share);
    finding_fact(ret, finding, "opens", "opened", value_uint(reading->opens, UNIT_COUNT), artifact,
                 name);
    finding_fact(ret, finding, "read_bytes", "read", value_uint(reading->bytes, UNIT_BYTES),
                 artifact, name);
    finding_fact(ret, finding, "size_bytes", "its size",
                 size == IO_FACT_UNKNOWN ? value_na("it was not looked at")
                                         : value_uint(size, UNIT_BYTES),
                 artifact, name);
    finding_why(ret, finding, evidence->axes[AXIS_CPU].artifact,
                "%.1f%% of the wall time is spent in opening and reading it at %s", share, where);
    finding_why(ret, finding, artifact, "one process opens it %s times and reads %s from it",
                io_count_text(arena, (double)reading->opens),
                io_bytes_text(arena, (double)reading->bytes));
    finding_why(ret, finding, artifact, "nobody writes to it meanwhile%s",
                isnan(times) ? ""
                             : arena_printf(arena,
                                            ", and it has only %s: the same bytes come "
                                            "%.0f times",
                                            io_bytes_text(arena, (double)size), times));
    finding_why(ret, finding, artifact, "what was read is not kept between two uses at %s", where);
    io_angles(
        shares, finding,
        arena_printf(arena, "%s opens, %s", io_count_text(arena, (double)reading->opens), read),
        evidence->costs.system_ns, "time in the kernel");
    finding->measure_next = arena_printf(arena, "whyslow io %s --files", artifact);
    finding->advice = arena_printf(arena,
                                   "Keep what is read from %s in memory at %s, and read it again "
                                   "only when it has changed.",
                                   name, where);
    finding->caution = "A change of the file is seen only when it is looked for: compare its "
                       "modification time, or watch it.";
}

static int reading_judge(struct io_shares *shares, const struct detector *self,
                         const struct reading *reading, struct findings *ret)
{
    const struct evidence *evidence = shares->evidence;
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    struct str file = io_name(evidence, evidence->io_sums.files[reading->file].object);
    const char *name = arena_dup_len(ret->arena, file.data, file.len);
    double times = times_of(evidence, reading);
    double passes = fmax(isnan(times) ? 0 : times, (double)reading->opens);
    mean_reading(shares, reading);
    io_cost(shares, finding, passes > 1 ? 1 - 1 / passes : 0);
    io_place_set(shares, finding, reading->stack);
    finding->occurrences = (uint64_t)passes;
    say(shares, ret, finding, reading, name);
    return 0;
}

/* What comes nearest, with its numbers. */
static int rest_dismiss(const struct evidence *evidence, const struct detector *self,
                        const struct readings *readings, struct findings *ret)
{
    const struct reading *most = NULL;
    for (size_t i = 0; i < readings->rows.len; i++)
        if (readings->rows.data[i].bytes > 0 && (!most || readings->rows.data[i].ns > most->ns))
            most = &readings->rows.data[i];
    if (!most)
        return dismissed(ret, self, "no file that does not change was read") ? 0 : -ENOMEM;
    struct str name = io_name(evidence, evidence->io_sums.files[most->file].object);
    double times = times_of(evidence, most);
    return dismissed(ret, self,
                     "%.*s was opened %llu times and %s read%s; from %d times, or %.0f times its "
                     "size, on it counts",
                     STR_FMT(name), (unsigned long long)most->opens,
                     io_bytes_text(ret->arena, (double)most->bytes),
                     isnan(times) ? "" : arena_printf(ret->arena, ", %.1f times its size", times),
                     OPENS_MIN, TIMES_MIN)
               ? 0
               : -ENOMEM;
}

static int readings_judge(struct io_shares *shares, const struct detector *self,
                          struct readings *readings, struct findings *ret)
{
    size_t shown = 0;
    int r = 0;
    if (readings->rows.len > 1)
        qsort(readings->rows.data, readings->rows.len, sizeof(*readings->rows.data), by_ns);
    for (size_t i = 0; i < readings->rows.len && shown < IO_SHOWN_MAX && r == 0; i++) {
        if (!is_again(shares->evidence, &readings->rows.data[i]))
            continue;
        shown++;
        r = reading_judge(shares, self, &readings->rows.data[i], ret);
    }
    return r == 0 && shown == 0 ? rest_dismiss(shares->evidence, self, readings, ret) : r;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct io_shares shares;
    struct readings readings = {0};
    if (io_shares_init(evidence, &shares) < 0)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 1; i < evidence->io.call_count && r == 0; i++)
        r = readings_add(&readings, &shares, i);
    if (r == 0)
        r = readings_judge(&shares, self, &readings, ret);
    map_u64_deinit(&readings.at);
    VEC_FREE(&readings.rows);
    return r;
}

const struct detector detect_file_reread = {
    .id = "file_reread",
    .title = "an unchanged file is read again and again",
    .category = CATEGORY_CACHE,
    .remedy = REMEDY_REUSE,
    .axes = AXIS_BIT_CPU | AXIS_BIT_IO,
    .judge = judge,
};
