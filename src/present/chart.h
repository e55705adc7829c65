/* A small chart, for the terminal and as SVG: points and lines over two axes.
 *
 * The numbers stand in a report's table as well; a chart only shows their shape. */
#pragma once

#include "base/macros.h"
#include "base/units.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum chart_mark {
    CHART_POINTS, /* measured */
    CHART_LINE,   /* fitted */
    CHART_CHANGE, /* vertical lines: y is not used */
};

struct chart_series {
    const char *name; /* hostile text */
    enum chart_mark mark;
    const double *x, *y;
    size_t count;
};

struct chart {
    const char *title;
    const char *x_title, *y_title;
    enum unit y_unit;
    bool log_x, log_y; /* then every value must be above 0; others are left out */
    const struct chart_series *series;
    size_t series_count;
};

/* Width and height in characters, axes included; at least 30 by 6. Nothing is drawn without
 * a point. */
void chart_text(const struct chart *chart, unsigned width, unsigned height, FILE *out);
/* Readable in light and dark, with no script and no network; every point has its value as a
 * title. */
void chart_svg(const struct chart *chart, FILE *out);
/* The same into a new file, whole or not at all. */
MUST_USE int chart_svg_file(const struct chart *chart, const char *path, struct why *why);
