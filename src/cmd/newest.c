/* Newest first: what may be believed, what can be read, what holds the series. */
#include "cmd/newest.h"

#include "base/log.h"
#include "base/str.h"
#include "base/trust.h"
#include "base/vec.h"
#include "store/identify.h"
#include "store/reader.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many are opened to see what they hold; a folder may be full of them. */
enum { OPENED_MAX = 32, CANDIDATES_MAX = 65536 };

static const struct kind {
    const char *series;
    const char *artifact; /* where `whyslow run` leaves it */
    const char *what;
} kinds[] = {
    {"io", "recording-io.whyslow", "calls"},     {"heap", "recording-heap.whyslow", "allocations"},
    {"offcpu", "recording.whyslow", "waits"},    {"cpu", "recording.whyslow", "CPU samples"},
    {NULL, "recording.whyslow", "such samples"}, /* any other */
};

struct candidate {
    const char *path;
    struct timespec time; /* 0 when not even that may be known */
    int error;            /* why it is passed over, -errno */
    bool log;             /* for the log beside it */
    uid_t owner;
};

struct search {
    struct arena *arena;
    const char *series;
    const struct kind *kind;
    VEC(struct candidate) found;
    unsigned dropped;
};

static int newer_first(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->time.tv_sec != b->time.tv_sec)
        return a->time.tv_sec > b->time.tv_sec ? -1 : 1;
    if (a->time.tv_nsec != b->time.tv_nsec)
        return a->time.tv_nsec > b->time.tv_nsec ? -1 : 1;
    return strcmp(a->path, b->path);
}

static int consider(struct search *search, const char *path)
{
    struct stat st = {0};
    int r = trust_entry(path, &st);
    if (r == -ENOENT || r == -ENOTDIR || (r == 0 && !S_ISREG(st.st_mode)))
        return 0;
    if (search->found.len == CANDIDATES_MAX) {
        search->dropped++;
        return 0;
    }
    struct candidate one = {.path = path, .time = st.st_mtim, .error = r, .owner = st.st_uid};
    return VEC_PUSH(&search->found, one);
}

/* Each folder on the way is somebody's, too. */
static int consider_run(struct search *search)
{
    static const char *const folders[] = {"whyslow-out", "whyslow-out/latest"};
    const char *path = arena_printf(search->arena, "whyslow-out/latest/%s", search->kind->artifact);
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        struct stat st = {0};
        int r = trust_entry(folders[i], &st);
        if (r == -ENOENT || r == -ENOTDIR)
            return 0;
        if (r < 0) {
            struct candidate one = {
                .path = path, .time = st.st_mtim, .error = r, .owner = st.st_uid};
            return VEC_PUSH(&search->found, one);
        }
    }
    return consider(search, path);
}

static int look(struct search *search)
{
    DIR *folder = opendir(".");
    int r = 0;
    for (struct dirent *entry; folder && r == 0 && (entry = readdir(folder));)
        if (str_ends(str_from(entry->d_name), ".whyslow"))
            r = consider(search, arena_dup(search->arena, entry->d_name));
    if (folder)
        closedir(folder);
    if (r == 0)
        r = consider_run(search);
    if (search->dropped > 0)
        log_warning("%u files *.whyslow were not looked at: there are more than %d",
                    search->dropped, CANDIDATES_MAX);
    if (search->found.len > 0)
        qsort(search->found.data, search->found.len, sizeof(search->found.data[0]), newer_first);
    return r;
}

/* One that cannot be opened counts as one that does: its reader says what is wrong with it. */
static bool holds(const char *path, const char *series)
{
    struct recording *recording = NULL;
    struct why why = {0};
    if (recording_open(path, &recording, &why) < 0)
        return true;
    bool io = strcmp(series, "io") == 0, heap = strcmp(series, "heap") == 0;
    bool waits = strcmp(series, "offcpu") == 0;
    bool good = recording_series_find(recording, series) ||
                (io && recording_count(recording, RECORDING_CALL) > 0) ||
                (io && recording_count(recording, RECORDING_REQUEST) > 0) ||
                (heap && recording_count(recording, RECORDING_HEAP_SITE) > 0) ||
                (waits && recording_count(recording, RECORDING_WAIT) > 0);
    recording_close(recording);
    return good;
}

/* What another user left here is read when it is named; that goes for a log beside it, too. */
static void candidate_judge(struct candidate *one)
{
    struct identity identity;
    struct stat log;
    one->error = identify_recording(one->path, &identity, NULL);
    if (one->error == 0 && identity.has_wal && (lstat(identity.wal, &log) < 0 || !trust_stat(&log)))
        one->error = -EPERM;
    one->log = one->error == -EPERM;
}

/* The index of the one that is meant; the number of candidates when there is none. `ret_first` is
 * the newest that could be taken, `ret_passed` the newest that could not. */
static size_t choose(struct search *search, size_t *ret_first, size_t *ret_passed)
{
    size_t count = search->found.len, first = count, passed = count, chosen = count, opened = 0;
    for (size_t i = 0; i < count && chosen == count; i++) {
        struct candidate *one = &search->found.data[i];
        if (one->error == 0)
            candidate_judge(one);
        if (one->error == -EINVAL) /* something else that is called so */
            continue;
        if (one->error) {
            passed = MIN(passed, i);
            continue;
        }
        first = MIN(first, i);
        if (opened++ < OPENED_MAX && holds(one->path, search->series))
            chosen = i;
    }
    *ret_first = first;
    *ret_passed = passed;
    return chosen < count ? chosen : first;
}

static const char *passed_why(const struct search *search, const struct candidate *one)
{
    const char *owner = one->owner == 0 ? "root" : "another user";
    if (one->log)
        return "the log beside it (-wal) belongs to another user or is a link";
    if (one->error == -EPERM && (one->owner == 0 || one->owner == geteuid()))
        return "others may write there";
    if (one->error == -EPERM)
        return "it belongs to another user";
    if (one->error == -EACCES && one->time.tv_sec > 0)
        return arena_printf(search->arena, "it belongs to %s and may not be read", owner);
    if (one->error == -EBADMSG)
        return "it is damaged";
    return arena_printf(search->arena, "%s", strerror(-one->error));
}

static int refuse(const struct search *search, const struct candidate *one, struct why *why)
{
    const char *remedy = one->error == -EACCES
                             ? "run this as the user who recorded it (sudo), or 'chown' it to you"
                         : one->error == -EPERM ? "name it to have it read all the same"
                                                : "name it to see what is wrong with it";
    return why_set(why, WHY_USAGE, -one->error, remedy,
                   "the newest recording here, '%s', is passed over: %s", one->path,
                   passed_why(search, one));
}

static int find(struct search *search, const char **ret, struct why *why)
{
    size_t first, passed;
    if (look(search) < 0 || arena_failed(search->arena))
        return why_nomem(why);
    size_t chosen = choose(search, &first, &passed), count = search->found.len;
    if (chosen == count)
        return passed < count ? refuse(search, &search->found.data[passed], why) : 0;
    const struct candidate *one = &search->found.data[chosen];
    if (passed < chosen)
        log_info("'%s' is newer, and passed over: %s", search->found.data[passed].path,
                 passed_why(search, &search->found.data[passed]));
    if (chosen == first)
        log_info("reading '%s', the newest recording here", one->path);
    else
        log_info("reading '%s', the newest recording here with %s", one->path, search->kind->what);
    *ret = one->path;
    return 0;
}

int newest_recording(struct arena *arena, const char *series, const char **ret, struct why *why)
{
    struct search search = {.arena = arena, .series = series, .kind = kinds};
    while (search.kind->series && strcmp(search.kind->series, series) != 0)
        search.kind++;
    *ret = NULL;
    int r = find(&search, ret, why);
    VEC_FREE(&search.found);
    return r;
}
