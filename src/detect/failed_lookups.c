/* Names are looked for where they are not, hundreds of times. */
#include "detect/each.h"
#include "detect/io_common.h"

#include "base/intern.h"

#include <errno.h>
#include <math.h>

enum { MISSING_MIN = 500 };

/* Asked each once, the folders themselves could answer: so many lookups stay. */
static int folders_count(const struct io_sums *sums, size_t *ret)
{
    struct intern folders = {0};
    int r = 0;
    for (size_t i = 0; i < sums->missing_count && r == 0; i++)
        r = intern_add(&folders, sums->missing[i].folder, &(uint32_t){0}, NULL);
    *ret = folders.len;
    intern_deinit(&folders);
    return r;
}

static void mean_missing(struct io_shares *shares)
{
    const struct io *io = &shares->evidence->io;
    for (size_t i = 1; i < io->call_count; i++)
        if (io_is_failed_lookup(&shares->evidence->io_sums.kinds, &io->calls[i].info))
            io_shares_mean(shares, i, 1);
}

static void say(struct io_shares *shares, struct findings *ret, struct finding *finding,
                size_t folders)
{
    const struct evidence *evidence = shares->evidence;
    const struct io_lookups *lookups = &evidence->io_sums.lookups;
    const struct io_missing *most = &evidence->io_sums.missing[0];
    struct arena *arena = ret->arena;
    const char *artifact = evidence->axes[AXIS_IO].artifact;
    const char *where = place_text(arena, &finding->place);
    const char *missing = io_count_text(arena, (double)lookups->missing);
    uint64_t all = lookups->opens.calls + lookups->stats.calls + lookups->removes.calls +
                   lookups->others.calls;
    double share = finding->cost_ns / evidence->costs_on_path.ns * 100;
    const char *folder = arena_dup_len(arena, most->folder.data, most->folder.len);
    finding->title = arena_printf(arena,
                                  "%s of %s lookups find nothing and take %.0f%% of the wall time",
                                  missing, io_count_text(arena, (double)all), share);
    finding_fact(ret, finding, "missing", "lookups that found nothing",
                 value_uint(lookups->missing, UNIT_COUNT), artifact, NULL);
    finding_fact(ret, finding, "lookups", "lookups", value_uint(all, UNIT_COUNT), artifact, NULL);
    finding_fact(ret, finding, "folders", "folders they were made in",
                 value_uint(folders, UNIT_COUNT), artifact, NULL);
    finding_fact(ret, finding, "names", "different names in the folder with the most",
                 value_uint(most->names, UNIT_COUNT), artifact, folder);
    finding_why(ret, finding, evidence->axes[AXIS_CPU].artifact,
                "%.1f%% of the wall time is spent in lookups that fail, most of it at %s", share,
                where);
    finding_why(ret, finding, artifact, "%s lookups find nothing: %s of them are made in %s",
                missing, io_count_text(arena, (double)most->count), folder);
    if (most->names * 2 <= most->count)
        finding_why(ret, finding, artifact,
                    "only %s different names are asked for there: the same answer comes %.0f times",
                    io_count_text(arena, most->names), (double)most->count / (double)most->names);
    finding_why(ret, finding, artifact,
                "what was not there is not remembered, or %s folder%s tried in an order that finds "
                "it last",
                io_count_text(arena, (double)folders), folders == 1 ? " is" : "s are");
    io_angles(shares, finding,
              arena_printf(arena, "%s lookups found nothing, %s in them", missing,
                           io_time_text(arena, (double)lookups->missing_ns)),
              evidence->costs.system_ns, "time in the kernel");
    finding->measure_next = arena_printf(arena, "whyslow io %s --files", artifact);
    finding->advice = arena_printf(arena,
                                   "Remember at %s what was not found in %s, list the folder once, "
                                   "or look first where names are found.",
                                   where, folder);
    finding->caution = "A file that appears later is not seen by a program that remembers it as "
                       "missing.";
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    const struct io_sums *sums = &evidence->io_sums;
    uint64_t missing = sums->lookups.missing;
    if (missing < MISSING_MIN || sums->missing_count == 0)
        return dismissed(ret, self, "%llu lookups found nothing; from %d on it counts",
                         (unsigned long long)missing, MISSING_MIN)
                   ? 0
                   : -ENOMEM;
    struct io_shares shares;
    size_t folders = 0;
    if (io_shares_init(evidence, &shares) < 0 || folders_count(sums, &folders) < 0)
        return -ENOMEM;
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    mean_missing(&shares);
    io_cost(&shares, finding, fmax(0, 1 - (double)folders / (double)missing));
    io_place_set(&shares, finding, sums->missing[0].stack);
    finding->occurrences = missing;
    say(&shares, ret, finding, folders);
    return 0;
}

const struct detector detect_failed_lookups = {
    .id = "failed_lookups",
    .title = "names are looked for where they are not",
    .category = CATEGORY_IO_FILE,
    .remedy = REMEDY_REUSE,
    .axes = AXIS_BIT_CPU | AXIS_BIT_IO,
    .judge = judge,
};
