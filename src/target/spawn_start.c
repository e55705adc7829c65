/* Sets up pipes and starts the launcher that starts the target. */
#include "base/fd.h"
#include "target/spawn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* Made by tools/embed from helper/; empty where there is no helper. */
extern const unsigned char launcher_blob[];
extern const size_t launcher_blob_bytes;

void spawn_ends_close(struct spawn_ends *ends)
{
    for (int i = 0; i < 3; i++)
        fd_close(&ends->stdio[i]);
    fd_close(&ends->event);
    fd_close(&ends->control);
}

/* fd 0 to 2 may be closed in whyslow itself; a pipe there would be overwritten by the
 * target's streams, so every end of ours lives above them. */
int spawn_lift(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int saved = errno;
    close(fd);
    errno = saved;
    return lifted;
}

static int make_pipe(int *ret_read, int *ret_write)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    *ret_read = spawn_lift(fds[0]);
    *ret_write = spawn_lift(fds[1]);
    return *ret_read < 0 || *ret_write < 0 ? -EMFILE : 0;
}

static int open_stream(enum spawn_stream kind, const char *path, int fd, int *ret_target,
                       int *ret_ours)
{
    if (kind == SPAWN_INHERIT)
        return 0; /* as it is, also when it is closed */
    if (kind == SPAWN_STDERR) {
        *ret_target = fcntl(2, F_DUPFD_CLOEXEC, 3);
        if (*ret_target >= 0)
            return 0;
        kind = SPAWN_NULL; /* stderr is closed */
    }
    if (kind == SPAWN_NULL || kind == SPAWN_FILE) {
        int flags = fd == 0              ? O_RDONLY
                    : kind == SPAWN_NULL ? O_WRONLY
                                         : O_WRONLY | O_CREAT | O_TRUNC;
        *ret_target = spawn_lift(
            open(kind == SPAWN_NULL || !path ? "/dev/null" : path, flags | O_CLOEXEC, 0666));
        return *ret_target < 0 ? -errno : 0;
    }
    int r = make_pipe(ret_ours, ret_target);
    if (r == 0)
        fcntl(*ret_ours, F_SETFL, O_NONBLOCK);
    return r;
}

int spawn_streams_open(const struct spawn_opts *opts, struct spawn *spawn, struct spawn_ends *ends,
                       struct why *why)
{
    int none = -1;
    int r = open_stream(opts->input, opts->input_path, 0, &ends->stdio[0], &none);
    if (r < 0 && opts->input == SPAWN_FILE)
        return why_errno(why, -r, "give a file that can be read: --input FILE",
                         "cannot open the input '%s'", opts->input_path);
    if (r == 0)
        r = open_stream(opts->output, opts->output_path, 1, &ends->stdio[1], &spawn->output.fd);
    if (r < 0 && opts->output == SPAWN_FILE)
        return why_errno(why, -r, "give a file that can be written: --output FILE",
                         "cannot open the output '%s'", opts->output_path);
    if (r == 0)
        r = open_stream(opts->error, NULL, 2, &ends->stdio[2], &spawn->error.fd);
    if (r < 0)
        return why_errno(why, -r, "close some files, or raise 'ulimit -n'",
                         "cannot set up the streams of '%s'", spawn->name);
    return 0;
}

/* -errno when a program cannot be run from memory here: no helper was built, or memfds may
 * not be executed (vm.memfd_noexec, an LSM, no /proc). */
static int helper_open(void)
{
    if (launcher_blob_bytes == 0)
        return -ENOSYS;
    int fd = memfd_create("whyslow-launcher", MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("whyslow-launcher", MFD_CLOEXEC); /* Linux before 6.3 */
    fd = spawn_lift(fd);
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, launcher_blob, launcher_blob_bytes);
    if (r < 0) {
        close(fd);
        return r;
    }
    return fd;
}

/* Where a variable of the same name stands, or behind the last one. */
static size_t variable_place(char *const *env, size_t count, const char *variable)
{
    size_t name = strcspn(variable, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (strncmp(env[i], variable, name) == 0)
            return i;
    return count;
}

char **environment_make(const struct spawn_opts *opts)
{
    static const char name[] = LAUNCHER_PADDING;
    size_t bytes = MIN(opts->environment_bytes, (size_t)SPAWN_ENVIRONMENT_MAX);
    size_t count = 0, more = 0;
    while (opts->environment && opts->environment[more])
        more++;
    if (bytes == 0 && more == 0)
        return environ;
    while (environ[count])
        count++;
    /* One block: the pointers, then the padding. The other variables are borrowed. */
    char **env = calloc(1, (count + more + 2) * sizeof(*env) + sizeof(name) + bytes);
    if (!env)
        return NULL;
    char *padding = (char *)(env + count + more + 2);
    memcpy(env, environ, count * sizeof(*env));
    for (size_t i = 0; i < more; i++) {
        size_t at = variable_place(env, count, opts->environment[i]);
        env[at] = (char *)opts->environment[i];
        count += at == count;
    }
    if (bytes == 0)
        return env;
    memcpy(padding, name, sizeof(name));
    memset(padding + sizeof(name) - 1, 'x', bytes);
    env[count] = padding;
    return env;
}

void environment_free(char **env)
{
    if (env != environ)
        free(env);
}

static int helper_spawn(const struct launcher_opts *launcher, const struct spawn_ends *ends,
                        int helper, char *const *argv, pid_t *ret_pid)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", helper);
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -ENOMEM;
    int r = 0;
    for (int i = 0; i < 3 && r == 0; i++)
        if (ends->stdio[i] >= 0)
            r = posix_spawn_file_actions_adddup2(&actions, ends->stdio[i], i);
    /* A dup2 onto itself only clears close-on-exec: the numbers stay, and no fd that whyslow
     * was given by its own parent is overwritten. */
    const int kept[] = {launcher->event_fd, launcher->control_fd, launcher->drain_fd[0],
                        launcher->drain_fd[1]};
    for (size_t i = 0; i < ARRAY_SIZE(kept) && r == 0; i++)
        if (kept[i] >= 0)
            r = posix_spawn_file_actions_adddup2(&actions, kept[i], kept[i]);
    if (r == 0)
        r = posix_spawn(ret_pid, path, &actions, NULL, argv, launcher->env);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

static int start_helper(const struct launcher_opts *launcher, const struct spawn_ends *ends,
                        pid_t *ret_pid)
{
    AUTO(fd_close) int helper = helper_open();
    if (helper < 0)
        return helper;
    size_t argc = 0;
    while (launcher->argv[argc])
        argc++;
    char **argv = calloc(argc + 4, sizeof(*argv));
    if (!argv)
        return -ENOMEM;
    char numbers[128], name[] = "whyslow-launcher";
    snprintf(numbers, sizeof(numbers), "%x,%x,%x,%x,%x,%llx", (unsigned)launcher->event_fd,
             (unsigned)launcher->control_fd, (unsigned)launcher->drain_fd[0],
             (unsigned)launcher->drain_fd[1], launcher->flags,
             (unsigned long long)launcher->signal_mask);
    char *path = strdup(launcher->path);
    argv[0] = name;
    argv[1] = numbers;
    argv[2] = path;
    memcpy(argv + 3, launcher->argv, argc * sizeof(*argv));
    int r = path ? helper_spawn(launcher, ends, helper, argv, ret_pid) : -ENOMEM;
    free(path);
    free(argv);
    return r;
}

/* Without the helper the launcher is a fork of ourselves; a peak below our own memory is then
 * unknown (spawn_result.peak_rss_known). */
static int start_fork(const struct launcher_opts *launcher, const struct spawn_ends *ends,
                      const int ours[2], pid_t *ret_pid)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0) {
        *ret_pid = pid;
        return 0;
    }
    /* Nobody execs here, so close-on-exec does not help: with a copy of whyslow's end the
     * launcher would never see whyslow go. */
    close(ours[0]);
    close(ours[1]);
    for (int i = 0; i < 3; i++)
        if (ends->stdio[i] >= 0)
            dup2(ends->stdio[i], i);
    launcher_run(launcher);
    _exit(0);
}

static bool helper_is_refused(int error)
{
    return error == ENOSYS || error == EACCES || error == EPERM || error == ENOENT ||
           error == EINVAL;
}

static uint64_t mask_as_u64(const sigset_t *set)
{
    uint64_t mask = 0;
    for (int signal = 1; signal <= 64; signal++)
        if (sigismember(set, signal) == 1)
            mask |= 1ull << (signal - 1);
    return mask;
}

int spawn_launcher_start(struct launcher_opts *launcher, const struct spawn_ends *ends,
                         const int ours[2], bool plain, pid_t *ret_pid)
{
    /* Blocked until the launcher blocks them itself: a Ctrl-C in between must not kill it. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    launcher->signal_mask = mask_as_u64(&old);
    int r = plain ? -ENOSYS : start_helper(launcher, ends, ret_pid);
    if (r < 0 && helper_is_refused(-r))
        r = start_fork(launcher, ends, ours, ret_pid);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

int spawn_launch_failed(int error, const char *name, struct why *why)
{
    return why_errno(why, error,
                     error == E2BIG ? "give fewer or shorter arguments"
                                    : "free some memory, or raise 'ulimit -u'",
                     "cannot start a process for '%s'", name);
}

int spawn_launch(const struct spawn_opts *opts, struct spawn *spawn, struct why *why)
{
    if (opts->nest)
        return spawn_nest_request(opts, spawn, why);
    AUTO(spawn_ends_close) struct spawn_ends ends = SPAWN_ENDS_INIT;
    int r = spawn_streams_open(opts, spawn, &ends, why);
    if (r < 0)
        return r;
    r = make_pipe(&spawn->event_fd, &ends.event);
    if (r == 0)
        r = make_pipe(&ends.control, &spawn->control_fd);
    if (r < 0)
        return why_errno(why, -r, "close some files, or raise 'ulimit -n'",
                         "cannot set up the streams of '%s'", spawn->name);
    char **env = environment_make(opts);
    if (!env)
        return why_nomem(why);
    struct launcher_opts launcher = {
        .event_fd = ends.event,
        .control_fd = ends.control,
        .drain_fd = {spawn->output.fd, spawn->error.fd},
        .flags = (opts->foreground ? 0u : LAUNCHER_OWN_GROUP) | (opts->hold ? LAUNCHER_HOLD : 0u) |
                 (opts->trace ? LAUNCHER_TRACE : 0u),
        .path = opts->path,
        .argv = opts->argv,
        .env = env,
    };
    const int ours[] = {spawn->event_fd, spawn->control_fd};
    r = spawn_launcher_start(&launcher, &ends, ours, opts->plain, &spawn->launcher);
    environment_free(env);
    return r < 0 ? spawn_launch_failed(-r, spawn->name, why) : 0;
}
