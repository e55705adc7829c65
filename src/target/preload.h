/* Puts our library (preload/) into a target that is about to be started.
 *
 *     preload_open()          the library lies in a private file, the shared memory is made
 *     preload_environment()   what the target's environment must say
 *     preload_close()         the file is removed; programs that have it go on without us
 *
 * The variables stay in the environment of the target and its children, so that the children
 * are covered, too. Programs that are static, set-user-ID or of another libc do not take it. */
#pragma once

#include "base/macros.h"
#include "base/why.h"
#include "format/preload_io.h"

struct preload;

MUST_USE int preload_open(struct preload **ret, struct why *why);
/* The target is started: its library stays while it lives, even if we are killed. */
void preload_share(const struct preload *preload, int pid);
void preload_close(struct preload *preload); /* NULL is fine */

/* "NAME=value", ends with NULL; for spawn_opts.environment. Lives as long as `preload`. */
const char *const *preload_environment(const struct preload *preload);
/* The library's file, as the target knows it. */
const char *preload_path(const struct preload *preload);

/* The shared memory. The target may write anything into it at any time. */
struct preload_header *preload_header(const struct preload *preload);
struct preload_thread *preload_place(const struct preload *preload, enum preload_family_name family,
                                     size_t index);
struct preload_io_objects *preload_io_objects(const struct preload *preload);
struct preload_io_thread *preload_io_place(const struct preload *preload, size_t index);
