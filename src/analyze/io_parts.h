/* What the files that add up calls share.
 *
 * io_sums.c     calls, places in the program, and the order of it all
 * io_objects.c  files and peers
 * io_lookups.c  names that were looked up, folders */
#pragma once

#include "analyze/io_sums.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>

struct io_adding {
    struct arena *arena;
    const struct io *io;
    struct io_sums *sums;
    VEC(struct io_syscall) syscalls;
    VEC(struct io_error) errors;
    VEC(struct io_file) files;
    VEC(struct io_peer) peers;
    VEC(struct io_site) sites;
    VEC(struct io_missing) missing;
    VEC(struct io_folder) folders;
    /* Indexes into the lists, plus one. */
    struct map_u64 syscall_at, error_at, file_at, peer_of, site_at, missing_at;
    struct map_u64 stack_ns, object_ns, seen; /* sums and marks by pairs of ids */
    struct intern file_names, peer_names, folder_names, removed_names;
};

/* Which pair of ids a key is about: one map serves several questions. */
enum io_pair { PAIR_SITE_THREAD, PAIR_SITE_OBJECT, PAIR_MISSING_NAME };

/* Each 0 or -ENOMEM. */
MUST_USE int io_file_add(struct io_adding *adding, const struct call_row *row, enum io_kind kind,
                         bool idle);
MUST_USE int io_peer_add(struct io_adding *adding, const struct call_row *row, enum io_kind kind,
                         bool idle);
MUST_USE int io_objects_finish(struct io_adding *adding);
MUST_USE int io_lookup_add(struct io_adding *adding, const struct call_row *row, enum io_kind kind);
MUST_USE int io_folders_add(struct io_adding *adding);

/* Adds to what a stack cost for an owner (a file, a peer), and keeps the heaviest. */
MUST_USE int io_heaviest(struct map_u64 *sums, uint64_t owner, uint32_t id, uint64_t ns,
                         uint32_t *heaviest, uint64_t *heaviest_ns);

/* 1 the first time, then 0. */
MUST_USE int io_mark(struct io_adding *adding, enum io_pair pair, uint64_t owner, uint32_t id);

static inline void io_moved_add(struct io_moved *moved, const struct call_tally *tally)
{
    moved->calls += tally->count;
    moved->ns += tally->total_ns;
    moved->bytes += tally->bytes;
}
