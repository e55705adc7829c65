/* Parsing only; profile_load applies the range. */
#include "analyze/time_range.h"

#include "base/units.h"

#include <errno.h>

static int parse_end(struct str text, uint64_t duration_ns, uint64_t fallback_ns, uint64_t *ret_ns)
{
    if (text.len == 0) {
        *ret_ns = fallback_ns;
        return 0;
    }
    if (!str_ends(text, "%"))
        return units_parse_duration(text, ret_ns);
    double percent;
    int r = units_parse_percent(text, &percent);
    if (r < 0 || percent < 0 || percent > 100)
        return -EINVAL;
    *ret_ns = (uint64_t)((double)duration_ns * percent / 100);
    return 0;
}

int time_range_parse(const char *text, uint64_t duration_ns, uint64_t *ret_from_ns,
                     uint64_t *ret_to_ns, struct why *why)
{
    const char *dots = strstr(text, "..");
    struct str from = {text, dots ? (size_t)(dots - text) : 0};
    uint64_t from_ns = 0, to_ns = 0;
    bool good = dots && parse_end(str_trim(from), duration_ns, 0, &from_ns) == 0 &&
                parse_end(str_trim(str_from(dots + 2)), duration_ns, duration_ns, &to_ns) == 0;
    if (!good)
        return why_set(why, WHY_USAGE, EINVAL, "write it as 1.5..3 (seconds) or 10%..20%",
                       "'%s' is no time range", text);
    if (to_ns <= from_ns && !(from_ns == 0 && duration_ns == 0))
        return why_set(why, WHY_USAGE, EINVAL, "give the earlier end first",
                       "the time range '%s' is empty", text);
    *ret_from_ns = from_ns;
    *ret_to_ns = to_ns > 0 ? to_ns : 1;
    return 0;
}
