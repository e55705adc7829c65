/* Reports as GitHub-flavoured Markdown. */
#pragma once

#include "present/renderers.h"

void markdown_draw(const struct report *report, const struct render_opts *opts, FILE *out);

/* Text nobody here wrote, so that it cannot become markup, a new cell or a new row. */
void markdown_text(FILE *out, struct str text);
/* A table of what is shown to people. */
void markdown_table(FILE *out, const struct table *table);
/* A block of code: commands that can be copied as they are. */
void markdown_code(FILE *out, const char *language, struct str text);
