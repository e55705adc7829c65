/* Writes each artifact whole or not at all. */
#include "cmd/run_artifacts.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/temporary.h"
#include "base/trust.h"
#include "present/run_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int artifacts_default_check(const char *out, struct why *why)
{
    struct stat link, st;
    if (lstat(out, &link) < 0)
        return 0;
    bool ours = link.st_uid == 0 || link.st_uid == geteuid();
    if (ours && stat(out, &st) == 0 && trust_stat(&st))
        return 0;
    if (ours && S_ISLNK(link.st_mode) && stat(out, &st) < 0)
        return 0; /* a link to nowhere: mkdir() has the words */
    return why_set(why, WHY_USAGE, EPERM, "name a folder: --out DIR",
                   "'%s' belongs to another user, or others may change it", out);
}

int artifacts_folder_make(struct arena *arena, const char *out, const char *run_id,
                          const char **ret, struct why *why)
{
    int r = folder_make(out, why);
    if (r < 0) {
        why_set_remedy(why, "choose a folder you may write to: --out DIR");
        return r;
    }
    const char *folder = arena_printf(arena, "%s/%s", out, run_id);
    if (arena_failed(arena))
        return why_nomem(why);
    if (mkdir(folder, 0700) < 0)
        return why_errno(why, errno, "choose a folder you may write to: --out DIR",
                         "cannot create folder '%s'", folder);
    *ret = folder;
    return 0;
}

void artifacts_latest(const char *out, const char *run_id)
{
    char latest[PATH_MAX], temporary[PATH_MAX];
    snprintf(latest, sizeof(latest), "%s/latest", out);
    int n = snprintf(temporary, sizeof(temporary), "%s/latest.%d.tmp", out, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return;
    struct stat st;
    if (lstat(latest, &st) == 0 && (!S_ISLNK(st.st_mode) || st.st_uid != geteuid())) {
        log_warning("'%s' is left as it is: it is %s", latest,
                    S_ISLNK(st.st_mode) ? "another user's link" : "no link");
        return;
    }
    /* A link beside it and a rename: there is always one, and never half of one. */
    temporary_sweep_beside(latest, ".tmp");
    if (symlink(run_id, temporary) == 0 && rename(temporary, latest) < 0)
        unlink(temporary);
}

/* How a file is drawn: by a renderer, or by itself. */
struct drawing {
    const char *renderer, *schema;
    const struct value *root;
    const struct run_file *file;
    const struct interpretation *said;
    struct arena *arena;
};

static int text_make(const struct drawing *drawing, char **ret, size_t *ret_len, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return why_nomem(why);
    int r = 0;
    if (drawing->file && drawing->file->draw) {
        drawing->file->draw(drawing->arena, drawing->said, out);
    } else {
        struct report report = {.schema = drawing->schema, .root = drawing->root};
        struct render_opts opts = {0};
        r = render(renderer_find(drawing->renderer), &report, &opts, out, why);
    }
    bool whole = !ferror(out);
    if ((fclose(out) != 0 || !whole) && r == 0)
        r = why_nomem(why);
    if (r < 0) {
        free(text);
        return r;
    }
    *ret = text;
    *ret_len = len;
    return 0;
}

int json_text_make(const char *schema, const struct value *root, char **ret, size_t *ret_len,
                   struct why *why)
{
    struct drawing drawing = {.renderer = "json", .schema = schema, .root = root};
    return text_make(&drawing, ret, ret_len, why);
}

int artifact_write(const char *folder, const char *name, const char *text, size_t len,
                   struct why *why)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return why_set(why, WHY_USAGE, ENAMETOOLONG, "use a shorter --out", "path too long: '%s'",
                       folder);
    return file_write_atomic(path, text, len, why);
}

int artifact_json(const char *folder, const char *name, const char *schema,
                  const struct value *root, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    int r = json_text_make(schema, root, &text, &len, why);
    if (r < 0)
        return r;
    r = artifact_write(folder, name, text, len, why);
    free(text);
    return r;
}

/* *ret is malloc'ed. */
static int file_draw(struct arena *arena, const struct run_file *file,
                     const struct interpretation *said, char **ret, size_t *ret_len,
                     struct why *why)
{
    struct value root = file->make ? file->make(arena, said) : value_null();
    if (arena_failed(arena))
        return why_nomem(why);
    struct drawing drawing = {.renderer = file->renderer,
                              .schema = file->schema,
                              .root = &root,
                              .file = file,
                              .said = said,
                              .arena = arena};
    char *text = NULL;
    size_t len = 0;
    int r = text_make(&drawing, &text, &len, why);
    if (r == 0 && arena_failed(arena))
        r = why_nomem(why);
    if (r < 0) {
        free(text);
        return r;
    }
    *ret = text;
    *ret_len = len;
    return 0;
}

int artifacts_said(struct arena *arena, const char *folder, const struct interpretation *said,
                   struct why *why)
{
    int first = 0;
    for (const struct run_file *file = run_files; file->name; file++) {
        struct why file_why = {0};
        char *text = NULL;
        size_t len = 0;
        int r = file_draw(arena, file, said, &text, &len, &file_why);
        if (r == 0)
            r = artifact_write(folder, file->name, text, len, &file_why);
        free(text);
        if (r < 0 && first == 0) {
            first = r;
            *why = file_why;
        }
    }
    return first;
}

int artifact_summary(struct arena *arena, const char *path, const struct interpretation *said,
                     struct why *why)
{
    for (const struct run_file *file = run_files; file->name; file++) {
        if (strcmp(file->name, "profile_result.json") != 0)
            continue;
        char *text = NULL;
        size_t len = 0;
        int r = file_draw(arena, file, said, &text, &len, why);
        if (r == 0)
            r = file_write_atomic(path, text, len, why);
        free(text);
        return r;
    }
    return 0;
}
