/* Allocations of a program told by the kernel: programs (bpf/heap.bpf.c) stand on malloc() and
 * its relatives in every image that defines them, and on their ways out. Nothing is put into the
 * target, no thread is stopped. A call costs a microsecond or two, which is measured and said;
 * what was allocated before is not seen, and said. Needs root, or CAP_BPF and CAP_PERFMON. */
#pragma once

#include "collect/heap.h"

extern const struct collector_ops heap_kernel_ops; /* drain to close */

MUST_USE int heap_kernel_start(const struct heap_opts *opts, const struct collector_target *target,
                               struct sink *sink, struct collector **ret, struct why *why);
size_t heap_kernel_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
void heap_kernel_snapshot(struct collector *collector);
const char *heap_kernel_na(const struct collector *collector);
