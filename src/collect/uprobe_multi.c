/* Links of uprobes. libbpf may be older than the kernel: it is asked directly. */
#include "collect/uprobe_multi.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    COMMAND_LINK_CREATE = 28,
    ATTACH_UPROBE_MULTI = 48,
    MULTI_RETURN = 1,
    CLOSERS_MAX = 32,
};

/* Part of union bpf_attr. */
struct multi_link {
    uint32_t program_fd, target_fd;
    uint32_t attach_type;
    uint32_t flags;
    uint64_t path;
    uint64_t offsets, reference_offsets, cookies;
    uint32_t count;
    uint32_t multi_flags;
    uint32_t pid;
    uint32_t unused;
};

int uprobe_multi_set(const struct uprobe_multi *multi)
{
    struct multi_link link = {
        .program_fd = (uint32_t)multi->program_fd,
        .attach_type = ATTACH_UPROBE_MULTI,
        .path = (uint64_t)(uintptr_t)multi->path,
        .offsets = (uint64_t)(uintptr_t)multi->offsets,
        .cookies = (uint64_t)(uintptr_t)multi->cookies,
        .count = multi->count,
        .multi_flags = multi->at_return ? MULTI_RETURN : 0,
        .pid = (uint32_t)multi->pid,
    };
    int fd = (int)syscall(SYS_bpf, COMMAND_LINK_CREATE, &link, sizeof(link));
    return fd < 0 ? -errno : fd;
}

struct closing {
    const int *fds;
    size_t count, first, step;
};

static void *close_some(void *context)
{
    const struct closing *closing = context;
    for (size_t i = closing->first; i < closing->count; i += closing->step)
        close(closing->fds[i]);
    return NULL;
}

void uprobe_links_close(const int *fds, size_t count)
{
    struct closing shares[CLOSERS_MAX];
    pthread_t threads[CLOSERS_MAX];
    size_t step = MIN(count, (size_t)CLOSERS_MAX), begun = 0;
    for (size_t i = 0; i < step; i++)
        shares[i] = (struct closing){fds, count, i, step};
    while (begun < step && pthread_create(&threads[begun], NULL, close_some, &shares[begun]) == 0)
        begun++;
    for (size_t i = begun; i < step; i++)
        close_some(&shares[i]);
    for (size_t i = 0; i < begun; i++)
        pthread_join(threads[i], NULL);
}
