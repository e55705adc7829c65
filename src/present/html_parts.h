/* What pages have in common: the head with the policy that keeps a page harmless, and tables. */
#pragma once

#include "model/value.h"
#include "present/html_data.h"

#include <stdio.h>

/* Up to <body>: nothing may run or style but these two, by their hashes (CSP). */
void html_head(FILE *out, const char *title, struct str style, struct str script);
/* The colours of flame graphs, then the style sheets; *ret is malloc'ed. 0 or -ENOMEM. */
MUST_USE int html_style(const struct str *sheets, size_t count, char **ret, size_t *ret_len);

enum { HTML_ROWS_MAX = 5000 }; /* browsers slow down long before */
size_t html_rows_shown(const struct table *table);
/* <thead> and <tbody>, for the <table> around them. Columns stand as in the text report. */
void html_table(FILE *out, const struct table *table);
/* Its parts, for tables with more columns: <th> of each column, <td> of a row. */
void html_columns(FILE *out, const struct table *table);
void html_cells(FILE *out, const struct table *table, const struct table_row *row);

/* A dim paragraph; nothing for an empty text. */
void html_note(FILE *out, const char *note);
void html_legend(FILE *out, const struct html_data *data);
/* Search box, buttons and canvas, by the ids that web/page.js knows. `no_inverted`: why there is no
 * inverted view, a text of ours; NULL: there is one. */
void html_viewer(FILE *out, const char *no_inverted);
