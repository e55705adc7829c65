/* When changing code is the wrong tool (M26): said, and then nothing is advised. */
#pragma once

#include "analyze/evidence.h"

struct wrong_tool {
    const char *id; /* "external_service_no_alternative", "infrastructure_bound", … */
    bool holds;
    const char *why;     /* the numbers, either way */
    const char *instead; /* what helps, or has to be done first; where it can hold */
};

struct wrong_tools {
    struct wrong_tool *rows;
    size_t count;
    const struct wrong_tool *first; /* that holds; NULL */
};

MUST_USE int wrong_tools_build(struct arena *arena, const struct evidence *evidence,
                               const struct findings *findings, struct wrong_tools *ret);
