/* The kernel's types as far as one BPF program needs them, kept in the cache.
 *
 * To place a program's reads, libbpf looks for its structs among all types of the kernel: some
 * 20 ms of CPU time, each time. What it finds are a dozen offsets, which change only with the
 * kernel or the program. So they are kept as a small BTF file of their own, named by both. */
#pragma once

#include "base/macros.h"

#include <limits.h>
#include <stddef.h>

struct btf;

/* The file for this program and this kernel; made if it is not there. -errno when there is
 * none to be had: then libbpf must look for itself. `local`: the program's own types. */
MUST_USE int bpf_types_file(const void *program, size_t program_bytes, const struct btf *local,
                            const char *cache_dir, char ret_path[PATH_MAX]);

/* The same without the file: of `kernel` what `local` names. NULL with errno. */
struct btf *bpf_types_make(const struct btf *local, const struct btf *kernel);
