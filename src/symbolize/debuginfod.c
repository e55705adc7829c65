/* Debug files from a server, only where the user allowed it.
 *
 * The library is loaded when it is first needed: it brings an HTTP client with it, which a
 * run that stays offline should not pay for, and a machine without it loses nothing else. */
#include "symbolize/internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/trust.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t file_ns_max = 10 * NS_PER_SEC;
static const uint64_t process_ns_max = 30 * NS_PER_SEC;
/* Spent by all images of this process: many unknown ones must not add up to minutes. */
static uint64_t process_ns_spent;

struct debuginfod_client;
struct debuginfod {
    void *library;
    struct debuginfod_client *(*begin)(void);
    void (*end)(struct debuginfod_client *client);
    int (*find)(struct debuginfod_client *client, const unsigned char *build_id, int len,
                char **ret_path);
    void (*set_progress)(struct debuginfod_client *client,
                         int (*progress)(struct debuginfod_client *, long, long));
};

/* dlsym() gives an object pointer; POSIX says that it may be read as a function. */
static bool symbol_load(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);
    if (symbol)
        memcpy(function, &symbol, size);
    return symbol != NULL;
}

#define LOAD(api, member, name)                                                                    \
    symbol_load((api)->library, name, &(api)->member, sizeof((api)->member))

static bool debuginfod_load(struct debuginfod *api)
{
    api->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    return api->library && LOAD(api, begin, "debuginfod_begin") &&
           LOAD(api, end, "debuginfod_end") && LOAD(api, find, "debuginfod_find_debuginfo") &&
           LOAD(api, set_progress, "debuginfod_set_progressfn");
}

struct deadline {
    uint64_t end_ns;
    bool passed;
};

/* Of the download that runs; the library calls back in the thread that asked. */
static _Thread_local struct deadline *current_deadline;

static int deadline_check(struct debuginfod_client *client, long a, long b)
{
    (void)client;
    (void)a;
    (void)b;
    struct deadline *deadline = current_deadline;
    deadline->passed = deadline->passed || clock_mono_ns() > deadline->end_ns;
    return deadline->passed; /* anything but 0 gives the download up */
}

static int fetch(struct symbols *symbols, const struct debuginfod *api, const char *build_id)
{
    uint64_t start_ns = clock_mono_ns();
    uint64_t left_ns = process_ns_max - MIN(process_ns_spent, process_ns_max);
    struct deadline deadline = {start_ns + MIN(file_ns_max, left_ns), false};
    struct debuginfod_client *client = api->begin();
    if (!client)
        return -ENOMEM;
    current_deadline = &deadline;
    api->set_progress(client, deadline_check);
    int fd = api->find(client, (const unsigned char *)build_id, 0, NULL);
    api->end(client);
    process_ns_spent += clock_mono_ns() - start_ns;
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !trust_stat(&st))) {
        /* Its cache may be another user's: that of the HOME or variable we were started with. */
        close(fd);
        symbols_note(symbols, "debuginfod: a file in its cache belongs to another user");
        return -EPERM;
    }
    if (fd >= 0)
        return fd;
    if (deadline.passed)
        symbols_note(symbols, "debuginfod did not answer in time");
    else if (fd == -ENOSYS)
        symbols_note(symbols, "debuginfod has no server to ask: set DEBUGINFOD_URLS");
    else if (fd != -ENOENT)
        symbols_note(symbols, "debuginfod: %s", strerror(-fd));
    return fd;
}

int debuginfod_fetch(struct symbols *symbols, const char *build_id)
{
    struct debuginfod api = {0};
    const char *urls = getenv("DEBUGINFOD_URLS");
    if (!urls || !*urls) {
        symbols_note(symbols, "debuginfod has no server to ask: set DEBUGINFOD_URLS");
        return -ENOSYS;
    }
    if (process_ns_spent >= process_ns_max) {
        symbols_note(symbols, "debuginfod is not asked again: it took too long before");
        return -ETIME;
    }
    int r = -ENOSYS;
    if (debuginfod_load(&api))
        r = fetch(symbols, &api, build_id);
    else
        symbols_note(symbols, "debuginfod cannot be asked: install libdebuginfod1");
    /* The library stays loaded: its HTTP client does not like to be taken away. */
    return r;
}
