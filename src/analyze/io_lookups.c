/* Names that programs ask for: how often, what was not there, and which folders hold the files. */
#include "analyze/io_parts.h"

static int missing_add(struct io_adding *adding, const struct call_row *row)
{
    const struct object_info *object = &adding->io->objects[row->info.object];
    struct str folder = row->info.object ? io_folder_of(object->name) : STR("[not known]");
    uint32_t name;
    bool fresh;
    if (intern_add(&adding->folder_names, folder, &name, NULL) < 0)
        return -ENOMEM;
    uint64_t *at = map_u64_at(&adding->missing_at, (uint64_t)name << 32 | row->info.stack, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        struct io_missing made = {
            .folder = folder, .stack = row->info.stack, .example = row->info.object};
        if (VEC_PUSH(&adding->missing, made) < 0)
            return -ENOMEM;
        *at = adding->missing.len;
    }
    struct io_missing *to = &adding->missing.data[*at - 1];
    to->count += row->tally.count;
    to->ns += row->tally.total_ns;
    int r = io_mark(adding, PAIR_MISSING_NAME, *at, row->info.object);
    to->names += r > 0;
    return r < 0 ? r : 0;
}

int io_lookup_add(struct io_adding *adding, const struct call_row *row, enum io_kind kind)
{
    struct io_lookups *lookups = &adding->sums->lookups;
    uint64_t failed = row->info.error ? row->tally.count : 0;
    uint32_t id;
    switch (kind) {
    case IO_OPEN:
        io_moved_add(&lookups->opens, &row->tally);
        lookups->opens_failed += failed;
        break;
    case IO_STAT:
        io_moved_add(&lookups->stats, &row->tally);
        lookups->stats_failed += failed;
        break;
    case IO_REMOVE:
        io_moved_add(&lookups->removes, &row->tally);
        lookups->removes_failed += failed;
        if (!failed && row->info.object &&
            intern_add(&adding->removed_names, adding->io->objects[row->info.object].name, &id,
                       NULL) < 0)
            return -ENOMEM;
        break;
    case IO_NAME:
        io_moved_add(&lookups->others, &row->tally);
        lookups->others_failed += failed;
        break;
    default:
        return 0;
    }
    if (!io_is_failed_lookup(&adding->sums->kinds, &row->info))
        return 0;
    lookups->missing += row->tally.count;
    lookups->missing_ns += row->tally.total_ns;
    return missing_add(adding, row);
}

int io_folders_add(struct io_adding *adding)
{
    struct intern names = {0};
    int r = 0;
    for (size_t i = 0; i < adding->files.len && r == 0; i++) {
        const struct io_file *file = &adding->files.data[i];
        const struct object_info *object = &adding->io->objects[file->object];
        if (object->kind != OBJECT_FILE || object->name.len == 0)
            continue;
        struct io_folder made = {.folder = io_folder_of(object->name)};
        uint32_t id;
        bool fresh;
        r = intern_add(&names, made.folder, &id, &fresh);
        if (r == 0 && fresh)
            r = VEC_PUSH(&adding->folders, made);
        if (r < 0)
            break;
        struct io_folder *to = &adding->folders.data[id - 1];
        to->files += file->objects;
        to->opens += file->opens;
        to->bytes += file->reads.bytes + file->writes.bytes + file->copies.bytes;
        to->ns += file->tally.total_ns;
        to->temporary += file->created && file->removed ? file->objects : 0;
    }
    intern_deinit(&names);
    return r;
}
