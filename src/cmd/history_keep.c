/* Where the history is, and adding to it after a benchmark. */
#include "cmd/history_keep.h"

#include "base/fd.h"
#include "base/trust.h"
#include "host/git.h"
#include "store/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char foreign[] =
    "the git repository or its history belongs to another user, or others may change it";

static bool is_ours(const char *path)
{
    struct stat st;
    return lstat(path, &st) < 0 ? errno == ENOENT || errno == ENOTDIR
                                : trust_stat(&st) && !S_ISLNK(st.st_mode);
}

const char *history_default(struct arena *arena, const char **ret_na)
{
    const char *none;
    const char *given = getenv("WHYSLOW_HISTORY");
    if (!ret_na)
        ret_na = &none;
    *ret_na = "WHYSLOW_HISTORY is off";
    if (given && *given)
        return strcmp(given, "off") == 0 ? NULL : given;
    struct git git = git_find(arena, ".");
    *ret_na = git.na;
    if (git.na)
        return NULL;
    struct stat st;
    const char *folder = arena_printf(arena, "%s/whyslow", git.common);
    const char *file = arena_printf(arena, "%s/history.db", folder);
    *ret_na = foreign;
    bool ours = geteuid() == 0 ? trust_path(git.common)
                               : stat(git.common, &st) == 0 && trust_stat(&st);
    return ours && is_ours(folder) && is_ours(file) ? file : NULL;
}

static const char *fact(struct arena *arena, const struct value *fingerprint, const char *path)
{
    const struct value *value = value_find(fingerprint, path);
    return value && value->kind == VALUE_TEXT
               ? arena_dup_len(arena, value->text.data, value->text.len)
               : "";
}

struct bench_origin history_origin(struct arena *arena, const struct value *fingerprint)
{
    const char *model = fact(arena, fingerprint, "cpu.model");
    double threads = value_number(value_find(fingerprint, "cpu.threads"));
    return (struct bench_origin){
        .time = fact(arena, fingerprint, "run.time"),
        .revision = fact(arena, fingerprint, "run.git_revision"),
        .branch = fact(arena, fingerprint, "run.git_branch"),
        .machine = *model && threads > 0 ? bench_machine(arena, model, (uint64_t)threads) : "",
    };
}

static int folder_of(struct arena *arena, const char *path, struct why *why)
{
    const char *slash = strrchr(path, '/');
    return slash && slash != path
               ? folder_make(arena_dup_len(arena, path, (size_t)(slash - path)), why)
               : 0;
}

int history_keep(struct arena *arena, const struct bench_result *results, size_t count,
                 const struct value *fingerprint, struct why *why)
{
    const char *na;
    const char *path = history_default(arena, &na);
    if (!path)
        return na == foreign ? why_set(why, WHY_DENIED, EPERM, NULL, "%s", na) : 0;
    int r = getenv("WHYSLOW_HISTORY") ? 0 : folder_of(arena, path, why);
    struct history *history = NULL;
    if (r == 0)
        r = history_open(path, true, &history, why);
    struct bench_origin origin = history_origin(arena, fingerprint);
    int added = 0;
    for (size_t i = 0; i < count && r >= 0; i++) {
        if (results[i].runs.len == 0)
            continue;
        r = history_add(history, &results[i], &origin, why);
        added += r > 0;
        if (r == -EINVAL)
            r = 0; /* nothing but failed runs: not worth keeping, and said by the command itself */
    }
    history_close(history);
    return r < 0 ? r : added;
}
