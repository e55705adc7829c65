/* Flame graphs and the page that several commands write: --flame, --icicle, --html. Drawn into
 * memory, written whole or not at all. */
#pragma once

#include "base/opt.h"
#include "base/why.h"
#include "model/call_tree.h"
#include "model/value.h"

struct picture_opts {
    const char *flame;
    const char *icicle;
    const char *html;
};

#define PICTURE_OPTIONS(type, member)                                                              \
    {"flame",    0,                                                                                \
     OPT_FILE,   offsetof(type, member) + offsetof(struct picture_opts, flame),                    \
     "FILE.svg", "write a flame graph",                                                            \
     NULL,       NULL,                                                                             \
     false},                                                                                       \
        {"icicle",   0,                                                                            \
         OPT_FILE,   offsetof(type, member) + offsetof(struct picture_opts, icicle),               \
         "FILE.svg", "the same with the root on top",                                              \
         NULL,       NULL,                                                                         \
         false},                                                                                   \
    {                                                                                              \
        "html", 0, OPT_FILE, offsetof(type, member) + offsetof(struct picture_opts, html), "FILE", \
            "write one page with the table and the flame graph", NULL, NULL, false                 \
    }

/* What is drawn. */
struct pictured {
    const struct call_tree *tree;
    const struct call_tree *before; /* NULL: no differential graph */
    double scale;
    const char *title;
    const char *subtitle;        /* the line of honesty */
    const struct value *honesty; /* its figures */
    const struct value *table;   /* of the page */
    const char *table_title;     /* NULL: "Hotspots" */
};

bool pictures_wanted(const struct picture_opts *opts);
/* Writes the files that were asked for and lists them in `root` as "written". */
MUST_USE int pictures_write(const struct picture_opts *opts, const struct pictured *pictured,
                            struct arena *arena, struct value *root, struct why *why);
