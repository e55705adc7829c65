/* stub: replaced by the fingerprint itself. */
#include "host/fingerprint.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

struct value fingerprint_read(const struct fingerprint_input *input)
{
    struct value map = value_map(input->host->arena);
    struct value *run = value_put(&map, "run", NULL, value_map(input->host->arena));
    value_put(run, "id", NULL, value_text(input->run_id));
    return map;
}

int fingerprint_diff(struct arena *arena, const char *path_a, const char *path_b, struct value *ret,
                     unsigned *ret_incomparable, struct why *why)
{
    (void)arena;
    (void)path_a;
    (void)path_b;
    (void)ret;
    (void)ret_incomparable;
    return why_set(why, WHY_FAILED, ENOSYS, NULL, "not built");
}

const char *run_id_make(struct arena *arena)
{
    char text[32];
    time_t seconds = (time_t)(clock_real_ns() / NS_PER_SEC);
    struct tm tm;
    strftime(text, sizeof(text), "%Y%m%d-%H%M%S", gmtime_r(&seconds, &tm));
    return arena_printf(arena, "%s-%04x", text,
                        (unsigned)((clock_mono_ns() ^ (unsigned)getpid()) & 0xffff));
}
