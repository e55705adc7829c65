/* report.html of `whyslow run`: the screen with all that stands behind it, in one file.
 *
 * Tables are drawn from the value that the terminal draws; findings open to their why-chain, the
 * three angles and every fact with the artifact and the id it comes from; flame graphs of all axes
 * are behind tabs, and a timeline shows the critical path and the threads. No network, no server:
 * the policy lets nothing run but the page's own script. Everything but the flame graphs can be
 * read without it. */
#pragma once

#include "analyze/interpretation.h"
#include "model/call_tree.h"

#include <stdio.h>

struct run_graph {
    const char *id;               /* "cpu" */
    const char *title;            /* "CPU": of its tab */
    const char *what;             /* what its widths are, in a sentence */
    const char *file;             /* "flame-cpu.svg", beside the page */
    const struct call_tree *tree; /* NULL: there is none, `na` says why */
    const char *na;
    const char *honesty; /* its line; NULL: none */
};

struct run_page {
    const struct interpretation *run;
    const struct value *screen; /* the map that the terminal draws */
    const struct run_graph *graphs;
    size_t graph_count;
};

MUST_USE int run_page_write(const struct run_page *page, FILE *out, struct why *why);
