/* Stacks that a program has walked itself: its images by what the loader calls them.
 *
 * What is mapped at an address now may be another library than the one that was walked through:
 * an image is found by its place and its name together, then by its path, and only then by what
 * is known to stand there. */
#include "collect/stacks.h"

#include "collect/stacks_parts.h"
#include "unwind/space.h"

#include <errno.h>
#include <string.h>

static struct str name_of(struct str path)
{
    size_t at = path.len;
    while (at > 0 && path.data[at - 1] != '/')
        at--;
    return (struct str){path.data + at, path.len - at};
}

static bool names_agree(struct str a, struct str b)
{
    struct str x = name_of(a), y = name_of(b);
    return x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
}

/* Mapped in the range; under this name, unless any will do. */
static uint32_t mapped_find(const struct stacks *st, const struct stack_process *p,
                            const struct stacks_told_image *told, const struct str *name)
{
    for (size_t i = 0; i < p->mappings.len; i++) {
        const struct stack_mapping *m = &p->mappings.data[i];
        if (m->address >= told->end || m->address + m->size_bytes <= told->start)
            continue;
        const struct stack_image *image = &st->images.data[m->image];
        if (!name || (image->kind == IMAGE_FILE && names_agree(image->path, *name)))
            return m->image;
    }
    return STACKS_NONE;
}

int stacks_told_image(struct stacks *st, int pid, const struct stacks_told_image *told,
                      uint32_t *ret_image)
{
    uint32_t process = process_find(st, pid);
    const struct stack_process *p = process == STACKS_NONE ? NULL : &st->processes.data[process];
    struct stacks_mmap mmap = {
        .pid = pid,
        .address = told->start,
        .size_bytes = told->end - told->start,
        .executable = true,
        .path = told->path.len > 0 ? told->path
                : p                ? p->exe
                                   : STR(""),
    };
    uint32_t found = p ? mapped_find(st, p, told, &mmap.path) : STACKS_NONE;
    bool is_path = mmap.path.len > 0 && (mmap.path.data[0] == '/' || mmap.path.data[0] == '[');
    if (found == STACKS_NONE && p && !is_path)
        found = mapped_find(st, p, told, NULL);
    if (found == STACKS_NONE) {
        if (!is_path)
            return -ENOENT;
        int r = image_find(st, process, &mmap, &found);
        if (r < 0)
            return r;
    }
    *ret_image = found;
    return 0;
}

int stacks_told_frame(struct stacks *st, uint32_t image, uint64_t address, uint32_t *ret_frame)
{
    return image_frame(st, image, FRAME_USER, address, ret_frame);
}

int stacks_told_address(struct stacks *st, int pid, uint64_t address, uint32_t *ret_frame)
{
    uint32_t process = process_find(st, pid), tag;
    uint64_t vaddr;
    const struct unwind_space *space = process == STACKS_NONE ? NULL
                                                              : st->processes.data[process].space;
    if (!space || !unwind_space_find(space, address, &tag, &vaddr) || tag == 0)
        return unknown_frame(st, UNWIND_NO_MAPPING, ret_frame);
    return image_frame(st, tag - 1, FRAME_USER, vaddr, ret_frame);
}

int stacks_told_end(struct stacks *st, enum unwind_end end, uint32_t *ret_frame)
{
    return unknown_frame(st, end, ret_frame);
}

bool stacks_is_last_thread(const struct stacks *st, int pid, int tid)
{
    uint32_t thread = thread_find(st, tid), process = process_find(st, pid);
    if (process == STACKS_NONE)
        return false;
    bool is_its = thread != STACKS_NONE && st->threads.data[thread].process == process;
    return st->processes.data[process].threads <= (is_its ? 1u : 0u);
}

struct str stacks_program(const struct stacks *st, int pid)
{
    uint32_t process = process_find(st, pid);
    return process == STACKS_NONE ? STR("") : st->processes.data[process].exe;
}
