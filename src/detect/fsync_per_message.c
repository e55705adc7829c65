/* Every message is made durable on its own: the program waits for the disk as often as it has
 * something to say, where one wait would do for many. */
#include "detect/each.h"
#include "detect/io_common.h"

#include <errno.h>
#include <math.h>

enum { SYNCS_MIN = 20, BETWEEN_BYTES_MAX = 64 << 10 };
#define SYNCS_PER_WRITE_MIN 0.5
/* Where a journal, the data and their folder are synced in turn, a commit is several writes. */
#define SYNCS_PER_WRITE_TOGETHER_MIN 0.25
#define SYNCS_PER_STATEMENT_MIN      0.5
#define SHARE_MIN                    0.05 /* of the wall time */

struct syncs {
    uint64_t calls, sync_writes; /* of calls: by writes to a file that is open with O_DSYNC */
    uint64_t writes, bytes, ns;
};

static struct syncs syncs_of(const struct io_file *file)
{
    return (struct syncs){
        .calls = file->syncs.calls + file->sync_writes.calls,
        .sync_writes = file->sync_writes.calls,
        .writes = file->writes.calls,
        .bytes = file->writes.bytes,
        .ns = file->syncs.ns + file->sync_writes.ns,
    };
}

static double per_write(const struct syncs *syncs)
{
    return (double)syncs->calls / (double)MAX(syncs->writes, 1u);
}

static double between_bytes(const struct syncs *syncs)
{
    return (double)syncs->bytes / (double)MAX(syncs->calls, 1u);
}

/* A journal beside the file, or the folder both lie in: the same commits. */
static bool is_beside(const struct evidence *evidence, const struct io_file *file,
                      const struct io_file *other)
{
    const struct object_info *a = &evidence->io.objects[file->object];
    const struct object_info *b = &evidence->io.objects[other->object];
    struct syncs syncs = syncs_of(other);
    bool often = syncs.calls >= SYNCS_MIN && between_bytes(&syncs) <= BETWEEN_BYTES_MAX;
    struct str folder = io_folder_of(a->name);
    return often && (b->kind == OBJECT_DIRECTORY ? str_eq(b->name, folder)
                                                 : str_eq(io_folder_of(b->name), folder));
}

/* A file of the group's folder joins it; the first that is found stands for all. */
static bool group_joins(const struct evidence *evidence, struct io_groups *groups, size_t file)
{
    const struct io_sums *sums = &evidence->io_sums;
    for (uint32_t at = 0; at < groups->count; at++) {
        if (!is_beside(evidence, &sums->files[groups->rows[at].first], &sums->files[file]))
            continue;
        groups->of[file] = at + 1;
        groups->rows[at].files++;
        return true;
    }
    return false;
}

static void beside_add(const struct evidence *evidence, struct io_groups *groups)
{
    for (size_t i = 0; i < evidence->io_sums.file_count; i++)
        if (groups->of[i] == 0)
            group_joins(evidence, groups, i);
}

static void syncs_add(struct syncs *sum, const struct syncs *syncs)
{
    sum->calls += syncs->calls;
    sum->sync_writes += syncs->sync_writes;
    sum->writes += syncs->writes;
    sum->bytes += syncs->bytes;
    sum->ns += syncs->ns;
}

static struct syncs syncs_sum(const struct evidence *evidence, const struct io_groups *groups,
                              uint32_t group)
{
    struct syncs sum = {0};
    for (size_t i = 0; i < evidence->io_sums.file_count; i++) {
        if (groups->of[i] != group)
            continue;
        struct syncs syncs = syncs_of(&evidence->io_sums.files[i]);
        syncs_add(&sum, &syncs);
    }
    return sum;
}

/* The heaviest stack among the syncs themselves: a file's own may be that of its writes. */
static uint32_t mean_group(struct io_shares *shares, const struct io_groups *groups, uint32_t group)
{
    const struct io *io = &shares->evidence->io;
    uint64_t heaviest_ns = 0;
    uint32_t heaviest = 0;
    io_shares_clear(shares);
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        enum io_kind kind = io_shares_kind(shares, row);
        bool durable = kind == IO_SYNC || (kind == IO_WRITE && row->info.flags & CALL_SYNC);
        if (!durable || io_groups_of(groups, shares, row) != group)
            continue;
        io_shares_mean(shares, i, 1);
        if (row->tally.total_ns > heaviest_ns) {
            heaviest = row->info.stack;
            heaviest_ns = row->tally.total_ns;
        }
    }
    return heaviest;
}

/* What the device itself says, of the whole machine. */
static void device_why(const struct evidence *evidence, struct findings *ret,
                       struct finding *finding, const struct syncs *syncs)
{
    const struct device_row *busiest = NULL;
    for (size_t i = 1; i < evidence->io.device_count; i++) {
        const struct device_row *row = &evidence->io.devices[i];
        if (row->info.op == DEVICE_FLUSH && row->tally.count * 4 >= syncs->calls &&
            (!busiest || row->tally.total_ns > busiest->tally.total_ns))
            busiest = row;
    }
    if (busiest)
        finding_why(ret, finding, evidence->axes[AXIS_IO].artifact,
                    "the device %.*s answers a flush in %s on average, %s of them meanwhile",
                    STR_FMT(busiest->info.name),
                    io_time_text(ret->arena,
                                 (double)busiest->tally.total_ns / (double)busiest->tally.count),
                    io_count_text(ret->arena, (double)busiest->tally.count));
}

/* That change something: the others make nothing durable. */
static uint64_t sqlite_statements(const struct evidence *evidence)
{
    static const char *const changes[] = {"INSERT", "UPDATE", "DELETE", "REPLACE"};
    uint64_t count = 0;
    for (size_t i = 1; i < evidence->io.request_count; i++) {
        const struct request_row *row = &evidence->io.requests[i];
        struct str text = evidence->io.texts[row->info.text];
        for (size_t k = 0; k < ARRAY_SIZE(changes); k++)
            if (row->info.protocol == REQUEST_SQLITE && str_starts(text, changes[k]))
                count += row->tally.count;
    }
    return count;
}

static void advise(const struct evidence *evidence, struct findings *ret, struct finding *finding,
                   const struct syncs *syncs)
{
    struct arena *arena = ret->arena;
    const char *where = place_text(arena, &finding->place);
    uint64_t statements = sqlite_statements(evidence);
    const char *artifact = evidence->axes[AXIS_IO].artifact;
    if (statements > 0) {
        finding_why(ret, finding, artifact,
                    "SQLite makes every statement outside of a transaction durable by itself: %s "
                    "statements that change something were seen",
                    io_count_text(arena, (double)statements));
        finding->advice = arena_printf(arena,
                                       "Put many statements into one transaction (BEGIN … COMMIT): "
                                       "of %s syncs those of one commit would stay (at %s).",
                                       io_count_text(arena, (double)syncs->calls), where);
    } else if (syncs->sync_writes * 2 > syncs->calls) {
        finding_why(ret, finding, artifact,
                    "the file is open with O_SYNC or O_DSYNC: every write at %s waits", where);
        finding->advice = arena_printf(arena,
                                       "Collect several messages and write them at once at %s, or "
                                       "open without O_DSYNC and call fdatasync once for many.",
                                       where);
    } else {
        finding_why(ret, finding, artifact, "the program asks for it after %s at %s",
                    per_write(syncs) >= 0.9 ? "every write" : "every other write", where);
        finding->advice = arena_printf(arena,
                                       "Make several messages durable with one call (group "
                                       "commit) at %s: of %s syncs one would stay.",
                                       where, io_count_text(arena, (double)syncs->calls));
    }
    finding->caution = "Durability: after a crash of the machine, what was written since the last "
                       "sync is lost. Answer nobody \"done\" before the sync that covers it.";
}

static void say(struct io_shares *shares, struct findings *ret, struct finding *finding,
                const char *name, size_t files, const struct syncs *syncs)
{
    const struct evidence *evidence = shares->evidence;
    struct arena *arena = ret->arena;
    const char *artifact = evidence->axes[AXIS_IO].artifact;
    double share = finding->cost_ns / evidence->costs_on_path.ns * 100;
    finding->title = arena_printf(
        arena, "%s syncs of %s%s, one per %.1f writes, take %.0f%% of the wall time",
        io_count_text(arena, (double)syncs->calls), name, io_others(arena, files),
        (double)syncs->writes / (double)syncs->calls, share);
    finding_fact(ret, finding, "syncs", "times made durable", value_uint(syncs->calls, UNIT_COUNT),
                 artifact, name);
    finding_fact(ret, finding, "sync_writes", "of these: writes with O_SYNC or O_DSYNC",
                 value_uint(syncs->sync_writes, UNIT_COUNT), artifact, name);
    finding_fact(ret, finding, "writes", "writes", value_uint(syncs->writes, UNIT_COUNT), artifact,
                 name);
    finding_fact(ret, finding, "bytes_between", "written between two of them",
                 value_real(between_bytes(syncs), UNIT_BYTES), artifact, name);
    finding_fact(ret, finding, "sync_ns", "one takes, traced",
                 value_real((double)syncs->ns / (double)syncs->calls, UNIT_NS), artifact, name);
    finding_why(ret, finding, evidence->axes[AXIS_WAITS].artifact,
                "%.1f%% of the wall time is spent in making data durable at %s", share,
                place_text(arena, &finding->place));
    finding_why(ret, finding, artifact, "it is done %s times, %s each",
                io_count_text(arena, (double)syncs->calls),
                io_time_text(arena, (double)syncs->ns / (double)syncs->calls));
    finding_why(ret, finding, artifact, "only %s are written between two of them",
                io_bytes_text(arena, between_bytes(syncs)));
    device_why(evidence, ret, finding, syncs);
    advise(evidence, ret, finding, syncs);
    io_angles(shares, finding,
              arena_printf(arena, "%s syncs, %.2f a write, %s in them",
                           io_count_text(arena, (double)syncs->calls), per_write(syncs),
                           io_time_text(arena, (double)syncs->ns)),
              io_off_cpu_ns(evidence),
              isnan(io_off_cpu_ns(evidence)) ? "several threads at once hide what waits"
                                             : "time off the CPU or in the kernel");
    finding->measure_next = arena_printf(arena, "whyslow io %s --files", artifact);
}

static int group_judge(struct io_shares *shares, const struct detector *self,
                       const struct io_groups *groups, uint32_t at, struct findings *ret)
{
    const struct evidence *evidence = shares->evidence;
    const struct io_group *group = &groups->rows[at];
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    struct syncs syncs = syncs_sum(evidence, groups, at + 1);
    uint32_t stack = mean_group(shares, groups, at + 1);
    io_cost(shares, finding, 1 - 1 / (double)syncs.calls);
    io_place_set(shares, finding, stack);
    finding->occurrences = syncs.calls;
    struct str name = io_name(evidence, evidence->io_sums.files[group->first].object);
    say(shares, ret, finding, arena_dup_len(ret->arena, name.data, name.len), group->files, &syncs);
    double share = finding->cost_ns / evidence->costs_on_path.ns;
    if (!(share >= SHARE_MIN))
        io_dismiss(ret->arena, finding,
                   "%s syncs take %.1f%% of the wall time; from %.0f%% on it counts",
                   io_count_text(ret->arena, (double)syncs.calls), share * 100, SHARE_MIN * 100);
    return 0;
}

bool io_file_syncs_messages(const struct evidence *evidence, const struct io_file *file)
{
    struct syncs own = syncs_of(file), together = {0};
    size_t files = 0;
    if (own.calls < SYNCS_MIN || between_bytes(&own) > BETWEEN_BYTES_MAX)
        return false;
    if (per_write(&own) >= SYNCS_PER_WRITE_MIN)
        return true;
    for (size_t i = 0; i < evidence->io_sums.file_count; i++) {
        const struct io_file *other = &evidence->io_sums.files[i];
        if (!is_beside(evidence, file, other))
            continue;
        struct syncs syncs = syncs_of(other);
        syncs_add(&together, &syncs);
        files++;
    }
    uint64_t statements = sqlite_statements(evidence);
    return (files > 1 && per_write(&together) >= SYNCS_PER_WRITE_TOGETHER_MIN) ||
           (statements > 0 &&
            (double)together.calls >= SYNCS_PER_STATEMENT_MIN * (double)statements);
}

static int rest_dismiss(const struct evidence *evidence, const struct detector *self,
                        struct findings *ret)
{
    const struct io_file *most = NULL;
    struct syncs syncs = {0};
    for (size_t i = 0; i < evidence->io_sums.file_count; i++) {
        struct syncs other = syncs_of(&evidence->io_sums.files[i]);
        if (other.calls > syncs.calls) {
            most = &evidence->io_sums.files[i];
            syncs = other;
        }
    }
    if (!most)
        return dismissed(ret, self, "nothing was made durable") ? 0 : -ENOMEM;
    struct str name = io_name(evidence, most->object);
    return dismissed(ret, self,
                     "%.*s was made durable %llu times, %.2f a write, with %s between two; from "
                     "%d times, %.1f a write and up to %s on it counts",
                     STR_FMT(name), (unsigned long long)syncs.calls, per_write(&syncs),
                     io_bytes_text(ret->arena, between_bytes(&syncs)), SYNCS_MIN,
                     SYNCS_PER_WRITE_MIN, io_bytes_text(ret->arena, BETWEEN_BYTES_MAX))
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
        if (evidence->io.objects[sums->files[i].object].kind == OBJECT_FILE &&
            io_file_syncs_messages(evidence, &sums->files[i]) && !group_joins(evidence, &groups, i))
            io_groups_add(&groups, &shares, i);
    }
    beside_add(evidence, &groups);
    int r = 0;
    for (uint32_t i = 0; i < groups.count && r == 0; i++)
        r = group_judge(&shares, self, &groups, i, ret);
    return r == 0 && groups.count == 0 ? rest_dismiss(evidence, self, ret) : r;
}

const struct detector detect_fsync_per_message = {
    .id = "fsync_per_message",
    .title = "every message is made durable on its own",
    .category = CATEGORY_IO_FILE,
    .remedy = REMEDY_BATCH,
    .axes = AXIS_BIT_WAITS | AXIS_BIT_IO,
    .judge = judge,
};
