/* Parsing and printing of sizes, durations and shares. */
#include "base/units.h"

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

struct suffix {
    const char *text;
    double factor;
};

static const struct suffix duration_suffixes[] = {
    {"", 1e9},  {"ns", 1},   {"us", 1e3},   {"ms", 1e6},
    {"s", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9},
};

static const struct suffix size_suffixes[] = {
    {"", 1},
    {"b", 1},
    {"k", 1024},
    {"kib", 1024},
    {"kb", 1e3},
    {"m", 1048576},
    {"mib", 1048576},
    {"mb", 1e6},
    {"g", 1073741824},
    {"gib", 1073741824},
    {"gb", 1e9},
    {"t", 1099511627776.0},
    {"tib", 1099511627776.0},
    {"tb", 1e12},
};

static int parse(struct str text, const struct suffix *suffixes, size_t count, uint64_t *ret)
{
    text = str_trim(text);
    size_t digits = 0;
    while (digits < text.len &&
           (isdigit((unsigned char)text.data[digits]) || text.data[digits] == '.'))
        digits++;
    double number;
    int r = str_to_f64((struct str){text.data, digits}, &number);
    if (r < 0)
        return r;
    struct str tail = str_trim((struct str){text.data + digits, text.len - digits});
    char lower[8];
    if (tail.len >= sizeof(lower))
        return -EINVAL;
    for (size_t i = 0; i < tail.len; i++)
        lower[i] = (char)tolower((unsigned char)tail.data[i]);
    for (size_t i = 0; i < count; i++) {
        if (!str_is((struct str){lower, tail.len}, suffixes[i].text))
            continue;
        double value = number * suffixes[i].factor;
        if (value >= 0x1p63)
            return -ERANGE;
        *ret = (uint64_t)llround(value);
        return 0;
    }
    return -EINVAL;
}

int units_parse_duration(struct str text, uint64_t *ret_ns)
{
    return parse(text, duration_suffixes, ARRAY_SIZE(duration_suffixes), ret_ns);
}

int units_parse_size(struct str text, uint64_t *ret_bytes)
{
    return parse(text, size_suffixes, ARRAY_SIZE(size_suffixes), ret_bytes);
}

int units_parse_percent(struct str text, double *ret_percent)
{
    text = str_trim(text);
    if (str_ends(text, "%"))
        text.len--;
    return str_to_f64(str_trim(text), ret_percent);
}

/* Three significant digits, as many as a noisy measurement deserves. */
static void scaled(double value, const char *unit, char *text, size_t size)
{
    double magnitude = fabs(value);
    int decimals = magnitude >= 99.95 || value == 0 ? 0 : magnitude >= 9.995 ? 1 : 2;
    snprintf(text, size, "%.*f %s", decimals, value, unit);
}

static void format_bytes(double value, char *text, size_t size)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;
    while (fabs(value) >= 1023.5 && i + 1 < ARRAY_SIZE(names)) {
        value /= 1024;
        i++;
    }
    if (i == 0)
        snprintf(text, size, "%.0f B", value);
    else
        scaled(value, names[i], text, size);
}

static void format_ns(double value, char *text, size_t size)
{
    double magnitude = fabs(value);
    if (magnitude < 999.5)
        snprintf(text, size, "%.0f ns", value);
    else if (magnitude < 999.5e3)
        scaled(value / 1e3, "us", text, size);
    else if (magnitude < 999.5e6)
        scaled(value / 1e6, "ms", text, size);
    else
        scaled(value / 1e9, "s", text, size);
}

/* Sample rates stay as they were asked for; clocks of CPUs are read in GHz. */
static void format_hz(double value, char *text, size_t size)
{
    if (value >= 1e9)
        scaled(value / 1e9, "GHz", text, size);
    else if (value >= 1e6)
        scaled(value / 1e6, "MHz", text, size);
    else
        scaled(value, "Hz", text, size);
}

static void format_count(double value, char *text, size_t size)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%.0f", fabs(value));
    size_t out = 0;
    if (value < 0 && out + 1 < size)
        text[out++] = '-';
    for (int i = 0; i < len && out + 2 < size; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            text[out++] = ',';
        text[out++] = digits[i];
    }
    if (size > 0)
        text[MIN(out, size - 1)] = '\0';
}

const char *units_format(double value, enum unit unit, char *text, size_t size)
{
    switch (unit) {
    case UNIT_COUNT:
        format_count(value, text, size);
        break;
    case UNIT_BYTES:
        format_bytes(value, text, size);
        break;
    case UNIT_KIB:
        format_bytes(value * 1024, text, size);
        break;
    case UNIT_NS:
        format_ns(value, text, size);
        break;
    case UNIT_MS:
        format_ns(value * (double)NS_PER_MS, text, size);
        break;
    case UNIT_PERCENT:
        snprintf(text, size, "%.1f%%", value);
        break;
    case UNIT_HZ:
        format_hz(value, text, size);
        break;
    case UNIT_NONE:
        snprintf(text, size, "%.6g", value);
        break;
    }
    return text;
}
