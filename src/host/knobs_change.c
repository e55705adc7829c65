/* Turning knobs: plan, remember, write, read back, and the way back. */
#include "host/knobs.h"

#include "base/fd.h"
#include "base/opt.h"
#include "host/knobs_private.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <unistd.h>

void knob_changes_deinit(struct knob_changes *changes)
{
    VEC_FREE(&changes->items);
}

const char *knob_result_name(enum knob_result result)
{
    static const char *const names[] = {
        [KNOB_PLANNED] = "planned",       [KNOB_CHANGED] = "changed",
        [KNOB_RESTORED] = "restored",     [KNOB_ALREADY] = "already restored",
        [KNOB_LEFT_ALONE] = "left alone", [KNOB_DENIED] = "not permitted",
        [KNOB_FAILED] = "failed",
    };
    return names[result];
}

static bool is_named(const char *name, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int names_check(char **names, int count, struct why *why)
{
    for (int i = 0; i < count; i++) {
        if (knob_find(names[i]))
            continue;
        const char *known[32];
        size_t len = 0;
        for (; knobs[len].name && len < ARRAY_SIZE(known); len++)
            known[len] = knobs[len].name;
        const char *nearest = opt_nearest(names[i], known, len);
        why_set(why, WHY_USAGE, EINVAL, "'whyslow tune list' lists them", "there is no knob '%s'",
                names[i]);
        if (nearest)
            why_set_remedy(why, "did you mean '%s'?", nearest);
        return -EINVAL;
    }
    return 0;
}

static int plan_knob(const struct host *host, const struct knob *knob, bool named,
                     struct knob_changes *changes, struct why *why)
{
    if (knob->kind == KNOB_ADVICE)
        return why_set(why, WHY_USAGE, EINVAL, "'whyslow tune list' shows the command",
                       "'%s' is no setting of the machine, but a way to start the target",
                       knob->name);
    AUTO(knob_reading_deinit) struct knob_reading reading;
    knob_reading_take(host, knob, &reading);
    if (reading.na)
        return named ? why_set(why, WHY_DENIED, ENOENT, "leave it out",
                               "'%s' is not to be had here: %s", knob->name, reading.na)
                     : 0;
    for (size_t i = 0; i < reading.files.len; i++) {
        const struct knob_file *file = &reading.files.data[i];
        if (knob->kind != KNOB_ACTION && knob_fits(knob, file->wanted, file->now))
            continue;
        struct knob_change change = {
            .knob = knob->name,
            .action = knob->kind == KNOB_ACTION,
            .path = file->path,
            .now = file->now,
            .to = knob_first_choice(host->arena, file->wanted),
        };
        if (VEC_PUSH(&changes->items, change) < 0)
            return why_nomem(why);
    }
    return 0;
}

int knobs_plan(const struct host *host, char **names, int count, struct knob_changes *ret,
               struct why *why)
{
    int r = names_check(names, count, why);
    if (r < 0)
        return r;
    struct knob_changes changes = {0};
    for (const struct knob *knob = knobs; knob->name; knob++) {
        bool named = is_named(knob->name, names, count);
        bool setting = knob->kind == KNOB_SETTING || knob->kind == KNOB_PER_CPU;
        if (!named && (count > 0 || !setting))
            continue;
        r = plan_knob(host, knob, named, &changes, why);
        if (r < 0) {
            knob_changes_deinit(&changes);
            return r;
        }
    }
    *ret = changes;
    return 0;
}

unsigned knobs_check_permission(const struct host *host, struct knob_changes *changes)
{
    unsigned denied = 0;
    for (size_t i = 0; i < changes->items.len; i++) {
        struct knob_change *change = &changes->items.data[i];
        if (faccessat(AT_FDCWD, host_path(host, change->path), W_OK, AT_EACCESS) == 0)
            continue;
        change->result = KNOB_DENIED;
        change->detail = arena_dup(host->arena, strerror(errno));
        denied++;
    }
    return denied;
}

int knobs_remember(const struct host *host, const struct knob_changes *changes, struct why *why)
{
    struct knob_state state;
    int r = knob_state_load(host, &state, why);
    if (r < 0)
        return r;
    size_t added = 0;
    for (size_t i = 0; i < changes->items.len && r == 0; i++) {
        const struct knob_change *change = &changes->items.data[i];
        if (change->action)
            continue;
        added++;
        struct knob_saved *saved = knob_state_find(&state, change->path);
        if (saved) {
            saved->set = change->to; /* `old` stays the original */
            continue;
        }
        struct knob_saved fresh = {
            .knob = change->knob, .path = change->path, .old = change->now, .set = change->to};
        if (VEC_PUSH(&state.entries, fresh) < 0)
            r = why_nomem(why);
    }
    if (r == 0 && added > 0)
        r = knob_state_save(host, &state, why);
    knob_state_deinit(&state);
    return r;
}

/* Never creates a file: a knob that is not there is not made. */
static int value_write(const struct host *host, const char *path, const char *value)
{
    AUTO(fd_close) int fd = open(host_path(host, path), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const char *line = arena_printf(host->arena, "%s\n", value);
    return fd_write_all(fd, line, strlen(line));
}

/* Writes and looks whether it took: a driver may accept a value and do something else. */
static void change_make(const struct host *host, struct knob_change *change,
                        enum knob_result success)
{
    int r = value_write(host, change->path, change->to);
    const char *now = NULL;
    change->result = r == 0                                       ? success
                     : r == -EACCES || r == -EPERM || r == -EROFS ? KNOB_DENIED
                                                                  : KNOB_FAILED;
    if (r < 0) {
        change->detail = arena_printf(host->arena, "%s: %s", change->path, strerror(-r));
    } else if (!change->action &&
               (knob_read(host, change->path, &now) < 0 || strcmp(now, change->to) != 0)) {
        change->result = KNOB_FAILED;
        change->detail = arena_printf(host->arena, "%s: '%s' was written, '%s' is read back",
                                      change->path, change->to, now ? now : "nothing");
    }
}

/* What whyslow really left in the files, so that revert does not take it for somebody
 * else's work. */
static int remember_outcome(const struct host *host, const struct knob_changes *changes,
                            struct why *why)
{
    struct knob_state state;
    int r = knob_state_load(host, &state, why);
    if (r < 0)
        return r;
    for (size_t i = 0; i < changes->items.len; i++) {
        const struct knob_change *change = &changes->items.data[i];
        struct knob_saved *saved = knob_state_find(&state, change->path);
        const char *now;
        if (change->result == KNOB_CHANGED || change->action || !saved ||
            knob_read(host, change->path, &now) < 0)
            continue;
        if (strcmp(now, saved->old) == 0)
            knob_state_remove(&state, (size_t)(saved - state.entries.data));
        else
            saved->set = now;
    }
    r = knob_state_save(host, &state, why);
    knob_state_deinit(&state);
    return r;
}

int knobs_write(const struct host *host, struct knob_changes *changes, struct why *why)
{
    bool odd = false;
    for (size_t i = 0; i < changes->items.len; i++) {
        struct knob_change *change = &changes->items.data[i];
        if (change->action && host_is_live(host))
            sync(); /* dirty pages cannot be dropped */
        change_make(host, change, KNOB_CHANGED);
        odd = odd || (change->result != KNOB_CHANGED && !change->action);
    }
    return odd ? remember_outcome(host, changes, why) : 0;
}

/* The state file is data: it may only name files that belong to its knob. */
static bool belongs(const struct knob_saved *saved)
{
    const struct knob *knob = knob_find(saved->knob);
    if (!knob)
        return false;
    if (knob->kind != KNOB_PER_CPU) {
        for (size_t i = 0; i < ARRAY_SIZE(knob->places) && knob->places[i].path; i++)
            if (strcmp(saved->path, knob->places[i].path) == 0)
                return true;
        return false;
    }
    const char *pattern = knob->places[0].path, *mark = strstr(pattern, "%u");
    size_t head = (size_t)(mark - pattern);
    struct str rest = str_from(saved->path);
    if (rest.len <= head || memcmp(rest.data, pattern, head) != 0 || !str_ends(rest, mark + 2) ||
        rest.len < head + strlen(mark + 2))
        return false;
    uint64_t cpu;
    return str_to_u64((struct str){rest.data + head, rest.len - head - strlen(mark + 2)}, 10,
                      &cpu) == 0;
}

static struct knob_change revert_one(const struct host *host, const struct knob_saved *saved,
                                     bool force)
{
    struct knob_change change = {
        .knob = saved->knob, .path = saved->path, .to = saved->old, .now = ""};
    if (!belongs(saved)) {
        change.result = KNOB_FAILED;
        change.detail = arena_printf(host->arena, "%s is no file of the knob '%s'", saved->path,
                                     saved->knob);
        return change;
    }
    int r = knob_read(host, saved->path, &change.now);
    if (r < 0) {
        change.result = KNOB_FAILED;
        change.detail = arena_printf(host->arena, "%s: %s", saved->path, strerror(-r));
    } else if (strcmp(change.now, saved->old) == 0) {
        change.result = KNOB_ALREADY;
    } else if (strcmp(change.now, saved->set) != 0 && !force) {
        change.result = KNOB_LEFT_ALONE;
        change.detail = arena_printf(
            host->arena, "whyslow set '%s', somebody else '%s' since; --force restores '%s'",
            saved->set, change.now, saved->old);
    } else {
        change_make(host, &change, KNOB_RESTORED);
    }
    return change;
}

/* Backwards, as things are taken apart. */
static int revert_all(const struct host *host, char **names, int count, bool force,
                      struct knob_state *state, struct knob_changes *changes, struct why *why)
{
    for (size_t i = state->entries.len; i-- > 0;) {
        if (count > 0 && !is_named(state->entries.data[i].knob, names, count))
            continue;
        if (VEC_RESERVE(&changes->items, changes->items.len + 1) < 0)
            return why_nomem(why);
        struct knob_change change = revert_one(host, &state->entries.data[i], force);
        changes->items.data[changes->items.len++] = change;
        if (change.result == KNOB_RESTORED || change.result == KNOB_ALREADY)
            knob_state_remove(state, i);
    }
    return 0;
}

int knobs_revert(const struct host *host, char **names, int count, bool force,
                 struct knob_changes *ret, struct why *why)
{
    struct knob_state state;
    struct knob_changes changes = {0};
    int r = names_check(names, count, why);
    if (r < 0)
        return r;
    r = knob_state_load(host, &state, why);
    if (r < 0)
        return r;
    size_t before = state.entries.len;
    r = revert_all(host, names, count, force, &state, &changes, why);
    /* Also after a failure half way: what is restored must be forgotten. */
    struct why save_why = {0};
    int saved = state.entries.len < before ? knob_state_save(host, &state, &save_why) : 0;
    knob_state_deinit(&state);
    if (r == 0 && saved < 0) {
        if (why)
            *why = save_why;
        r = saved;
    }
    if (r < 0) {
        knob_changes_deinit(&changes);
        return r;
    }
    *ret = changes;
    return 0;
}
