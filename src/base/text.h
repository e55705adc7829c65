/* Names and paths from a target are hostile text. These functions make them
 * safe to print: valid UTF-8, no control characters, no escape sequences. */
#pragma once

#include "base/str.h"

#include <stdio.h>

/* Decodes one code point at s and returns its length in bytes, at least 1 while
 * s is not empty. An invalid byte gives code point -1 and length 1. */
size_t utf8_decode(struct str s, int32_t *ret_code);

/* Columns the text takes on a terminal after text_print(); escapes included. */
size_t text_width(struct str s);

/* Prints for a terminal: control characters as \n, \t or \xNN, bidirectional
 * overrides and invalid bytes as \xNN. Newlines too: one cell stays one line. */
void text_print(FILE *out, struct str s);

/* The length in bytes of the longest head of `s` that takes at most `columns`. */
size_t text_fit(struct str s, size_t columns);

/* The same as text_print() into memory, cut with "…" where it does not fit: NUL-terminated,
 * never more than `size` bytes. For labels in markup and in data that a browser reads. */
struct str text_safe(struct str s, char *buffer, size_t size);
