/* Fingerprint and pre-flight: what would spoil the result is said before time is spent. */
#include "cmd/run_parts.h"

#include "base/text.h"
#include "cmd/run_artifacts.h"
#include "host/checks.h"
#include "host/fingerprint.h"

#include <errno.h>

/* Checks whose failure makes the figures those of something else. The others weaken an axis, which
 * then says so itself, or make figures vary, which the baseline measures. */
static const char *const stopping[] = {"disk", "instrumented", "memory", "sanitizer", "swap"};

/* Those that make figures vary: the result is marked with them. */
static const char *const marking[] = {"cpu_limit", "load", "optimized", "steal", "throttling"};

static bool is_among(struct str id, const char *const *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(id, ids[i]))
            return true;
    return false;
}

static void check_line(const struct run *run, const char *label, struct str text)
{
    if (text.len == 0)
        return;
    fputs(label, run->call->err);
    text_print(run->call->err, text);
    fputc('\n', run->call->err);
}

/* In the same words as doctor's. */
static int checks_show(struct run *run, struct why *why)
{
    const struct table *table = run->checks.kind == VALUE_TABLE ? run->checks.table : NULL;
    int r = 0;
    for (const struct table_row *row = table ? table->first : NULL; row; row = row->next) {
        if (!str_is(table_text(table, row, "verdict"), "fail"))
            continue;
        struct str name = table_text(table, row, "check");
        struct str detail = table_text(table, row, "detail");
        struct str spoils = table_text(table, row, "spoils");
        struct str mend = table_text(table, row, "mend");
        check_line(
            run, "whyslow: check failed: ",
            str_from(arena_printf(run->arena, "%.*s: %.*s", STR_FMT(name), STR_FMT(detail))));
        check_line(run, "  spoils: ", spoils);
        check_line(run, "  mend: ", mend);
        struct str id = table_text(table, row, "id");
        bool stop = is_among(id, stopping, ARRAY_SIZE(stopping));
        if (stop && !run->opts->force && r == 0)
            r = why_set(why, WHY_DENIED, EPERM,
                        mend.len > 0
                            ? arena_printf(run->arena, "%.*s; or go on all the same with --force",
                                           STR_FMT(mend))
                            : "go on all the same with --force",
                        "not measured: the result would be spoilt: %.*s: %.*s", STR_FMT(name),
                        STR_FMT(detail));
        else if (stop || is_among(id, marking, ARRAY_SIZE(marking)))
            run_note(run, &run->marks, "check failed: %.*s: %.*s", STR_FMT(name), STR_FMT(detail));
    }
    fflush(run->call->err);
    return r;
}

int run_look(struct run *run, struct why *why)
{
    run_step(run, 2, "fingerprint and pre-flight");
    /* Before the binary is read: reading it would warm the cache. */
    double share = 0;
    bool share_known = fingerprint_resident_share(run->plan.path, &share) == 0;
    struct why binary_why = {0};
    if (build_info_read(run->arena, run->plan.path, &run->binary, &binary_why) < 0)
        run->binary_na = arena_dup(run->arena, binary_why.what);
    const struct build_info *binary = run->binary_na ? NULL : &run->binary;
    struct fingerprint_input fingerprint = {.host = &run->host,
                                            .binary = binary,
                                            .binary_na = run->binary_na,
                                            .folder = ".",
                                            .resident_share = share_known ? &share : NULL,
                                            .run_id = run->run_id};
    run->fingerprint = fingerprint_read(&fingerprint);
    struct check_input check = {.host = &run->host,
                                .binary = binary,
                                .binary_na = run->binary_na,
                                .output_folder = run->folder};
    run->checks = checks_table(&check, &run->checks_failed);
    int r = checks_show(run, why);
    if (r < 0)
        return r;
    struct why kept = {0};
    r = artifact_json(run->folder, "fingerprint.json", "whyslow.fingerprint/1", &run->fingerprint,
                      &kept);
    run_kept(run, "fingerprint.json", r, &kept);
    return 0;
}
