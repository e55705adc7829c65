/* What the files of the user tier of io share; nobody else includes this.
 *
 * io_user.c          the collector's life and last words
 * io_user_rows.c     calls, one by one or added up, to rows
 * io_user_objects.c  what fds and paths stand for
 * io_user_pieces.c   what is said on sockets, in the order of time */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/cpu.h"
#include "collect/files_look.h"
#include "collect/io_requests.h"
#include "collect/io_user.h"
#include "collect/objects.h"
#include "collect/preload_places.h"

#include <limits.h>

enum {
    IO_USER_NUMBERS_MAX = 1 << 18, /* of objects, kept twice over: those used of late stay */
    IO_USER_SOCKETS_MAX = 1 << 16,
    IO_USER_PIECES_BYTES_MAX = 8 << 20,
};

/* A socket on which something may be said; by its number. */
struct io_user_socket {
    uint64_t number;
    uint64_t key; /* as in struct io_socket */
    uint32_t process, object;
    uint32_t flags;
    uint16_t port;
    bool datagrams;
    uint64_t opened_ns;
    char peer[OBJECT_UNIX_BYTES + 16];
};

struct io_user_piece {
    struct preload_piece piece;
    uint64_t order_ns;
    uint32_t process, thread, stack; /* ids of the sink */
    uint32_t at;                     /* in the bytes */
    uint32_t came;                   /* among those of one moment */
};

struct io_user_sum { /* beside a row of the place: as it was read last */
    struct preload_call_row row;
    uint32_t stack; /* the sink's */
    uint32_t call;  /* the same; 0: none yet */
};

struct collector {
    struct preload *preload;
    struct sink *sink;
    struct stacks *stacks;
    struct collector *cpu;
    struct objects *objects;
    struct files_look *look;
    struct io_requests *requests; /* NULL: not asked for */
    struct io_opts opts;
    int pid; /* of the target's first process */
    int timer_fd;
    uint32_t series;
    bool stopped;
    struct preload_places places;
    struct io_user_sum **sums;            /* of each place, one a row; NULL until needed */
    uint64_t unseen[PRELOAD_THREADS_MAX]; /* as counted so far, by place */
    uint64_t folded[PRELOAD_THREADS_MAX];
    struct map_u64 numbers, numbers_old; /* to the sink's object */
    struct map_u64 named;                /* objects that have been asked about */
    uint32_t round;                      /* of reading */
    uint32_t folder_pid, folder_round;   /* whose and when */
    int32_t folder_fd;
    size_t folder_len;
    char folder[PATH_MAX];
    uint64_t hurry_ns;             /* up to then a program is taken to have begun just now */
    uint64_t stuck_ns;             /* since when the next number is being written */
    struct map_u64 socket_numbers; /* to index + 1 */
    VEC(struct io_user_socket) sockets;
    VEC(struct io_user_piece) pieces;
    VEC(uint8_t) said;
    char not_higher[512];
    char na[256]; /* why there is nothing; empty */

    uint64_t calls, calls_unseen, calls_folded, unattributed, objects_skipped, sockets_beyond;
    uint64_t pieces_seen, own_ns, homeless;
    /* As the kernel counts in /proc/PID/io: what the library saw, what there was. */
    uint64_t reads, writes, read_bytes, write_bytes;
    bool proc_known;
    uint64_t proc_reads, proc_writes, proc_read_bytes, proc_write_bytes;
};

/* io_user_objects.c */
/* All that were told since the last time. */
MUST_USE int io_user_objects_take(struct collector *c);
/* The sink's id of what a call was about; 0: nothing, or not known. */
MUST_USE int io_user_object(struct collector *c, const struct preload_place *place, uint64_t object,
                            uint32_t *ret);
/* The same of one that was asked for before; 0: there was no room for it. */
uint32_t io_user_object_known(struct collector *c, uint64_t object);
/* NULL: it is no socket that may be listened to. */
struct io_user_socket *io_user_socket(struct collector *c, uint64_t object);
/* No more of what is said there, please. */
void io_user_socket_enough(struct collector *c, const struct io_user_socket *socket);
void io_user_objects_deinit(struct collector *c);

/* io_user_rows.c */
MUST_USE int io_user_call_take(struct collector *c, struct preload_place *place,
                               const struct preload_call *call);
MUST_USE int io_user_sums_take(struct collector *c, struct preload_place *place);
void io_user_sums_clear(struct collector *c, struct preload_place *place);
void io_user_sums_deinit(struct collector *c);

/* io_user_pieces.c */
MUST_USE int io_user_piece_take(struct collector *c, struct preload_place *place,
                                const struct preload_taken *taken);
/* What was taken, in order, to the requests. */
MUST_USE int io_user_pieces_say(struct collector *c);
