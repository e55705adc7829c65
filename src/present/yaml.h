/* Reports as YAML: the same tree, keys and numbers as the JSON. */
#pragma once

#include "present/renderers.h"

void yaml_draw(const struct report *report, const struct render_opts *opts, FILE *out);
