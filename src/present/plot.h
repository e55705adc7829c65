/* A small chart, for the terminal and as SVG: points and lines over two axes.
 *
 * The numbers stand in a report's table as well; a plot only shows their shape. */
#pragma once

#include "base/macros.h"
#include "base/units.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum plot_mark {
    PLOT_POINTS, /* measured */
    PLOT_LINE,   /* fitted */
    PLOT_CHANGE, /* vertical lines: y is not used */
};

struct plot_series {
    const char *name; /* hostile text */
    enum plot_mark mark;
    const double *x, *y;
    size_t count;
};

struct plot {
    const char *title;
    const char *x_title, *y_title;
    enum unit y_unit;
    bool log_x, log_y; /* then every value must be above 0; others are left out */
    const struct plot_series *series;
    size_t series_count;
};

/* Width and height in characters, axes included; at least 30 by 6. Nothing is drawn without
 * a point. */
void plot_text(const struct plot *plot, unsigned width, unsigned height, FILE *out);
/* Readable in light and dark, with no script and no network; every point has its value as a
 * title. */
void plot_svg(const struct plot *plot, FILE *out);
/* The same into a new file, whole or not at all. */
MUST_USE int plot_svg_file(const struct plot *plot, const char *path, struct why *why);
