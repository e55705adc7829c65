/* toolchain.*: first lines of `TOOL --version`.
 *
 * The tools are started directly (no shell), all at once, while the rest of the
 * fingerprint is read; together they get TOOLS_NS. One that does not answer is
 * killed with everything it started, and its field says so. */
#include "host/fp.h"

#include "base/clock.h"
#include "base/fd.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOOLS = 9, TOOL_LINE_MAX = 200, RELEASE_BYTES_MAX = 1 << 16 };
#define TOOLS_NS (2 * NS_PER_SEC)

static const struct {
    const char *name, *argument;
} tools[TOOLS] = {
    {"cc", "--version"},      {"gcc", "--version"},   {"clang", "--version"},
    {"ld", "--version"},      {"rustc", "--version"}, {"go", "version"},
    {"python3", "--version"}, {"node", "--version"},  {"java", "-version"},
};

struct fp_tool {
    const char *na; /* why there is no line; NULL while there may be one */
    pid_t pid;
    int fd;
    char line[TOOL_LINE_MAX + 1];
    size_t len;
    bool done; /* the first line is complete; what follows is thrown away */
};

struct fp_tools {
    struct fp_tool tool[TOOLS];
    uint64_t deadline_ns;
};

/* PATH as a shell walks it, but only absolute folders: "." would run whatever lies in the
 * folder under test. */
static const char *find_tool(struct arena *arena, const char *name)
{
    const char *path = getenv("PATH");
    struct str rest = str_from(path ? path : "/usr/local/bin:/usr/bin:/bin");
    while (rest.len > 0) {
        struct str folder = str_cut(&rest, ':');
        if (!str_starts(folder, "/"))
            continue;
        const char *file = arena_printf(arena, "%.*s/%s", STR_FMT(folder), name);
        struct stat st;
        if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
            return file;
    }
    return NULL;
}

static int spawn(const char *file, const char *argument, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attributes);
    if (r != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0); /* so that its children can be killed too */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, out, 2); /* java answers on stderr */
    char *const argv[] = {(char *)file, (char *)argument, NULL};
    if (r == 0)
        r = posix_spawn(ret_pid, file, &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* A JDK says in a file beside itself which it is. To ask it takes a tenth of a second, more
 * than all else together. */
static bool java_read(struct fp_tool *tool, struct arena *arena, const char *file)
{
    static const char tail[] = "/bin/java";
    char real[PATH_MAX];
    struct str text;
    if (!realpath(file, real) || !str_ends(str_from(real), tail))
        return false;
    real[strlen(real) - (sizeof(tail) - 1)] = '\0';
    const char *path = arena_printf(arena, "%s/release", real);
    if (file_read(arena, path, RELEASE_BYTES_MAX, &text, NULL) < 0)
        return false;
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        struct str key = str_cut(&line, '=');
        if (!str_is(key, "JAVA_RUNTIME_VERSION") || line.len < 3 || line.data[0] != '"')
            continue;
        int n = snprintf(tool->line, sizeof(tool->line), "java %.*s", (int)line.len - 2,
                         line.data + 1);
        tool->len = MIN((size_t)MAX(n, 0), sizeof(tool->line) - 1);
        tool->done = true;
        return true;
    }
    return false;
}

static void tool_start(struct fp_tool *tool, struct arena *arena, size_t index)
{
    tool->fd = -1;
    const char *file = find_tool(arena, tools[index].name);
    if (!file) {
        tool->na = "not on PATH";
        return;
    }
    if (strcmp(tools[index].name, "java") == 0 && java_read(tool, arena, file))
        return;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        tool->na = "no pipe could be made";
        return;
    }
    /* The tool itself must not see a non-blocking stdout. */
    int r = fcntl(ends[1], F_SETFL, 0) < 0
                ? -errno
                : spawn(file, tools[index].argument, ends[1], &tool->pid);
    close(ends[1]);
    if (r < 0) {
        tool->pid = 0;
        tool->na = arena_printf(arena, "%s cannot be started: %s", file, strerror(-r));
        close(ends[0]);
        return;
    }
    tool->fd = ends[0];
}

struct fp_tools *fp_tools_start(struct arena *arena)
{
    struct fp_tools *all = ARENA_NEW(arena, struct fp_tools);
    if (!all)
        return NULL;
    all->deadline_ns = clock_mono_ns() + TOOLS_NS;
    for (size_t i = 0; i < TOOLS; i++)
        tool_start(&all->tool[i], arena, i);
    return all;
}

/* Empty lines before the first word are not the first line. */
static void tool_take(struct fp_tool *tool, const char *data, size_t len)
{
    for (size_t i = 0; i < len && !tool->done; i++) {
        if (data[i] == '\n' && tool->len > 0)
            tool->done = true;
        else if (data[i] != '\n' && tool->len < TOOL_LINE_MAX)
            tool->line[tool->len++] = data[i];
    }
}

static void tool_drain(struct fp_tool *tool)
{
    char data[1024];
    ssize_t n = read(tool->fd, data, sizeof(data));
    if (n > 0)
        tool_take(tool, data, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        fd_close(&tool->fd);
}

static int remaining_ms(uint64_t deadline_ns)
{
    uint64_t now = clock_mono_ns();
    return now >= deadline_ns ? 0 : (int)((deadline_ns - now) / NS_PER_MS) + 1;
}

static void tools_drain(struct fp_tools *all)
{
    for (;;) {
        struct pollfd polled[TOOLS];
        struct fp_tool *of[TOOLS];
        nfds_t count = 0;
        for (size_t i = 0; i < TOOLS; i++) {
            if (all->tool[i].fd < 0)
                continue;
            of[count] = &all->tool[i];
            polled[count++] = (struct pollfd){.fd = all->tool[i].fd, .events = POLLIN};
        }
        int wait_ms = remaining_ms(all->deadline_ns);
        if (count == 0 || wait_ms == 0)
            return;
        if (poll(polled, count, wait_ms) <= 0)
            continue; /* interrupted or out of time: the clock decides */
        for (nfds_t i = 0; i < count; i++)
            if (polled[i].revents)
                tool_drain(of[i]);
    }
}

/* After its output has ended a tool should be gone at once; it gets the rest of the time. */
static void tool_reap(struct fp_tool *tool, uint64_t deadline_ns)
{
    int status = 0;
    pid_t r;
    while ((r = waitpid(tool->pid, &status, WNOHANG)) == 0 && remaining_ms(deadline_ns) > 0)
        clock_sleep_ns(NS_PER_MS);
    if (r == 0) {
        kill(-tool->pid, SIGKILL);
        while (waitpid(tool->pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (!tool->done)
            tool->na = "no answer within 2 s";
    } else if (r > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        tool->na = "it failed when asked for its version";
    }
    tool->pid = 0;
    if (!tool->na && tool->len == 0)
        tool->na = "it printed nothing";
}

void fp_tools_finish(struct fp_tools *all)
{
    if (!all)
        return;
    tools_drain(all);
    for (size_t i = 0; i < TOOLS; i++) {
        fd_close(&all->tool[i].fd);
        if (all->tool[i].pid > 0)
            tool_reap(&all->tool[i], all->deadline_ns);
    }
}

/* arg: the tool. */
struct value fp_tool_version(const struct fp *fp, const struct fp_field *field)
{
    if (!host_is_live(fp->host))
        return fp_not_live();
    for (size_t i = 0; fp->tools && i < TOOLS; i++)
        if (strcmp(tools[i].name, field->arg) == 0) {
            const struct fp_tool *tool = &fp->tools->tool[i];
            return tool->na ? value_na(tool->na)
                            : value_str(str_trim((struct str){tool->line, tool->len}));
        }
    return value_na("not asked");
}

struct value fp_libc_version(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!host_is_live(fp->host))
        return fp_not_live();
    return value_text(arena_printf(fp->arena, "glibc %s", gnu_get_libc_version()));
}

struct value fp_own_version(const struct fp *fp, const struct fp_field *field)
{
    (void)fp;
    (void)field;
    return value_text(WHYSLOW_VERSION);
}
