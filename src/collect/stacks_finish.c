/* The end of a recording: names for the frames seen, and notes on images without them. */
#include "collect/stacks.h"

#include "base/jsonw.h"
#include "collect/stacks_parts.h"
#include "symbolize/embed.h"
#include "symbolize/symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int frames_collect(const struct stack_image *image, struct symbols_frame **ret)
{
    struct symbols_frame *frames = calloc(image->frames.len, sizeof(*frames));
    if (!frames)
        return -ENOMEM;
    size_t count = 0, at = 0;
    uint64_t address, frame;
    while (map_u64_next(&image->frames, &at, &address, &frame))
        if (frame)
            frames[count++] = (struct symbols_frame){(uint32_t)frame, address};
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

/* Kept open from naming to embedding: an index is made once. */
struct named {
    struct symbols *symbols;
    uint32_t image; /* index */
};
enum { NAMED_MAX = 512 };

/* *ret_symbols stays NULL when there is nothing to be had. */
static int image_name(struct stacks *st, uint32_t index, struct symbols **ret_symbols)
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
        .owner = image->owner,
        .debuginfod = st->opts.debuginfod,
        .lines = true,
    };
    if (image->kind == IMAGE_KERNEL && st->opts.foreign_kernel) {
        image->note = "the kernel was another one: its addresses mean nothing here";
        return 0;
    }
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
    image_fd_done(st, image);
    *ret_symbols = symbols;
    return r;
}

typedef VEC(struct embed_function) embed_list;

static int function_add(embed_list *list, struct map_u64 *starts, uint32_t image,
                        const struct symbol *symbol, uint64_t weight)
{
    bool fresh;
    uint64_t *at = map_u64_at(starts, symbol->start, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        *at = list->len;
        struct embed_function function = {
            .image = image, .start = symbol->start, .size_bytes = symbol->size_bytes};
        if (VEC_PUSH(list, function) < 0)
            return -ENOMEM;
    }
    list->data[*at].weight += weight;
    return 0;
}

/* The functions of an image that samples ended in. */
static int functions_collect(struct stacks *st, const struct named *named, embed_list *list)
{
    const struct stack_image *image = &st->images.data[named->image];
    struct symbol found[SYMBOLS_INLINE_MAX];
    struct map_u64 starts = {0};
    int r = 0;
    size_t at = 0;
    uint64_t address, frame;
    while (r == 0 && map_u64_next(&image->frames, &at, &address, &frame)) {
        uint32_t hits = frame < st->hits.len ? st->hits.data[frame] : 0;
        size_t count = hits > 0 ? symbols_at(named->symbols, address, found, SYMBOLS_INLINE_MAX)
                                : 0;
        if (count > 0 && found[count - 1].size_bytes > 0)
            r = function_add(list, &starts, named->image, &found[count - 1], hits);
    }
    map_u64_deinit(&starts);
    return r;
}

/* Chosen ones of one image, which lie scattered in the list by weight. */
static int image_embed(struct stacks *st, const struct named *named, const embed_list *chosen,
                       size_t count)
{
    embed_list mine = {0};
    int r = 0;
    for (size_t i = 0; i < MIN(count, chosen->len) && chosen->data && r == 0; i++)
        if (chosen->data[i].image == named->image)
            r = VEC_PUSH(&mine, chosen->data[i]);
    if (r == 0 && mine.len > 0) {
        struct stack_image *image = &st->images.data[named->image];
        struct embed_opts opts = {.root = image->root, .no_code = st->opts.embed_no_code};
        struct embed_counts counts;
        int fd = image_fd(st, named->image);
        r = embed_hot(named->symbols, fd < 0 ? -1 : fd, image->id, mine.data, mine.len, &opts,
                      st->sink, &counts);
        image_fd_done(st, image);
    }
    VEC_FREE(&mine);
    return r;
}

static int embed_tell(struct stacks *st, const struct named *named, size_t count)
{
    embed_list list = {0};
    uint64_t whole = 0;
    int r = 0;
    for (size_t i = 0; i < st->hits.len; i++)
        whole += st->hits.data[i];
    for (size_t i = 0; i < count && r == 0; i++)
        if (st->images.data[named[i].image].kind == IMAGE_FILE)
            r = functions_collect(st, &named[i], &list);
    size_t chosen = r == 0 ? embed_choose(list.data, list.len, whole, st->opts.embed_functions) : 0;
    for (size_t i = 0; i < count && r == 0 && chosen > 0; i++)
        r = image_embed(st, &named[i], &list, chosen);
    VEC_FREE(&list);
    return r;
}

static int names_tell(struct stacks *st)
{
    VEC(struct named) named = {0};
    int r = 0;
    for (size_t i = 0; i < st->images.len && !st->opts.no_symbols && r == 0; i++) {
        if (st->images.data[i].frames.len == 0 || st->images.data[i].id == 0)
            continue;
        struct named one = {.image = (uint32_t)i};
        r = image_name(st, one.image, &one.symbols);
        if (one.symbols && (named.len >= NAMED_MAX || VEC_PUSH(&named, one) < 0))
            symbols_close(one.symbols); /* beyond the bound: named, but not embedded */
    }
    if (r == 0 && st->opts.embed_functions > 0)
        r = embed_tell(st, named.data, named.len);
    for (size_t i = 0; i < named.len; i++)
        symbols_close(named.data[i].symbols);
    VEC_FREE(&named);
    return r;
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
