/* What knobs.c (reading) and knobs_change.c (writing) share. */
#pragma once

#include "host/knobs.h"

struct knob_file {
    const char *path; /* without the root */
    const char *wanted;
    const char *now;
};

struct knob_reading {
    VEC(struct knob_file) files; /* one, or one a CPU */
    const char *na;              /* why there is none; NULL when there is */
};

void knob_reading_take(const struct host *host, const struct knob *knob, struct knob_reading *ret);
void knob_reading_deinit(struct knob_reading *reading);
bool knob_reading_fits(const struct knob *knob, const struct knob_reading *reading);

/* The value of a file, in the arena: the one in brackets of a list. */
MUST_USE int knob_read(const struct host *host, const char *path, const char **ret);
bool knob_fits(const struct knob *knob, const char *wanted, const char *now);
const char *knob_first_choice(struct arena *arena, const char *wanted);
