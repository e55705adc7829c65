/* What stands where in a process, and since when.
 *
 * The unwinder's space is the truth for lookups; the list here is what the sink is told,
 * and what is mapped anew when an image gets its rows. */
#include "collect/stacks_parts.h"
#include "target/maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int mapping_tell(struct stacks *st, uint32_t process, struct stack_mapping *mapping)
{
    if (mapping->id)
        return 0;
    int r = image_tell(st, mapping->image);
    if (r < 0)
        return r;
    struct mapping_info info = {
        .process = st->processes.data[process].id,
        .image = st->images.data[mapping->image].id,
        .start_ns = mapping->start_ns,
        .address = mapping->address,
        .size_bytes = mapping->size_bytes,
        .file_offset = mapping->file_offset,
    };
    return sink_mapping(st->sink, &info, &mapping->id);
}

int mappings_tell(struct stacks *st, uint32_t process)
{
    int r = process_tell(st, process);
    struct stack_process *p = &st->processes.data[process];
    p->sampled = true;
    for (size_t i = 0; i < p->mappings.len && r == 0; i++)
        r = mapping_tell(st, process, &p->mappings.data[i]);
    return r;
}

static int mapping_end(struct stacks *st, const struct stack_mapping *mapping, uint64_t time_ns)
{
    return mapping->id ? sink_mapping_end(st->sink, mapping->id, time_ns) : 0;
}

int mappings_end(struct stacks *st, uint32_t process, uint64_t time_ns)
{
    struct stack_process *p = &st->processes.data[process];
    int r = 0;
    for (size_t i = 0; i < p->mappings.len && r == 0; i++)
        r = mapping_end(st, &p->mappings.data[i], time_ns);
    p->mappings.len = 0;
    return r;
}

static int part_add(struct stack_process *p, const struct stack_mapping *whole, uint64_t from,
                    uint64_t to, uint64_t time_ns)
{
    if (from >= to || p->mappings.len >= STACKS_MAPPINGS_MAX)
        return 0;
    struct stack_mapping part = *whole;
    part.address = from;
    part.size_bytes = to - from;
    part.file_offset += from - whole->address;
    part.start_ns = time_ns;
    part.id = 0;
    return VEC_PUSH(&p->mappings, part);
}

/* A new mapping takes the place of what was there; what is left of that begins anew. */
static int range_clear(struct stacks *st, uint32_t process, uint64_t from, uint64_t to,
                       uint64_t time_ns)
{
    struct stack_process *p = &st->processes.data[process];
    size_t count = p->mappings.len;
    for (size_t i = 0; i < count;) {
        struct stack_mapping old = p->mappings.data[i];
        uint64_t end = old.address + old.size_bytes;
        if (old.address >= to || end <= from) {
            i++;
            continue;
        }
        p->mappings.data[i] = p->mappings.data[--count];
        p->mappings.data[count] = p->mappings.data[--p->mappings.len];
        int r = mapping_end(st, &old, time_ns);
        if (r == 0)
            r = part_add(p, &old, old.address, MIN(from, end), time_ns);
        if (r == 0)
            r = part_add(p, &old, MAX(to, old.address), end, time_ns);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool mapping_known(const struct stack_process *p, const struct stacks_mmap *mmap,
                          uint32_t image)
{
    for (size_t i = 0; i < p->mappings.len; i++) {
        const struct stack_mapping *m = &p->mappings.data[i];
        if (m->address == mmap->address && m->size_bytes == mmap->size_bytes &&
            m->file_offset == mmap->file_offset && m->image == image)
            return true;
    }
    return false;
}

static int range_forget(struct stacks *st, uint32_t process, const struct stacks_mmap *mmap)
{
    struct stack_process *p = &st->processes.data[process];
    int r = range_clear(st, process, mmap->address, mmap->address + mmap->size_bytes,
                        mmap->time_ns);
    return r < 0 ? r : unwind_space_unmap(p->space, mmap->address, mmap->size_bytes);
}

static int mapping_put(struct stacks *st, uint32_t process, const struct stacks_mmap *mmap,
                       uint32_t image)
{
    int r = range_clear(st, process, mmap->address, mmap->address + mmap->size_bytes,
                        mmap->time_ns);
    struct stack_process *p = &st->processes.data[process];
    if (r == 0 && p->mappings.len >= STACKS_MAPPINGS_MAX) {
        st->refused++;
        return 0;
    }
    struct stack_mapping mapping = {
        .address = mmap->address,
        .size_bytes = mmap->size_bytes,
        .file_offset = mmap->file_offset,
        .start_ns = mmap->time_ns,
        .image = image,
    };
    if (r == 0)
        r = VEC_PUSH(&p->mappings, mapping);
    if (r == 0)
        r = unwind_space_map(p->space, mmap->address, mmap->size_bytes, mmap->file_offset,
                             st->images.data[image].rows, image + 1);
    if (r == 0 && p->sampled)
        r = mappings_tell(st, process);
    return r;
}

int mapping_add(struct stacks *st, uint32_t process, const struct stacks_mmap *mmap)
{
    struct stack_process *p = &st->processes.data[process];
    if (mmap->size_bytes == 0 || mmap->address + mmap->size_bytes < mmap->address || !p->space)
        return 0;
    if (!mmap->executable)
        return range_forget(st, process, mmap);
    uint32_t image;
    struct stacks_mmap named = *mmap;
    named.path = process_path(st, process, mmap->path);
    int r = image_find(st, process, &named, &image);
    if (r < 0)
        return r;
    p = &st->processes.data[process];
    if (p->file.len == 0 && st->images.data[image].kind == IMAGE_FILE)
        r = process_program(st, process, mmap->path);
    if (r < 0)
        return r;
    return mapping_known(p, mmap, image) ? 0 : mapping_put(st, process, mmap, image);
}

int stacks_mmap(struct stacks *st, const struct stacks_mmap *mmap)
{
    if (mmap->pid == -1)
        return 0; /* kernel addresses are looked up as they are */
    uint32_t process;
    int r = process_need(st, mmap->time_ns, mmap->pid, &process);
    return r < 0 ? r : mapping_add(st, process, mmap);
}

int mappings_read(struct stacks *st, uint32_t process, uint64_t time_ns)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text;
    int pid = st->processes.data[process].pid;
    if (maps_read(&arena, pid, &text, NULL) < 0)
        return 0; /* gone, or not ours to read: its frames will have no mapping */
    struct map_entry entry;
    int r;
    while ((r = maps_next(&text, &entry)) != 0) {
        if (r < 0 || !entry.executable)
            continue;
        struct stacks_mmap mmap = {
            .time_ns = time_ns,
            .pid = pid,
            .address = entry.start,
            .size_bytes = entry.end - entry.start,
            .file_offset = entry.offset,
            .executable = true,
            .path = entry.path,
            .inode = entry.inode,
            .device_major = entry.device_major,
            .device_minor = entry.device_minor,
        };
        r = mapping_add(st, process, &mmap);
        if (r < 0)
            return r;
    }
    return 0;
}

int stacks_read_again(struct stacks *st, int pid, uint64_t time_ns)
{
    uint32_t process = 0;
    int r = process_need(st, time_ns, pid, &process);
    return r < 0 ? r : mappings_read(st, process, time_ns);
}

int mappings_upgrade(struct stacks *st, uint32_t image)
{
    const struct unwind_image *rows = st->images.data[image].rows;
    for (size_t i = 0; i < st->processes.len; i++) {
        struct stack_process *p = &st->processes.data[i];
        for (size_t j = 0; p->space && j < p->mappings.len; j++) {
            const struct stack_mapping *m = &p->mappings.data[j];
            if (m->image != image)
                continue;
            int r = unwind_space_map(p->space, m->address, m->size_bytes, m->file_offset, rows,
                                     image + 1);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

int stacks_preload(struct stacks *st, int pid)
{
    uint32_t process = process_find(st, pid);
    size_t count = process == STACKS_NONE ? 0 : st->processes.data[process].mappings.len;
    for (size_t i = 0; i < count; i++) {
        int r = image_load(st, st->processes.data[process].mappings.data[i].image);
        if (r < 0)
            return r;
    }
    return 0;
}
