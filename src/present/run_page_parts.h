/* The parts of report.html; each writes one section. Texts with names in them are escaped here. */
#pragma once

#include "present/run_page.h"

/* "412 ms (380 to 450)"; "n/a: not known" when it is not. */
void page_estimate(FILE *out, const struct estimate *estimate);
void page_text(FILE *out, const char *tag, const char *class, const char *text); /* NULL: nothing */

/* A value as the terminal shows it: headings, lists and tables, from a heading level on. What is
 * drawn for terminals only, or for machines, is left out. */
void page_value(FILE *out, const struct value_item *item, int level);
/* The scalars of a map as a list of definitions; nothing if there are none. */
void page_scalars(FILE *out, const struct value *map);

void page_hotspots(FILE *out, const struct interpretation *run);
void page_ledger(FILE *out, const struct interpretation *run);
void page_findings(FILE *out, const struct interpretation *run);
/* A bar of the wall time by class with its legend. */
void page_split(FILE *out, const struct path_costs *costs);
/* 0 or -ENOMEM; the path in words is part of the timeline. */
MUST_USE int page_path(FILE *out, const struct evidence *evidence);
MUST_USE int page_timeline(FILE *out, const struct evidence *evidence);
/* The tabs, and the data of each picture for the script. */
MUST_USE int page_graphs(FILE *out, const struct run_page *page, struct why *why);
