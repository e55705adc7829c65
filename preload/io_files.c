/* Bytes in and out of fds that are open. */
#include "io.h"

#include <sys/mman.h>

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are libc's */

#define ALIAS(name)  __attribute__((visibility("default"), alias(name)))
#define READS(call)  ((call).flags = PRELOAD_CALL_READS)
#define WRITES(call) ((call).flags = PRELOAD_CALL_WRITES)

/* One block of memory; how: IO_ALONG or IO_PLACED, and the direction. */
#define ONE_BLOCK(call, how_, buffer, count)                                                       \
    struct iovec iov_ = {.iov_base = (void *)(buffer), .iov_len = (count)};                        \
    (call).how = IO_MOVES | (how_);                                                                \
    (call).asked = (count);                                                                        \
    (call).pieces = &iov_;                                                                         \
    (call).piece_count = 1

/* Several; only a call that went well has read what describes them. */
#define BLOCKS(call, how_, iov, count, result)                                                     \
    do {                                                                                           \
        (call).how = IO_MOVES | (how_);                                                            \
        if ((result) >= 0) {                                                                       \
            (call).asked = io_iov_bytes((iov), (size_t)(count));                                   \
            (call).pieces = (iov);                                                                 \
            (call).piece_count = (size_t)(count);                                                  \
        }                                                                                          \
    } while (0)

EXPORT ssize_t read(int fd, void *buf, size_t count)
{
    IO_PASS(read, IO_RAW(SYS_read, fd, buf, count), fd, buf, count);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.read(fd, buf, count);
    ONE_BLOCK(call, IO_ALONG | IO_RECEIVES, buf, count);
    READS(call);
    IO_END(&call, SYS_read, r);
    return r;
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t count, size_t size)
{
    IO_PASS(__read_chk, io_missing(), fd, buf, count, size);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.__read_chk(fd, buf, count, size);
    ONE_BLOCK(call, IO_ALONG | IO_RECEIVES, buf, count);
    READS(call);
    IO_END(&call, SYS_read, r);
    return r;
}

EXPORT ssize_t pread(int fd, void *buf, size_t count, off_t offset)
{
    IO_PASS(pread, IO_RAW(SYS_pread64, fd, buf, count, offset), fd, buf, count, offset);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.pread(fd, buf, count, offset);
    ONE_BLOCK(call, IO_PLACED, buf, count);
    call.at = (uint64_t)offset;
    READS(call);
    IO_END(&call, SYS_pread64, r);
    return r;
}
ALIAS("pread") ssize_t pread64(int fd, void *buf, size_t count, off_t offset);

EXPORT ssize_t __pread_chk(int fd, void *buf, size_t count, off_t offset, size_t size)
{
    IO_PASS(__pread_chk, io_missing(), fd, buf, count, offset, size);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.__pread_chk(fd, buf, count, offset, size);
    ONE_BLOCK(call, IO_PLACED, buf, count);
    call.at = (uint64_t)offset;
    READS(call);
    IO_END(&call, SYS_pread64, r);
    return r;
}
ALIAS("__pread_chk")
ssize_t __pread64_chk(int fd, void *buf, size_t count, off_t offset, size_t size);

EXPORT ssize_t readv(int fd, const struct iovec *iov, int count)
{
    IO_PASS(readv, IO_RAW(SYS_readv, fd, iov, count), fd, iov, count);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.readv(fd, iov, count);
    BLOCKS(call, IO_ALONG | IO_RECEIVES, iov, count, r);
    READS(call);
    IO_END(&call, SYS_readv, r);
    return r;
}

EXPORT ssize_t preadv(int fd, const struct iovec *iov, int count, off_t offset)
{
    IO_PASS(preadv, io_missing(), fd, iov, count, offset);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.preadv(fd, iov, count, offset);
    BLOCKS(call, IO_PLACED, iov, count, r);
    call.at = (uint64_t)offset;
    READS(call);
    IO_END(&call, SYS_preadv, r);
    return r;
}
ALIAS("preadv") ssize_t preadv64(int fd, const struct iovec *iov, int count, off_t offset);

EXPORT ssize_t preadv2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    IO_PASS(preadv2, io_missing(), fd, iov, count, offset, flags);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.preadv2(fd, iov, count, offset, flags);
    BLOCKS(call, offset == -1 ? IO_ALONG : IO_PLACED, iov, count, r);
    call.at = (uint64_t)offset;
    READS(call);
    IO_END(&call, SYS_preadv2, r);
    return r;
}
ALIAS("preadv2")
ssize_t preadv64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);

EXPORT ssize_t write(int fd, const void *buf, size_t count)
{
    IO_PASS(write, IO_RAW(SYS_write, fd, buf, count), fd, buf, count);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.write(fd, buf, count);
    ONE_BLOCK(call, IO_ALONG | IO_SENDS, buf, count);
    WRITES(call);
    IO_END(&call, SYS_write, r);
    return r;
}

EXPORT ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset)
{
    IO_PASS(pwrite, IO_RAW(SYS_pwrite64, fd, buf, count, offset), fd, buf, count, offset);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.pwrite(fd, buf, count, offset);
    ONE_BLOCK(call, IO_PLACED, buf, count);
    call.at = (uint64_t)offset;
    WRITES(call);
    IO_END(&call, SYS_pwrite64, r);
    return r;
}
ALIAS("pwrite") ssize_t pwrite64(int fd, const void *buf, size_t count, off_t offset);

EXPORT ssize_t writev(int fd, const struct iovec *iov, int count)
{
    IO_PASS(writev, IO_RAW(SYS_writev, fd, iov, count), fd, iov, count);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.writev(fd, iov, count);
    BLOCKS(call, IO_ALONG | IO_SENDS, iov, count, r);
    WRITES(call);
    IO_END(&call, SYS_writev, r);
    return r;
}

EXPORT ssize_t pwritev(int fd, const struct iovec *iov, int count, off_t offset)
{
    IO_PASS(pwritev, io_missing(), fd, iov, count, offset);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.pwritev(fd, iov, count, offset);
    BLOCKS(call, IO_PLACED, iov, count, r);
    call.at = (uint64_t)offset;
    WRITES(call);
    IO_END(&call, SYS_pwritev, r);
    return r;
}
ALIAS("pwritev") ssize_t pwritev64(int fd, const struct iovec *iov, int count, off_t offset);

EXPORT ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    IO_PASS(pwritev2, io_missing(), fd, iov, count, offset, flags);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.pwritev2(fd, iov, count, offset, flags);
    BLOCKS(call, offset == -1 ? IO_ALONG : IO_PLACED, iov, count, r);
    call.at = (uint64_t)offset;
    WRITES(call);
    IO_END(&call, SYS_pwritev2, r);
    return r;
}
ALIAS("pwritev2")
ssize_t pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);

EXPORT off_t lseek(int fd, off_t offset, int whence)
{
    IO_PASS(lseek, IO_RAW(SYS_lseek, fd, offset, whence), fd, offset, whence);
    struct io_call call = io_begin(fd);
    off_t r = next_io.lseek(fd, offset, whence);
    struct io_fd *known = io_fd_at(fd);
    if (known && r >= 0)
        __atomic_store_n(&known->at, (uint64_t)r, __ATOMIC_RELAXED);
    IO_END(&call, SYS_lseek, r);
    return r;
}
ALIAS("lseek") off_t lseek64(int fd, off_t offset, int whence);

EXPORT int fsync(int fd)
{
    IO_PASS(fsync, (int)IO_RAW(SYS_fsync, fd), fd);
    struct io_call call = io_begin(fd);
    int r = next_io.fsync(fd);
    IO_END(&call, SYS_fsync, r);
    return r;
}

EXPORT int fdatasync(int fd)
{
    IO_PASS(fdatasync, (int)IO_RAW(SYS_fdatasync, fd), fd);
    struct io_call call = io_begin(fd);
    int r = next_io.fdatasync(fd);
    IO_END(&call, SYS_fdatasync, r);
    return r;
}

EXPORT int sync_file_range(int fd, off_t from, off_t bytes, unsigned flags)
{
    IO_PASS(sync_file_range, (int)io_missing(), fd, from, bytes, flags);
    struct io_call call = io_begin(fd);
    int r = next_io.sync_file_range(fd, from, bytes, flags);
    IO_END(&call, SYS_sync_file_range, r);
    return r;
}

EXPORT int ftruncate(int fd, off_t length)
{
    IO_PASS(ftruncate, (int)IO_RAW(SYS_ftruncate, fd, length), fd, length);
    struct io_call call = io_begin(fd);
    int r = next_io.ftruncate(fd, length);
    IO_END(&call, SYS_ftruncate, r);
    return r;
}
ALIAS("ftruncate") int ftruncate64(int fd, off_t length);

/* What goes from one fd to another: of the one that is read. */
EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
    IO_PASS(sendfile, io_missing(), out, in, offset, count);
    struct io_call call = io_begin(in);
    ssize_t r = next_io.sendfile(out, in, offset, count);
    call.how = IO_MOVES | (offset ? 0 : IO_ALONG);
    call.asked = count;
    call.flags = PRELOAD_CALL_READS | PRELOAD_CALL_WRITES;
    IO_END(&call, SYS_sendfile, r);
    return r;
}
ALIAS("sendfile") ssize_t sendfile64(int out, int in, off_t *offset, size_t count);

EXPORT ssize_t splice(int in, off_t *in_offset, int out, off_t *out_offset, size_t count,
                      unsigned flags)
{
    IO_PASS(splice, io_missing(), in, in_offset, out, out_offset, count, flags);
    struct io_call call = io_begin(in);
    ssize_t r = next_io.splice(in, in_offset, out, out_offset, count, flags);
    call.how = IO_MOVES | (in_offset ? 0 : IO_ALONG);
    call.asked = count;
    IO_END(&call, SYS_splice, r);
    return r;
}

EXPORT ssize_t copy_file_range(int in, off_t *in_offset, int out, off_t *out_offset, size_t count,
                               unsigned flags)
{
    IO_PASS(copy_file_range, io_missing(), in, in_offset, out, out_offset, count, flags);
    struct io_call call = io_begin(in);
    ssize_t r = next_io.copy_file_range(in, in_offset, out, out_offset, count, flags);
    call.how = IO_MOVES | (in_offset ? 0 : IO_ALONG);
    call.asked = count;
    call.flags = PRELOAD_CALL_READS | PRELOAD_CALL_WRITES;
    IO_END(&call, SYS_copy_file_range, r);
    return r;
}

EXPORT ssize_t getdents64(int fd, void *buffer, size_t bytes)
{
    IO_PASS(getdents64, IO_RAW(SYS_getdents64, fd, buffer, bytes), fd, buffer, bytes);
    struct io_call call = io_begin(fd);
    ssize_t r = next_io.getdents64(fd, buffer, bytes);
    call.how = IO_MOVES;
    IO_END(&call, SYS_getdents64, r);
    return r;
}

/* Memory that is no file's is let through: allocators ask for it, also very early. */
EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    if (UNLIKELY(!next_io.mmap))
        io_resolve();
    if (UNLIKELY(!next_io.mmap)) {
        long raw = core_raw6(SYS_mmap, (long)address, (long)length, protection, flags, fd, offset);
        if (raw >= 0 || raw < -4095)
            return (void *)raw;
        errno = (int)-raw;
        return MAP_FAILED;
    }
    if (LIKELY(!core_io_on || flags & MAP_ANONYMOUS || fd < 0))
        return next_io.mmap(address, length, protection, flags, fd, offset);
    struct io_call call = io_begin(fd);
    void *r = next_io.mmap(address, length, protection, flags, fd, offset);
    call.asked = length;
    IO_END(&call, SYS_mmap, r == MAP_FAILED ? -1 : 0);
    return r;
}
ALIAS("mmap")
void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);

/* NOLINTEND(bugprone-reserved-identifier) */
