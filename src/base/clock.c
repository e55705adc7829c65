/* Clock readings that cannot fail on Linux. */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts = {0};
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

void clock_format_utc(uint64_t real_ns, char *text, size_t size)
{
    time_t seconds = (time_t)(real_ns / NS_PER_SEC);
    struct tm tm = {0};
    if (!gmtime_r(&seconds, &tm) || strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(text, size, "?");
}

void clock_sleep_ns(uint64_t duration_ns)
{
    struct timespec left = {.tv_sec = (time_t)(duration_ns / NS_PER_SEC),
                            .tv_nsec = (long)(duration_ns % NS_PER_SEC)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}
