/* Keys are plain structs without padding, interned as bytes. */
#include "model/interned.h"

#include <assert.h>
#include <errno.h>

struct image_key {
    uint64_t size_bytes;
    uint32_t kind;
    uint32_t path;     /* in names */
    uint32_t build_id; /* in names */
    uint32_t unused;   /* no padding: keys are compared as bytes */
};
_Static_assert(sizeof(struct image_key) == 24, "keys are compared as bytes");

struct frame_key {
    uint64_t address;
    uint32_t kind;
    uint32_t reason;
    uint32_t image;
    uint32_t name;
};
_Static_assert(sizeof(struct frame_key) == 24, "keys are compared as bytes");

struct function_key {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t name;
    uint32_t linkage;
    uint32_t file;
    uint32_t line;
    uint32_t image;
    uint32_t unused; /* no padding */
};
_Static_assert(sizeof(struct function_key) == 40, "keys are compared as bytes");

static int add(struct intern *intern, struct str text, size_t max, uint32_t *ret_id, bool *ret_new)
{
    if (text.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    if (intern->len >= max) { /* what is known is still found */
        uint32_t known = intern_find(intern, text);
        if (known == 0)
            return -E2BIG;
        *ret_id = known;
        *ret_new = false;
        return 0;
    }
    return intern_add(intern, text, ret_id, ret_new);
}

int interned_text(struct interned *interned, struct str text, uint32_t *ret_id, bool *ret_new)
{
    return add(&interned->texts, text, INTERNED_TEXTS_MAX, ret_id, ret_new);
}

int interned_image(struct interned *interned, const struct image_info *info, uint32_t *ret_id,
                   bool *ret_new)
{
    struct image_key key = {.size_bytes = info->size_bytes, .kind = (uint32_t)info->kind};
    bool fresh;
    int r = add(&interned->names, info->path, INTERNED_TEXTS_MAX, &key.path, &fresh);
    if (r == 0)
        r = add(&interned->names, info->build_id, INTERNED_TEXTS_MAX, &key.build_id, &fresh);
    if (r < 0)
        return r;
    return add(&interned->images, (struct str){(const char *)&key, sizeof(key)},
               INTERNED_IMAGES_MAX, ret_id, ret_new);
}

int interned_frame(struct interned *interned, const struct frame_info *info, uint32_t *ret_id,
                   bool *ret_new)
{
    if (info->image > interned->images.len || info->name > interned->texts.len)
        return -EINVAL;
    struct frame_key key = {
        .address = info->address,
        .kind = (uint32_t)info->kind,
        .reason = info->reason,
        .image = info->image,
        .name = info->name,
    };
    return add(&interned->frames, (struct str){(const char *)&key, sizeof(key)},
               INTERNED_FRAMES_MAX, ret_id, ret_new);
}

int interned_function(struct interned *interned, const struct function_info *info, uint32_t *ret_id,
                      bool *ret_new)
{
    size_t texts = interned->texts.len;
    if (info->name == 0 || info->name > texts || info->linkage > texts || info->file > texts ||
        info->image > interned->images.len)
        return -EINVAL;
    struct function_key key = {
        .address = info->address,
        .size_bytes = info->size_bytes,
        .name = info->name,
        .linkage = info->linkage,
        .file = info->file,
        .line = info->line,
        .image = info->image,
    };
    return add(&interned->functions, (struct str){(const char *)&key, sizeof(key)},
               INTERNED_FUNCTIONS_MAX, ret_id, ret_new);
}

int interned_stack(struct interned *interned, uint32_t parent, uint32_t frame, uint32_t *ret_id,
                   bool *ret_new)
{
    if (frame == 0 || frame > interned->frames.len || parent > interned->stacks.len)
        return -EINVAL;
    uint64_t key = (uint64_t)parent << 32 | frame;
    uint64_t *known = map_u64_find(&interned->stack_ids, key);
    if (known) {
        *ret_id = (uint32_t)*known;
        *ret_new = false;
        return 0;
    }
    if (interned->stacks.len >= INTERNED_STACKS_MAX)
        return -E2BIG;
    /* Room first: the map must not hold an id that the list does not. */
    if (VEC_RESERVE(&interned->stacks, interned->stacks.len + 1) < 0)
        return -ENOMEM;
    uint64_t *slot = map_u64_at(&interned->stack_ids, key, NULL);
    if (!slot)
        return -ENOMEM;
    interned->stacks.data[interned->stacks.len++] = (struct stack_node){parent, frame};
    *slot = interned->stacks.len;
    *ret_id = (uint32_t)interned->stacks.len;
    *ret_new = true;
    return 0;
}

struct frame_info interned_frame_get(const struct interned *interned, uint32_t id)
{
    struct str bytes = intern_get(&interned->frames, id);
    struct frame_key key;
    assert(bytes.len == sizeof(key));
    memcpy(&key, bytes.data, sizeof(key));
    return (struct frame_info){
        .kind = (enum frame_kind)key.kind,
        .reason = key.reason,
        .image = key.image,
        .address = key.address,
        .name = key.name,
    };
}

void interned_deinit(struct interned *interned)
{
    intern_deinit(&interned->texts);
    intern_deinit(&interned->names);
    intern_deinit(&interned->images);
    intern_deinit(&interned->frames);
    intern_deinit(&interned->functions);
    map_u64_deinit(&interned->stack_ids);
    VEC_FREE(&interned->stacks);
}
