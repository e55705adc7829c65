/* The two small languages of `whyslow report`: ranges of time and work done. */
#include "cmd/report_parts.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>

static int range_error(const char *text, struct why *why)
{
    return why_set(why, WHY_USAGE, EINVAL,
                   "write seconds since the start (2..5, 500ms..2s, ..10) or shares (10%..20%)",
                   "'%s' is no range of time", text);
}

/* One end: a duration, or a share of the whole. */
static int end_parse(struct str text, uint64_t whole_ns, uint64_t fallback, uint64_t *ret_ns)
{
    text = str_trim(text);
    if (text.len == 0) {
        *ret_ns = fallback;
        return 0;
    }
    if (!str_ends(text, "%"))
        return units_parse_duration(text, ret_ns);
    double percent;
    int r = units_parse_percent(text, &percent);
    if (r < 0 || !(percent >= 0 && percent <= 100))
        return -EINVAL;
    *ret_ns = (uint64_t)(percent / 100 * (double)whole_ns);
    return 0;
}

int report_time_range(const char *text, const struct recorded_series *series, uint64_t *ret_from_ns,
                      uint64_t *ret_to_ns, struct why *why)
{
    const char *dots = strstr(text, "..");
    if (!dots)
        return range_error(text, why);
    struct str from = {text, (size_t)(dots - text)}, to = str_from(dots + 2);
    uint64_t whole_ns = series->end_ns - series->start_ns, from_ns, to_ns;
    if (end_parse(from, whole_ns, 0, &from_ns) < 0 ||
        end_parse(to, whole_ns, UINT64_MAX, &to_ns) < 0 || from_ns > to_ns || to_ns == 0)
        return range_error(text, why);
    *ret_from_ns = from_ns;
    *ret_to_ns = to_ns;
    return 0;
}

int report_work(const char *text, double *ret_before, double *ret_after, struct why *why)
{
    struct str rest = str_from(text);
    struct str first = str_cut(&rest, ':');
    double before, after;
    if (str_to_f64(first, &before) < 0 || str_to_f64(rest, &after) < 0 || !(before > 0) ||
        !(after > 0) || !isfinite(before) || !isfinite(after))
        return why_set(why, WHY_USAGE, EINVAL,
                       "write the operations each run did, as in --work 1000:2500",
                       "'%s' is no pair of positive numbers", text);
    *ret_before = before;
    *ret_after = after;
    return 0;
}
