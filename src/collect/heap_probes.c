/* From files to links: each file once, or once for each process that is named. */
#include "collect/heap_probes.h"

#include "base/arena.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/heap_probes_find.h"
#include "collect/uprobe_multi.h"
#include "target/maps.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MAX = 65536, PATH_BYTES = 4096 };

struct heap_probes {
    int call_fd, returned_fd;
    bool only;
    struct map_u64 files; /* device, inode and process, by hash: looked at */
    VEC(int) links;
    struct heap_places places; /* of the file that is looked at */
    struct heap_probes_counts counts;
};

int heap_probes_open(int call_fd, int returned_fd, bool only, struct heap_probes **ret)
{
    struct heap_probes *probes = calloc(1, sizeof(*probes));
    if (!probes)
        return -ENOMEM;
    probes->call_fd = call_fd;
    probes->returned_fd = returned_fd;
    probes->only = only;
    *ret = probes;
    return 0;
}

void heap_probes_close(struct heap_probes *probes)
{
    if (!probes)
        return;
    uprobe_links_close(probes->links.data, probes->links.len);
    VEC_FREE(&probes->links);
    map_u64_deinit(&probes->files);
    free(probes);
}

struct heap_probes_counts heap_probes_counts(const struct heap_probes *probes)
{
    return probes->counts;
}

/* ---- one file ---- */

static int link_set(struct heap_probes *probes, const struct uprobe_multi *multi)
{
    if (multi->count == 0)
        return 0;
    if (probes->links.len >= HEAP_PROBES_MAX) {
        probes->counts.beyond++;
        return 0;
    }
    AUTO(fd_close) int fd = uprobe_multi_set(multi);
    if (fd < 0) {
        probes->counts.error = probes->counts.refused++ == 0 ? -fd : probes->counts.error;
        return 0;
    }
    if (VEC_PUSH(&probes->links, fd) < 0)
        return -ENOMEM;
    (void)fd_take(&fd);
    probes->counts.set += multi->count;
    return 0;
}

/* The ways out first: a call that is seen to begin is seen to end. */
static int places_set(struct heap_probes *probes, const char *path, int pid)
{
    const struct heap_places *places = &probes->places;
    const struct uprobe_multi returns = {
        .program_fd = probes->returned_fd,
        .path = path,
        .offsets = places->return_at,
        .count = (uint32_t)places->return_count,
        .at_return = true,
        .pid = probes->only ? pid : 0,
    };
    const struct uprobe_multi calls = {
        .program_fd = probes->call_fd,
        .path = path,
        .offsets = places->call_at,
        .cookies = places->call_cookie,
        .count = (uint32_t)places->call_count,
        .pid = returns.pid,
    };
    int r = link_set(probes, &returns);
    if (r == 0)
        r = link_set(probes, &calls);
    probes->counts.files += places->call_count > 0;
    probes->counts.trampolines += places->trampolines;
    probes->counts.left_out += places->left_out;
    return r;
}

static int file_is_new(struct heap_probes *probes, const struct stat *info, int pid, bool *ret)
{
    uint64_t key = hash_u64(info->st_ino ^ hash_u64(info->st_dev));
    if (probes->only)
        key = hash_u64(key ^ (uint64_t)pid);
    if (probes->files.len >= HEAP_PROBES_FILES_MAX) {
        probes->counts.beyond += map_u64_find(&probes->files, key) ? 0 : 1;
        *ret = false;
        return 0;
    }
    return map_u64_at(&probes->files, key, ret) ? 0 : -ENOMEM;
}

/* `whole`: a program. */
static int file_look(struct heap_probes *probes, const char *path, int pid, bool whole)
{
    struct stat info;
    bool fresh = false;
    struct elf_file file = ELF_FILE_NONE;
    AUTO(fd_close) int fd = file_open_regular(path);
    if (fd < 0 || fstat(fd, &info) < 0)
        return 0;
    int r = file_is_new(probes, &info, pid, &fresh);
    if (r < 0 || !fresh || elf_file_open(fd_take(&fd), path, &file, NULL) < 0)
        return r;
    heap_places_find(&file, whole, &probes->places);
    elf_file_close(&file);
    return places_set(probes, path, pid);
}

/* ---- where files are ---- */

/* The loader has a malloc() of its own for its own affairs. */
static bool is_loader(struct str path)
{
    while (path.len > 0 && memchr(path.data, '/', path.len))
        (void)str_cut(&path, '/');
    return str_starts(path, "ld-") || str_starts(path, "ld.so");
}

static bool is_allocator(struct str name)
{
    static const char *const starts[] = {"libc.so", "libc-", "libjemalloc", "libtcmalloc",
                                         "libmimalloc"};
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
        if (str_starts(name, starts[i]))
            return true;
    return false;
}

static int folder_look(struct heap_probes *probes, const char *folder)
{
    char path[PATH_BYTES];
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    int r = 0;
    for (int i = 0; entries && i < ENTRIES_MAX && r == 0 && (entry = readdir(entries)); i++) {
        if (!is_allocator(str_from(entry->d_name)))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        r = file_look(probes, path, 0, false);
    }
    if (entries)
        closedir(entries);
    return r;
}

int heap_probes_usual(struct heap_probes *probes)
{
    static const char *const folders[] = {
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/local/lib64",
#if defined(__x86_64__)
        "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
        "/usr/lib/aarch64-linux-gnu",
#endif
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(folders) && r == 0; i++)
        r = folder_look(probes, folders[i]);
    return r;
}

int heap_probes_program(struct heap_probes *probes, const char *path)
{
    return file_look(probes, path, 0, true);
}

int heap_probes_process(struct heap_probes *probes, int pid)
{
    char path[PATH_BYTES];
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text, last = {0};
    struct map_entry entry;
    int more;
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    int r = file_look(probes, path, pid, true);
    if (r < 0 || maps_read(&arena, pid, &text, NULL) < 0)
        return r;
    while (r == 0 && (more = maps_next(&text, &entry)) != 0) {
        if (more < 0 || entry.inode == 0 || !entry.executable || str_eq(entry.path, last) ||
            is_loader(entry.path) || entry.path.len >= sizeof(path) - 64)
            continue;
        last = entry.path;
        snprintf(path, sizeof(path), "/proc/%d/root%.*s", pid, STR_FMT(entry.path));
        r = file_look(probes, path, pid, false);
    }
    return r;
}
