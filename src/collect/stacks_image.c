/* Images: which file is mapped, opened while it can be had.
 *
 * A file is known by its build-id, else by inode, time and size: the same file is opened and
 * read once, however many processes map it, and another file under an old name is another
 * image. A file is only believed to be the mapped one if that can be checked. */
#include "collect/stacks_parts.h"

#include "base/fd.h"
#include "target/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

int image_add(struct stacks *st, struct str key, enum image_kind kind, struct str path,
              uint32_t *ret, bool *ret_new)
{
    uint32_t known = intern_find(&st->image_keys, key);
    if (known) {
        *ret = known - 1;
        *ret_new = false;
        return 0;
    }
    if (st->images.len >= STACKS_IMAGES_MAX)
        return -E2BIG;
    if (VEC_RESERVE(&st->images, st->images.len + 1) < 0)
        return -ENOMEM;
    uint32_t id;
    int r = intern_add(&st->image_keys, key, &id, NULL);
    if (r < 0)
        return r;
    st->images.data[st->images.len++] = (struct stack_image){
        .kind = kind,
        .path = {arena_dup_len(&st->arena, path.data, path.len), path.len},
        .build_id = STR(""),
        .fd = -1,
    };
    *ret = id - 1;
    *ret_new = true;
    return 0;
}

/* "[vdso]" and the like, "//anon", "": no file that could be opened. */
static bool is_nameless(struct str path)
{
    return path.len == 0 || path.data[0] != '/' || str_starts(path, "//") ||
           str_starts(path, "/dev/zero") || str_starts(path, "/SYSV");
}

/* The pid as the process itself sees it: its map is named after that one. And whose process it
 * is: nobody else's map is believed. */
static int pid_inside(const struct stacks *st, int pid, unsigned *ret_owner)
{
    char path[32];
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (!st->opts.live || file_read(&arena, path, 65536, &text, NULL) < 0)
        return pid;
    struct str users = str_field(text, "Uid"), pids = str_field(text, "NSpid"), word;
    uint64_t inside = (uint64_t)pid, owner;
    (void)str_word(&users); /* the real one; the effective one makes files */
    if (str_to_u64(str_word(&users), 10, &owner) == 0)
        *ret_owner = (unsigned)owner;
    while ((word = str_word(&pids)).len > 0)
        if (str_to_u64(word, 10, &inside) < 0)
            return pid;
    return (int)inside;
}

/* Where the file system of a process begins, for names that are looked up when it is gone:
 * NULL when it is ours, else a folder that we hold open. */
static const char *root_keep(struct stacks *st, int pid)
{
    char path[64];
    struct stat theirs, ours, space, own_space;
    snprintf(path, sizeof(path), "/proc/%d/root", pid);
    if (!st->opts.live || stat(path, &theirs) < 0 || stat("/", &ours) < 0)
        return NULL;
    bool same = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
    char space_path[64];
    snprintf(space_path, sizeof(space_path), "/proc/%d/ns/mnt", pid);
    if (stat(space_path, &space) == 0 && stat("/proc/self/ns/mnt", &own_space) == 0)
        same = same && space.st_ino == own_space.st_ino;
    else
        space = theirs;
    if (same)
        return NULL;
    for (size_t i = 0; i < st->roots.len; i++) {
        const struct stack_root *known = &st->roots.data[i];
        if (known->device == theirs.st_dev && known->inode == theirs.st_ino &&
            known->space == space.st_ino)
            return known->path;
    }
    struct stack_root root = {
        .device = theirs.st_dev, .inode = theirs.st_ino, .space = space.st_ino};
    if (st->roots.len >= STACKS_ROOTS_MAX)
        return NULL;
    root.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root.fd < 0)
        return NULL;
    root.path = arena_printf(&st->arena, "/proc/self/fd/%d", root.fd);
    if (VEC_PUSH(&st->roots, root) < 0) {
        close(root.fd);
        return NULL;
    }
    return root.path;
}

/* Code that has no file: a JIT's. Names are where JITs agreed to put them. */
static int image_jit(struct stacks *st, uint32_t process, uint32_t *ret)
{
    struct stack_process *p = &st->processes.data[process];
    if (p->jit == STACKS_NONE) {
        char key[48], path[48];
        unsigned owner = 0;
        snprintf(key, sizeof(key), "jit:%u", process);
        snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid_inside(st, p->pid, &owner));
        bool fresh;
        int r = image_add(st, str_from(key), IMAGE_JIT, str_from(path), &p->jit, &fresh);
        if (r < 0) {
            p->jit = STACKS_NONE;
            return r;
        }
        struct stack_image *image = &st->images.data[p->jit];
        image->state = IMAGE_LOADED; /* there is nothing to load */
        image->root = root_keep(st, p->pid);
        image->owner = owner;
    }
    *ret = p->jit;
    return 0;
}

struct candidate {
    int fd;
    struct stat stat;
    uint8_t build_id[BUILD_ID_BYTES_MAX];
    int build_id_len;     /* 0: none */
    bool through_process; /* found by the process's own way, not by ours */
};

static void candidate_close(struct candidate *candidate)
{
    fd_close(&candidate->fd);
}

/* Is the file at hand the one that is mapped? Without anything to compare, a path must do. */
static bool candidate_fits(struct candidate *c, const struct stacks_mmap *mmap)
{
    if (fstat(c->fd, &c->stat) < 0)
        return false;
    int len = build_id_read(c->fd, c->build_id);
    c->build_id_len = len > 0 ? len : 0;
    if (mmap->build_id && mmap->build_id_len > 0) {
        /* perf pads build-ids to 20 bytes. */
        size_t same = MIN((size_t)c->build_id_len, mmap->build_id_len);
        return same > 0 && memcmp(c->build_id, mmap->build_id, same) == 0;
    }
    return mmap->inode == 0 || mmap->inode == c->stat.st_ino;
}

static bool candidate_try(struct candidate *c, const char *path, const struct stacks_mmap *mmap)
{
    c->fd = file_open_regular(path); /* what is mapped may be a device */
    if (c->fd < 0)
        return false;
    if (candidate_fits(c, mmap))
        return true;
    fd_close(&c->fd);
    return false;
}

/* The exact file by its mapping, then the path as the process sees it, then as we do. */
static bool candidate_find(const struct stacks *st, const struct stacks_mmap *mmap,
                           struct candidate *c)
{
    char path[4200];
    struct str name = mmap->path;
    if (name.len >= 4096 || memchr(name.data, '\0', name.len))
        return false;
    if (st->opts.live) {
        uint64_t end = mmap->address + mmap->size_bytes;
        snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, mmap->pid,
                 mmap->address, end);
        c->through_process = true;
        if (candidate_try(c, path, mmap))
            return true;
        snprintf(path, sizeof(path), "/proc/%d/root%.*s", mmap->pid, STR_FMT(name));
        if (candidate_try(c, path, mmap))
            return true;
    }
    c->through_process = false;
    snprintf(path, sizeof(path), "%.*s", STR_FMT(name));
    return candidate_try(c, path, mmap);
}

struct image_key {
    char kind; /* 'b' build-id, 'f' file found, 'p' path only */
    uint8_t bytes[95];
};

static struct str key_text(const struct image_key *key, size_t len)
{
    return (struct str){(const char *)key, 1 + len};
}

/* A file that could not be opened or checked: known by what the kernel said of it. */
static int image_unfound(struct stacks *st, const struct stacks_mmap *mmap, uint32_t *ret)
{
    char key[4200];
    int len = snprintf(key, sizeof(key), "p%x:%x:%llx:%.*s", mmap->device_major, mmap->device_minor,
                       (unsigned long long)mmap->inode, STR_FMT(mmap->path));
    bool fresh;
    int r = image_add(st, (struct str){key, MIN((size_t)len, sizeof(key) - 1)}, IMAGE_FILE,
                      mmap->path, ret, &fresh);
    if (r == 0 && fresh) {
        st->images.data[*ret].state = IMAGE_FAILED;
        st->images.data[*ret]
            .note = str_ends(mmap->path, " (deleted)")
                        ? "the file was deleted before it could be read"
                        : "the file could not be opened, or is no longer the one that was mapped";
    }
    return r;
}

static void image_fill(struct stacks *st, uint32_t index, const struct stacks_mmap *mmap,
                       struct candidate *c)
{
    struct stack_image *image = &st->images.data[index];
    char text[2 * BUILD_ID_BYTES_MAX + 1];
    build_id_format(c->build_id, (size_t)c->build_id_len, text);
    image->build_id = str_from(arena_dup(&st->arena, text));
    image->size_bytes = (uint64_t)c->stat.st_size;
    if (c->through_process)
        image->root = root_keep(st, mmap->pid);
    if (st->fds_open < STACKS_FDS_MAX) {
        image->fd = fd_take(&c->fd);
        st->fds_open++;
    }
}

static int image_file(struct stacks *st, const struct stacks_mmap *mmap, uint32_t *ret)
{
    struct image_key key = {.kind = 'b'};
    size_t len = MIN(mmap->build_id_len, (size_t)20);
    if (mmap->build_id && len > 0) {
        memcpy(key.bytes, mmap->build_id, len);
        uint32_t known = intern_find(&st->image_keys, key_text(&key, 20));
        if (known) {
            *ret = known - 1;
            return 0;
        }
    }
    AUTO(candidate_close) struct candidate c = {.fd = -1};
    if (!candidate_find(st, mmap, &c))
        return image_unfound(st, mmap, ret);
    size_t key_len = 20;
    if (c.build_id_len > 0) {
        memset(key.bytes, 0, sizeof(key.bytes));
        memcpy(key.bytes, c.build_id, MIN((size_t)c.build_id_len, (size_t)20));
    } else {
        uint64_t facts[] = {c.stat.st_dev, c.stat.st_ino, (uint64_t)c.stat.st_size,
                            (uint64_t)c.stat.st_mtim.tv_sec, (uint64_t)c.stat.st_mtim.tv_nsec};
        key.kind = 'f';
        memcpy(key.bytes, facts, sizeof(facts));
        key_len = sizeof(facts);
    }
    bool fresh;
    int r = image_add(st, key_text(&key, key_len), IMAGE_FILE, mmap->path, ret, &fresh);
    if (r == 0 && fresh)
        image_fill(st, *ret, mmap, &c);
    return r;
}

int image_find(struct stacks *st, uint32_t process, const struct stacks_mmap *mmap, uint32_t *ret)
{
    bool fresh;
    if (str_is(mmap->path, "[vdso]"))
        return image_add(st, STR("vdso"), IMAGE_VDSO, mmap->path, ret, &fresh);
    if (is_nameless(mmap->path) || str_starts(mmap->path, "/memfd:"))
        return process == STACKS_NONE ? -ENOENT : image_jit(st, process, ret);
    return image_file(st, mmap, ret);
}

int image_fd(struct stacks *st, uint32_t index)
{
    struct stack_image *image = &st->images.data[index];
    if (image->fd >= 0)
        return image->fd;
    char path[4200];
    if (image->kind != IMAGE_FILE || image->path.len >= 4096)
        return -ENOENT;
    int fd = -1;
    if (image->root) {
        snprintf(path, sizeof(path), "%s%.*s", image->root, STR_FMT(image->path));
        fd = file_open_regular(path);
    }
    if (fd < 0) {
        snprintf(path, sizeof(path), "%.*s", STR_FMT(image->path));
        fd = file_open_regular(path);
    }
    if (fd < 0)
        return fd;
    uint8_t id[BUILD_ID_BYTES_MAX];
    char text[2 * BUILD_ID_BYTES_MAX + 1];
    int len = build_id_read(fd, id);
    struct stat stat;
    build_id_format(id, len > 0 ? (size_t)len : 0, text);
    if (!str_is(image->build_id, text) || fstat(fd, &stat) < 0 ||
        (uint64_t)stat.st_size != image->size_bytes) {
        close(fd);
        return -ESTALE;
    }
    image->fd = fd; /* one more than the bound at a time: its caller closes it */
    st->fds_open++;
    return fd;
}

void image_fd_done(struct stacks *st, struct stack_image *image)
{
    if (image->fd >= 0 && st->fds_open > STACKS_FDS_MAX) {
        fd_close(&image->fd);
        st->fds_open--;
    }
}

/* The vDSO of every process of this machine is ours. */
static int vdso_load(struct unwind_image **ret, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    unsigned long start = getauxval(AT_SYSINFO_EHDR);
    struct str text;
    int r = start ? maps_read(&arena, (int)getpid(), &text, why) : -ENOENT;
    struct map_entry entry;
    while (r == 0) {
        int got = maps_next(&text, &entry);
        if (got == 0)
            break;
        if (got > 0 && entry.start == start)
            return unwind_image_load_memory((const void *)start, entry.end - entry.start, ret, why);
    }
    return r < 0 ? r : why_set(why, WHY_FAILED, ENOENT, NULL, "this process has no vDSO");
}

int image_load(struct stacks *st, uint32_t index)
{
    struct stack_image *image = &st->images.data[index];
    if (image->state != IMAGE_UNSEEN)
        return 0;
    struct why why = {0};
    struct unwind_image_opts opts = {.cache_dir = st->opts.cache_dir};
    int r;
    if (image->kind == IMAGE_VDSO) {
        r = vdso_load(&image->rows, &why);
    } else {
        int fd = image_fd(st, index);
        r = fd < 0 ? why_errno(&why, -fd, NULL, "cannot be opened any more")
                   : unwind_image_load(fd, &opts, &image->rows, &why);
        image_fd_done(st, image);
    }
    if (r == -ENOMEM)
        return r;
    image->state = r < 0 ? IMAGE_FAILED : IMAGE_LOADED;
    if (r < 0) {
        image->note = arena_dup(&st->arena, why.what);
        return 0;
    }
    return mappings_upgrade(st, index);
}

int image_tell(struct stacks *st, uint32_t index)
{
    struct stack_image *image = &st->images.data[index];
    if (image->id)
        return 0;
    struct image_info info = {
        .kind = image->kind,
        .path = image->path,
        .build_id = image->build_id,
        .size_bytes = image->size_bytes,
    };
    return sink_image(st->sink, &info, &image->id);
}

int image_frame(struct stacks *st, uint32_t index, enum frame_kind kind, uint64_t address,
                uint32_t *ret_frame)
{
    struct stack_image *image = &st->images.data[index];
    bool fresh;
    uint64_t *slot = map_u64_at(&image->frames, address, &fresh);
    if (!slot)
        return -ENOMEM;
    if (*slot) {
        *ret_frame = (uint32_t)*slot;
        return 0;
    }
    int r = image_tell(st, index);
    if (r < 0)
        return r;
    struct frame_info info = {.kind = kind, .image = image->id, .address = address};
    uint32_t frame;
    r = sink_frame(st->sink, &info, &frame);
    if (r < 0)
        return r;
    *slot = frame;
    *ret_frame = frame;
    return 0;
}

void stacks_images_deinit(struct stacks *st)
{
    for (size_t i = 0; i < st->images.len; i++) {
        fd_close(&st->images.data[i].fd);
        unwind_image_free(st->images.data[i].rows);
        map_u64_deinit(&st->images.data[i].frames);
    }
    for (size_t i = 0; i < st->roots.len; i++)
        fd_close(&st->roots.data[i].fd);
    VEC_FREE(&st->roots);
    VEC_FREE(&st->images);
    intern_deinit(&st->image_keys);
}
