/* Where the debug information went that was split off: by build-id, by the name and checksum
 * in .gnu_debuglink, or from a server. A file of another build is worse than none, so each
 * candidate is proved. */
#include "symbolize/internal.h"

#include "base/fd.h"
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t crc_bytes_max = 8ull << 30;
static const char debug_folder[] = "/usr/lib/debug";

/* Where the kernel does not keep to a root by itself: folder by folder, and no link is followed,
 * since one may lead to a file of ours. */
static int walk(int root, const char *path)
{
    struct str rest = str_from(path);
    int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
    while (at >= 0 && rest.len > 0) {
        char name[NAME_MAX + 1];
        struct str part = str_cut(&rest, '/');
        if (part.len == 0)
            continue;
        bool folder = rest.len > 0;
        AUTO(fd_close) int above = at;
        if (part.len > NAME_MAX || str_is(part, ".."))
            return -ELOOP;
        memcpy(name, part.data, part.len);
        name[part.len] = '\0';
        /* Of a link this is the link itself, which is then no folder and no file. */
        at = openat(above, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (folder ? O_DIRECTORY : 0));
    }
    return at < 0 ? -errno : at;
}

int root_open(const char *root, const char *path, bool follow)
{
    int flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
    if (!root || !*root) {
        AUTO(fd_close) int fd = open(path, flags);
        return fd < 0 ? -errno : file_reopen_regular(fd);
    }
    AUTO(fd_close) int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    /* An absolute link inside a container means the container's root, not ours. */
    struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT};
    AUTO(fd_close) int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
    if (fd < 0)
        fd = errno == ENOSYS || errno == EPERM ? walk(folder, path) : -errno;
    return fd < 0 ? fd : file_reopen_regular(fd);
}

void symbols_named_by(struct symbols *symbols, int fd)
{
    struct stat st;
    bool known = fstat(fd, &st) == 0;
    if (known && trust_stat(&st))
        return;
    bool alone = known && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    symbols->named_by_many |= !alone || (symbols->named_by_other && symbols->namer != st.st_uid);
    symbols->named_by_other = true;
    symbols->namer = known ? st.st_uid : 0;
}

static bool build_id_is(int fd, const char *path, const char *build_id)
{
    struct elf_file file = ELF_FILE_NONE;
    char found[2 * ELF_BUILD_ID_BYTES_MAX + 1];
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0 || elf_file_open(copy, path, &file, NULL) < 0)
        return false;
    bool same = elf_file_build_id(&file, found) && strcmp(found, build_id) == 0;
    elf_file_close(&file);
    return same;
}

/* A candidate by its build-id: an fd, or -ENOENT. */
static int by_build_id(const char *root, const char *build_id, char *path, size_t path_size)
{
    if (strlen(build_id) < 3 || strspn(build_id, "0123456789abcdef") != strlen(build_id))
        return -ENOENT;
    snprintf(path, path_size, "%s/.build-id/%.2s/%s.debug", debug_folder, build_id, build_id + 2);
    AUTO(fd_close) int fd = root_open(root, path, true);
    if (fd < 0 || !build_id_is(fd, path, build_id))
        return -ENOENT;
    return fd_take(&fd);
}

static bool crc_is(int fd, uint32_t wanted)
{
    uint32_t crc = 0;
    uint8_t buffer[1 << 16];
    for (uint64_t sum = 0; sum <= crc_bytes_max;) {
        ssize_t len = pread(fd, buffer, sizeof(buffer), (off_t)sum);
        if (len < 0)
            return false;
        if (len == 0)
            return crc == wanted;
        crc = lzma_crc32(buffer, (size_t)len, crc);
        sum += (uint64_t)len;
    }
    return false;
}

struct debug_link {
    char name[NAME_MAX + 1];
    uint32_t crc;
};

static bool link_read(struct elf_file *file, struct debug_link *ret)
{
    struct str link = elf_file_bytes(file, ".gnu_debuglink", NULL);
    size_t len = strnlen(link.data, link.len);
    size_t crc_at = (len + 4) & ~(size_t)3;
    if (len == 0 || len > NAME_MAX || crc_at + 4 > link.len || memchr(link.data, '/', len) ||
        (link.data[0] == '.' && (len == 1 || (len == 2 && link.data[1] == '.'))))
        return false;
    memcpy(ret->name, link.data, len);
    ret->name[len] = '\0';
    const unsigned char *bytes = (const unsigned char *)link.data + crc_at;
    ret->crc = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
               (uint32_t)bytes[3] << 24;
    return true;
}

static int by_link(const char *root, struct str folder, const struct debug_link *link, char *path,
                   size_t path_size)
{
    static const struct {
        const char *before;
        const char *between;
    } places[] = {{"", "/"}, {"", "/.debug/"}, {debug_folder, "/"}};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        int n = snprintf(path, path_size, "%s%.*s%s%s", places[i].before, STR_FMT(folder),
                         places[i].between, link->name);
        if (n < 0 || (size_t)n >= path_size)
            continue;
        AUTO(fd_close) int fd = root_open(root, path, true);
        if (fd >= 0 && crc_is(fd, link->crc))
            return fd_take(&fd);
    }
    return -ENOENT;
}

static struct str folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (struct str){path, slash ? (size_t)(slash - path) : 0};
}

static int debug_file_search(struct elf_file *file, const char *image_path, const char *build_id,
                             const char *root, char *path, size_t path_size)
{
    int fd = by_build_id(root, build_id, path, path_size);
    if (fd < 0 && root && *root)
        fd = by_build_id("", build_id, path, path_size);
    struct debug_link link;
    if (fd >= 0 || !link_read(file, &link))
        return fd;
    struct str folder = folder_of(image_path);
    fd = by_link(root, folder, &link, path, path_size);
    if (fd < 0 && root && *root)
        fd = by_link("", folder, &link, path, path_size);
    return fd;
}

int symbols_debug_file(int fd, const struct image_info *info, const char *root, char *path,
                       size_t path_size)
{
    struct elf_file file = ELF_FILE_NONE;
    char build_id[2 * ELF_BUILD_ID_BYTES_MAX + 1] = "";
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return -errno;
    int r = elf_file_open(copy, "", &file, NULL);
    if (r < 0)
        return r;
    elf_file_build_id(&file, build_id);
    r = debug_file_search(&file, arena_dup_len(&arena, info->path.data, info->path.len), build_id,
                          root, path, path_size);
    elf_file_close(&file);
    return r;
}

/* dwz names the file and its build-id; found beside the file that names it, or by the id. */
int debug_file_alternate(struct symbols *symbols, struct elf_file *file, struct elf_file *ret)
{
    struct str link = elf_file_bytes(file, ".gnu_debugaltlink", NULL);
    size_t len = strnlen(link.data, link.len);
    if (len == 0 || len >= link.len || link.len - len - 1 > ELF_BUILD_ID_BYTES_MAX)
        return -ENOENT;
    char build_id[2 * ELF_BUILD_ID_BYTES_MAX + 1] = "";
    for (size_t i = 0; i < link.len - len - 1; i++)
        snprintf(build_id + 2 * i, 3, "%02x", (unsigned char)link.data[len + 1 + i]);
    struct str folder = folder_of(file == &symbols->debug ? symbols->debug_path : symbols->path);
    char path[PATH_MAX];
    const char *roots[] = {symbols->root, ""};
    int fd = -ENOENT;
    for (size_t i = 0; i < (*symbols->root ? 2 : 1) && fd < 0; i++) {
        if (link.data[0] == '/')
            snprintf(path, sizeof(path), "%.*s", (int)MIN(len, sizeof(path)), link.data);
        else
            snprintf(path, sizeof(path), "%.*s/%.*s", STR_FMT(folder), (int)MIN(len, sizeof(path)),
                     link.data);
        fd = root_open(roots[i], path, true);
        if (fd >= 0 && !build_id_is(fd, path, build_id))
            fd_close(&fd);
        if (fd < 0)
            fd = by_build_id(roots[i], build_id, path, sizeof(path));
    }
    struct why why;
    int r = fd < 0 ? -ENOENT : elf_file_open(fd, path, ret, &why);
    if (r < 0)
        symbols_note(symbols, "some names are missing: the shared debug file '%.*s' is not here",
                     (int)MIN(len, (size_t)256), link.data);
    else
        symbols_named_by(symbols, ret->fd);
    return r;
}

static const char *package_hint(const char *path)
{
    return strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/lib", 4) == 0 ||
                   strncmp(path, "/bin/", 5) == 0 || strncmp(path, "/sbin/", 6) == 0
               ? "install its -dbgsym package, or allow debuginfod"
               : "build it with -g and do not strip it";
}

void debug_file_find(struct symbols *symbols)
{
    char path[PATH_MAX] = "";
    bool symtab = elf_file_has(&symbols->elf, ".symtab");
    bool dwarf = elf_file_has(&symbols->elf, ".debug_info");
    if (symbols->kind != IMAGE_FILE || (symtab && (dwarf || !symbols->lines)))
        return;
    int fd = debug_file_search(&symbols->elf, symbols->path, symbols->build_id, symbols->root, path,
                               sizeof(path));
    if (fd < 0 && symbols->debuginfod && *symbols->build_id) {
        fd = debuginfod_fetch(symbols, symbols->build_id);
        snprintf(path, sizeof(path), "from debuginfod");
        if (fd >= 0 && !build_id_is(fd, path, symbols->build_id)) {
            fd_close(&fd);
            symbols_note(symbols, "debuginfod sent the file of another build");
        }
    }
    struct why why;
    if (fd >= 0 && elf_file_open(fd, path, &symbols->debug, &why) < 0)
        symbols_note(symbols, "%s", why.what);
    if (symbols->debug.elf) {
        symbols->debug_path = arena_dup(&symbols->arena, path);
        symbols_named_by(symbols, symbols->debug.fd);
    } else if (!symtab && !dwarf && !elf_file_has(&symbols->elf, ".gopclntab"))
        symbols_note(symbols, "stripped: only exported functions have names; %s",
                     package_hint(symbols->path));
}
