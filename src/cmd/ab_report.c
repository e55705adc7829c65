/* Ratios as words, pictures and tables. No judging here: that is stats/ratio.h's. */
#include "cmd/ab_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *percent(struct arena *arena, double change)
{
    double size = fabs(change * 100);
    int digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    return arena_printf(arena, "%+.*f%%", digits, change * 100 + 0.0);
}

const char *change_text(struct arena *arena, double ratio)
{
    return percent(arena, ratio - 1);
}

const char *interval_text(struct arena *arena, const struct ratio *ratio)
{
    return arena_printf(arena, "%s to %s", percent(arena, ratio->low - 1),
                        percent(arena, ratio->high - 1));
}

const char *p_text(struct arena *arena, double p)
{
    return p < 0.0001 ? "p < 0.0001" : arena_printf(arena, "p = %.2g", p);
}

const char *verdict_word(enum verdict verdict, int metric)
{
    bool time = metric <= BENCH_CPU;
    if (verdict == VERDICT_SLOWER)
        return time ? "slower" : "more";
    if (verdict == VERDICT_FASTER)
        return time ? "faster" : "less";
    return verdict_name(verdict);
}

/* The next of 0.5, 1, 2, 5, 10, … percent: ends of the axis that can be read. */
static double axis_end(double change)
{
    double decade = 0.001;
    for (int i = 0; i < 12; i++, decade *= 10) {
        static const double steps[] = {1, 2, 5};
        for (int k = 0; k < 3; k++)
            if (steps[k] * decade >= change && steps[k] * decade >= 0.005)
                return steps[k] * decade;
    }
    return change;
}

struct value interval_picture(struct arena *arena, const struct ratio *ratio, const double *marks,
                              size_t mark_count)
{
    enum { HALF = 24, COLUMNS = 2 * HALF + 1 };
    struct value list = value_list(arena);
    if (!ratio->has_interval)
        return list;
    double reach = fmax(fabs(log(ratio->low)), fabs(log(ratio->high)));
    for (size_t i = 0; i < mark_count; i++)
        reach = fmax(reach, fabs(log(marks[i])));
    double end = axis_end(expm1(reach * 1.05));
    char axis[COLUMNS + 1];
    memset(axis, '.', COLUMNS);
    axis[COLUMNS] = '\0';
#define AT(x) ((int)lround(fmin(1, fmax(-1, log(x) / log1p(end))) * HALF) + HALF)
    int low = AT(ratio->low), high = AT(ratio->high);
    axis[HALF] = '|';
    for (int i = low; i <= high; i++)
        axis[i] = '=';
    axis[low] = '[';
    axis[high] = ']';
    for (size_t i = 0; i < mark_count; i++)
        axis[AT(marks[i])] = ':';
    axis[AT(ratio->ratio)] = '*';
#undef AT
    value_append(&list,
                 value_text(arena_printf(arena, "%8s  %s  %s", percent(arena, 1 / (1 + end) - 1),
                                         axis, percent(arena, end))));
    value_append(&list, value_text(arena_printf(arena, "%8s  %-*s%s", "", HALF - 9, "less than A",
                                                "         0         more than A")));
    return list;
}

struct value ratio_value(const struct ab_line *line, double number)
{
    return line->na ? value_na(line->na) : value_real(number, UNIT_NONE);
}

struct value ci_value(struct arena *arena, const struct ab_line *line)
{
    if (line->na)
        return value_na(line->na);
    if (!line->ratio.has_interval)
        return value_na("too few runs for an interval");
    struct value list = value_list(arena);
    value_append(&list, value_real(line->ratio.low, UNIT_NONE));
    value_append(&list, value_real(line->ratio.high, UNIT_NONE));
    return list;
}

enum {
    COL_ID,
    COL_TITLE,
    COL_A,
    COL_B,
    COL_CHANGE,
    COL_INTERVAL,
    COL_VERDICT,
    COL_WORD,
    COL_RATIO,
    COL_CI,
    COL_P,
    COL_P_ADJUSTED,
    COL_DETECTABLE,
    COL_UNIT,
    COLS,
};

static const struct column metric_columns[COLS] = {
    [COL_ID] = {"metric", "metric", SHOW_MACHINE, false, false},
    [COL_TITLE] = {"title", "median of", SHOW_ALWAYS, false, false},
    [COL_A] = {"a", "A", SHOW_ALWAYS, true, false},
    [COL_B] = {"b", "B", SHOW_ALWAYS, true, false},
    [COL_CHANGE] = {"change", "change", SHOW_ALWAYS, true, false},
    [COL_INTERVAL] = {"interval", "95% interval", SHOW_ALWAYS, true, false},
    [COL_VERDICT] = {"verdict", "verdict", SHOW_MACHINE, false, false},
    [COL_WORD] = {"word", "B is", SHOW_ALWAYS, false, false},
    [COL_RATIO] = {"ratio", "ratio", SHOW_MACHINE, true, false},
    [COL_CI] = {"ci95", "ci95", SHOW_MACHINE, false, false},
    [COL_P] = {"p", "p", SHOW_MACHINE, true, false},
    [COL_P_ADJUSTED] = {"p_adjusted", "p, corrected", SHOW_MACHINE, true, false},
    [COL_DETECTABLE] = {"min_detectable", "detectable", SHOW_MACHINE, true, false},
    [COL_UNIT] = {"unit", "unit", SHOW_MACHINE, false, false},
};

static struct value figure(double number, int metric, const char *na)
{
    return isnan(number) ? value_na(na ? na : "not known")
                         : value_real(number, bench_metrics[metric].unit);
}

static const char *unit_name(enum unit unit)
{
    return unit == UNIT_MS      ? "ms"
           : unit == UNIT_KIB   ? "KiB"
           : unit == UNIT_BYTES ? "bytes"
                                : "count";
}

static void row_fill(struct arena *arena, struct table_row *row, const struct ab_line *line, int i)
{
    const struct ratio *ratio = &line->ratio;
    row->cells[COL_ID] = value_text(bench_metrics[i].name);
    row->cells[COL_TITLE] = value_text(bench_metrics[i].about);
    row->cells[COL_A] = figure(line->a, i, line->na);
    row->cells[COL_B] = figure(line->b, i, line->na);
    row->cells[COL_CHANGE] = line->na ? value_na(line->na)
                                      : value_text(change_text(arena, ratio->ratio));
    row->cells[COL_INTERVAL] = line->na              ? value_text("")
                               : ratio->has_interval ? value_text(interval_text(arena, ratio))
                                                     : value_na("too few runs");
    row->cells[COL_VERDICT] = value_text(verdict_name(line->verdict));
    enum tone tone = line->verdict == VERDICT_SLOWER   ? TONE_BAD
                     : line->verdict == VERDICT_FASTER ? TONE_GOOD
                                                       : TONE_DIM;
    row->cells[COL_WORD] = value_tone(value_text(line->na ? "" : verdict_word(line->verdict, i)),
                                      tone);
    row->cells[COL_RATIO] = ratio_value(line, ratio->ratio);
    row->cells[COL_CI] = ci_value(arena, line);
    row->cells[COL_P] = ratio_value(line, ratio->p);
    row->cells[COL_P_ADJUSTED] = ratio_value(line, line->p_adjusted);
    row->cells[COL_DETECTABLE] = line->na ? value_na(line->na)
                                 : isnan(line->detectable)
                                     ? value_na("too few runs for an interval")
                                     : value_real(line->detectable, UNIT_NONE);
    row->cells[COL_UNIT] = value_text(unit_name(bench_metrics[i].unit));
    /* Nothing known, or nothing at all on either side: no line for people. */
    bool nothing = !line->na && line->a == 0 && line->b == 0;
    if (nothing || (isnan(line->a) && isnan(line->b)))
        row->show = SHOW_MACHINE;
}

struct value metrics_table(struct arena *arena, const struct ab_answer *answer)
{
    struct value table = value_table(arena, metric_columns, COLS);
    for (int i = 0; i < BENCH_METRICS; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            return table;
        row_fill(arena, row, &answer->lines[i], i);
    }
    return table;
}

struct value metrics_missing(struct arena *arena, const struct ab_answer *answer)
{
    struct value list = value_list(arena);
    bool said[BENCH_METRICS] = {false};
    for (int i = 0; i < BENCH_METRICS; i++) {
        const struct ab_line *line = &answer->lines[i];
        if (said[i] || !line->na || !isnan(line->a) || !isnan(line->b))
            continue;
        const char *names = bench_metrics[i].name;
        for (int k = i + 1; k < BENCH_METRICS; k++)
            if (answer->lines[k].na && strcmp(answer->lines[k].na, line->na) == 0) {
                names = arena_printf(arena, "%s, %s", names, bench_metrics[k].name);
                said[k] = true;
            }
        value_append(&list, value_text(arena_printf(arena, "%s: n/a: %s", names, line->na)));
    }
    return list;
}
