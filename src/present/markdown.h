/* Reports as GitHub-flavoured Markdown. */
#pragma once

#include "present/renderers.h"

void markdown_draw(const struct report *report, const struct render_opts *opts, FILE *out);
