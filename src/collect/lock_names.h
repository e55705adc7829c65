/* Names for locks: the variable that stands at a futex's address.
 *
 *     lock_names_see()   when an object OBJECT_FUTEX is first seen, in the order of time: what is
 *                        mapped there is kept, for the process may be gone at the end
 *     lock_names_put()   at the end: the names of variables go to the sink's objects
 *
 * Only variables of images have names (.data, .bss; local ones, too): "queue_mutex",
 * "state+0x28". A lock on the heap or on a stack has none, and its object stays without one.
 * The kernel announces executable mappings only: where an image's data lie follows from where
 * its code lies and from its program headers. Bounded: beyond LOCK_NAMES_MAX nothing is kept. */
#pragma once

#include "collect/stacks.h"

enum { LOCK_NAMES_MAX = 1 << 18 };

struct lock_names;

MUST_USE int lock_names_open(struct lock_names **ret);
void lock_names_close(struct lock_names *names); /* NULL is fine */

/* `object` is the sink's. 0 also when nothing can be said of the address; else -ENOMEM. */
MUST_USE int lock_names_see(struct lock_names *names, struct stacks *stacks, int pid,
                            uint64_t address, uint32_t object);
/* 0, -ENOMEM, or what the sink says. An image that cannot be read leaves its locks unnamed. */
MUST_USE int lock_names_put(struct lock_names *names, struct stacks *stacks, struct sink *sink);
