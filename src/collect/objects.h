/* What threads wait for, by name: from ids and records of the kernel programs (format/objects.h),
 * or from /proc where there are none, to objects of a sink. Both ways give the same kind, flags
 * and name for the same fd.
 *
 *     objects_open()      for one sink
 *     objects_take()      a record of the ring: an id gets its name
 *     objects_find()      the sink's id of an object
 *     objects_of_fd()     the same for an fd of a process, from /proc
 *     objects_of_child()  a process that another one waits for
 *     objects_close()
 *
 * Names are the target's, hostile bytes included. Every object costs memory: beyond OBJECTS_MAX
 * all further ones of a kind are one object without a name of its own, and counted. One thread. */
#pragma once

#include "format/objects.h"
#include "model/sink.h"

#include <stdbool.h>

struct objects;

enum { OBJECTS_MAX = 1 << 17, OBJECT_NAME_BYTES = 4096 };

/* As it is stored: without the secrets that follow a '?', as in files fetched from URLs. `room` is
 * where it lies then. */
struct str object_name_shown(struct str name, char room[OBJECT_NAME_BYTES]);

MUST_USE int objects_open(struct sink *sink, struct objects **ret);
void objects_close(struct objects *objects); /* NULL is fine */

/* All of a record of which the ring has what is used; false: it is none. */
bool object_record_read(const void *record, size_t bytes, struct object_record *ret);
/* 0 or the sink's error. What is no record is counted and passed over. */
MUST_USE int objects_take(struct objects *objects, const void *record, size_t bytes);
/* One that no record told of gets a name of its kind and number. 0 in *ret: an id of nothing. */
MUST_USE int objects_find(struct objects *objects, const struct object_id *id, uint32_t *ret);
/* The same for so many calls: they count as nameless as long as no record has named it. */
MUST_USE int objects_use(struct objects *objects, const struct object_id *id, uint64_t calls,
                         uint32_t *ret);
/* By a record, or by objects_name(); not only by kind and number. */
bool objects_is_named(const struct objects *objects, const struct object_id *id);
/* What is called by other means: a kernel lock. */
MUST_USE int objects_name(struct objects *objects, const struct object_id *id, struct str name);
/* The number of a file's id where no kernel program tells the inode's generation: with its birth in
 * ns instead, since numbers of deleted files are given to new ones. 0: the birth is not known. */
uint64_t objects_file_number(uint64_t ino, uint64_t birth_ns);
/* -ENOENT, -EACCES …: the fd cannot be looked at; *ret is untouched. */
MUST_USE int objects_of_fd(struct objects *objects, int pid, int fd, uint32_t *ret);
/* `process`: the sink's id of the one that waits; `pid`: whom for, 0 for any. */
MUST_USE int objects_of_child(struct objects *objects, uint32_t process, uint32_t pid,
                              uint32_t *ret);

struct objects_counts {
    uint64_t told;           /* records taken */
    uint64_t refused;        /* bytes that were no record */
    uint64_t beyond;         /* objects that had to share one */
    uint64_t nameless_calls; /* objects_use(): of objects without a name, or that share one */
};
struct objects_counts objects_counts(const struct objects *objects);

/* The name that a record's facts make; in `buffer`. */
struct str object_name(const struct object_record *record, char *buffer, size_t size);
/* SERVER, CLIENT or LISTENING of a connection between ports of which nothing else is known. */
uint32_t object_port_role(uint16_t own, uint16_t peer);
