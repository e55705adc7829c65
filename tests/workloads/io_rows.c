/* Calls whose numbers are known beforehand, for smoke/io_kernel.py:
 *
 *     io-rows threads N CALLS FOLDER   N threads: CALLS one-byte preads each of a file of its own
 *     io-rows storm N CALLS            N children one after another, each becomes io-rows child
 *     io-rows child CALLS              CALLS one-byte writes to /dev/null
 *     io-rows files N FOLDER           N files: made, written, read twice, closed, removed
 *     io-rows reuse N FOLDER           one fd is another file each time, another thread reads it
 *     io-rows errors N                 N times each: EBADF, ENOENT, EAGAIN
 *     io-rows wait                     blocks in read() until it is killed
 *     io-rows thread-exec CALLS        a second thread becomes io-rows child
 *     io-rows modes FOLDER             the same file in several ways
 *     io-rows places                   two ways to read(), 50,000 and 70,000 times
 *     io-rows depths                   alike in their nearest frames
 *     io-rows begin WAYS N FOLDER      at once: from each of WAYS stacks, N files that are there
 *                                      are opened, read and closed */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 256, PATH_BYTES = 4096, BLOCK_BYTES = 1000 };

static char own_path[PATH_BYTES];

static void must(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    _exit(9);
}

struct reader {
    pthread_t id;
    const char *folder;
    int number, calls;
};

static void *reader_run(void *data)
{
    const struct reader *reader = data;
    char path[PATH_BYTES], byte;
    snprintf(path, sizeof(path), "%s/thread-%d", reader->folder, reader->number);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, "0123456789", 10) == 10, path);
    for (int i = 0; i < reader->calls; i++)
        must(pread(fd, &byte, 1, i % 10) == 1, "pread");
    close(fd);
    return NULL;
}

static void threads(int count, int calls, const char *folder)
{
    static struct reader readers[THREADS_MAX];
    must(count <= THREADS_MAX, "threads");
    for (int i = 0; i < count; i++) {
        readers[i] = (struct reader){.folder = folder, .number = i, .calls = calls};
        must(pthread_create(&readers[i].id, NULL, reader_run, &readers[i]) == 0, "thread");
    }
    for (int i = 0; i < count; i++)
        pthread_join(readers[i].id, NULL);
}

static void child(int calls)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < calls; i++)
        must(write(fd, "x", 1) == 1, "write");
}

static void become_child(char *calls)
{
    static char word[] = "child";
    char *const arguments[] = {own_path, word, calls, NULL};
    execv(own_path, arguments);
    _exit(9);
}

static void one_child(bool fast, char *calls)
{
    /* NOLINTBEGIN(clang-analyzer-*): that such a child is followed is the point */
    pid_t pid = fast ? vfork() : fork();
    if (pid == 0)
        become_child(calls);
    /* NOLINTEND(clang-analyzer-*) */
    int status;
    must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child");
}

static void storm(int count, char *calls)
{
    for (int i = 0; i < count; i++)
        one_child(i % 2 == 0, calls);
}

static void files(int count, const char *folder)
{
    char path[PATH_BYTES], block[BLOCK_BYTES];
    memset(block, 'b', sizeof(block));
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/file-%d", folder, i);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        must(fd >= 0 && write(fd, block, sizeof(block)) == BLOCK_BYTES, path);
        must(pread(fd, block, 100, 0) == 100 && pread(fd, block, 200, 100) == 200, path);
        close(fd);
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/file-%d", folder, i);
        must(unlink(path) == 0, path);
    }
}

/* Each depth is another stack. */
int way_go(int left, int way, int count, const char *folder);
__attribute__((noinline)) int way_go(int left, int way, int count, const char *folder)
{
    static char path[PATH_BYTES], bytes[64]; /* stacks are to be small */
    if (left > 0)
        return way_go(left - 1, way, count, folder) + 1;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/begin-%d", folder, way * count + i);
        int fd = open(path, O_RDONLY);
        must(fd >= 0 && read(fd, bytes, sizeof(bytes)) == 10, path);
        close(fd);
    }
    return 1;
}

static void begin(int ways, int count, const char *folder)
{
    for (int way = 0; way < ways; way++)
        must(way_go(way, way, count, folder) == way + 1, "way");
}

/* ---- one fd, many files ---- */

static int reuse_fd = -1, reuse_turn; /* even: the opener's */
static pthread_mutex_t reuse_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reuse_changed = PTHREAD_COND_INITIALIZER;

static void turn_await(int which)
{
    pthread_mutex_lock(&reuse_lock);
    while (reuse_turn % 2 != which)
        pthread_cond_wait(&reuse_changed, &reuse_lock);
    pthread_mutex_unlock(&reuse_lock);
}

static void turn_end(void)
{
    pthread_mutex_lock(&reuse_lock);
    reuse_turn++;
    pthread_cond_broadcast(&reuse_changed);
    pthread_mutex_unlock(&reuse_lock);
}

static void *reuse_read(void *data)
{
    int count = *(int *)data;
    char bytes[64];
    for (int i = 0; i < count; i++) {
        turn_await(1);
        must(pread(reuse_fd, bytes, sizeof(bytes), 0) == i % 8 + 1, "pread");
        turn_end();
    }
    return NULL;
}

static void reuse(int count, const char *folder)
{
    pthread_t reader;
    char path[PATH_BYTES];
    must(pthread_create(&reader, NULL, reuse_read, &count) == 0, "thread");
    for (int i = 0; i < count; i++) {
        turn_await(0);
        /* Removed at once: its inode is free for the next one. */
        snprintf(path, sizeof(path), "%s/reuse-%d", folder, i % 8);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        must(fd >= 0 && (reuse_fd < 0 || fd == reuse_fd), "the same fd");
        must(write(fd, "12345678", (size_t)(i % 8 + 1)) == i % 8 + 1, "write");
        reuse_fd = fd;
        turn_end();
        turn_await(0);
        close(fd);
        unlink(path);
    }
    pthread_join(reader, NULL);
}

/* ---- others ---- */

static void errors(int count)
{
    int pair[2];
    char byte;
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < count; i++) {
        must(read(999, &byte, 1) < 0 && errno == EBADF, "EBADF");
        must(open("/none/such", O_RDONLY) < 0 && errno == ENOENT, "ENOENT");
        must(read(pair[0], &byte, 1) < 0 && errno == EAGAIN, "EAGAIN");
        must(recv(pair[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN, "EAGAIN");
    }
}

static void *exec_run(void *data)
{
    become_child(data);
    return NULL;
}

static void modes(const char *folder)
{
    char path[PATH_BYTES], bytes[BLOCK_BYTES] = {0};
    struct iovec vector[3] = {{bytes, 100}, {bytes, 200}, {bytes, 300}};
    snprintf(path, sizeof(path), "%s/modes", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 10; i++) /* in order */
        must(write(fd, bytes, BLOCK_BYTES) == BLOCK_BYTES, "write");
    must(writev(fd, vector, 3) == 600, "writev");
    int synced = open(path, O_WRONLY | O_DSYNC);
    for (int i = 0; i < 5; i++)
        must(pwrite(synced, bytes, 10, 10 * i) == 10, "pwrite");
    int appended = open(path, O_WRONLY | O_APPEND);
    for (int i = 0; i < 7; i++)
        must(write(appended, bytes, 20) == 20, "append");
    int copied = dup(fd);
    for (int i = 0; i < 6; i++) /* backwards: none begins where one ended */
        must(pread(copied, bytes, 30, 1000 - 100 * i) == 30, "pread");
    must(lseek(fd, -50, SEEK_END) >= 0 && read(fd, bytes, BLOCK_BYTES) == 50, "partial");
    must(fsync(fd) == 0 && fdatasync(fd) == 0, "sync");
    unlink(path);
}

void place_one(int fd, int count);
void place_two(int fd, int count);

__attribute__((noinline)) void place_one(int fd, int count)
{
    char byte;
    for (int i = 0; i < count; i++)
        must(read(fd, &byte, 1) == 1, "read");
}

__attribute__((noinline)) void place_two(int fd, int count)
{
    place_one(fd, count);
    __asm__ volatile("");
}

/* Some 3 KiB of stack between read() and who wanted it. */
static __attribute__((noinline)) int deep(int fd, int left)
{
    volatile char room[192];
    char byte;
    room[0] = (char)left;
    int read_bytes = left > 0 ? deep(fd, left - 1) : (int)read(fd, &byte, 1);
    room[1] = room[0];
    return read_bytes;
}

/* Apart in nothing but where they return to. */
static __attribute__((noinline)) void far_one(int fd, int calls)
{
    for (int i = 0; i < calls; i++)
        must(deep(fd, 12) == 1, "read");
}

static __attribute__((noinline)) void far_two(int fd, int calls)
{
    for (int i = 0; i < calls; i++)
        must(deep(fd, 12) == 1, "read!");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int first = argc > 2 ? atoi(argv[2]) : 0;
    ssize_t len = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);
    must(len > 0, "own path");
    if (strcmp(mode, "threads") == 0) {
        threads(first, atoi(argv[3]), argv[4]);
    } else if (strcmp(mode, "storm") == 0) {
        storm(first, argv[3]);
    } else if (strcmp(mode, "child") == 0) {
        child(first);
    } else if (strcmp(mode, "files") == 0) {
        files(first, argv[3]);
    } else if (strcmp(mode, "begin") == 0) {
        begin(first, atoi(argv[3]), argv[4]);
    } else if (strcmp(mode, "reuse") == 0) {
        reuse(first, argv[3]);
    } else if (strcmp(mode, "errors") == 0) {
        errors(first);
    } else if (strcmp(mode, "modes") == 0) {
        modes(argv[2]);
    } else if (strcmp(mode, "wait") == 0) {
        int ends[2];
        char byte;
        must(pipe(ends) == 0, "pipe");
        printf("ready\n");
        fflush(stdout);
        for (;;)
            (void)!read(ends[0], &byte, 1);
    } else if (strcmp(mode, "thread-exec") == 0) {
        pthread_t id;
        must(pthread_create(&id, NULL, exec_run, argv[2]) == 0, "thread");
        pause();
    } else if (strcmp(mode, "places") == 0) {
        int fd = open("/dev/zero", O_RDONLY);
        place_one(fd, 50000);
        place_two(fd, 70000);
    } else if (strcmp(mode, "depths") == 0) {
        /* Until it was learnt, calls have no stack; these count elsewhere. */
        int before = open("/dev/full", O_RDONLY), fd = open("/dev/zero", O_RDONLY);
        for (volatile int i = 0, calls = 100; i <= 100; i++) {
            usleep(5000);
            far_one(before, calls); /* from here only, the last time as well */
            calls = i == 99 ? 50000 : 100;
            before = i == 99 ? fd : before;
        }
        far_two(fd, 700000);
    } else {
        return 2;
    }
    return 0;
}
