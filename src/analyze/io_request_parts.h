/* What the files about groups of requests share.
 *
 * io_request_groups.c  groups, results, connections
 * io_request_chains.c  one after another */
#pragma once

#include "analyze/io_request_groups.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

/* Fills `chains`, and `chain` and `sequential` of the groups. 0 or -ENOMEM. */
MUST_USE int io_chains_build(struct arena *arena, const struct io *io,
                             struct io_request_groups *groups);
