/* Text for SVG and HTML. Names of a target are hostile: they may hold tags, quotes, bytes that
 * are no UTF-8 and control characters, which XML does not even allow as entities. */
#pragma once

#include "base/str.h"
#include "base/why.h"

#include <stdio.h>

enum { MARKUP_TEXT_BYTES_MAX = 1024 }; /* of one name, after which it ends with "…" */

/* For element content and for attribute values in double quotes; made visible as
 * text_print() does, at most MARKUP_TEXT_BYTES_MAX bytes before the entities. */
void markup_text(FILE *out, struct str text);
/* The same, ending earlier. */
void markup_short(FILE *out, struct str text, size_t bytes_max);
/* Cut to `columns` of a monospaced font with "…". */
void markup_label(FILE *out, struct str text, size_t columns);

/* Flushes and says whether everything reached the stream. */
MUST_USE int markup_end(FILE *out, const char *what, struct why *why);
