/* Ids of the kernel programs to objects of the sink, each told once. */
#include "collect/objects.h"

#include "base/redact.h"
#include "collect/objects_parts.h"
#include "target/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAME(name) _Static_assert((int)OBJECT_ID_##name == (int)OBJECT_##name, "format and model")
SAME(NONE);
SAME(FILE);
SAME(DIRECTORY);
SAME(BLOCK_DEVICE);
SAME(CHAR_DEVICE);
SAME(PIPE);
SAME(SOCKET);
SAME(EVENT);
SAME(TIMER);
SAME(POLL_SET);
SAME(FUTEX);
SAME(KERNEL_LOCK);
SAME(PROCESS);
SAME(OTHER);
SAME(PATH);
SAME(CLIENT);
SAME(SERVER);
SAME(LISTENING);
SAME(LOCAL);

/* What the target prints goes to us when a run is measured: such a pipe is our cost, not its own.
 * They are open before anything is recorded. */
static void own_pipes_find(struct objects *objects)
{
    DIR *fds = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (fds && objects->own_pipe_count < OWN_PIPES_MAX && (entry = readdir(fds))) {
        struct stat info;
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode) &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
            objects->own_pipes[objects->own_pipe_count++] = info.st_ino;
    }
    if (fds)
        closedir(fds);
}

struct str object_entry_words(const struct objects *objects, const struct object_record *record,
                              char *buffer, size_t size)
{
    struct str name = object_name(record, buffer, size);
    for (size_t i = 0; i < objects->own_pipe_count && record->id.kind == OBJECT_ID_PIPE; i++)
        if (objects->own_pipes[i] == record->ino && name.len + sizeof(OBJECT_TO_WHYSLOW) <= size) {
            memcpy(buffer + name.len, OBJECT_TO_WHYSLOW, sizeof(OBJECT_TO_WHYSLOW));
            name.len += sizeof(OBJECT_TO_WHYSLOW) - 1;
            break;
        }
    return name;
}

int objects_open(struct sink *sink, struct objects **ret)
{
    struct objects *objects = calloc(1, sizeof(*objects));
    if (!objects)
        return -ENOMEM;
    objects->sink = sink;
    objects->net.diag_fd = -1;
    own_pipes_find(objects);
    *ret = objects;
    return 0;
}

void objects_close(struct objects *objects)
{
    if (!objects)
        return;
    net_tables_deinit(&objects->net);
    intern_deinit(&objects->keys);
    VEC_FREE(&objects->entries);
    free(objects);
}

/* An inode's number is one of its file system's: both together make the key. */
static uint64_t key_of(const struct object_id *id)
{
    uint64_t parts[2] = {id->ino, id->dev};
    return id->dev == 0 ? id->ino : hash_bytes(parts, sizeof(parts));
}

struct str object_name_shown(struct str name, char room[OBJECT_NAME_BYTES])
{
    if (name.len == 0 || !memchr(name.data, '?', name.len) || command_arguments_are_kept())
        return name;
    return (struct str){
        room, MIN(redact_file_name(name, room, OBJECT_NAME_BYTES), (size_t)OBJECT_NAME_BYTES - 1)};
}

static int sink_tell(struct objects *objects, const struct object_id *id, struct str name,
                     uint32_t *ret)
{
    char shown[OBJECT_NAME_BYTES];
    struct object_info info = {
        .kind = (enum object_kind)id->kind,
        .flags = id->flags,
        .key = key_of(id),
        .name = object_name_shown(name, shown),
    };
    return sink_object(objects->sink, &info, ret);
}

int object_shared(struct objects *objects, uint16_t kind, uint32_t *ret)
{
    struct object_id id = {.ino = UINT64_MAX, .kind = kind};
    objects->counts.beyond++;
    int r = 0;
    if (objects->shared[kind] == 0)
        r = sink_tell(objects, &id, STR("(more than are kept apart)"), &objects->shared[kind]);
    if (r == 0)
        *ret = objects->shared[kind];
    return r;
}

static bool kind_is_known(const struct object_id *id)
{
    return id->kind > OBJECT_ID_NONE && id->kind <= OBJECT_ID_PATH;
}

int object_entry_need(struct objects *objects, const struct object_id *id, uint32_t *ret_index)
{
    /* Roles of a socket come and go; it stays the same socket. */
    struct object_id key = *id;
    key.flags = 0;
    struct str bytes = {(const char *)&key, sizeof(key)};
    uint32_t number = intern_find(&objects->keys, bytes);
    if (number == 0) {
        if (objects->entries.len >= OBJECTS_MAX)
            return -E2BIG;
        struct object_record nameless = {.id = *id, .ino = id->ino};
        struct object_entry entry = {.flags = id->flags};
        char name[128];
        if (id->kind == OBJECT_ID_FILE)
            nameless.ino = (uint32_t)id->ino; /* above it stands the generation */
        int r = sink_tell(objects, id, object_entry_words(objects, &nameless, name, sizeof(name)),
                          &entry.id);
        if (r < 0)
            return r;
        if (VEC_RESERVE(&objects->entries, objects->entries.len + 1) < 0 ||
            intern_add(&objects->keys, bytes, &number, NULL) < 0)
            return -ENOMEM;
        objects->entries.data[objects->entries.len++] = entry;
    }
    *ret_index = number - 1;
    return 0;
}

/* The sink joins flags: told again when there are new ones. */
static int flags_add(struct objects *objects, uint32_t index, const struct object_id *id)
{
    struct object_entry *entry = &objects->entries.data[index];
    uint32_t same;
    if ((entry->flags | id->flags) == entry->flags)
        return 0;
    entry->flags |= id->flags;
    return sink_tell(objects, id, (struct str){"", 0}, &same);
}

int object_entry_name(struct objects *objects, uint32_t index, uint16_t flags, struct str name)
{
    struct object_entry *entry = &objects->entries.data[index];
    entry->named = true;
    objects->counts.nameless_calls -= entry->nameless_calls;
    entry->nameless_calls = 0;
    entry->flags |= flags;
    char shown[OBJECT_NAME_BYTES];
    return sink_object_name(objects->sink, entry->id, object_name_shown(name, shown));
}

int objects_use(struct objects *objects, const struct object_id *id, uint64_t calls, uint32_t *ret)
{
    uint32_t index;
    if (!kind_is_known(id)) {
        *ret = 0;
        return 0;
    }
    int r = object_entry_need(objects, id, &index);
    if (r == -E2BIG) {
        objects->counts.nameless_calls += calls;
        return object_shared(objects, id->kind, ret);
    }
    if (r == 0)
        r = flags_add(objects, index, id);
    if (r < 0)
        return r;
    struct object_entry *entry = &objects->entries.data[index];
    if (!entry->named) {
        entry->nameless_calls += calls;
        objects->counts.nameless_calls += calls;
    }
    *ret = entry->id;
    return 0;
}

int objects_find(struct objects *objects, const struct object_id *id, uint32_t *ret)
{
    return objects_use(objects, id, 0, ret);
}

bool objects_is_named(const struct objects *objects, const struct object_id *id)
{
    struct object_id key = *id;
    key.flags = 0;
    uint32_t number = intern_find(&objects->keys, (struct str){(const char *)&key, sizeof(key)});
    return number != 0 && objects->entries.data[number - 1].named;
}

int objects_name(struct objects *objects, const struct object_id *id, struct str name)
{
    uint32_t index;
    int r = kind_is_known(id) ? object_entry_need(objects, id, &index) : -EINVAL;
    if (r == -E2BIG || r == -EINVAL)
        return 0;
    return r < 0 ? r : object_entry_name(objects, index, id->flags, name);
}

bool object_record_read(const void *record, size_t bytes, struct object_record *ret)
{
    const size_t head_bytes = offsetof(struct object_record, text);
    if (bytes < head_bytes || bytes > sizeof(*ret))
        return false;
    memset(ret, 0, sizeof(*ret));
    memcpy(ret, record, bytes);
    return ret->type == OBJECT_RECORD_TYPE && kind_is_known(&ret->id) &&
           (ret->text_bytes <= bytes - head_bytes || bytes == sizeof(*ret));
}

int objects_take(struct objects *objects, const void *record, size_t bytes)
{
    struct object_record whole;
    const struct object_record *told = &whole;
    if (!object_record_read(record, bytes, &whole)) {
        objects->counts.refused++;
        return 0;
    }
    uint32_t index;
    int r = object_entry_need(objects, &told->id, &index);
    if (r == -E2BIG)
        return 0; /* counted when somebody waits for it */
    if (r == 0)
        r = flags_add(objects, index, &told->id);
    if (r < 0)
        return r;
    char name[OBJECT_NAME_BYTES];
    objects->counts.told++;
    return object_entry_name(objects, index, told->id.flags,
                             object_entry_words(objects, told, name, sizeof(name)));
}

int objects_of_child(struct objects *objects, uint32_t process, uint32_t pid, uint32_t *ret)
{
    char name[32];
    snprintf(name, sizeof(name), "pid %u", pid);
    struct object_info info = {
        .kind = OBJECT_PROCESS,
        .process = process,
        .key = pid,
        .name = pid ? str_from(name) : STR("any child"),
    };
    return sink_object(objects->sink, &info, ret);
}

struct objects_counts objects_counts(const struct objects *objects)
{
    return objects->counts;
}
