/* The pictures of a run: flame graphs of every axis, and the page with all that was said. */
#pragma once

#include "analyze/interpretation.h"

#include <stdio.h>

/* Writes flame-cpu.svg, flame-offcpu.svg, flame-alloc.svg, flame-io.svg and report.html into the
 * folder. `screen` is what the terminal draws. An axis without anything to draw has no file, and
 * the page says why. A picture that cannot be written is told on `err` and does not keep the
 * others from being written; out of memory is an error. */
MUST_USE int run_pictures_write(struct arena *arena, const struct interpretation *run,
                                const struct value *screen, const char *folder, FILE *err,
                                struct why *why);
