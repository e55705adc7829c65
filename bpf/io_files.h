/* Part of io.bpf.c: what a call is about. */
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct file___io {
    long long f_pos;
    unsigned int f_flags;
};

struct dentry___io {
    struct inode *d_inode;
};

struct fs_struct {
    struct path pwd;
};

struct task_struct___io {
    struct fs_struct *fs;
};

#pragma clang attribute pop

enum {
    /* enum call_flag of the model */
    FLAG_SYNC = 1 << 0,
    FLAG_DIRECT = 1 << 1,
    FLAG_NONBLOCK = 1 << 2,
    FLAG_CREATES = 1 << 4,
    /* From the kernel's interface. */
    FILE_NONBLOCK = 04000,
    FILE_DSYNC = 010000,
    FILE_APPEND = 02000,
    FILE_CREAT = 0100,
    FILE_SET_FLAGS = 4,      /* fcntl */
    FILE_SET_BLOCK = 0x5421, /* ioctl */
    MESSAGE_DONTWAIT = 0x40,
    ERRNO_MAX = 4095,
    /* Between kernel and itself: the call is made again, or was interrupted by a signal. */
    ERRNO_RESTART_FIRST = 512,
    ERRNO_RESTART_LAST = 516,
    ERRNO_INTERRUPTED = 4,
};

/* A file that the thread has not used lately, or that is another one by now. */
static __noinline int file_new(struct io_file *entry, struct task_struct *task, __u64 file, int fd)
{
    struct object_id id = {0};
    entry->inode = 0;
    entry->file = file;
    entry->next = IO_NO_PLACE;
    if (!object_of_file(file, &id)) {
        entry->id = id;
        return 0;
    }
    entry->id = id;
    if (!object_tell(&told, task, fd, &id, BPF_RB_NO_WAKEUP)) {
        count_add(OFFCPU_RING_FULL, 1);
        return 0; /* asked again the next time */
    }
    /* What a socket is for may come out later. */
    return id.kind != OBJECT_ID_SOCKET || id.flags != 0;
}

/* The number of an inode can be given to another file, the generation then is another one. */
static __always_inline __u64 ino_of(__u64 inode)
{
    return BPF_CORE_READ((struct inode *)inode, i_ino) ^
           (__u64)BPF_CORE_READ((struct inode *)inode, i_generation) << 32;
}

/* Finds the file of an fd and remembers it in thread->at. */
static __noinline int file_look(struct io_thread *thread, struct task_struct *task, int fd,
                                __u64 epoch)
{
    thread->at = IO_NO_FILE;
    __u64 file = object_file_of(task->pid, fd);
    if (!file)
        return 0;
    __u32 at = (__u32)fd & (IO_FILES - 1);
    struct io_file *entry = &thread->files[at];
    __u64 inode = (__u64)BPF_CORE_READ((struct file *)file, f_inode), ino = ino_of(inode);
    if (entry->file != file || entry->inode != inode || entry->ino != ino) {
        if (file_new(entry, task, file, fd)) {
            entry->inode = inode;
            entry->ino = ino;
        }
    }
    __u32 modes = BPF_CORE_READ((struct file___io *)file, f_flags);
    __u16 kind = entry->id.kind;
    entry->fd = (__u32)fd;
    entry->epoch = epoch;
    entry->flags = (modes & FILE_DSYNC ? FLAG_SYNC : 0) |
                   (modes & config.o_direct ? FLAG_DIRECT : 0) |
                   (modes & FILE_NONBLOCK ? FLAG_NONBLOCK : 0) |
                   (modes & FILE_APPEND ? IO_FILE_APPENDS : 0) |
                   (kind == OBJECT_ID_FILE || kind == OBJECT_ID_BLOCK_DEVICE ? IO_FILE_HAS_PLACES
                                                                             : 0);
    thread->at = at;
    return 1;
}

/* What an fd is changes only by calls: as long as none of that kind has ended, it is as it was.
 * A table of fds is shared by threads of one process only, and all of those are recorded. */
static __always_inline __u32 epoch_place(const struct io_thread *thread, int fd)
{
    return 1 + (((__u32)fd ^ thread->kernel_tgid * 2654435761u >> 16) & (IO_EPOCHS - 1));
}

static __always_inline void epoch_end(__u32 place)
{
    __u64 *epoch = bpf_map_lookup_elem(&epochs, &place);
    if (epoch)
        __sync_fetch_and_add(epoch, 1);
}

/* Both only grow: the sum is the same only if both are. */
static __always_inline __u64 epoch_of(const struct io_thread *thread, int fd)
{
    __u32 all = 0, one = epoch_place(thread, fd);
    const __u64 *of_all = bpf_map_lookup_elem(&epochs, &all);
    const __u64 *of_one = bpf_map_lookup_elem(&epochs, &one);
    return of_all && of_one ? *of_all + *of_one : 0;
}

static __always_inline void file_find(struct io_thread *thread, struct task_struct *task, int fd)
{
    __u64 epoch = epoch_of(thread, fd);
    __u32 at = (__u32)fd & (IO_FILES - 1);
    const struct io_file *entry = &thread->files[at];
    if (entry->fd == (__u32)fd && entry->inode != 0 && entry->epoch == epoch)
        thread->at = at;
    else
        file_look(thread, task, fd, epoch);
}

/* As find, for an fd of which something has changed. */
static __always_inline void file_renew(struct io_thread *thread, struct task_struct *task, int fd)
{
    thread->files[(__u32)fd & (IO_FILES - 1)].inode = 0;
    file_look(thread, task, fd, epoch_of(thread, fd));
}

/* Where in the file a call begins that goes on from where the file stands. */
static __always_inline __u64 place_of(const struct io_file *entry, __u32 kind)
{
    struct file___io *file = (void *)entry->file;
    if (!(entry->flags & IO_FILE_HAS_PLACES))
        return IO_NO_PLACE;
    if (kind & IO_WRITES && entry->flags & IO_FILE_APPENDS)
        return entry->next == IO_NO_PLACE ? 0 : entry->next;
    if (!(kind & IO_PLACE_CURRENT))
        return IO_NO_PLACE;
    return (__u64)BPF_CORE_READ(file, f_pos);
}

/* ---- paths ---- */

/* A walk over a tree asks for one name after another in the same folder, whose own name takes
 * longer to read than all else: it is read once a round, and anew when something was renamed. */
struct path_room {
    struct io_path path;
    __u64 dentry, mount, seed, round, epoch; /* of path.folder */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct path_room);
} path_rooms SEC(".maps");

/* Paths that were told, by their hash. One that had to give way is told again: most are asked for
 * once, and a place in objects_seen takes longer. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, IO_PATHS_SEEN);
    __type(key, __u32);
    __type(value, __u64);
} paths_seen SEC(".maps");

/* Where relative paths begin. To be read as if it were an open file: its path is where theirs
 * is. 0: cannot be told. */
static __always_inline __u64 folder_of(struct task_struct *task, int fd)
{
    if (fd >= 0)
        return object_file_of(task->pid, fd);
    struct fs_struct *fs = BPF_CORE_READ((struct task_struct___io *)task, fs);
    if (!fs)
        return 0;
    return (__u64)fs + bpf_core_field_offset(struct fs_struct, pwd) -
           bpf_core_field_offset(struct file, f_path);
}

static __always_inline __u64 path_hash(const struct io_path *path, __u64 seed)
{
    const __u64 *words = (const void *)path->path;
    __u64 hash = seed ^ path->bytes;
    for (__u32 i = 0; i < IO_PATH_BYTES / 8; i++) {
        if (8 * i >= path->bytes)
            break;
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

static __noinline int folder_read(struct path_room *room, __u64 folder, __u64 seed)
{
    __u32 names = IO_EPOCH_NAMES;
    const struct offcpu_control *now = control_get();
    const __u64 *renamed = bpf_map_lookup_elem(&epochs, &names);
    struct object_record *record = &room->path.folder;
    __u64 dentry = (__u64)BPF_CORE_READ((struct file *)folder, f_path.dentry);
    __u64 mount = (__u64)BPF_CORE_READ((struct file *)folder, f_path.mnt);
    __u64 round = now ? now->round + 1 : 0, epoch = renamed ? *renamed : 0;
    if (round != 0 && room->round == round && room->epoch == epoch && room->dentry == dentry &&
        room->mount == mount && room->seed == seed)
        return 0;
    room->round = 0; /* what is half read, or could not be, is nobody's name */
    room->epoch = epoch;
    room->dentry = dentry;
    room->mount = mount;
    room->seed = seed;
    record->type = OBJECT_RECORD_TYPE;
    record->id.kind = OBJECT_ID_DIRECTORY;
    record->marks = 0;
    record->text_kind = OBJECT_TEXT_NONE;
    record->text_bytes = 0;
    int r = object_path(record, folder);
    if (r == 0)
        room->round = round;
    return r;
}

static __noinline int path_tell(struct path_room *room, __u64 folder, __u64 seed)
{
    struct io_path *path = &room->path;
    __u64 bytes = __builtin_offsetof(struct io_path, path) + path->bytes;
    path->head.record = IO_PATH;
    path->head.time_ns = 0; /* any time is right */
    path->relative = folder != 0;
    if (folder) {
        folder_read(room, folder, seed);
        bytes = __builtin_offsetof(struct io_path, folder.text) + path->folder.text_bytes;
    }
    if (bytes > sizeof(*path))
        bytes = sizeof(*path);
    return bpf_ringbuf_output(&told, path, bytes, BPF_RB_NO_WAKEUP) == 0;
}

static __always_inline void path_see(struct path_room *room, __u64 folder, __u64 seed)
{
    __u64 hash = room->path.id.ino;
    __u32 at = hash & (IO_PATHS_SEEN - 1);
    __u64 *seen = bpf_map_lookup_elem(&paths_seen, &at);
    if (!seen || *seen == hash)
        return;
    if (path_tell(room, folder, seed))
        *seen = hash;
    else
        count_add(IO_PATHS_LOST, 1);
}

/* The object of an fd that is not the call's usual one. */
static __always_inline int other_fd_look(struct task_struct *task, int fd, struct object_id *ret)
{
    struct object_id id = {0};
    __u64 file = object_file_of(task->pid, fd);
    if (!file || !object_of_file(file, &id))
        return 0;
    if (!object_tell(&told, task, fd, &id, BPF_RB_NO_WAKEUP))
        count_add(OFFCPU_RING_FULL, 1);
    *ret = id;
    return 1;
}

/* 1 and what the path is called by; after the call, which has fetched it if it was not there. */
__attribute__((noinline)) int path_look(__u64 address, int folder_fd, struct object_id *ret)
{
    __u32 zero = 0;
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct path_room *room = bpf_map_lookup_elem(&path_rooms, &zero);
    if (!room || !ret)
        return 0;
    struct io_path *path = &room->path;
    __builtin_memset(path->path, 0, sizeof(path->path));
    long bytes = bpf_probe_read_user_str(path->path, sizeof(path->path), (const void *)address);
    if (bytes <= 0) {
        count_add(IO_PATHS_LOST, 1);
        return 0;
    }
    if (bytes == 1 && folder_fd >= 0) /* AT_EMPTY_PATH */
        return other_fd_look(task, folder_fd, ret);
    path->bytes = (__u32)bytes;
    __u64 folder = path->path[0] == '/' ? 0 : folder_of(task, folder_fd);
    __u64 seed = 0;
    if (folder) {
        struct dentry *dentry = BPF_CORE_READ((struct file *)folder, f_path.dentry);
        struct inode *inode = BPF_CORE_READ((struct dentry___io *)dentry, d_inode);
        seed = (BPF_CORE_READ(inode, i_ino) + 1) * 0xbf58476d1ce4e5b9ull ^
               BPF_CORE_READ(inode, i_sb, s_dev);
    }
    struct object_id id = {.kind = OBJECT_ID_PATH};
    id.ino = path_hash(path, seed);
    path->id = id;
    *ret = id;
    path_see(room, folder, seed);
    return 1;
}

/* ---- how much ---- */

/* What a list of buffers holds; 0: more of them than are looked at. */
__attribute__((noinline)) __u64 vector_bytes(__u64 address, __u64 count)
{
    __u64 bytes = 0, len = 0;
    if (count > IO_VECTORS_MAX)
        return 0;
    for (__u32 i = 0; i < IO_VECTORS_MAX; i++) {
        if (i >= count)
            break;
        /* struct iovec: where, how much */
        if (bpf_probe_read_user(&len, sizeof(len), (const void *)(address + 16 * i + 8)) != 0)
            return 0;
        bytes += len;
    }
    return bytes;
}

/* What messages have moved: msg_len of each struct mmsghdr. */
__attribute__((noinline)) __u64 messages_bytes(__u64 address, __u64 count)
{
    enum { MESSAGE_BYTES = 64, LEN_AT = 56 };
    __u64 bytes = 0;
    for (__u32 i = 0; i < IO_MESSAGES_MAX; i++) {
        __u32 len = 0;
        if (i >= count)
            break;
        if (bpf_probe_read_user(&len, sizeof(len),
                                (const void *)(address + MESSAGE_BYTES * i + LEN_AT)) != 0)
            break;
        bytes += len;
    }
    return bytes;
}
