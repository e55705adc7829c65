/* The data of the HTML page as JSON, "whyslow.flame/1" (docs/flame.md). */
#pragma once

#include "present/flame_diff.h"
#include "present/flame_layout.h"

#include <stdio.h>

struct html_data {
    const struct flame_layout *layout;
    const struct flame_diff *diff; /* NULL: none */
    double diff_limit;
    const char *title;
};

/* Safe inside a script element. */
MUST_USE int html_data_write(const struct html_data *data, FILE *out, struct why *why);
