/* For tests and benches of the unwinder: the address space of a running process
 * with all its images, as the sampler would build it. */
#pragma once

#include "base/fd.h"
#include "unwind/unwind.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELPER_IMAGES_MAX = 64 };

struct process_space {
    struct unwind_space *space;
    struct unwind_cache *cache;
    struct unwind_image *images[HELPER_IMAGES_MAX];
    char paths[HELPER_IMAGES_MAX][256];
    size_t images_count;
};

static inline void process_space_deinit(struct process_space *process)
{
    unwind_space_free(process->space);
    unwind_cache_free(process->cache);
    for (size_t i = 0; i < process->images_count; i++)
        unwind_image_free(process->images[i]);
    *process = (struct process_space){0};
}

static inline struct unwind_image *helper_load_vdso(pid_t pid, uint64_t start, size_t len)
{
    char path[64];
    struct unwind_image *image = NULL;
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *bytes = malloc(len);
    if (fd >= 0 && bytes && pread(fd, bytes, len, (off_t)start) == (ssize_t)len &&
        unwind_image_load_memory(bytes, len, &image, NULL) < 0)
        image = NULL;
    free(bytes);
    return image;
}

/* The image of a mapping, loaded once; its number + 1 is the tag. 0: none. */
static inline uint32_t helper_image(struct process_space *process, pid_t pid, const char *path,
                                    uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < process->images_count; i++)
        if (strcmp(process->paths[i], path) == 0)
            return (uint32_t)i + 1;
    if (process->images_count == HELPER_IMAGES_MAX)
        return 0;
    struct unwind_image *image = NULL;
    if (strcmp(path, "[vdso]") == 0) {
        image = helper_load_vdso(pid, start, end - start);
    } else if (path[0] == '/') {
        struct why why = {0};
        AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && unwind_image_load(fd, NULL, &image, &why) < 0)
            fprintf(stderr, "# %s: %s\n", path, why.what);
    }
    if (!image)
        return 0;
    process->images[process->images_count] = image;
    snprintf(process->paths[process->images_count], sizeof(process->paths[0]), "%s", path);
    return (uint32_t)++process->images_count;
}

/* As the process is mapped now; images are kept. 0 or -1. */
static inline int process_space_refresh(pid_t pid, struct process_space *process)
{
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return -1;
    unwind_space_clear(process->space);
    int r = 0;
    while (r == 0 && fgets(line, sizeof(line), maps)) {
        uint64_t start, end, offset;
        char flags[8], name[256] = "";
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255s", &start, &end,
                   flags, &offset, name) < 4 ||
            flags[2] != 'x')
            continue;
        uint32_t tag = helper_image(process, pid, name, start, end);
        if (unwind_space_map(process->space, start, end - start, offset,
                             tag ? process->images[tag - 1] : NULL, tag) < 0)
            r = -1;
    }
    fclose(maps);
    return r;
}

/* 0, or -1 with what was built so far. */
static inline int process_space_init(pid_t pid, struct process_space *process)
{
    *process = (struct process_space){0};
    if (unwind_space_new(unwind_machine_here(), &process->space) < 0 ||
        unwind_cache_new(&process->cache) < 0)
        return -1;
    return process_space_refresh(pid, process);
}
