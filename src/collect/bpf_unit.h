/* A BPF unit: one object file of bpf/, embedded in whyslow, on its way into the kernel.
 *
 *     bpf_unit_open()       parsed; nothing is in the kernel yet
 *     bpf_unit_config()     sets its constants (`const volatile … config`)
 *     bpf_unit_map_size()   how large its maps become
 *     bpf_unit_map_share()  takes a map of another unit in the place of its own
 *     bpf_unit_load()       maps and programs into the kernel
 *     bpf_unit_attach()     programs that name what they hang on (tp_btf, raw_tp); others
 *                           (perf_event, uprobe) are attached by whoever has their fd
 *     bpf_unit_begin()      what they see counts from now on, and nothing did before (bpf/begun.h)
 *     bpf_unit_close()      all of it goes away, unless something else still holds it
 *
 * What libbpf would print is caught: its words, or the verifier's, are part of `struct why`.
 * One thread at a time: libbpf's printing is global. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_unit;

struct bpf_blob { /* as tools/embed makes it; no bytes: built without clang */
    const char *name;
    const unsigned char *bytes;
    size_t len;
};

/* `cache_dir` keeps what was found out about the kernel's types (bpf_types.h); may be NULL.
 * What is in there is not trusted to be right: when loading fails, try once without. */
MUST_USE int bpf_unit_open(const struct bpf_blob *blob, const char *cache_dir,
                           struct bpf_unit **ret, struct why *why);
void bpf_unit_close(struct bpf_unit *unit); /* NULL is fine */

/* A program that this kernel has no place for; before loading. */
MUST_USE int bpf_unit_leave_out(struct bpf_unit *unit, const char *program);
/* Its uprobes may be set on many places at once (Linux 6.6; older ones do not mind); before
 * loading.
 */
MUST_USE int bpf_unit_uprobes_multi(struct bpf_unit *unit);
/* All before loading. Another size than the program's, or no such map, is a fault of ours. */
MUST_USE int bpf_unit_config(struct bpf_unit *unit, const void *config, size_t bytes,
                             struct why *why);
MUST_USE int bpf_unit_map_size(struct bpf_unit *unit, const char *map, uint32_t entries,
                               struct why *why);
/* `fd` stays the caller's. */
MUST_USE int bpf_unit_map_share(struct bpf_unit *unit, const char *map, int fd, struct why *why);
MUST_USE int bpf_unit_load(struct bpf_unit *unit, struct why *why);
/* Of what loading gave: not a reason that would be the same for any program. */
bool bpf_unit_is_disliked(int r);
MUST_USE int bpf_unit_attach(struct bpf_unit *unit, struct why *why);
/* `start_ns` has passed. Units that share the map "begun" begin with its owner. */
MUST_USE int bpf_unit_begin(struct bpf_unit *unit, uint64_t start_ns, struct why *why);
/* Programs run no more, maps stay. */
void bpf_unit_detach(struct bpf_unit *unit);

/* Fds of the unit's; -ENOENT. */
int bpf_unit_program_fd(const struct bpf_unit *unit, const char *program);
int bpf_unit_map_fd(const struct bpf_unit *unit, const char *map);

/* Elements 0 to count - 1 of a per-CPU array of u64, each summed up over all CPUs. */
MUST_USE int bpf_counts_read(int map_fd, uint64_t *ret, uint32_t count);
