/* Ids for what a sink must recognise when it sees it again: texts, images,
 * frames and stacks. Shared by every implementation of model/sink.h, so that
 * "the same frame gives the same id" means the same everywhere.
 *
 * Ids count from 1 in the order of first sight; a stack's parent therefore
 * always has a smaller id than the stack, and a walk to the root ends. */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/sink.h"

/* Bounds, so that a target cannot make us eat the machine: about 1 GiB at worst. */
enum {
    INTERNED_TEXT_BYTES_MAX = 1 << 20, /* one text */
    INTERNED_TEXTS_MAX = 1 << 22,
    INTERNED_IMAGES_MAX = 1 << 20,
    INTERNED_FRAMES_MAX = 1 << 22,
    INTERNED_FUNCTIONS_MAX = 1 << 22,
    INTERNED_STACKS_MAX = 1 << 23,
};

struct stack_node {
    uint32_t parent;
    uint32_t frame;
};

struct interned {
    struct intern texts;
    struct intern names;     /* paths and build-ids of images: only to compare them */
    struct intern images;    /* fixed-size keys, as bytes */
    struct intern frames;    /* the same */
    struct intern functions; /* the same */
    struct map_u64 stack_ids;
    VEC(struct stack_node) stacks; /* stacks.data[id - 1] */
};

/* Each returns 0, -ENOMEM, -EINVAL when an id in it was never given out, or
 * -E2BIG beyond the bounds above. *ret_new says that the id is a new one. */
MUST_USE int interned_text(struct interned *interned, struct str text, uint32_t *ret_id,
                           bool *ret_new);
MUST_USE int interned_image(struct interned *interned, const struct image_info *info,
                            uint32_t *ret_id, bool *ret_new);
MUST_USE int interned_frame(struct interned *interned, const struct frame_info *info,
                            uint32_t *ret_id, bool *ret_new);
MUST_USE int interned_function(struct interned *interned, const struct function_info *info,
                               uint32_t *ret_id, bool *ret_new);
MUST_USE int interned_stack(struct interned *interned, uint32_t parent, uint32_t frame,
                            uint32_t *ret_id, bool *ret_new);

/* The frame behind an id that was given out. */
struct frame_info interned_frame_get(const struct interned *interned, uint32_t id);

void interned_deinit(struct interned *interned);
