/* tune.json: read, written whole, removed. */
#include "host/knob_state.h"

#include "base/fd.h"
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_FOLDER "/var/lib/whyslow"
#define STATE_SCHEMA "whyslow.tune-state/1"

enum { STATE_BYTES_MAX = 4 * 1024 * 1024 };

const char *knob_state_path(const struct host *host)
{
    return host_path(host, STATE_FOLDER "/tune.json");
}

static void json_release(json_t **json)
{
    json_decref(*json);
}

int knob_state_lock(const struct host *host, int *ret_fd, struct why *why)
{
    const char *folder = host_path(host, STATE_FOLDER);
    int r = folder_make_shared(folder, why);
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return why_errno(why, errno, NULL, "cannot open '%s'", folder);
    /* Root will write what stands in there: nobody else may. */
    if (st.st_mode & (S_IWGRP | S_IWOTH) && fchmod(fd, 0755) < 0)
        return why_errno(why, errno, NULL, "cannot make '%s' writable by its owner only", folder);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? why_set(why, WHY_FAILED, EBUSY, "wait until it has ended",
                                              "another 'whyslow tune' is at work")
                                    : why_errno(why, errno, NULL, "cannot lock '%s'", folder);
    *ret_fd = fd_take(&fd);
    return 0;
}

static int damaged(const char *path, const char *what, struct why *why)
{
    return why_set(why, WHY_FAILED, EINVAL,
                   "it holds the values from before whyslow's changes: mend it, or restore them by "
                   "hand and remove it",
                   "'%s' cannot be understood: %s", path, what);
}

static int entry_load(const struct host *host, const json_t *json, const char *file,
                      struct knob_state *state, struct why *why)
{
    const char *knob = json_string_value(json_object_get(json, "knob"));
    const char *path = json_string_value(json_object_get(json, "path"));
    const char *old = json_string_value(json_object_get(json, "old"));
    const char *set = json_string_value(json_object_get(json, "set"));
    if (!knob || !path || !old || !set)
        return damaged(file, "an entry lacks knob, path, old or set", why);
    struct knob_saved saved = {
        .knob = arena_dup(host->arena, knob),
        .path = arena_dup(host->arena, path),
        .old = arena_dup(host->arena, old),
        .set = arena_dup(host->arena, set),
    };
    return VEC_PUSH(&state->entries, saved) < 0 ? why_nomem(why) : 0;
}

static int entries_load(const struct host *host, struct str text, const char *path,
                        struct knob_state *state, struct why *why)
{
    json_error_t error;
    AUTO(json_release) json_t *json = json_loadb(text.data, text.len, 0, &error);
    if (!json)
        return damaged(path, arena_printf(host->arena, "line %d: %s", error.line, error.text), why);
    const char *schema = json_string_value(json_object_get(json, "schema"));
    const json_t *entries = json_object_get(json, "entries");
    if (!schema || strcmp(schema, STATE_SCHEMA) != 0 || !json_is_array(entries))
        return damaged(path,
                       arena_printf(host->arena, "its schema is '%s', not " STATE_SCHEMA,
                                    schema ? schema : "none"),
                       why);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        int r = entry_load(host, json_array_get(entries, i), path, state, why);
        if (r < 0)
            return r;
    }
    return 0;
}

int knob_state_load(const struct host *host, struct knob_state *ret, struct why *why)
{
    const char *path = knob_state_path(host);
    struct stat st;
    if (stat(path, &st) < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return why_errno(why, errno, NULL, "cannot look at '%s'", path);
        *ret = (struct knob_state){0};
        return 0;
    }
    if (!trust_stat(&st))
        return why_set(why, WHY_DENIED, EPERM, "see who wrote it, then remove it",
                       "'%s' belongs to user %u, or others may write it: its values are not "
                       "written back",
                       path, (unsigned)st.st_uid);
    struct str text;
    int r = file_read(host->arena, path, STATE_BYTES_MAX, &text, why);
    if (r < 0)
        return r;
    struct knob_state state = {0};
    r = entries_load(host, text, path, &state, why);
    if (r < 0) {
        knob_state_deinit(&state);
        return r;
    }
    *ret = state;
    return 0;
}

/* A rename is on disk when its folder is. */
static int folder_sync(const struct host *host, struct why *why)
{
    const char *folder = host_path(host, STATE_FOLDER);
    AUTO(fd_close) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL && errno != EROFS))
        return why_errno(why, errno, NULL, "cannot bring '%s' to disk", folder);
    return 0;
}

int knob_state_save(const struct host *host, const struct knob_state *state, struct why *why)
{
    const char *path = knob_state_path(host);
    if (state->entries.len == 0) {
        if (unlink(path) < 0 && errno != ENOENT)
            return why_errno(why, errno, NULL, "cannot remove '%s'", path);
        return folder_sync(host, why);
    }
    AUTO(json_release)
    json_t *json = json_pack("{s:s, s:[]}", "schema", STATE_SCHEMA, "entries");
    json_t *entries = json_object_get(json, "entries");
    for (size_t i = 0; i < state->entries.len; i++) {
        const struct knob_saved *saved = &state->entries.data[i];
        if (json_array_append_new(entries,
                                  json_pack("{s:s, s:s, s:s, s:s}", "knob", saved->knob, "path",
                                            saved->path, "old", saved->old, "set", saved->set)) < 0)
            return why_set(why, WHY_FAILED, EINVAL, NULL,
                           "cannot remember the value '%s' of '%s': no UTF-8 text, or no memory",
                           saved->old, saved->path);
    }
    char *text = json_dumps(json, JSON_INDENT(2));
    if (!text)
        return why_nomem(why);
    size_t len = strlen(text);
    text[len] = '\n'; /* over the NUL: the length is known */
    int r = file_write_atomic(path, text, len + 1, why);
    free(text);
    if (r == 0 && chmod(path, 0644) < 0) /* as readable as the knobs */
        r = why_errno(why, errno, NULL, "cannot make '%s' readable", path);
    return r < 0 ? r : folder_sync(host, why);
}

struct knob_saved *knob_state_find(const struct knob_state *state, const char *path)
{
    for (size_t i = 0; i < state->entries.len; i++)
        if (strcmp(state->entries.data[i].path, path) == 0)
            return &state->entries.data[i];
    return NULL;
}

void knob_state_remove(struct knob_state *state, size_t index)
{
    struct knob_saved *entries = state->entries.data;
    memmove(&entries[index], &entries[index + 1],
            (state->entries.len - index - 1) * sizeof(entries[0]));
    state->entries.len--;
}

void knob_state_deinit(struct knob_state *state)
{
    VEC_FREE(&state->entries);
}
