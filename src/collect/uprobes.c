/* From functions' names to places in files, and programs on them. The kernel is asked through
 * perf_event_open(): tracefs may not be there. */
#include "collect/uprobes.h"

#include "base/arena.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "collect/uprobe_multi.h"
#include "collect/uprobe_places.h"
#include "target/maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    ENTRIES_MAX = 65536, /* of a folder */
    PATH_BYTES = 4096,
};

struct library {
    const char *file;
    const struct uprobe_function *functions;
    size_t count;
};

struct uprobes {
    uint32_t type; /* of the kernel's PMU */
    uint64_t return_bit;
    struct library libraries[UPROBES_LIBRARIES_MAX];
    size_t library_count;
    struct map_u64 files; /* device and inode, by hash: looked at */
    VEC(int) fds;
    bool one_by_one; /* the kernel has no better way */
    struct uprobes_counts counts;
};

/* A number in a file of the kernel's; "config:0" is one as well. */
static int number_read(const char *path, uint64_t *ret)
{
    char text[64];
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    if (n <= 0)
        return fd < 0 ? -errno : -ENOENT;
    struct str word = str_trim((struct str){text, (size_t)n});
    if (str_starts(word, "config:"))
        (void)str_cut(&word, ':');
    return str_to_u64(word, 10, ret);
}

int uprobes_open(struct uprobes **ret, struct why *why)
{
    uint64_t type = 0, bit = 0;
    int r = number_read("/sys/bus/event_source/devices/uprobe/type", &type);
    if (r == 0)
        r = number_read("/sys/bus/event_source/devices/uprobe/format/retprobe", &bit);
    if (r < 0)
        return why_set(why, WHY_DENIED, -r, "use a kernel built with CONFIG_UPROBE_EVENTS",
                       "this kernel cannot set programs on functions of libraries");
    struct uprobes *uprobes = calloc(1, sizeof(*uprobes));
    if (!uprobes)
        return why_nomem(why);
    uprobes->type = (uint32_t)type;
    uprobes->return_bit = UINT64_C(1) << (bit & 63);
    *ret = uprobes;
    return 0;
}

void uprobes_close(struct uprobes *uprobes)
{
    if (!uprobes)
        return;
    uprobe_links_close(uprobes->fds.data, uprobes->fds.len);
    VEC_FREE(&uprobes->fds);
    map_u64_deinit(&uprobes->files);
    free(uprobes);
}

int uprobes_add(struct uprobes *uprobes, const char *file, const struct uprobe_function *functions,
                size_t count)
{
    if (uprobes->library_count == UPROBES_LIBRARIES_MAX || count > UPROBE_FUNCTIONS_MAX)
        return -E2BIG;
    uprobes->libraries[uprobes->library_count++] = (struct library){file, functions, count};
    return 0;
}

/* ---- one file ---- */

/* For all processes: such an event cannot be inherited, and where it should be fork() fails. */
static int probe_set(struct uprobes *uprobes, const char *path, const struct uprobe_place *place)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = uprobes->type,
        .config = place->at_return ? uprobes->return_bit : 0,
        .config1 = (uint64_t)(uintptr_t)path,
        .config2 = place->offset,
    };
    AUTO(fd_close)
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, place->program_fd) < 0 ||
        ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
        uprobes->counts.refused++;
        return 0;
    }
    if (VEC_PUSH(&uprobes->fds, fd) < 0)
        return -ENOMEM;
    (void)fd_take(&fd);
    uprobes->counts.set++;
    return 0;
}

static bool is_alike(const struct uprobe_place *a, const struct uprobe_place *b)
{
    return a->program_fd == b->program_fd && a->at_return == b->at_return;
}

/* All places like the one at `at` and behind it; -errno: this kernel cannot. */
static int multi_set(struct uprobes *uprobes, const char *path, const struct uprobe_places *places,
                     size_t at)
{
    const struct uprobe_place *first = &places->at[at];
    uint64_t offsets[UPROBE_PLACES_MAX];
    struct uprobe_multi link = {
        .program_fd = first->program_fd,
        .path = path,
        .offsets = offsets,
        .at_return = first->at_return,
    };
    for (size_t i = at; i < places->count; i++)
        if (is_alike(&places->at[i], first))
            offsets[link.count++] = places->at[i].offset;
    AUTO(fd_close) int fd = uprobe_multi_set(&link);
    if (fd < 0)
        return fd;
    if (VEC_PUSH(&uprobes->fds, fd) < 0)
        return -ENOMEM;
    (void)fd_take(&fd);
    uprobes->counts.set += link.count;
    return 0;
}

/* One program, in all its places. */
static int program_set(struct uprobes *uprobes, const char *path,
                       const struct uprobe_places *places, size_t at)
{
    int r = uprobes->one_by_one ? -ENOTSUP : multi_set(uprobes, path, places, at);
    if (r == 0 || r == -ENOMEM)
        return r;
    uprobes->one_by_one = true;
    r = 0;
    for (size_t i = at; i < places->count && r == 0; i++)
        if (is_alike(&places->at[i], &places->at[at]))
            r = probe_set(uprobes, path, &places->at[i]);
    return r;
}

static int probes_set(struct uprobes *uprobes, const char *path, const struct uprobe_places *places)
{
    int r = 0;
    for (size_t i = 0; i < places->count && r == 0; i++) {
        size_t before = 0;
        while (before < i && !is_alike(&places->at[before], &places->at[i]))
            before++;
        if (before < i)
            continue;
        if (uprobes->fds.len + places->count > UPROBES_MAX)
            uprobes->counts.beyond++;
        else
            r = program_set(uprobes, path, places, i);
    }
    uprobes->counts.files += places->count > 0;
    uprobes->counts.trampolines += places->trampolines;
    return r;
}

/* Each file once, by whatever name. */
static int file_is_new(struct uprobes *uprobes, const struct stat *info, bool *ret)
{
    uint64_t key = hash_u64(info->st_ino ^ hash_u64(info->st_dev));
    if (uprobes->files.len >= UPROBES_FILES_MAX) {
        uprobes->counts.beyond += map_u64_find(&uprobes->files, key) ? 0 : 1;
        *ret = false;
        return 0;
    }
    return map_u64_at(&uprobes->files, key, ret) ? 0 : -ENOMEM;
}

/* `library` NULL: a program, which may have any of them built in. */
static int file_look(struct uprobes *uprobes, const char *path, const struct library *library)
{
    struct stat info;
    bool fresh = false;
    struct elf_file file = ELF_FILE_NONE;
    AUTO(fd_close) int fd = file_open_regular(path);
    if (fd < 0 || fstat(fd, &info) < 0)
        return 0;
    int r = file_is_new(uprobes, &info, &fresh);
    if (r < 0 || !fresh || elf_file_open(fd_take(&fd), path, &file, NULL) < 0)
        return r;
    for (size_t i = 0; i < uprobes->library_count && r == 0; i++) {
        const struct library *one = &uprobes->libraries[i];
        struct uprobe_places places = {0};
        if (library && library != one)
            continue;
        uprobe_places_find(&file, one->functions, one->count, !library, &places);
        r = probes_set(uprobes, path, &places);
    }
    elf_file_close(&file);
    return r;
}

static const struct library *library_of(const struct uprobes *uprobes, struct str path)
{
    while (path.len > 0 && memchr(path.data, '/', path.len))
        (void)str_cut(&path, '/');
    for (size_t i = 0; i < uprobes->library_count; i++)
        if (str_starts(path, uprobes->libraries[i].file))
            return &uprobes->libraries[i];
    return NULL;
}

/* ---- where files are ---- */

static int folder_look(struct uprobes *uprobes, const char *folder)
{
    char path[PATH_BYTES];
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    int r = 0;
    for (int i = 0; entries && i < ENTRIES_MAX && r == 0 && (entry = readdir(entries)); i++) {
        const struct library *library = library_of(uprobes, str_from(entry->d_name));
        if (!library)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        r = file_look(uprobes, path, library);
    }
    if (entries)
        closedir(entries);
    return r;
}

int uprobes_usual(struct uprobes *uprobes)
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
        r = folder_look(uprobes, folders[i]);
    return r;
}

int uprobes_process(struct uprobes *uprobes, int pid, bool whole)
{
    char path[PATH_BYTES];
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text, last = {0};
    struct map_entry entry;
    int r = 0, more;
    if (whole) {
        snprintf(path, sizeof(path), "/proc/%d/exe", pid);
        r = file_look(uprobes, path, NULL);
    }
    if (r < 0 || maps_read(&arena, pid, &text, NULL) < 0)
        return r;
    while (r == 0 && (more = maps_next(&text, &entry)) != 0) {
        if (more < 0 || entry.inode == 0 || str_eq(entry.path, last))
            continue;
        last = entry.path;
        const struct library *library = library_of(uprobes, entry.path);
        if (!library || entry.path.len >= sizeof(path) - 64)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/root%.*s", pid, STR_FMT(entry.path));
        r = file_look(uprobes, path, library);
    }
    return r;
}

struct uprobes_counts uprobes_counts(const struct uprobes *uprobes)
{
    return uprobes->counts;
}
