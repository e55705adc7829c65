/* Numbers as people write and read them: 512KiB, 1.5 s, 12.3%. */
#pragma once

#include "base/macros.h"
#include "base/str.h"

enum unit {
    UNIT_NONE,
    UNIT_COUNT,   /* grouped digits */
    UNIT_BYTES,   /* KiB, MiB, … */
    UNIT_NS,      /* nanoseconds, shown as ns, us, ms or s */
    UNIT_MS,      /* milliseconds, shown the same way */
    UNIT_PERCENT, /* 0 to 100 */
    UNIT_HZ,
    UNIT_KIB, /* kibibytes, shown as bytes are */
};

/* "10s", "500ms", "2m", "1h"; a bare number is seconds. -EINVAL or -ERANGE. */
MUST_USE int units_parse_duration(struct str text, uint64_t *ret_ns);
/* "512KiB", "1MB", "64k" (binary), "4096". -EINVAL or -ERANGE. */
MUST_USE int units_parse_size(struct str text, uint64_t *ret_bytes);
/* "10%" or "10" give 10.0. */
MUST_USE int units_parse_percent(struct str text, double *ret_percent);

/* Writes `value` of `unit` for a person; returns `text`. 48 bytes are always enough. */
const char *units_format(double value, enum unit unit, char *text, size_t size);
