/* Hostile text inside XML and HTML. */
#pragma once

#include "base/str.h"

#include <stdio.h>

/* As content or as a quoted attribute: markup is escaped, what XML cannot hold (control
 * characters, broken UTF-8) becomes U+FFFD, newlines become blanks. */
void xml_print(FILE *out, struct str text);
