/* Results as files: JSON, CSV, and tables for documents. Each is written whole or not at all. */
#include "cmd/bench.h"

#include "base/fd.h"
#include "base/text.h"
#include "cmd/run_artifacts.h"
#include "store/bench_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A device or a pipe cannot be replaced: it is written to. */
static int file_put(const char *path, const char *text, size_t len, struct why *why)
{
    struct stat st;
    if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
        return file_write_atomic(path, text, len, why);
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : fd_write_all(fd, text, len);
    return r < 0 ? why_errno(why, -r, NULL, "cannot write '%s'", path) : 0;
}

static void csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

static void csv_number(FILE *out, double number)
{
    fprintf(out, isnan(number) ? "," : ",%.17g", number);
}

/* hyperfine's columns, in seconds; the interval comes after them. */
static void csv_print(FILE *out, const struct bench_facts *facts)
{
    fputs("command,mean,stddev,median,user,system,min,max", out);
    const struct bench_job *first = facts->outcomes[0].job;
    for (size_t i = 0; i < first->parameter_count; i++) {
        fputs(",parameter_", out);
        csv_text(out, first->parameters[i].name);
    }
    fputs(",median_low,median_high,runs,peak_rss_kb\n", out);
    for (size_t i = 0; i < facts->len; i++) {
        const struct bench_outcome *o = &facts->outcomes[i];
        const struct summary *w = &o->summaries[BENCH_WALL];
        const double numbers[] = {w->mean,
                                  w->count > 1 ? w->stddev : NAN,
                                  w->median,
                                  o->summaries[BENCH_USER].mean,
                                  o->summaries[BENCH_SYSTEM].mean,
                                  w->min,
                                  w->max};
        csv_text(out, o->result.name);
        for (size_t j = 0; j < ARRAY_SIZE(numbers); j++)
            csv_number(out, numbers[j] / 1000);
        for (size_t j = 0; j < o->job->parameter_count; j++) {
            fputc(',', out);
            csv_text(out, o->job->parameters[j].value);
        }
        csv_number(out, w->has_interval ? w->median_low / 1000 : NAN);
        csv_number(out, w->has_interval ? w->median_high / 1000 : NAN);
        const struct summary *rss = &o->summaries[BENCH_PEAK_RSS];
        fprintf(out, ",%zu", w->count);
        csv_number(out, rss->count > 0 ? rss->median : NAN);
        fputc('\n', out);
    }
}

enum { CELLS = 7 };

static const char *const titles[CELLS] = {"Command", "Median", "95% interval", "Mean",
                                          "Min",     "Max",    "Relative"};

struct cells {
    char text[CELLS][128];
};

static void cells_fill(const struct bench_facts *facts, const struct bench_outcome *o, double best,
                       struct cells *ret)
{
    const struct summary *w = &o->summaries[BENCH_WALL];
    const double numbers[] = {w->median, NAN, w->mean, w->min, w->max};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        bench_time_text(facts->time_unit, numbers[i], ret->text[i + 1], sizeof(ret->text[0]));
    char low[48], high[48];
    bench_time_text(facts->time_unit, w->median_low, low, sizeof(low));
    bench_time_text(facts->time_unit, w->median_high, high, sizeof(high));
    if (w->has_interval)
        snprintf(ret->text[2], sizeof(ret->text[0]), "%s - %s", low, high);
    else
        snprintf(ret->text[2], sizeof(ret->text[0]), "n/a: fewer than 6 runs");
    snprintf(ret->text[6], sizeof(ret->text[0]), "%.2f", w->median / best);
}

/* The command in code marks, with what would end the cell taken apart. */
static void code_cell(FILE *out, const char *command, const char *open, const char *close,
                      const char *bar)
{
    fputs(open, out);
    for (const char *c = command; *c; c++) {
        if (*c == '|')
            fputs(bar, out);
        else if ((unsigned char)*c < 0x20)
            fputc(' ', out);
        else
            fputc(*c, out);
    }
    fputs(close, out);
}

struct table_style {
    const char *begin, *head, *separator, *row, *row_end, *end;
    const char *code_open, *code_close, *bar;
    bool rule; /* a line under the titles */
    const char *rule_text;
};

static const struct table_style markdown = {"",
                                            "| ",
                                            " | ",
                                            "| ",
                                            " |\n",
                                            "",
                                            "`",
                                            "`",
                                            "\\|",
                                            true,
                                            "|:---|---:|---:|---:|---:|---:|---:|\n"};
static const struct table_style asciidoc = {"[cols=\"<,>,>,>,>,>,>\"]\n|===\n",
                                            "| ",
                                            " | ",
                                            "| ",
                                            "\n",
                                            "|===\n",
                                            "`",
                                            "`",
                                            "\\|",
                                            true,
                                            "\n"};
static const struct table_style orgmode = {
    "", "| ", " | ", "| ", " |\n", "", "=", "=", "\\vert{}", true, "|--+--+--+--+--+--+--|\n"};

static void document_print(FILE *out, const struct bench_facts *facts,
                           const struct table_style *style)
{
    double best = INFINITY;
    for (size_t i = 0; i < facts->len; i++)
        best = fmin(best, facts->outcomes[i].summaries[BENCH_WALL].median);
    fputs(style->begin, out);
    fputs(style->head, out);
    for (size_t i = 0; i < CELLS; i++)
        fprintf(out, "%s%s", i ? style->separator : "", titles[i]);
    fputs(style->row_end, out);
    fputs(style->rule_text, out);
    for (size_t i = 0; i < facts->len; i++) {
        struct cells cells = {0};
        cells_fill(facts, &facts->outcomes[i], best, &cells);
        fputs(style->row, out);
        code_cell(out, facts->outcomes[i].result.name, style->code_open, style->code_close,
                  style->bar);
        for (size_t j = 1; j < CELLS; j++)
            fprintf(out, "%s%s", style->separator, cells.text[j]);
        fputs(style->row_end, out);
    }
    fputs(style->end, out);
}

static int text_export(const struct bench_facts *facts, const char *path,
                       const struct table_style *style, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return why_nomem(why);
    if (style)
        document_print(out, facts, style);
    else
        csv_print(out, facts);
    int r = fclose(out) != 0 ? why_nomem(why) : file_put(path, text, len, why);
    free(text);
    return r;
}

static int json_export(const struct value *root, const char *path, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    int r = json_text_make(BENCH_SCHEMA, root, &text, &len, why);
    if (r == 0)
        r = file_put(path, text, len, why);
    free(text);
    return r;
}

int bench_export(const struct bench_facts *facts, const struct bench_opts *opts,
                 const struct value *root, struct why *why)
{
    const struct {
        const char *path;
        const struct table_style *style;
    } tables[] = {{opts->export_csv, NULL},
                  {opts->export_markdown, &markdown},
                  {opts->export_asciidoc, &asciidoc},
                  {opts->export_orgmode, &orgmode}};
    struct why other = {0};
    int first = opts->export_json ? json_export(root, opts->export_json, why) : 0;
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        if (!tables[i].path)
            continue;
        int r = text_export(facts, tables[i].path, tables[i].style, first == 0 ? why : &other);
        first = first == 0 ? r : first;
    }
    if (first == -ENOSPC || first == -EDQUOT || first == -EFBIG)
        why_set_remedy(why, "free some space, or choose another place; the results stand above");
    return first;
}
