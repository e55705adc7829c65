/* The ways a report can be drawn. One file and one row in renderers.c each. */
#pragma once

#include "base/why.h"
#include "model/value.h"

#include <stdio.h>

struct render_opts {
    unsigned width; /* columns of the terminal; 0: as wide as needed */
    bool color;
};

struct renderer {
    const char *name; /* "text": what --format takes */
    const char *help;
    void (*draw)(const struct report *report, const struct render_opts *opts, FILE *out);
};

extern const struct renderer renderers[]; /* ends with a NULL name */

/* NULL when there is none of that name. */
const struct renderer *renderer_find(const char *name);

/* Draws and checks that everything reached the stream. */
MUST_USE int render(const struct renderer *renderer, const struct report *report,
                    const struct render_opts *opts, FILE *out, struct why *why);

/* The unit-formatted text of a scalar, or of a list in a table's cell, for renderers that write
 * for people. */
struct str value_display(const struct value *value, char *buffer, size_t size);
