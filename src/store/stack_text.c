/* All frame labels are made at the first call: a profile uses most of them, and
 * again and again. */
#include "store/stack_text.h"

#include "base/arena.h"
#include "base/vec.h"
#include "store/db.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 4096, LABEL_BYTES_MAX = 4096, TEXT_BYTES_MAX = 1 << 20 };

struct labels {
    struct recording *recording;
    struct arena arena;
    bool loaded;
    VEC(const char *) texts;  /* [id - 1] */
    VEC(uint32_t) functions;  /* their names: text ids, [id - 1] */
    VEC(const char *) images; /* last parts of paths, [id - 1] */
    VEC(const char *) frames; /* [id - 1]; functions separated by ';', outermost first */
    uint32_t located;         /* frame whose label comes from its locations */
};

/* ';' separates frames, so a name may not contain it. */
static const char *clean(struct arena *arena, struct str text)
{
    char label[LABEL_BYTES_MAX];
    size_t len = MIN(text.len, sizeof(label) - 1);
    for (size_t i = 0; i < len; i++)
        label[i] = text.data[i] == ';' ? ':' : text.data[i];
    return arena_dup_len(arena, label, len);
}

static int on_text(void *context, const struct recorded_text *row)
{
    struct labels *labels = context;
    return VEC_PUSH(&labels->texts, clean(&labels->arena, row->text));
}

static int on_image(void *context, const struct recorded_image *row)
{
    struct labels *labels = context;
    struct str path = row->info.path;
    size_t start = path.len;
    while (start > 0 && path.data[start - 1] != '/')
        start--;
    struct str name = {path.data + start, path.len - start};
    return VEC_PUSH(&labels->images, clean(&labels->arena, name));
}

static int on_frame(void *context, const struct recorded_frame *row)
{
    struct labels *labels = context;
    const struct frame_info *info = &row->info;
    const char *label = "[unknown]";
    if (info->name != 0)
        label = labels->texts.data[info->name - 1];
    else if (info->kind != FRAME_UNKNOWN)
        label = arena_printf(&labels->arena, "%s+0x%" PRIx64,
                             info->image ? labels->images.data[info->image - 1] : "[anonymous]",
                             info->address);
    return VEC_PUSH(&labels->frames, label);
}

static int on_function(void *context, const struct recorded_function *row)
{
    struct labels *labels = context;
    return VEC_PUSH(&labels->functions, row->info.name);
}

/* Innermost first: each further one is a caller and goes in front. */
static int on_location(void *context, const struct location_info *row)
{
    struct labels *labels = context;
    if (row->function == 0)
        return 0;
    const char **label = &labels->frames.data[row->frame - 1];
    const char *function = labels->texts.data[labels->functions.data[row->function - 1] - 1];
    bool first = labels->located != row->frame;
    labels->located = row->frame;
    if (first)
        *label = function;
    else if (strlen(*label) < LABEL_BYTES_MAX) /* a bound on what a hostile file can make grow */
        *label = arena_printf(&labels->arena, "%s;%s", function, *label);
    return 0;
}

static int load(struct labels *labels, struct why *why)
{
    if (labels->loaded)
        return 0;
    struct recording *recording = labels->recording;
    labels->texts.len = labels->functions.len = labels->images.len = labels->frames.len = 0;
    labels->located = 0;
    int r = recording_each_text(recording, on_text, labels, why);
    if (r == 0)
        r = recording_each_image(recording, on_image, labels, why);
    if (r == 0)
        r = recording_each_function(recording, on_function, labels, why);
    /* Ids are checked against the highest one; here they index what was read. */
    if (r == 0 && (labels->texts.len != recording_count(recording, RECORDING_TEXT) ||
                   labels->images.len != recording_count(recording, RECORDING_IMAGE) ||
                   labels->functions.len != recording_count(recording, RECORDING_FUNCTION)))
        r = why_set(why, WHY_FAILED, EBADMSG, NULL, "damaged table 'text', 'image' or 'function'");
    if (r == 0)
        r = recording_each_frame(recording, on_frame, labels, why);
    if (r == 0 && labels->frames.len != recording_count(recording, RECORDING_FRAME))
        r = why_set(why, WHY_FAILED, EBADMSG, NULL, "damaged table 'frame'");
    if (r == 0)
        r = recording_each_location(recording, on_location, labels, why);
    if (r == -ENOMEM || arena_failed(&labels->arena))
        return why_nomem(why);
    labels->loaded = r == 0;
    return r;
}

static void fail(sqlite3_context *context, int r, const struct why *why)
{
    if (r == -ENOMEM) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sqlite3_result_error(context, why->what, -1);
    if (r == -EBADMSG)
        sqlite3_result_error_code(context, SQLITE_CORRUPT); /* the file's fault, not the SQL's */
}

static void frame_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct labels *labels = sqlite3_user_data(context);
    sqlite3_int64 frame = sqlite3_value_int64(argv[0]);
    if (frame < 1 || frame > recording_count(labels->recording, RECORDING_FRAME))
        return; /* NULL in, NULL out; and NULL when there is no such frame */
    struct why why = {0};
    int r = load(labels, &why);
    if (r < 0)
        fail(context, r, &why);
    else
        sqlite3_result_text(context, labels->frames.data[frame - 1], -1, SQLITE_TRANSIENT);
}

/* Root first; a stack beyond all bounds ends with "…". */
static char *join(const struct labels *labels, const uint32_t *frames, int depth, size_t *ret_len)
{
    size_t size = 8;
    for (int i = 0; i < depth; i++)
        size += strlen(labels->frames.data[frames[i] - 1]) + 1;
    size = MIN(size, (size_t)TEXT_BYTES_MAX);
    char *text = sqlite3_malloc64(size);
    if (!text)
        return NULL;
    size_t len = 0;
    for (int i = depth - 1; i >= 0; i--) {
        const char *label = labels->frames.data[frames[i] - 1];
        size_t need = strlen(label) + 1;
        if (len + need + 8 > size) {
            len += (size_t)snprintf(text + len, size - len, ";…");
            break;
        }
        if (len > 0)
            text[len++] = ';';
        memcpy(text + len, label, need - 1);
        len += need - 1;
    }
    *ret_len = len;
    return text;
}

static void stack_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct labels *labels = sqlite3_user_data(context);
    sqlite3_int64 stack = sqlite3_value_int64(argv[0]);
    if (stack < 1 || stack > recording_count(labels->recording, RECORDING_STACK))
        return;
    struct why why = {0};
    uint32_t frames[DEPTH_MAX] = {0};
    int r = load(labels, &why);
    int depth = r < 0
                    ? r
                    : recording_stack(labels->recording, (uint32_t)stack, frames, DEPTH_MAX, &why);
    if (depth < 0) {
        fail(context, depth, &why);
        return;
    }
    size_t len;
    char *text = join(labels, frames, MIN(depth, DEPTH_MAX), &len);
    if (text)
        sqlite3_result_text64(context, text, len, sqlite3_free, SQLITE_UTF8);
    else
        sqlite3_result_error_nomem(context);
}

static void labels_close(void *context)
{
    struct labels *labels = context;
    arena_deinit(&labels->arena);
    VEC_FREE(&labels->texts);
    VEC_FREE(&labels->functions);
    VEC_FREE(&labels->images);
    VEC_FREE(&labels->frames);
    free(labels);
}

int stack_text_register(struct recording *recording, struct why *why)
{
    struct labels *labels = calloc(1, sizeof(*labels));
    if (!labels)
        return why_nomem(why);
    labels->recording = recording;
    sqlite3 *db = recording_db(recording);
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int rc = sqlite3_create_function_v2(db, "frame_text", 1, flags, labels, frame_text, NULL, NULL,
                                        NULL);
    if (rc != SQLITE_OK)
        labels_close(labels);
    else /* The second one owns the labels; SQLite frees them even when this fails. */
        rc = sqlite3_create_function_v2(db, "stack_text", 1, flags, labels, stack_text, NULL, NULL,
                                        labels_close);
    return rc == SQLITE_OK ? 0 : db_why(db, rc, "read", recording_path(recording), why);
}
