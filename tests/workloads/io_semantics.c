/* What I/O calls of libc promise, one line a promise: with our library loaded and without it, the
 * output must be the same. Nothing here depends on how fast the machine is. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long r)
{
    printf("%s: %ld %s\n", what, r, r < 0 ? strerrorname_np(errno) : "");
}

/* errno of before is left alone by what goes well. */
#define KEEPS(what, call)                                                                          \
    do {                                                                                           \
        errno = ENOTTY;                                                                            \
        long r_ = (long)(call);                                                                    \
        say(what, r_);                                                                             \
        if (r_ >= 0 && errno != ENOTTY)                                                            \
            printf("%s changed errno to %s\n", what, strerrorname_np(errno));                      \
    } while (0)

/* The compiler is not to know. */
static void *volatile nowhere = (void *)8;
static DIR *volatile nobody;
static volatile int too_many = 100000;

static int pair[2];

static void pipe_new(void)
{
    if (pipe2(pair, O_CLOEXEC) < 0)
        abort();
}

static void pipe_end(void)
{
    close(pair[0]);
    close(pair[1]);
}

static void plain_calls(void)
{
    char bytes[64] = {0};
    struct iovec iov[2] = {{bytes, 10}, {bytes + 10, 20}};
    int fd = open("semantics.dat", O_CREAT | O_RDWR | O_TRUNC, 0640);
    struct stat st;
    say("open", fd >= 0 ? 0 : fd);
    fstat(fd, &st);
    printf("mode %o\n", st.st_mode & 0777);
    KEEPS("write", write(fd, "0123456789abcdefghij", 20));
    KEEPS("pwrite", pwrite(fd, "XY", 2, 5));
    KEEPS("writev", writev(fd, iov, 2));
    KEEPS("pwritev", pwritev(fd, iov, 2, 100));
    KEEPS("pwritev2", pwritev2(fd, iov, 2, -1, 0));
    KEEPS("lseek", lseek(fd, 3, SEEK_SET));
    KEEPS("read", read(fd, bytes, 5));
    printf("bytes %.5s\n", bytes);
    KEEPS("pread", pread(fd, bytes, 4, 4));
    printf("bytes %.4s\n", bytes);
    KEEPS("readv", readv(fd, iov, 2));
    KEEPS("preadv", preadv(fd, iov, 2, 1));
    KEEPS("preadv2", preadv2(fd, iov, 2, 1, 0));
    KEEPS("read at the end", pread(fd, bytes, 5, 1 << 20));
    KEEPS("fsync", fsync(fd));
    KEEPS("fdatasync", fdatasync(fd));
    KEEPS("sync_file_range", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    KEEPS("ftruncate", ftruncate(fd, 50));
    KEEPS("ftruncate below 0", ftruncate(fd, -1));
    KEEPS("position", lseek(fd, 0, SEEK_CUR));
    KEEPS("mmap of a file", mmap(NULL, 50, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    KEEPS("mmap of nothing", mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    KEEPS("close", close(fd));
    KEEPS("close again", close(fd));
    KEEPS("read of what is closed", read(fd, bytes, 1));
    KEEPS("read of -1", read(-1, bytes, 1));
    KEEPS("read of a number beyond", read(1 << 30, bytes, 1));
    fd = open("semantics.dat", O_RDONLY);
    KEEPS("write to what is for reading", write(fd, "x", 1));
    KEEPS("read into nowhere", read(fd, nowhere, 1));
    KEEPS("readv of nowhere", readv(fd, nowhere, 1));
    KEEPS("readv of too many", readv(fd, iov, too_many));
    close(fd);
}

static void paths(void)
{
    struct stat st;
    struct statx stx;
    char long_path[5000], to[32];
    memset(long_path, 'x', sizeof(long_path));
    long_path[sizeof(long_path) - 1] = '\0';
    KEEPS("open of what is not there", open("nowhere/at/all", O_RDONLY));
    KEEPS("open of a bad pointer", open(nowhere, O_RDONLY));
    KEEPS("open of a bad pointer with bad flags", open(nowhere, O_TMPFILE | O_RDONLY, 0));
    KEEPS("open of a long path", open(long_path, O_RDONLY));
    KEEPS("stat", stat("semantics.dat", &st));
    KEEPS("lstat of nothing", lstat("semantics.none", &st));
    KEEPS("stat of a bad pointer", stat(nowhere, &st));
    KEEPS("stat into a bad pointer", stat("semantics.dat", nowhere));
    KEEPS("statx", statx(AT_FDCWD, "semantics.dat", 0, STATX_SIZE, &stx));
    KEEPS("fstatat of an fd", fstatat(1, "", &st, AT_EMPTY_PATH));
    KEEPS("access", access("semantics.dat", R_OK));
    KEEPS("access of nothing", access("semantics.none", R_OK));
    KEEPS("faccessat", faccessat(AT_FDCWD, "semantics.dat", R_OK, 0));
    KEEPS("mkdir", mkdir("semantics.folder", 0700));
    KEEPS("mkdir again", mkdir("semantics.folder", 0700));
    KEEPS("symlink", symlink("semantics.dat", "semantics.link"));
    KEEPS("readlink", readlink("semantics.link", to, sizeof(to)));
    KEEPS("readlink of a file", readlink("semantics.dat", to, sizeof(to)));
    KEEPS("rename", rename("semantics.link", "semantics.folder/link"));
    KEEPS("renameat2 of nothing", renameat2(AT_FDCWD, "a.none", AT_FDCWD, "b.none", 0));
    KEEPS("rmdir of a full folder", rmdir("semantics.folder"));
    KEEPS("unlinkat", unlinkat(AT_FDCWD, "semantics.folder/link", 0));
    KEEPS("rmdir", rmdir("semantics.folder"));
    KEEPS("unlink of nothing", unlink("semantics.none"));
    KEEPS("truncate", truncate("semantics.dat", 30));
    KEEPS("closedir of nothing", closedir(nobody));
    DIR *folder = opendir(".");
    say("opendir", folder ? 0 : -1);
    int entries = 0;
    while (folder && readdir(folder))
        entries++;
    printf("entries %s\n", entries >= 3 ? "there" : "missing");
    KEEPS("closedir", folder ? closedir(folder) : -1);
    say("opendir of nothing", opendir("semantics.none") ? 0 : -1);
}

static void streams(void)
{
    FILE *file = fopen("semantics.txt", "w");
    say("fopen", file ? 0 : -1);
    say("fprintf", fprintf(file, "one\ntwo\n"));
    KEEPS("fclose", fclose(file));
    file = fopen("semantics.txt", "r");
    char line[16];
    say("fgets", fgets(line, sizeof(line), file) ? (long)strlen(line) : -1);
    file = freopen("semantics.dat", "r", file);
    say("freopen", file ? fgetc(file) : -1);
    KEEPS("fclose of it", fclose(file));
    say("fopen of nothing", fopen("semantics.none", "r") ? 0 : -1);
    say("fopen in no mode", fopen("semantics.txt", "?") ? 0 : -1);
    char *text = NULL;
    size_t len = 0;
    file = open_memstream(&text, &len);
    fputs("memory", file);
    KEEPS("fclose of memory", fclose(file));
    printf("text %s\n", text);
    free(text);
    file = popen("echo popen", "r");
    say("popen", file && fgets(line, sizeof(line), file) ? (long)strlen(line) : -1);
    say("pclose", pclose(file));
    char template[] = "semantics-XXXXXX";
    int fd = mkstemp(template);
    say("mkstemp", fd >= 0 ? 0 : fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    unlink(template);
    KEEPS("write to what is removed", write(fd, "x", 1));
    close(fd);
    unlink("semantics.txt");
}

static void duplicates(void)
{
    char byte;
    int fd = open("semantics.dat", O_RDONLY | O_CLOEXEC), copy = dup(fd);
    lseek(fd, 2, SEEK_SET);
    KEEPS("read of a copy", read(copy, &byte, 1));
    say("position of both", lseek(fd, 0, SEEK_CUR));
    KEEPS("dup2", dup2(fd, 200) - 200);
    KEEPS("dup2 onto itself", dup2(200, 200) - 200);
    KEEPS("dup2 of nothing", dup2(199, 198));
    KEEPS("dup3 onto itself", dup3(200, 200, 0));
    KEEPS("dup3", dup3(fd, 201, O_CLOEXEC) - 201);
    KEEPS("flags of it", fcntl(201, F_GETFD));
    KEEPS("fcntl dup", fcntl(fd, F_DUPFD_CLOEXEC, 300) - 300);
    KEEPS("fcntl get", fcntl(fd, F_GETFL) & O_ACCMODE);
    KEEPS("fcntl set", fcntl(fd, F_SETFL, O_NONBLOCK));
    KEEPS("fcntl get again", fcntl(fd, F_GETFL) & O_NONBLOCK);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    KEEPS("fcntl lock", fcntl(fd, F_SETLK, &lock));
    KEEPS("fcntl of nothing", fcntl(199, F_GETFL));
    KEEPS("close_range", close_range(200, 400, 0));
    KEEPS("read after it", read(201, &byte, 1));
    close(copy);
    close(fd);
    closefrom(100);
}

static void connections(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    socklen_t len = sizeof(address);
    char bytes[64];
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    say("bind", bind(listening, (struct sockaddr *)&address, len));
    getsockname(listening, (struct sockaddr *)&address, &len);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    KEEPS("connect where nobody listens", connect(client, (struct sockaddr *)&address, len));
    close(client);
    listen(listening, 5);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    KEEPS("connect", connect(client, (struct sockaddr *)&address, len));
    KEEPS("connect again", connect(client, (struct sockaddr *)&address, len));
    KEEPS("connect to a bad pointer", connect(client, nowhere, len));
    int server = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    say("accept4", server >= 0 ? 0 : server);
    KEEPS("accept of what does not listen", accept(client, NULL, NULL));
    KEEPS("send", send(client, "GET / HTTP/1.1\r\n\r\n", 18, 0));
    KEEPS("recv with a peek", recv(server, bytes, 3, MSG_PEEK));
    KEEPS("recv", recv(server, bytes, sizeof(bytes), 0));
    printf("bytes %.3s\n", bytes);
    KEEPS("recv that would block", recv(server, bytes, 1, MSG_DONTWAIT));
    struct iovec iov = {bytes, 18};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    KEEPS("sendmsg", sendmsg(server, &message, 0));
    KEEPS("recvmsg", recvmsg(client, &message, 0));
    KEEPS("recvmsg of a bad pointer", recvmsg(client, nowhere, 0));
    struct mmsghdr many[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    KEEPS("sendmmsg", sendmmsg(server, many, 2, 0));
    KEEPS("recvmmsg", recvmmsg(client, many, 1, 0, NULL));
    KEEPS("sendto", sendto(client, "abc", 3, 0, NULL, 0));
    KEEPS("recvfrom", recvfrom(server, bytes, sizeof(bytes), 0, NULL, NULL));
    int file = open("semantics.dat", O_RDONLY);
    KEEPS("sendfile", sendfile(server, file, NULL, 10));
    KEEPS("sendfile of nothing", sendfile(server, -1, NULL, 10));
    close(file);
    struct pollfd poll_fd = {.fd = client, .events = POLLIN};
    KEEPS("poll", poll(&poll_fd, 1, 1000));
    KEEPS("poll of nothing", poll(NULL, 0, 0));
    struct timespec none = {0};
    KEEPS("ppoll", ppoll(&poll_fd, 1, &none, NULL));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(client, &set);
    KEEPS("select", select(client + 1, &set, NULL, NULL, NULL));
    KEEPS("pselect", pselect(client + 1, &set, NULL, NULL, &none, NULL));
    int all = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(all, EPOLL_CTL_ADD, client, &event);
    KEEPS("epoll_wait", epoll_wait(all, &event, 1, 1000));
    KEEPS("epoll_wait for none", epoll_wait(all, &event, 0, 0));
    close(all);
    KEEPS("shutdown", shutdown(server, SHUT_WR));
    close(server);
    signal(SIGPIPE, SIG_IGN);
    KEEPS("send to nobody", (send(client, "x", 1, 0), usleep(1000), send(client, "x", 1, 0)));
    close(client);
    close(listening);
}

/* ---- signals ---- */

static atomic_int handled;

static void on_signal(int number)
{
    char byte;
    (void)number;
    handled++;
    /* Calls of a handler come in the middle of another's. */
    ssize_t r = write(-1, "x", 1);
    r += pread(-1, &byte, 1, 0);
    (void)r;
}

static void *interrupt(void *target)
{
    while (!handled) {
        usleep(2000);
        pthread_kill(*(pthread_t *)target, SIGUSR1);
    }
    return NULL;
}

static void interrupted(const char *what, bool restart)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = restart ? SA_RESTART : 0};
    pthread_t self = pthread_self(), other;
    char byte;
    sigaction(SIGUSR1, &action, NULL);
    pipe_new();
    handled = 0;
    if (restart && write(pair[1], "r", 1) != 1)
        abort();
    pthread_create(&other, NULL, interrupt, &self);
    errno = 0;
    long r = restart ? (pthread_join(other, NULL), read(pair[0], &byte, 1))
                     : read(pair[0], &byte, 1);
    say(what, r);
    if (!restart) {
        struct pollfd fd = {.fd = pair[0], .events = POLLIN};
        pthread_join(other, NULL);
        handled = 0;
        pthread_create(&other, NULL, interrupt, &self);
        say("poll interrupted", poll(&fd, 1, 60000));
        pthread_join(other, NULL);
    }
    printf("handled %s\n", handled > 0 ? "yes" : "no");
    pipe_end();
}

static sigjmp_buf back;

static void jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void jumped_out_of(void)
{
    struct sigaction action = {.sa_handler = jump};
    char byte;
    pipe_new();
    sigaction(SIGALRM, &action, NULL);
    if (sigsetjmp(back, 1) == 0) {
        struct itimerval soon = {.it_value.tv_usec = 20000};
        setitimer(ITIMER_REAL, &soon, NULL);
        say("read that is left by a jump", read(pair[0], &byte, 1));
    }
    KEEPS("write after a jump", write(pair[1], "x", 1));
    KEEPS("read after a jump", read(pair[0], &byte, 1));
    pipe_end();
}

/* ---- cancellation ---- */

static atomic_int cleaned, inside;

static void clean(void *arg)
{
    (void)arg;
    cleaned = 1;
}

static void *reads_for_ever(void *arg)
{
    char byte;
    pthread_cleanup_push(clean, NULL);
    inside = 1;
    long r = read(pair[0], &byte, 1);
    say("read was not cancelled", r);
    pthread_cleanup_pop(0);
    return arg;
}

static void *cancelled_before(void *arg)
{
    char byte = 'x';
    pthread_cleanup_push(clean, NULL);
    while (!inside)
        usleep(100);
    long r = write(pair[1], &byte, 1); /* could be done at once, but is a cancellation point */
    say("write was not cancelled", r);
    pthread_cleanup_pop(0);
    return arg;
}

static void cancelled(void)
{
    pthread_t thread;
    void *result;
    pipe_new();
    inside = cleaned = 0;
    pthread_create(&thread, NULL, reads_for_ever, NULL);
    while (!inside)
        usleep(100);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled in read: %d, cleaned %d\n", result == PTHREAD_CANCELED, cleaned);
    inside = cleaned = 0;
    pthread_create(&thread, NULL, cancelled_before, NULL);
    pthread_cancel(thread);
    inside = 1;
    pthread_join(thread, &result);
    printf("cancelled at write: %d, cleaned %d\n", result == PTHREAD_CANCELED, cleaned);
    pipe_end();
}

/* ---- processes ---- */

static int status_of(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

/* Nothing but write and exit; EBADF and the like are answers, anything else is the end. */
static void filter_set(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        _exit(2);
}

static void processes(void)
{
    char bytes[16];
    int fd = open("semantics.dat", O_RDONLY);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(read(fd, bytes, 5) == 5 ? 7 : 1);
    printf("child %x,", status_of(pid));
    printf(" position %ld\n", (long)lseek(fd, 0, SEEK_CUR));
    /* NOLINTBEGIN(clang-analyzer-*): programs do it all the same */
    pid = vfork();
    if (pid == 0) {
        close(fd);
        dup2(2, 1);
        _exit(8);
    }
    /* NOLINTEND(clang-analyzer-*) */
    printf("vfork child %x\n", status_of(pid));
    KEEPS("read after a vfork that closed", read(fd, bytes, 5));
    close(fd);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, 1);
    char program[] = "true";
    char *argv[] = {program, NULL};
    printf("posix_spawn %d", posix_spawnp(&pid, "true", &actions, NULL, argv, environ));
    printf(" %x\n", status_of(pid));
    fflush(stdout);
    printf("system %x\n", system("cat semantics.dat > /dev/null && exit 3"));
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_SECCOMP, 1, 0, 0, 0); /* read, write and exit: all else is the end */
        long r = write(1, "in strict mode\n", 15) + read(0, bytes, 0);
        syscall(SYS_exit, r == 15 ? 9 : 1);
    }
    printf("sandboxed child %x\n", status_of(pid));
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        filter_set();
        int more = 10;
        long r = write(1, "behind a filter\n", 16) + write(more, "x", 1);
        syscall(SYS_exit_group, r == 15 ? 9 : 1);
    }
    printf("filtered child %x\n", status_of(pid));
}

static void *many_fds(void *arg)
{
    char byte;
    for (int i = 0; i < 200; i++) {
        int fd = open("semantics.dat", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, &byte, 1) != 1 || close(fd) != 0)
            return (void *)1;
    }
    return arg;
}

static void threads(void)
{
    pthread_t all[16];
    long failed = 0;
    for (int i = 0; i < 16; i++)
        pthread_create(&all[i], NULL, many_fds, NULL);
    for (int i = 0; i < 16; i++) {
        void *r;
        pthread_join(all[i], &r);
        failed += r != NULL;
    }
    say("threads that failed", failed);
    struct rlimit limit = {20, 20};
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    limit.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int last = -1, fd;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    say("open of one too many", fd);
    printf("last fd %d\n", last);
    while (last > 2)
        close(last--);
    setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    plain_calls();
    paths();
    streams();
    duplicates();
    connections();
    interrupted("read interrupted", false);
    interrupted("read restarted", true);
    jumped_out_of();
    cancelled();
    processes();
    threads();
    unlink("semantics.dat");
    return 0;
}
