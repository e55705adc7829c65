/* The end of a recording: names for the frames seen, and notes on images without them. */
#include "collect/stacks.h"

#include "base/jsonw.h"
#include "collect/stacks_parts.h"
#include "symbolize/symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int frames_collect(const struct stack_image *image, struct symbols_frame **ret)
{
    struct symbols_frame *frames = calloc(image->frames.len, sizeof(*frames));
    if (!frames)
        return -ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < image->frames.cap; i++) {
        const struct map_u64_slot *slot = &image->frames.slots[i];
        if (slot->used && slot->value)
            frames[count++] = (struct symbols_frame){(uint32_t)slot->value, slot->key};
    }
    *ret = frames;
    return (int)count;
}

/* The fd to read names from; -1 where the reader finds its own way. */
static int names_fd(struct stacks *st, uint32_t index)
{
    return st->images.data[index].kind == IMAGE_FILE ? image_fd(st, index) : -1;
}

/* What the reader found wrong goes to the notes; a missing name is no failure of ours. */
static void notes_keep(struct stacks *st, struct stack_image *image, const struct symbols *symbols)
{
    const char *const *notes = symbols_notes(symbols);
    if (notes && notes[0] && !image->note)
        image->note = arena_dup(&st->arena, notes[0]);
    image->source = arena_dup(&st->arena, symbols_source(symbols));
}

static int image_name(struct stacks *st, uint32_t index)
{
    struct stack_image *image = &st->images.data[index];
    struct image_info info = {
        .kind = image->kind,
        .path = image->path,
        .build_id = image->build_id,
        .size_bytes = image->size_bytes,
    };
    struct symbols_opts opts = {
        .cache_dir = st->opts.cache_dir,
        .root = image->root,
        .debuginfod = st->opts.debuginfod,
        .lines = true,
    };
    int fd = names_fd(st, index);
    if (fd < 0 && image->kind == IMAGE_FILE)
        return 0; /* its note says why */
    struct symbols *symbols = NULL;
    struct why why = {0};
    int r = symbols_open(fd, &info, &opts, &symbols, &why);
    if (r < 0) {
        if (r != -ENOMEM && !image->note)
            image->note = arena_dup(&st->arena, why.what);
        return r == -ENOMEM ? r : 0;
    }
    struct symbols_frame *frames = NULL;
    r = frames_collect(image, &frames);
    if (r >= 0)
        r = symbols_emit(symbols, image->id, frames, (size_t)r, st->sink);
    notes_keep(st, image, symbols);
    free(frames);
    symbols_close(symbols);
    image_fd_done(st, image);
    return r;
}

static int names_tell(struct stacks *st)
{
    for (size_t i = 0; i < st->images.len && !st->opts.no_symbols; i++) {
        if (st->images.data[i].frames.len == 0 || st->images.data[i].id == 0)
            continue;
        int r = image_name(st, (uint32_t)i);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Where names came from, and what is missing and why:
 * {"images": [{"path", "names", "note"}]}. */
static int notes_tell(struct stacks *st)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    jsonw_key(&json, "images");
    jsonw_array_begin(&json);
    for (size_t i = 0; i < st->images.len; i++) {
        const struct stack_image *image = &st->images.data[i];
        if (image->frames.len == 0)
            continue;
        jsonw_object_begin(&json);
        jsonw_key(&json, "path");
        jsonw_text(&json, image->path);
        jsonw_key(&json, "names");
        jsonw_text(&json, str_from(image->source ? image->source : "none"));
        if (image->note) {
            jsonw_key(&json, "note");
            jsonw_text(&json, str_from(image->note));
        }
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? sink_document(st->sink, "images", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

int stacks_finish(struct stacks *st, struct why *why)
{
    int r = names_tell(st);
    if (r < 0)
        return why_errno(why, -r, NULL, "the names of functions could not be recorded");
    r = notes_tell(st);
    if (r == 0 && st->refused > 0)
        r = sink_counter(st->sink, "loss.stacks_over_limit", UNIT_COUNT, st->refused);
    return r < 0 ? why_errno(why, -r, NULL, "the notes on images could not be recorded") : 0;
}
