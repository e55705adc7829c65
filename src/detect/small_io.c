/* Many small reads or writes, one after the other: each pays for a call, and a buffer would make
 * one of hundreds. */
#include "detect/each.h"
#include "detect/io_common.h"

#include <errno.h>
#include <math.h>

enum { CALLS_MIN = 1000, MEDIAN_BYTES_MAX = 512, BUFFER_BYTES = 64 << 10 };
#define SEQUENTIAL_MIN 0.80 /* of calls whose place in the file is known */
#define SHARE_MIN      0.02 /* of the wall time */
/* Moving a byte in and out of the page cache costs about as much, however large the call is: that
 * stays. Half of it and twice of it are the ends of the interval. */
#define WRITE_BYTE_NS 0.4
#define READ_BYTE_NS  0.1

struct small {
    uint64_t calls, bytes, median_bytes;
    double sequential; /* share; NaN: not known */
    double moving_ns;
};

/* Reads of a pipe wait for whoever writes: what is small there is his. */
static struct small small_of(const struct evidence *evidence, const struct io_file *file)
{
    bool pipe = evidence->io.objects[file->object].kind == OBJECT_PIPE;
    uint64_t reads = pipe ? 0 : file->reads.calls;
    const struct call_tally *tally = &file->tally;
    return (struct small){
        .calls = reads + file->writes.calls - file->sync_writes.calls,
        .bytes = (pipe ? 0 : file->reads.bytes) + file->writes.bytes - file->sync_writes.bytes,
        .median_bytes = io_median_size(tally),
        .sequential = tally->placed > 0 ? (double)tally->sequential / (double)tally->placed : NAN,
        .moving_ns = (pipe ? 0 : (double)file->reads.bytes * READ_BYTE_NS) +
                     (double)file->writes.bytes * WRITE_BYTE_NS,
    };
}

/* NULL: it is small I/O. Else what speaks against it, of those that have many small calls. */
static const char *against(struct arena *arena, const struct io_file *file,
                           const struct small *small)
{
    if (file->direct > 0)
        return "it is open with O_DIRECT: sizes are the program's choice";
    if (small->sequential < SEQUENTIAL_MIN)
        return arena_printf(arena,
                            "%.0f%% of its calls begin where the one before ended; from %.0f%% on "
                            "a buffer would help",
                            small->sequential * 100, SEQUENTIAL_MIN * 100);
    return NULL;
}

static bool is_small(const struct evidence *evidence, const struct io_file *file,
                     const struct small *small)
{
    const struct object_info *object = &evidence->io.objects[file->object];
    bool plain = object->kind == OBJECT_FILE || object->kind == OBJECT_PIPE;
    return plain && !io_is_made_up(object->name) && small->calls / file->objects >= CALLS_MIN &&
           small->median_bytes > 0 && small->median_bytes <= MEDIAN_BYTES_MAX;
}

static void mean_group(struct io_shares *shares, const struct io_groups *groups, uint32_t group)
{
    const struct io *io = &shares->evidence->io;
    io_shares_clear(shares);
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        enum io_kind kind = io_shares_kind(shares, row);
        bool moves = kind == IO_READ || kind == IO_WRITE;
        if (moves && !(row->info.flags & CALL_SYNC) && io_groups_of(groups, shares, row) == group)
            io_shares_mean(shares, i, 1);
    }
}

static void say(struct io_shares *shares, struct findings *ret, struct finding *finding,
                const struct io_group *group, const struct small *small)
{
    const struct evidence *evidence = shares->evidence;
    struct arena *arena = shares->arena;
    const struct io_file *file = &evidence->io_sums.files[group->first];
    const char *artifact = evidence->axes[AXIS_IO].artifact;
    const char *name = arena_dup_len(arena, io_name(evidence, file->object).data,
                                     io_name(evidence, file->object).len);
    const char *verb = file->writes.calls >= file->reads.calls ? "writes to" : "reads of";
    const char *where = place_text(arena, &finding->place);
    double wall = evidence->costs_on_path.ns;
    finding->title = arena_printf(
        arena, "%s %s %s%s of %s or less take %.0f%% of the wall time",
        io_count_text(arena, (double)small->calls), verb, name, io_others(arena, group->files),
        io_bytes_text(arena, (double)small->median_bytes), finding->cost_ns / wall * 100);
    finding_fact(ret, finding, "calls", "reads and writes", value_uint(small->calls, UNIT_COUNT),
                 artifact, name);
    finding_fact(ret, finding, "median_bytes", "half of them of, or less",
                 value_uint(small->median_bytes, UNIT_BYTES), artifact, name);
    finding_fact(ret, finding, "bytes", "moved", value_uint(small->bytes, UNIT_BYTES), artifact,
                 name);
    if (!isnan(small->sequential))
        finding_fact(ret, finding, "sequential_pct", "one after the other",
                     value_real(small->sequential * 100, UNIT_PERCENT), artifact, name);
    finding_why(ret, finding, evidence->axes[AXIS_WAITS].artifact,
                "%.1f%% of the wall time is spent in these calls at %s",
                finding->cost_ns / wall * 100, where);
    finding_why(ret, finding, artifact, "%s calls move %s: half of them %s or less",
                io_count_text(arena, (double)small->calls),
                io_bytes_text(arena, (double)small->bytes),
                io_bytes_text(arena, (double)small->median_bytes));
    if (!isnan(small->sequential))
        finding_why(ret, finding, artifact,
                    "%.0f%% begin where the one before ended: they are pieces of one stream",
                    small->sequential * 100);
    finding_why(ret, finding, artifact,
                "nothing between the program and the kernel collects them: no buffer is in use "
                "at %s",
                where);
    io_angles(shares, finding,
              arena_printf(arena, "%s calls, half of them of %s or less",
                           io_count_text(arena, (double)small->calls),
                           io_bytes_text(arena, (double)small->median_bytes)),
              evidence->costs.system_ns, "time in the kernel");
    finding->measure_next = arena_printf(arena, "whyslow io %s --files", artifact);
    finding->advice = arena_printf(arena,
                                   "Put a buffer of %s before the calls at %s: of %s calls %s "
                                   "would stay.",
                                   io_bytes_text(arena, BUFFER_BYTES), where,
                                   io_count_text(arena, (double)small->calls),
                                   io_count_text(arena, ceil((double)small->bytes / BUFFER_BYTES)));
    if (file->writes.calls >= file->reads.calls)
        finding->caution = "What is in the buffer is lost when the program dies, and is seen by "
                           "others later: flush it where that matters.";
}

static int group_judge(struct io_shares *shares, const struct detector *self,
                       const struct io_groups *groups, uint32_t at, struct findings *ret)
{
    const struct evidence *evidence = shares->evidence;
    const struct io_group *group = &groups->rows[at];
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    struct small small = small_of(evidence, &evidence->io_sums.files[group->first]);
    for (size_t i = group->first + 1; i < evidence->io_sums.file_count; i++) {
        if (groups->of[i] != at + 1)
            continue;
        struct small more = small_of(evidence, &evidence->io_sums.files[i]);
        small.calls += more.calls;
        small.bytes += more.bytes;
        small.moving_ns += more.moving_ns;
    }
    mean_group(shares, groups, at + 1);
    double stays = fmin((double)small.bytes / BUFFER_BYTES / (double)small.calls, 1);
    io_cost(shares, finding, 1 - stays);
    struct estimate *gain = &finding->recoverable;
    gain->ns = fmax(gain->ns - small.moving_ns, 0);
    gain->low_ns = fmax(gain->low_ns - 2 * small.moving_ns, 0);
    gain->high_ns = fmax(gain->high_ns - small.moving_ns / 2, gain->ns);
    io_place_set(shares, finding, evidence->io_sums.files[group->first].stack);
    finding->occurrences = small.calls;
    say(shares, ret, finding, group, &small);
    double share = finding->cost_ns / evidence->costs_on_path.ns;
    if (!(share >= SHARE_MIN))
        io_dismiss(ret->arena, finding,
                   "%s small calls take %.1f%% of the wall time; from %.0f%% on it counts",
                   io_count_text(ret->arena, (double)small.calls), share * 100, SHARE_MIN * 100);
    return 0;
}

/* The first with many small calls that a buffer would not help. */
static int rest_dismiss(const struct evidence *evidence, const struct detector *self,
                        struct findings *ret)
{
    const struct io_sums *sums = &evidence->io_sums;
    uint64_t most = 0;
    for (size_t i = 0; i < sums->file_count; i++) {
        struct small small = small_of(evidence, &sums->files[i]);
        const char *reason = against(ret->arena, &sums->files[i], &small);
        if (small.median_bytes > 0 && small.median_bytes <= MEDIAN_BYTES_MAX)
            most = MAX(most, small.calls);
        if (!is_small(evidence, &sums->files[i], &small) || !reason)
            continue;
        struct str name = io_name(evidence, sums->files[i].object);
        return dismissed(ret, self, "%s small calls on %.*s: %s",
                         io_count_text(ret->arena, (double)small.calls), STR_FMT(name), reason)
                   ? 0
                   : -ENOMEM;
    }
    return dismissed(ret, self,
                     "no file has %d reads and writes of %d bytes or less; the most are %llu",
                     CALLS_MIN, MEDIAN_BYTES_MAX, (unsigned long long)most)
               ? 0
               : -ENOMEM;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    const struct io_sums *sums = &evidence->io_sums;
    struct io_shares shares;
    struct io_groups groups;
    if (io_shares_init(evidence, &shares) < 0 || io_groups_init(&groups, &shares) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < sums->file_count; i++) {
        struct small small = small_of(evidence, &sums->files[i]);
        if (is_small(evidence, &sums->files[i], &small) &&
            !against(ret->arena, &sums->files[i], &small))
            io_groups_add(&groups, &shares, i);
    }
    int r = 0;
    for (uint32_t i = 0; i < groups.count && r == 0; i++)
        r = group_judge(&shares, self, &groups, i, ret);
    return r == 0 && groups.count == 0 ? rest_dismiss(evidence, self, ret) : r;
}

const struct detector detect_small_io = {
    .id = "small_io",
    .title = "many small reads or writes",
    .category = CATEGORY_IO_FILE,
    .remedy = REMEDY_LOCAL,
    .axes = AXIS_BIT_CPU | AXIS_BIT_IO,
    .judge = judge,
};
