/* What the files of `objects` share; nobody else includes this.
 *
 * objects.c         ids to objects of the sink
 * object_names.c    facts to names
 * objects_proc.c    facts about an fd from /proc
 * objects_net.c     facts about a socket from /proc/PID/net and the kernel's socket diagnosis */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/objects.h"

struct object_entry {
    uint32_t id; /* the sink's */
    uint16_t flags;
    bool named;              /* by its facts, not only by kind and number */
    uint64_t asked_ns;       /* when /proc was last asked about it */
    uint64_t nameless_calls; /* made while it had no name */
};

/* Sockets of one network namespace, as /proc showed them last. */
struct net_socket {
    uint64_t ino;
    uint16_t family, socket_type, state, local_port, remote_port;
    uint8_t local[16], remote[16];
    struct str path; /* of a Unix socket; in the arena of the tables */
};

struct net_tables {
    struct arena arena;
    VEC(struct net_socket) sockets;
    struct map_u64 inodes; /* to index + 1 */
    uint8_t listening[65536 / 8];
    uint64_t space;            /* inode of the namespace; 0: nothing was read */
    uint64_t read_ns, took_ns; /* when, and how much CPU time it took */
    uint64_t own_space;
    int diag_fd; /* -1: not opened or not to be had */
    bool diag_tried;
};

enum { OWN_PIPES_MAX = 16 };

struct objects {
    struct sink *sink;
    uint64_t own_pipes[OWN_PIPES_MAX]; /* inodes of those that whyslow reads */
    size_t own_pipe_count;
    struct intern keys; /* id n is entries.data[n - 1] */
    VEC(struct object_entry) entries;
    uint32_t shared[OBJECT_PATH + 1]; /* the sink's ids for what is beyond the bound, by kind */
    struct net_tables net;
    struct objects_counts counts;
};

/* The entry's index; made without a name if need be. -E2BIG beyond the bound. */
MUST_USE int object_entry_need(struct objects *objects, const struct object_id *id,
                               uint32_t *ret_index);
/* Name and flags of an entry, learnt from its facts. */
MUST_USE int object_entry_name(struct objects *objects, uint32_t index, uint16_t flags,
                               struct str name);
/* As object_name(), and whether it is whyslow that reads it. */
struct str object_entry_words(const struct objects *objects, const struct object_record *record,
                              char *buffer, size_t size);
/* The sink's id of all those of a kind that are beyond the bound. */
MUST_USE int object_shared(struct objects *objects, uint16_t kind, uint32_t *ret);

/* Fills in what is known of a socket: family, addresses, flags of the id. -ENOENT if nothing is. */
MUST_USE int net_socket_find(struct net_tables *net, int pid, struct object_record *record);
void net_tables_deinit(struct net_tables *net);
