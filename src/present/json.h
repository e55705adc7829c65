/* Reports as JSON: {"schema": "whyslow.NAME/VERSION", …}. */
#pragma once

#include "present/renderers.h"

void json_draw(const struct report *report, const struct render_opts *opts, FILE *out);
