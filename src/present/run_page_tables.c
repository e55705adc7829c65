/* Tables of which the screen shows the head only: hotspots with the command that shows each, and
 * the ledger with what every angle says. The values are the screen's own. */
#include "present/html_parts.h"
#include "present/markup.h"
#include "present/renderers.h"
#include "present/run_page_parts.h"
#include "present/run_tables.h"

enum { ROWS_FIRST = 10 };

/* Every row opens to the command behind its evidence, and knows in which graph it is found: ids
 * say what a row was made of. */
static void put_hotspot(FILE *out, const struct table *table, const struct table_row *row)
{
    struct str id = table_text(table, row, "id");
    bool sampled = id.len > 0 && id.data[0] == 'f';
    fprintf(out, "<tr data-in=\"%s\" data-find=\"", sampled ? "cpu" : "offcpu");
    markup_text(out, table_text(table, row, "function"));
    fputs("\">", out);
    html_cells(out, table, row);
    fputs("<td class=\"wrap\"><details><summary>show</summary><code class=\"command\">", out);
    markup_text(out, table_text(table, row, "command"));
    fputs("</code></details></td></tr>\n", out);
}

/* Rows from `row` on, at most so many; returns the next one. */
static const struct table_row *put_hotspots(FILE *out, const struct table *table,
                                            const struct table_row *row, size_t count)
{
    fputs("<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Hotspots\"><table>\n"
          "<thead><tr>",
          out);
    html_columns(out, table);
    fputs("<th scope=\"col\">command</th></tr></thead>\n<tbody>\n", out);
    for (; row && count > 0; row = table_shown(table, row), count--)
        put_hotspot(out, table, row);
    fputs("</tbody></table></div>\n", out);
    return row;
}

void page_hotspots(FILE *out, const struct interpretation *run)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value value = run_hotspot_table(&arena, run, 0);
    const struct table *table = value.table;
    const struct table_row *row = table ? table_shown(table, NULL) : NULL;
    fputs("<section id=\"hotspots-all\">\n<h2>Hotspots</h2>\n", out);
    if (row)
        row = put_hotspots(out, table, row, ROWS_FIRST);
    else
        html_note(out, table && table->empty ? table->empty : "none");
    if (row) {
        fprintf(out, "<details class=\"others\"><summary>%zu more</summary>\n",
                run->hotspots.count - ROWS_FIRST);
        put_hotspots(out, table, row, SIZE_MAX);
        fputs("</details>\n", out);
    }
    if (run->hotspots.left_out > 0)
        fprintf(out, "<p class=\"dim\">%zu smaller places are left out.</p>\n",
                run->hotspots.left_out);
    fputs("</section>\n", out);
}

void page_ledger(FILE *out, const struct interpretation *run)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value table = run_ledger_table(&arena, run);
    if (!table.table || !table_shown(table.table, NULL))
        return;
    fputs("<details class=\"others\"><summary>What each angle says of every hypothesis</summary>\n"
          "<div class=\"table\"><table class=\"wide\">\n",
          out);
    html_table(out, table.table);
    fputs("</table></div></details>\n", out);
}
