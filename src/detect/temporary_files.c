/* Files are made and removed again, many of them: what is in them could stay in memory, or one
 * file could serve for all. */
#include "detect/each.h"
#include "detect/io_common.h"

#include "base/intern.h"

#include <errno.h>
#include <math.h>

enum { FILES_MIN = 100, MEMORY_BYTES_MAX = 1 << 20 };

struct churn {
    struct intern names; /* of those files, as they are looked up */
    uint64_t files, bytes;
    uint32_t first; /* the object of the heaviest */
    uint64_t first_ns;
    bool in_memory; /* they are small enough to be kept there */
};

/* What the kernel says of a file that has no name any more. */
static struct str name_plain(struct str name)
{
    static const struct str gone = STR(" (deleted)");
    return str_ends(name, gone.data) ? (struct str){name.data, name.len - gone.len} : name;
}

static int churn_find(const struct evidence *evidence, struct churn *churn)
{
    const struct io_sums *sums = &evidence->io_sums;
    for (size_t i = 0; i < sums->file_count; i++) {
        const struct io_file *file = &sums->files[i];
        const struct object_info *object = &evidence->io.objects[file->object];
        uint32_t id;
        /* What is made durable is meant to outlive the program: a journal, not a scratch file. */
        bool durable = file->syncs.calls + file->sync_writes.calls > 0;
        if (object->kind != OBJECT_FILE || !file->created || !file->removed || durable)
            continue;
        if (intern_add(&churn->names, name_plain(object->name), &id, NULL) < 0)
            return -ENOMEM;
        churn->files += file->objects;
        churn->bytes += file->writes.bytes;
        if (file->tally.total_ns >= churn->first_ns) {
            churn->first = file->object;
            churn->first_ns = file->tally.total_ns;
        }
    }
    churn->in_memory = churn->files > 0 && churn->bytes / churn->files <= MEMORY_BYTES_MAX;
    return 0;
}

/* All that is done with them, or only what makes and removes them. The heaviest stack of it. */
static uint32_t mean_churn(struct io_shares *shares, const struct churn *churn)
{
    const struct io *io = &shares->evidence->io;
    uint64_t heaviest_ns = 0;
    uint32_t heaviest = 0;
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        enum io_kind kind = io_shares_kind(shares, row);
        struct str name = name_plain(io->objects[row->info.object].name);
        bool moves = kind == IO_READ || kind == IO_WRITE || kind == IO_COPY || kind == IO_SYNC;
        if (name.len == 0 || (moves && !churn->in_memory) || !intern_find(&churn->names, name))
            continue;
        io_shares_mean(shares, i, 1);
        if (row->tally.total_ns > heaviest_ns) {
            heaviest = row->info.stack;
            heaviest_ns = row->tally.total_ns;
        }
    }
    return heaviest;
}

static void say(struct io_shares *shares, struct findings *ret, struct finding *finding,
                const struct churn *churn)
{
    const struct evidence *evidence = shares->evidence;
    struct arena *arena = ret->arena;
    const char *artifact = evidence->axes[AXIS_IO].artifact;
    const char *where = place_text(arena, &finding->place);
    const char *files = io_count_text(arena, (double)churn->files);
    const char *each = io_bytes_text(arena, (double)churn->bytes / (double)churn->files);
    struct str folder = io_folder_of(io_name(evidence, churn->first));
    double share = finding->cost_ns / evidence->costs_on_path.ns * 100;
    finding->title = arena_printf(arena,
                                  "%s temporary files of %s are made and removed again: %.0f%% of "
                                  "the wall time",
                                  files, each, share);
    finding_fact(ret, finding, "files", "made and removed", value_uint(churn->files, UNIT_COUNT),
                 artifact, arena_dup_len(arena, folder.data, folder.len));
    finding_fact(ret, finding, "bytes_each", "written to each",
                 value_real((double)churn->bytes / (double)churn->files, UNIT_BYTES), artifact,
                 NULL);
    finding_why(ret, finding, evidence->axes[AXIS_CPU].artifact,
                "%.1f%% of the wall time is spent on temporary files, most of it at %s", share,
                where);
    finding_why(ret, finding, artifact, "%s files are made in %.*s and removed again in one run",
                files, STR_FMT(folder));
    finding_why(ret, finding, artifact, "each holds %s: %s", each,
                churn->in_memory ? "little enough to stay in memory"
                                 : "too much for memory, but one file could serve for all");
    io_angles(shares, finding, arena_printf(arena, "%s files made and removed again", files),
              evidence->costs.system_ns, "time in the kernel");
    finding->measure_next = arena_printf(arena, "whyslow io %s --files", artifact);
    finding->advice = churn->in_memory
                          ? arena_printf(arena,
                                         "Keep what is put into them in memory (a buffer, a pipe, "
                                         "or memfd_create where a file is needed) at %s.",
                                         where)
                          : arena_printf(arena, "Use one temporary file again and again at %s.",
                                         where);
}

static int churn_judge(const struct evidence *evidence, const struct detector *self,
                       const struct churn *churn, struct findings *ret)
{
    if (churn->files < FILES_MIN)
        return dismissed(ret, self, "%llu files were made and removed again; from %d on it counts",
                         (unsigned long long)churn->files, FILES_MIN)
                   ? 0
                   : -ENOMEM;
    struct io_shares shares;
    if (io_shares_init(evidence, &shares) < 0)
        return -ENOMEM;
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    uint32_t stack = mean_churn(&shares, churn);
    io_cost(&shares, finding, churn->in_memory ? 1 : 1 - 1 / (double)churn->files);
    io_place_set(&shares, finding, stack);
    finding->occurrences = churn->files;
    say(&shares, ret, finding, churn);
    return 0;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct churn churn = {0};
    int r = churn_find(evidence, &churn);
    if (r == 0)
        r = churn_judge(evidence, self, &churn, ret);
    intern_deinit(&churn.names);
    return r;
}

const struct detector detect_temporary_files = {
    .id = "temporary_files",
    .title = "temporary files come and go",
    .category = CATEGORY_IO_FILE,
    .remedy = REMEDY_REUSE,
    .axes = AXIS_BIT_CPU | AXIS_BIT_IO,
    .judge = judge,
};
