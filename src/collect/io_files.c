/* Files, beside the calls on them: faults on mapped ones, and which ones deserve a look at the
 * end (files_look.h). */
#include "collect/io_kernel_parts.h"
#include "format/io_faults.h"
#include "target/maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Before that, the kernel does not tell which file a fault is on. */
bool io_faults_here(void)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 11));
}

/* ---- names ---- */

int io_files_told(struct collector *c, const void *told, size_t bytes)
{
    char name[OBJECT_NAME_BYTES];
    struct object_record whole, *record = &whole;
    uint32_t object;
    if (!object_record_read(told, bytes, &whole) || record->id.kind != OBJECT_ID_FILE ||
        record->text_kind != OBJECT_TEXT_PATH)
        return 0;
    int r = objects_find(c->objects, &record->id, &object);
    /* In a container processes are told by numbers that are not ours. */
    int pid = c->config.pid_ns == 0 ? (int)record->tgid : 0;
    return r < 0 ? r
                 : files_look_named(c->look, object, pid, record->ino,
                                    object_name(record, name, sizeof(name)));
}

/* 1 when it was found. */
static int mapped_name(struct collector *c, const struct object_id *id, uint32_t object, int pid)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct map_entry entry;
    struct str text;
    int r;
    if (maps_read(&arena, pid, &text, NULL) < 0)
        return 0; /* gone */
    while ((r = maps_next(&text, &entry)) != 0) {
        if (r < 0 || entry.inode == 0 || entry.path.len == 0 || entry.path.data[0] != '/' ||
            (uint32_t)entry.inode != (uint32_t)id->ino ||
            (entry.device_major << 20 | entry.device_minor) != id->dev)
            continue;
        r = objects_name(c->objects, id, entry.path);
        if (r == 0)
            r = files_look_named(c->look, object, pid, entry.inode, entry.path);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* What was mapped without a call that we saw (before we came, or by exec) has told nobody its
 * name; while the process lives it is in /proc. The loader of programs that are gone is, most
 * likely, our own as well. Else it keeps the name of its number. */
static int fault_name(struct collector *c, const struct io_key *key, uint32_t object)
{
    struct str bytes = {(const char *)&key->object, sizeof(key->object)};
    uint32_t id;
    bool fresh;
    if (key->object.kind != OBJECT_ID_FILE || objects_is_named(c->objects, &key->object) ||
        c->mapped.len >= OBJECTS_MAX)
        return 0;
    if (intern_add(&c->mapped, bytes, &id, &fresh) < 0)
        return -ENOMEM;
    int r = fresh ? mapped_name(c, &key->object, object, (int)key->tgid) : 1;
    if (r == 0)
        r = mapped_name(c, &key->object, object, getpid());
    return r < 0 ? r : 0;
}

/* ---- rows ---- */

int io_files_row(struct collector *c, const struct io_key *key, uint32_t object,
                 const struct io_tally *tally)
{
    int r = 0;
    if (key->call == CALL_NO_SYSCALL) {
        c->faults += tally->count;
        r = fault_name(c, key, object);
    }
    files_look_used(c->look, object, tally->total_ns, tally->bytes + tally->missed_bytes);
    return r;
}

static int fault_put(struct collector *c, const struct io_fault *fault)
{
    struct io_tally tally = {
        .count = 1,
        .first_ns = fault->start_ns,
        .last_ns = fault->end_ns,
        .missed = fault->missed_bytes > 0,
        .missed_bytes = fault->missed_bytes,
    };
    if (fault->timed && fault->end_ns >= fault->start_ns) {
        tally.total_ns = tally.max_ns = fault->end_ns - fault->start_ns;
        tally.buckets[wait_bucket(tally.total_ns)]++;
    }
    return io_row_put(c, &fault->key, &tally);
}

int io_faults_take(struct collector *c)
{
    uint32_t key, *previous = NULL;
    for (uint32_t i = 0; i < IO_THREADS_MAX; i++) {
        struct io_fault fault;
        uint32_t next;
        if (bpf_map_get_next_key(c->fds.faults, previous, &next) < 0)
            break;
        key = next;
        previous = &key;
        if (bpf_map_lookup_elem(c->fds.faults, &key, &fault) < 0 || fault.start_ns == 0)
            continue;
        c->faults_last++;
        int r = fault_put(c, &fault);
        if (r < 0)
            return r;
    }
    return 0;
}
