/* Charts: one scale and one set of ticks, drawn in characters or as SVG. */
#include "present/chart.h"

#include "base/fd.h"
#include "base/text.h"
#include "present/markup.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS_MAX = 12, LABEL_BYTES = 48, TEXT_COLUMNS_MAX = 200, TEXT_ROWS_MAX = 60 };

struct axis {
    bool log;
    double low, high; /* of the values, after the logarithm */
    double tick[TICKS_MAX];
    size_t ticks;
};

static double axis_value(const struct axis *axis, double value)
{
    return axis->log ? log10(value) : value;
}

/* 0 at the low end, 1 at the high one. */
static double axis_share(const struct axis *axis, double value)
{
    return (axis_value(axis, value) - axis->low) / (axis->high - axis->low);
}

static bool is_shown(const struct chart *chart, const struct chart_series *series, size_t i)
{
    double x = series->x[i];
    double y = series->mark == CHART_CHANGE ? 1 : series->y[i];
    return isfinite(x) && isfinite(y) && (!chart->log_x || x > 0) && (!chart->log_y || y > 0);
}

static void axis_include(struct axis *axis, double value)
{
    double at = axis_value(axis, value);
    axis->low = fmin(axis->low, at);
    axis->high = fmax(axis->high, at);
}

/* Steps of 1, 2 or 5 times a power of ten; of a logarithmic axis powers of ten, and 1-2-5
 * inside a narrow one. */
static void ticks_linear(struct axis *axis)
{
    double span = axis->high - axis->low;
    double step = pow(10, floor(log10(span / 4)));
    while (span / step > 8)
        step *= span / (step * 2) <= 8 ? 2 : span / (step * 5) <= 8 ? 5 : 10;
    for (double at = ceil(axis->low / step) * step;
         at <= axis->high + step / 1e6 && axis->ticks < TICKS_MAX; at += step)
        axis->tick[axis->ticks++] = fabs(at) < step / 1e6 ? 0 : at;
}

static void ticks_log(struct axis *axis)
{
    static const double fine[] = {1, 2, 5};
    double span = axis->high - axis->low;
    int every = span > TICKS_MAX - 2 ? (int)ceil(span / (TICKS_MAX - 2)) : 1;
    for (int decade = (int)floor(axis->low); decade <= (int)ceil(axis->high); decade += every)
        for (size_t i = 0; i < (span < 3 ? ARRAY_SIZE(fine) : 1); i++) {
            double value = fine[i] * pow(10, decade);
            double at = log10(value);
            if (at >= axis->low - 1e-9 && at <= axis->high + 1e-9 && axis->ticks < TICKS_MAX)
                axis->tick[axis->ticks++] = value;
        }
}

static void axis_finish(struct axis *axis)
{
    if (axis->high - axis->low < DBL_EPSILON * fmax(1, fabs(axis->high))) {
        double pad = axis->log ? 0.1 : fmax(fabs(axis->high) * 0.05, 0.5);
        axis->low -= pad;
        axis->high += pad;
    }
    if (axis->log)
        ticks_log(axis);
    else
        ticks_linear(axis);
}

/* False when there is no point at all. */
static bool axes_make(const struct chart *chart, struct axis *x, struct axis *y)
{
    *x = (struct axis){.log = chart->log_x, .low = INFINITY, .high = -INFINITY};
    *y = (struct axis){.log = chart->log_y, .low = INFINITY, .high = -INFINITY};
    for (size_t s = 0; s < chart->series_count; s++) {
        const struct chart_series *series = &chart->series[s];
        for (size_t i = 0; i < series->count; i++) {
            if (!is_shown(chart, series, i))
                continue;
            axis_include(x, series->x[i]);
            if (series->mark != CHART_CHANGE)
                axis_include(y, series->y[i]);
        }
    }
    if (!(x->low <= x->high) || !(y->low <= y->high))
        return false;
    if (!chart->log_y && y->low > 0 && y->low < 0.4 * y->high)
        y->low = 0; /* a bar that begins near nothing should begin at nothing */
    axis_finish(x);
    axis_finish(y);
    return true;
}

/* In characters. */

struct canvas {
    unsigned columns, rows;
    char cell[TEXT_ROWS_MAX][TEXT_COLUMNS_MAX]; /* ' ', '.', '|', or a digit: points there */
};

static void canvas_put(struct canvas *canvas, double x, double y, char mark)
{
    long column = lround(x * (canvas->columns - 1));
    long row = lround((1 - y) * (canvas->rows - 1));
    if (column < 0 || row < 0 || column >= (long)canvas->columns || row >= (long)canvas->rows)
        return;
    char *cell = &canvas->cell[row][column];
    if (mark == 'o' || *cell == ' ')
        *cell = mark;
}

static void canvas_series(struct canvas *canvas, const struct chart *chart,
                          const struct chart_series *series, const struct axis *x,
                          const struct axis *y)
{
    for (size_t i = 0; i < series->count; i++) {
        if (!is_shown(chart, series, i))
            continue;
        double at = axis_share(x, series->x[i]);
        if (series->mark == CHART_CHANGE) {
            for (unsigned row = 0; row < canvas->rows; row++)
                canvas_put(canvas, at, (double)row / (canvas->rows - 1), '|');
            continue;
        }
        double height = axis_share(y, series->y[i]);
        canvas_put(canvas, at, height, series->mark == CHART_POINTS ? 'o' : '.');
        if (series->mark == CHART_POINTS || i + 1 == series->count ||
            !is_shown(chart, series, i + 1))
            continue;
        double to = axis_share(x, series->x[i + 1]), up = axis_share(y, series->y[i + 1]);
        for (unsigned k = 1; k < canvas->columns; k++) {
            double share = (double)k / canvas->columns;
            canvas_put(canvas, at + (to - at) * share, height + (up - height) * share, '.');
        }
    }
}

static const char *glyph(char mark)
{
    return mark == 'o' ? "●" : mark == '.' ? "·" : mark == '|' ? "┊" : " ";
}

static size_t nearest_tick(const struct axis *axis, double share, double half_cell)
{
    for (size_t i = 0; i < axis->ticks; i++)
        if (fabs(axis_share(axis, axis->tick[i]) - share) <= half_cell)
            return i;
    return TICKS_MAX;
}

static void text_x_axis(const struct canvas *canvas, const struct axis *x, unsigned margin,
                        FILE *out)
{
    char line[TEXT_COLUMNS_MAX + LABEL_BYTES];
    memset(line, ' ', sizeof(line));
    size_t free_from = 0, end = 0;
    for (size_t i = 0; i < x->ticks; i++) {
        char label[LABEL_BYTES];
        units_format(x->tick[i], UNIT_COUNT, label, sizeof(label));
        size_t len = strlen(label);
        double share = axis_share(x, x->tick[i]);
        size_t at = (size_t)lround(share * (canvas->columns - 1));
        if (at < free_from || at + len >= sizeof(line))
            continue;
        for (size_t k = 0; k < len; k++)
            line[at + k] = label[k];
        end = at + len;
        free_from = end + 2;
    }
    fprintf(out, "%*s %.*s\n", (int)margin, "", (int)end, line);
}

void chart_text(const struct chart *chart, unsigned width, unsigned height, FILE *out)
{
    struct axis x, y;
    if (!axes_make(chart, &x, &y))
        return;
    unsigned margin = 12;
    struct canvas canvas = {.columns = MIN(MAX(width, 30u), (unsigned)TEXT_COLUMNS_MAX) - margin -
                                       2,
                            .rows = MIN(MAX(height, 6u), (unsigned)TEXT_ROWS_MAX) - 2};
    memset(canvas.cell, ' ', sizeof(canvas.cell));
    for (size_t s = 0; s < chart->series_count; s++)
        canvas_series(&canvas, chart, &chart->series[s], &x, &y);
    text_print(out, str_from(chart->title));
    fputc('\n', out);
    for (unsigned row = 0; row < canvas.rows; row++) {
        double share = 1 - (double)row / (canvas.rows - 1);
        size_t tick = nearest_tick(&y, share, 0.5 / (canvas.rows - 1));
        char label[LABEL_BYTES] = "";
        if (tick < TICKS_MAX)
            units_format(y.tick[tick], chart->y_unit, label, sizeof(label));
        fprintf(out, "%*s %s", (int)margin - 1, label, tick < TICKS_MAX ? "┤" : "│");
        unsigned last = canvas.columns;
        while (last > 0 && canvas.cell[row][last - 1] == ' ')
            last--;
        for (unsigned column = 0; column < last; column++)
            fputs(glyph(canvas.cell[row][column]), out);
        fputc('\n', out);
    }
    fprintf(out, "%*s└", (int)margin, "");
    for (unsigned column = 0; column < canvas.columns; column++)
        fputs("─", out);
    fputc('\n', out);
    text_x_axis(&canvas, &x, margin, out);
    fprintf(out, "%*s ", (int)margin, "");
    text_print(out, str_from(chart->x_title));
    fputc('\n', out);
}

/* As SVG. */

enum {
    SVG_WIDTH = 720,
    SVG_HEIGHT = 420,
    SVG_LEFT = 90,
    SVG_RIGHT = 20,
    SVG_TOP = 48,
    SVG_BOTTOM = 56
};

static const char *const colours[] = {"#2563eb", "#d97706", "#059669", "#7c3aed", "#dc2626"};

static double svg_x(const struct axis *x, double value)
{
    return SVG_LEFT + axis_share(x, value) * (SVG_WIDTH - SVG_LEFT - SVG_RIGHT);
}

static double svg_y(const struct axis *y, double value)
{
    return SVG_HEIGHT - SVG_BOTTOM - axis_share(y, value) * (SVG_HEIGHT - SVG_TOP - SVG_BOTTOM);
}

static void svg_label(FILE *out, double x, double y, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    markup_text(out, str_from(text));
    fputs("</text>\n", out);
}

static void svg_axes(const struct chart *chart, const struct axis *x, const struct axis *y,
                     FILE *out)
{
    char label[LABEL_BYTES];
    for (size_t i = 0; i < y->ticks; i++) {
        double at = svg_y(y, y->tick[i]);
        fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", SVG_LEFT, at,
                SVG_WIDTH - SVG_RIGHT);
        svg_label(out, SVG_LEFT - 8, at + 4, "text-anchor=\"end\"",
                  units_format(y->tick[i], chart->y_unit, label, sizeof(label)));
    }
    for (size_t i = 0; i < x->ticks; i++)
        svg_label(out, svg_x(x, x->tick[i]), SVG_HEIGHT - SVG_BOTTOM + 20, "text-anchor=\"middle\"",
                  units_format(x->tick[i], UNIT_COUNT, label, sizeof(label)));
    fprintf(out, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", SVG_LEFT, SVG_TOP,
            SVG_HEIGHT - SVG_BOTTOM, SVG_WIDTH - SVG_RIGHT);
    svg_label(out, SVG_LEFT, 24, "font-size=\"15\" font-weight=\"600\"", chart->title);
    svg_label(out, SVG_WIDTH - SVG_RIGHT, SVG_HEIGHT - 14, "text-anchor=\"end\"", chart->x_title);
    svg_label(out, SVG_LEFT, SVG_TOP - 8, "", chart->y_title);
}

static void svg_point(const struct chart *chart, const struct chart_series *series, size_t i,
                      const struct axis *x, const struct axis *y, const char *colour, FILE *out)
{
    char label[LABEL_BYTES], place[LABEL_BYTES];
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"><title>",
            svg_x(x, series->x[i]), svg_y(y, series->y[i]), colour);
    markup_text(out, str_from(series->name));
    fprintf(out, " at %s: %s</title></circle>\n",
            units_format(series->x[i], UNIT_COUNT, place, sizeof(place)),
            units_format(series->y[i], chart->y_unit, label, sizeof(label)));
}

static void svg_series(const struct chart *chart, const struct chart_series *series,
                       const struct axis *x, const struct axis *y, const char *colour, FILE *out)
{
    if (series->mark == CHART_LINE)
        fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour);
    bool begun = false;
    for (size_t i = 0; i < series->count; i++) {
        if (!is_shown(chart, series, i))
            continue;
        if (series->mark == CHART_POINTS)
            svg_point(chart, series, i, x, y, colour, out);
        else if (series->mark == CHART_CHANGE)
            fprintf(out, "<path class=\"change\" d=\"M%.1f %dV%d\"/>\n", svg_x(x, series->x[i]),
                    SVG_TOP, SVG_HEIGHT - SVG_BOTTOM);
        else
            fprintf(out, "%c%.1f %.1f", begun ? 'L' : 'M', svg_x(x, series->x[i]),
                    svg_y(y, series->y[i]));
        begun = true;
    }
    if (series->mark == CHART_LINE)
        fputs("\"/>\n", out);
}

static void svg_legend(const struct chart *chart, FILE *out)
{
    for (size_t s = 0; s < chart->series_count; s++) {
        double y = SVG_TOP + 16 + (double)s * 18;
        fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n",
                SVG_LEFT + 12, y - 9,
                chart->series[s].mark == CHART_CHANGE ? "#dc2626"
                                                      : colours[s % ARRAY_SIZE(colours)]);
        svg_label(out, SVG_LEFT + 28, y, "", chart->series[s].name);
    }
}

void chart_svg(const struct chart *chart, FILE *out)
{
    struct axis x, y;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>",
            SVG_WIDTH, SVG_HEIGHT);
    markup_text(out, str_from(chart->title));
    fputs("</title>\n<style>svg{background:#fff}text{fill:#1f2937}"
          ".grid{stroke:#e5e7eb}.axis{stroke:#6b7280;fill:none}"
          ".change{stroke:#dc2626;stroke-dasharray:4 3}"
          "@media(prefers-color-scheme:dark){svg{background:#111827}text{fill:#e5e7eb}"
          ".grid{stroke:#374151}.axis{stroke:#9ca3af}}</style>\n",
          out);
    if (axes_make(chart, &x, &y)) {
        svg_axes(chart, &x, &y, out);
        for (size_t s = 0; s < chart->series_count; s++)
            svg_series(chart, &chart->series[s], &x, &y, colours[s % ARRAY_SIZE(colours)], out);
        svg_legend(chart, out);
    }
    fputs("</svg>\n", out);
}

int chart_svg_file(const struct chart *chart, const char *path, struct why *why)
{
    char *data = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&data, &len);
    if (!out)
        return why_nomem(why);
    chart_svg(chart, out);
    int r = fclose(out) != 0 ? why_nomem(why) : file_write_atomic(path, data, len, why);
    free(data);
    return r;
}
