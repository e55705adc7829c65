/* One self-contained HTML page: what was recorded, the hotspots as a table, and the flame
 * graph on a canvas. It needs no network and no server; its policy (CSP) lets nothing run but
 * its own script, whatever a function of the target is called. The table is complete without
 * scripts. */
#pragma once

#include "base/why.h"
#include "model/call_tree.h"
#include "model/value.h"

#include <stdio.h>

struct html_opts {
    const char *title;
    const struct value *honesty;  /* a text, or a map of figures; NULL: none */
    const struct value *hotspots; /* a table, the one the text report draws; NULL: none */
    const char *table_title;      /* what it is; NULL: "Hotspots" */
    const struct call_tree *tree;
    const struct call_tree *before; /* NULL: no differential graph */
    double scale;                   /* as for flame_svg() */
};

MUST_USE int html_write(const struct html_opts *opts, FILE *out, struct why *why);
