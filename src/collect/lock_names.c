/* From addresses of locks to names of variables: what is mapped there at once, names at the end. */
#include "collect/lock_names.h"

#include "collect/stacks_parts.h"
#include "symbolize/symbols.h"
#include "symbolize/variables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct lock_name {
    uint32_t image; /* index in the stacks */
    uint32_t object;
    uint64_t vaddr;
};

struct lock_names {
    VEC(struct lock_name) seen;
    VEC(struct variables_layout) layouts; /* one without segments: the image has none to be had */
    struct map_u64 layout_at;             /* image index to index in layouts */
};

int lock_names_open(struct lock_names **ret)
{
    struct lock_names *names = calloc(1, sizeof(*names));
    if (!names)
        return -ENOMEM;
    *ret = names;
    return 0;
}

void lock_names_close(struct lock_names *names)
{
    if (!names)
        return;
    VEC_FREE(&names->seen);
    VEC_FREE(&names->layouts);
    map_u64_deinit(&names->layout_at);
    free(names);
}

static int layout_need(struct lock_names *names, struct stacks *stacks, uint32_t image,
                       struct variables_layout **ret)
{
    bool fresh;
    uint64_t *at = map_u64_at(&names->layout_at, image, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        struct variables_layout layout = {0};
        int fd = image_fd(stacks, image);
        if (fd < 0 || variables_layout_read(fd, &layout) < 0)
            layout.count = 0;
        image_fd_done(stacks, &stacks->images.data[image]);
        *at = names->layouts.len;
        if (VEC_PUSH(&names->layouts, layout) < 0)
            return -ENOMEM;
    }
    *ret = &names->layouts.data[*at];
    return 0;
}

int lock_names_see(struct lock_names *names, struct stacks *stacks, int pid, uint64_t address,
                   uint32_t object)
{
    uint32_t process = process_find(stacks, pid);
    if (process == STACKS_NONE || names->seen.len >= LOCK_NAMES_MAX)
        return 0;
    size_t count = stacks->processes.data[process].mappings.len;
    for (size_t i = 0; i < count; i++) {
        struct stack_mapping mapping = stacks->processes.data[process].mappings.data[i];
        if (stacks->images.data[mapping.image].kind != IMAGE_FILE)
            continue;
        struct variables_layout *layout;
        struct lock_name name = {mapping.image, object, 0};
        int r = layout_need(names, stacks, mapping.image, &layout);
        if (r < 0)
            return r;
        if (variables_layout_vaddr(layout, mapping.address, mapping.file_offset, address,
                                   &name.vaddr))
            return VEC_PUSH(&names->seen, name);
    }
    return 0;
}

static int name_order(const void *a, const void *b)
{
    const struct lock_name *x = a, *y = b;
    if (x->image != y->image)
        return x->image < y->image ? -1 : 1;
    return (x->object > y->object) - (x->object < y->object);
}

/* A lock waits at one of its words: within a variable that is no larger than a lock the offset
 * says nothing. (Sizes of glibc's locks on 64-bit machines.) */
static bool is_lock_sized(uint64_t bytes)
{
    return bytes <= 8 || bytes == 32 || bytes == 40 || bytes == 48 || bytes == 56;
}

static int name_put(const struct variables *variables, const struct lock_name *name,
                    struct sink *sink)
{
    struct variable variable;
    if (!variables_at(variables, name->vaddr, &variable))
        return 0;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text = symbol_demangle(&arena, variable.linkage);
    uint64_t offset = name->vaddr - variable.start;
    if (offset > 0 && !is_lock_sized(variable.size_bytes))
        text = str_from(arena_printf(&arena, "%.*s+0x%" PRIx64, STR_FMT(text), offset));
    return arena_failed(&arena) ? -ENOMEM : sink_object_name(sink, name->object, text);
}

/* Those of one image, which stand together. */
static int image_put(struct stacks *stacks, const struct lock_name *names, size_t count,
                     struct sink *sink)
{
    struct stack_image *image = &stacks->images.data[names[0].image];
    struct image_info info = {
        .kind = image->kind,
        .path = image->path,
        .build_id = image->build_id,
        .size_bytes = image->size_bytes,
    };
    struct variables *variables = NULL;
    int fd = image_fd(stacks, names[0].image);
    int r = fd < 0 ? fd : variables_open(fd, &info, image->root, &variables);
    image_fd_done(stacks, image);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = name_put(variables, &names[i], sink);
    variables_close(variables);
    return r;
}

int lock_names_put(struct lock_names *names, struct stacks *stacks, struct sink *sink)
{
    if (names->seen.len > 1)
        qsort(names->seen.data, names->seen.len, sizeof(*names->seen.data), name_order);
    int r = 0;
    for (size_t at = 0; at < names->seen.len && r == 0;) {
        size_t end = at;
        while (end < names->seen.len && names->seen.data[end].image == names->seen.data[at].image)
            end++;
        r = image_put(stacks, names->seen.data + at, end - at, sink);
        at = end;
    }
    return r;
}
