/* Reports for people: aligned, in colour on a terminal, plain in a pipe. */
#pragma once

#include "present/renderers.h"

void text_draw(const struct report *report, const struct render_opts *opts, FILE *out);
