/* I/O whose every call is known: each mode does it and tells what it did as lines of JSON,
 *
 *     {"file": NAME, "call": "read", "calls": N, "bytes": N, "errors": N, "ms": wall}
 *
 * where NAME is the file's (or "" for calls without one) and ms what the calls took together by
 * the program's own clock. Files lie in the current folder.
 *
 *     io-known reads N            N one-byte reads of one file
 *     io-known blocks FILE KIB    reads all of FILE in blocks of KIB KiB
 *     io-known fsyncs N           N small writes, each with fsync
 *     io-known syncs              fdatasync, sync_file_range, O_SYNC and O_DSYNC writes
 *     io-known tiny N             N tiny files in one folder: made, read back, removed
 *     io-known lookups N          N opens and N stats of what is not there
 *     io-known again N TIMES      one file of N KiB, read from its start TIMES times
 *     io-known cold N             a file of N KiB read from the disk, then from the cache
 *     io-known random N           N preads at random places, N one after the other
 *     io-known partial            reads and writes that move less than was asked for
 *     io-known vectors            readv, writev, preadv, pwritev
 *     io-known messages           sendmsg, recvmsg, sendto, recvfrom, sendfile, splice
 *     io-known passed             dup, an fd passed to a child, one that it inherits
 *     io-known inherited          reads fd 3, which was there before
 *     io-known threads N M        N threads read M times one byte of a file each
 *     io-known mapped N           a mapped file of N KiB, its pages touched cold and warm
 *     io-known errors             EBADF, EAGAIN, EISDIR, EINVAL …
 *     io-known sites N            N reads at one of two call sites, 3 N at the other
 *     io-known slow MS            a read that takes MS: nobody writes for so long */
#include "apart.h"
#include "waits_truth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

struct account {
    const char *file, *call;
    long calls, bytes, errors, ns;
};

static void tell(const struct account *account)
{
    char line[512];
    truth_write(line, snprintf(line, sizeof(line),
                               "{\"file\": \"%s\", \"call\": \"%s\", \"calls\": %ld, "
                               "\"bytes\": %ld, \"errors\": %ld, \"ms\": %.6f}\n",
                               account->file, account->call, account->calls, account->bytes,
                               account->errors, (double)account->ns / 1e6));
}

static void number_tell(const char *name, double value)
{
    char line[128];
    truth_write(line,
                snprintf(line, sizeof(line), "{\"name\": \"%s\", \"value\": %.6f}\n", name, value));
}

__attribute__((noreturn)) static void fail(const char *what)
{
    fprintf(stderr, "io-known: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long add(struct account *account, long start_ns, long result)
{
    account->ns += truth_clock(CLOCK_MONOTONIC) - start_ns;
    account->calls++;
    if (result < 0)
        account->errors++;
    else
        account->bytes += result;
    return result;
}

#define TIMED(account, call)                                                                       \
    __extension__({                                                                                \
        long start_ns_ = truth_clock(CLOCK_MONOTONIC);                                             \
        long result_ = (long)(call);                                                               \
        int error_ = errno;                                                                        \
        add((account), start_ns_, result_);                                                        \
        errno = error_;                                                                            \
        result_;                                                                                   \
    })

static char block[1 << 20];

static int make(const char *name, long bytes)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        fail(name);
    for (long done = 0; done < bytes;) {
        size_t part = (size_t)(bytes - done) < sizeof(block) ? (size_t)(bytes - done)
                                                             : sizeof(block);
        ssize_t n = write(fd, block, part);
        if (n <= 0)
            fail("write");
        done += n;
    }
    if (lseek(fd, 0, SEEK_SET) != 0)
        fail("lseek");
    return fd;
}

static APART void reads_a_byte(int fd, long count, struct account *account)
{
    char byte;
    long start_ns = truth_clock(CLOCK_MONOTONIC);
    for (long i = 0; i < count; i++)
        if (read(fd, &byte, 1) != 1)
            fail("read");
    account->ns += truth_clock(CLOCK_MONOTONIC) - start_ns;
    account->calls += count;
    account->bytes += count;
}

static void run_reads(long count)
{
    struct account account = {"bytes.dat", "read", 0, 0, 0, 0};
    int fd = make("bytes.dat", count);
    reads_a_byte(fd, count, &account);
    tell(&account);
    number_tell("wall_ms", (double)account.ns / 1e6);
    close(fd);
}

static void run_blocks(const char *name, long kib)
{
    struct account account = {name, "read", 0, 0, 0, 0};
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail(name);
    long start_ns = truth_clock(CLOCK_MONOTONIC), n;
    do {
        n = read(fd, block, (size_t)kib << 10);
        if (n < 0)
            fail("read");
        account.calls++;
        account.bytes += n;
    } while (n > 0);
    account.ns = truth_clock(CLOCK_MONOTONIC) - start_ns;
    tell(&account);
    number_tell("wall_ms", (double)account.ns / 1e6);
    close(fd);
}

static void run_fsyncs(long count)
{
    struct account writes = {"synced.dat", "write", 0, 0, 0, 0};
    struct account syncs = {"synced.dat", "fsync", 0, 0, 0, 0};
    int fd = make("synced.dat", 0);
    for (long i = 0; i < count; i++) {
        if (TIMED(&writes, write(fd, block, 100)) != 100 || TIMED(&syncs, fsync(fd)) != 0)
            fail("fsync");
    }
    tell(&writes);
    tell(&syncs);
    close(fd);
}

static void run_syncs(void)
{
    struct account data = {"data.dat", "fdatasync", 0, 0, 0, 0};
    struct account range = {"data.dat", "sync_file_range", 0, 0, 0, 0};
    struct account whole = {"osync.dat", "write", 0, 0, 0, 0};
    struct account part = {"odsync.dat", "write", 0, 0, 0, 0};
    int fd = make("data.dat", 0);
    int osync = open("osync.dat", O_WRONLY | O_CREAT | O_SYNC | O_CLOEXEC, 0644);
    int odsync = open("odsync.dat", O_WRONLY | O_CREAT | O_DSYNC | O_CLOEXEC, 0644);
    for (int i = 0; i < 7; i++) {
        if (write(fd, block, 5000) != 5000 || TIMED(&data, fdatasync(fd)) != 0)
            fail("fdatasync");
    }
    for (int i = 0; i < 5; i++) {
        if (write(fd, block, 5000) != 5000 ||
            TIMED(&range, sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE)) != 0)
            fail("sync_file_range");
    }
    for (int i = 0; i < 11; i++)
        if (TIMED(&whole, write(osync, block, 200)) != 200)
            fail("O_SYNC");
    for (int i = 0; i < 13; i++)
        if (TIMED(&part, write(odsync, block, 300)) != 300)
            fail("O_DSYNC");
    tell(&data);
    tell(&range);
    tell(&whole);
    tell(&part);
}

static void run_tiny(long count)
{
    struct account opens = {"", "openat", 0, 0, 0, 0}, writes = {"", "write", 0, 0, 0, 0};
    struct account reads = {"", "read", 0, 0, 0, 0}, removes = {"", "unlink", 0, 0, 0, 0};
    char name[64];
    mkdir("many", 0755);
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "many/tiny-%ld", i);
        int fd = (int)TIMED(&opens, open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
        if (fd < 0 || TIMED(&writes, write(fd, block, 10)) != 10)
            fail(name);
        close(fd);
    }
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "many/tiny-%ld", i);
        int fd = (int)TIMED(&opens, open(name, O_RDONLY | O_CLOEXEC));
        if (fd < 0 || TIMED(&reads, read(fd, block, 100)) != 10)
            fail(name);
        close(fd);
    }
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "many/tiny-%ld", i);
        if (TIMED(&removes, unlink(name)) != 0)
            fail(name);
    }
    opens.bytes = 0;
    tell(&opens);
    tell(&writes);
    tell(&reads);
    tell(&removes);
}

static APART void looks_up(long count)
{
    struct account opens = {"missing", "openat", 0, 0, 0, 0};
    struct account stats = {"missing", "newfstatat", 0, 0, 0, 0};
    char name[64];
    struct stat about;
    mkdir("nowhere", 0755);
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "nowhere/missing-%ld", i);
        if (TIMED(&opens, open(name, O_RDONLY | O_CLOEXEC)) != -1 || errno != ENOENT)
            fail("found");
        if (TIMED(&stats, stat(name, &about)) != -1 || errno != ENOENT)
            fail("found");
    }
    tell(&opens);
    tell(&stats);
}

static void read_all(int fd, struct account *account, size_t step)
{
    long n;
    while ((n = TIMED(account, read(fd, block, step))) > 0)
        ;
    if (n < 0)
        fail("read");
}

static void run_again(long kib, long times)
{
    struct account account = {"again.dat", "read", 0, 0, 0, 0};
    int fd = make("again.dat", kib << 10);
    for (long i = 0; i < times; i++) {
        if (lseek(fd, 0, SEEK_SET) != 0)
            fail("lseek");
        read_all(fd, &account, 64 << 10);
    }
    tell(&account);
}

static void drop(int fd)
{
    if (fsync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        fail("posix_fadvise");
}

static void run_cold(long kib)
{
    struct account cold = {"cold.dat", "read", 0, 0, 0, 0};
    struct account warm = {"warm.dat", "read", 0, 0, 0, 0};
    int fd = make("cold.dat", kib << 10), second = make("warm.dat", kib << 10);
    drop(fd);
    read_all(fd, &cold, 64 << 10);
    read_all(second, &warm, 64 << 10);
    tell(&cold);
    tell(&warm);
}

static void run_random(long count)
{
    struct account random = {"random.dat", "pread64", 0, 0, 0, 0};
    struct account sequential = {"sequential.dat", "pread64", 0, 0, 0, 0};
    int fd = make("random.dat", 8 << 20), second = make("sequential.dat", 8 << 20);
    uint64_t state = 1;
    for (long i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        off_t at = (off_t)(state >> 33) % 2000 * 4096;
        if (TIMED(&random, pread(fd, block, 512, at)) != 512 ||
            TIMED(&sequential, pread(second, block, 512, 512 * i)) != 512)
            fail("pread");
    }
    tell(&random);
    tell(&sequential);
}

static void run_partial(void)
{
    struct account reads = {"partial.dat", "read", 0, 0, 0, 0};
    struct account writes = {"pipe", "write", 0, 0, 0, 0}, drains = {"pipe", "read", 0, 0, 0, 0};
    int fd = make("partial.dat", 1500), ends[2];
    for (int i = 0; i < 20; i++) { /* 1000 and 500 of 1000 */
        if (lseek(fd, 0, SEEK_SET) != 0 || TIMED(&reads, read(fd, block, 1000)) != 1000 ||
            TIMED(&reads, read(fd, block, 1000)) != 500)
            fail("read");
    }
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
        fail("pipe");
    for (int i = 0; i < 5; i++) { /* as much as there is room for, then nothing */
        if (TIMED(&writes, write(ends[1], block, sizeof(block))) <= 0 ||
            TIMED(&writes, write(ends[1], block, 1)) != -1 || errno != EAGAIN)
            fail("pipe");
        while (TIMED(&drains, read(ends[0], block, 60000)) > 0)
            ;
    }
    tell(&reads);
    tell(&writes);
    tell(&drains);
}

static void run_vectors(void)
{
    struct account out = {"vectors.dat", "writev", 0, 0, 0, 0},
                   in = {"vectors.dat", "readv", 0, 0, 0, 0};
    struct account pout = {"vectors.dat", "pwritev", 0, 0, 0, 0};
    struct account pin = {"vectors.dat", "preadv", 0, 0, 0, 0};
    int fd = make("vectors.dat", 0);
    struct iovec parts[3] = {{block, 100}, {block + 1000, 1000}, {block + 5000, 4000}};
    for (int i = 0; i < 10; i++)
        if (TIMED(&out, writev(fd, parts, 3)) != 5100 ||
            TIMED(&pout, pwritev(fd, parts, 2, 100000)) != 1100)
            fail("writev");
    if (lseek(fd, 0, SEEK_SET) != 0)
        fail("lseek");
    for (int i = 0; i < 9; i++)
        if (TIMED(&in, readv(fd, parts, 3)) != 5100 || TIMED(&pin, preadv(fd, parts, 2, 0)) != 1100)
            fail("readv");
    tell(&out);
    tell(&in);
    tell(&pout);
    tell(&pin);
}

static void run_messages(void)
{
    struct account sent = {"socket", "sendmsg", 0, 0, 0, 0},
                   got = {"socket", "recvmsg", 0, 0, 0, 0};
    struct account to = {"socket", "sendto", 0, 0, 0, 0}, from = {"socket", "recvfrom", 0, 0, 0, 0};
    struct account moved = {"source.dat", "sendfile", 0, 0, 0, 0};
    struct account spliced = {"source.dat", "splice", 0, 0, 0, 0};
    int ends[2], pipes[2], fd = make("source.dat", 40000);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 || pipe2(pipes, O_CLOEXEC) < 0)
        fail("socketpair");
    struct iovec parts[2] = {{block, 300}, {block, 700}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    for (int i = 0; i < 17; i++) {
        if (TIMED(&sent, sendmsg(ends[0], &message, 0)) != 1000 ||
            TIMED(&got, recvmsg(ends[1], &message, 0)) != 1000 ||
            TIMED(&to, send(ends[1], block, 50, 0)) != 50 ||
            TIMED(&from, recv(ends[0], block, 4096, 0)) != 50)
            fail("message");
    }
    if (TIMED(&moved, sendfile(ends[0], fd, NULL, 20000)) != 20000)
        fail("sendfile");
    long n = 0;
    while (n < 20000) {
        ssize_t part = read(ends[1], block, sizeof(block));
        if (part <= 0)
            fail("read");
        n += part;
    }
    if (TIMED(&spliced, splice(fd, NULL, pipes[1], NULL, 10000, 0)) != 10000)
        fail("splice");
    tell(&sent);
    tell(&got);
    tell(&to);
    tell(&from);
    tell(&moved);
    tell(&spliced);
}

static void fd_send(int by, int fd)
{
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {block, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &fd, sizeof(int));
    if (sendmsg(by, &message, 0) != 1)
        fail("sendmsg");
}

static int fd_receive(int by)
{
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {block, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    int fd;
    if (recvmsg(by, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
        fail("recvmsg");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return fd;
}

static void run_passed(void)
{
    struct account copied = {"dup.dat", "read", 0, 0, 0, 0};
    struct account passed = {"passed.dat", "write", 0, 0, 0, 0};
    struct account inherited = {"kept.dat", "read", 0, 0, 0, 0};
    int ends[2], fd = make("dup.dat", 10000), kept = make("kept.dat", 500);
    int second = dup(fd), third = dup2(fd, 77);
    for (int i = 0; i < 3; i++)
        if (TIMED(&copied, read(fd, block, 10)) != 10 ||
            TIMED(&copied, read(second, block, 20)) != 20 ||
            TIMED(&copied, read(third, block, 30)) != 30)
            fail("dup");
    tell(&copied);
    /* The number 77 is another file from now on. */
    struct account other = {"other.dat", "write", 0, 0, 0, 0};
    int named = make("other.dat", 0);
    if (dup2(named, 77) != 77 || TIMED(&other, write(77, block, 99)) != 99)
        fail("dup2");
    tell(&other);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        fail("socketpair");
    pid_t child = fork();
    if (child == 0) {
        int got = fd_receive(ends[1]);
        for (int i = 0; i < 6; i++)
            if (TIMED(&passed, write(got, block, 1000)) != 1000 ||
                TIMED(&inherited, read(kept, block, 25)) != 25)
                fail("passed");
        tell(&passed);
        tell(&inherited);
        _exit(0);
    }
    fd_send(ends[0], make("passed.dat", 0));
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("child");
}

static void run_inherited(const char *name)
{
    struct account account = {name, "read", 0, 0, 0, 0};
    read_all(3, &account, 100);
    tell(&account);
}

struct reader {
    pthread_t thread;
    long number, count;
};

static void *reader_run(void *argument)
{
    struct reader *reader = argument;
    char name[64];
    snprintf(name, sizeof(name), "thread-%ld.dat", reader->number);
    struct account account = {name, "read", 0, 0, 0, 0};
    int fd = make(name, reader->count);
    reads_a_byte(fd, reader->count, &account);
    tell(&account);
    return NULL;
}

static void run_threads(long threads, long count)
{
    struct reader *readers = calloc((size_t)threads, sizeof(*readers));
    if (!readers)
        fail("memory");
    for (long i = 0; i < threads; i++) {
        readers[i] = (struct reader){.number = i, .count = count};
        if (pthread_create(&readers[i].thread, NULL, reader_run, &readers[i]) != 0)
            fail("thread");
    }
    for (long i = 0; i < threads; i++)
        pthread_join(readers[i].thread, NULL);
    free(readers);
}

static APART long touches(const volatile char *at, long bytes)
{
    long sum = 0;
    for (long i = 0; i < bytes; i += 4096)
        sum += at[i];
    return sum;
}

static void run_mapped(long kib)
{
    int fd = make("mapped.dat", kib << 10), second = make("mapped-warm.dat", kib << 10);
    drop(fd);
    const char *cold = mmap(NULL, (size_t)kib << 10, PROT_READ, MAP_SHARED, fd, 0);
    const char *warm = mmap(NULL, (size_t)kib << 10, PROT_READ, MAP_SHARED, second, 0);
    if (cold == MAP_FAILED || warm == MAP_FAILED)
        fail("mmap");
    long sum = touches(cold, kib << 10) + touches(warm, kib << 10);
    number_tell("sum", (double)sum);
}

static void run_errors(void)
{
    struct account bad = {"", "read", 0, 0, 0, 0}, folder = {".", "read", 0, 0, 0, 0};
    struct account denied = {"closed.dat", "write", 0, 0, 0, 0};
    int here = open(".", O_RDONLY | O_CLOEXEC);
    close(make("closed.dat", 10));
    int fd = open("closed.dat", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 8; i++) {
        if (TIMED(&bad, read(999, block, 1)) != -1 || errno != EBADF ||
            TIMED(&folder, read(here, block, 1)) != -1 || errno != EISDIR ||
            TIMED(&denied, write(fd, block, 1)) != -1 || errno != EBADF)
            fail("no error");
    }
    tell(&bad);
    tell(&folder);
    tell(&denied);
}

static volatile long visits; /* so that there is something to do after the call */

static APART void first_site(int fd, long count, struct account *account)
{
    reads_a_byte(fd, count, account);
    visits += 1;
}

static APART void second_site(int fd, long count, struct account *account)
{
    reads_a_byte(fd, count, account);
    visits += 2;
}

static void run_sites(long count)
{
    enum { SITES_PAUSE_MS = 20 };
    struct account first = {"first_site", "read", 0, 0, 0, 0},
                   second = {"second_site", "read", 0, 0, 0, 0};
    int fd = make("sites.dat", 4 * count);
    for (int i = 0; i < 10; i++) {
        first_site(fd, count / 10, &first);
        second_site(fd, count / 10 * 3, &second);
        truth_sleep(SITES_PAUSE_MS * NS_PER_MS); /* in which whoever watches may learn */
    }
    tell(&first);
    tell(&second);
}

static void *slow_writer(void *argument)
{
    const long *what = argument;
    truth_sleep(what[0] * NS_PER_MS);
    if (write((int)what[1], block, 3) != 3)
        fail("write");
    return NULL;
}

static void run_slow(long ms)
{
    struct account account = {"pipe", "read", 0, 0, 0, 0};
    int ends[2];
    pthread_t thread;
    if (pipe2(ends, O_CLOEXEC) < 0)
        fail("pipe");
    long what[2] = {ms, ends[1]};
    if (pthread_create(&thread, NULL, slow_writer, what) != 0 ||
        TIMED(&account, read(ends[0], block, 10)) != 3)
        fail("slow");
    pthread_join(thread, NULL);
    tell(&account);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    long first = argc > 2 ? strtol(argv[2], NULL, 10) : 0,
         second = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    const struct {
        const char *name;
        void (*run)(long first);
    } modes[] = {{"reads", run_reads},   {"fsyncs", run_fsyncs}, {"tiny", run_tiny},
                 {"lookups", looks_up},  {"cold", run_cold},     {"random", run_random},
                 {"mapped", run_mapped}, {"sites", run_sites},   {"slow", run_slow}};
    const struct {
        const char *name;
        void (*run)(void);
    } plain[] = {{"syncs", run_syncs},       {"partial", run_partial}, {"vectors", run_vectors},
                 {"messages", run_messages}, {"passed", run_passed},   {"errors", run_errors}};
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        if (strcmp(mode, modes[i].name) == 0) {
            modes[i].run(first);
            return 0;
        }
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (strcmp(mode, plain[i].name) == 0) {
            plain[i].run();
            return 0;
        }
    if (strcmp(mode, "blocks") == 0 && argc == 4)
        run_blocks(argv[2], second);
    else if (strcmp(mode, "again") == 0)
        run_again(first, second);
    else if (strcmp(mode, "threads") == 0)
        run_threads(first, second);
    else if (strcmp(mode, "inherited") == 0 && argc == 3)
        run_inherited(argv[2]);
    else
        return 2;
    return 0;
}
