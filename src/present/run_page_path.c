/* The critical path in words, beside the picture of it: what it stood in the longest. */
#include "present/html_parts.h"
#include "present/run_page_parts.h"

#include <errno.h>

enum { ROWS_MAX = 12 };

static const struct column columns[] = {
    {"class", "what", SHOW_ALWAYS, false, false},
    {"time_ms", "time", SHOW_ALWAYS, true, false},
    {"share_pct", "of the path", SHOW_ALWAYS, true, false},
    {"thread", "thread", SHOW_ALWAYS, false, false},
    {"cause", "for what", SHOW_ALWAYS, false, true},
    {"where", "where", SHOW_ALWAYS, false, true},
    {"id", "id", SHOW_ALWAYS, false, false},
};

static void row_fill(struct arena *arena, const struct evidence *evidence,
                     const struct path_share *share, struct value *cells)
{
    const struct waits *waits = &evidence->waits;
    const struct profile_thread *thread = &waits->profile.threads[share->thread];
    bool waited = share->what == PATH_WAIT;
    enum wait_class class = waited                        ? evidence->classes.rows[share->wait]
                            : share->what == PATH_RUNNING ? WAIT_CLASS_RUNNING
                                                          : WAIT_CLASS_RUNQ;
    uint32_t group = waited && evidence->groups.of_row ? evidence->groups.of_row[share->wait] : 0;
    cells[0] = value_text(wait_class_name(class));
    cells[1] = value_real((double)share->ns / 1e6, UNIT_MS);
    cells[2] = value_real((double)share->ns / (double)evidence->path.ns * 100, UNIT_PERCENT);
    cells[3] = value_text(arena_printf(arena, "%.*s %u", STR_FMT(thread->name), thread->tid));
    cells[4] = value_text(waited ? wait_cause(arena, waits, share->wait) : "");
    cells[5] = value_text(
        waited ? wait_where(arena, &waits->profile, waits->rows[share->wait].info.stack) : "");
    cells[6] = value_text(group ? arena_printf(arena, "w%u", evidence->groups.groups[group - 1].id)
                                : "");
}

int page_path(FILE *out, const struct evidence *evidence)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    const struct critical_path *path = &evidence->path;
    if (path->na || path->share_count == 0 || path->ns == 0)
        return 0;
    struct value table = value_table(&arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < MIN(path->share_count, (size_t)ROWS_MAX); i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            return -ENOMEM;
        row_fill(&arena, evidence, &path->shares[i], row->cells);
    }
    if (arena_failed(&arena))
        return -ENOMEM;
    fprintf(out,
            "<details class=\"others\"><summary>What the critical path stood in the longest "
            "(%zu of %zu)</summary>\n<div class=\"table\"><table>\n",
            MIN(path->share_count, (size_t)ROWS_MAX), path->share_count);
    html_table(out, table.table);
    fputs("</table></div></details>\n", out);
    return 0;
}
