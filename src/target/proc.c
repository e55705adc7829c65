/* Readers of /proc/PID files. Whole files in one read: the kernel makes them at that moment. */
#include "target/proc.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/redact.h"
#include "base/str.h"
#include "target/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void path_make(char *path, size_t size, int pid, int tid, const char *file)
{
    if (tid > 0)
        snprintf(path, size, "/proc/%d/task/%d/%s", pid, tid, file);
    else
        snprintf(path, size, "/proc/%d/%s", pid, file);
}

static int read_text(int pid, int tid, const char *file, char *text, size_t size, struct str *ret)
{
    char path[96];
    path_make(path, sizeof(path), pid, tid, file);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, text + len, size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *ret = (struct str){text, len};
    return 0;
}

static uint64_t ticks_ns(uint64_t ticks)
{
    static long per_second; /* a constant of the machine */
    if (per_second == 0)
        per_second = sysconf(_SC_CLK_TCK);
    return ticks * (NS_PER_SEC / (uint64_t)(per_second > 0 ? per_second : 100));
}

/* Starts are counted from boot with suspended time, our clock is without it. */
static uint64_t boot_to_mono_ns(uint64_t boot_ns)
{
    struct timespec boot = {0};
    clock_gettime(CLOCK_BOOTTIME, &boot);
    uint64_t now_ns = (uint64_t)boot.tv_sec * NS_PER_SEC + (uint64_t)boot.tv_nsec;
    uint64_t mono_ns = clock_mono_ns();
    uint64_t age_ns = now_ns > boot_ns ? now_ns - boot_ns : 0;
    return mono_ns > age_ns ? mono_ns - age_ns : 0;
}

/* The fields after the name, by their number in proc(5); 0 when absent. */
static void fields_read(struct str rest, uint64_t fields[53])
{
    for (size_t i = 3; i < 53; i++) {
        struct str word = str_word(&rest);
        int64_t value;
        fields[i] = 0;
        if (word.len > 0 && word.data[0] == '-' && str_to_i64(word, &value) == 0)
            fields[i] = (uint64_t)value;
        else if (str_to_u64(word, 10, &fields[i]) < 0)
            fields[i] = 0;
    }
}

int proc_stat_read(int pid, int tid, struct proc_stat *ret)
{
    char text[2048];
    struct str all;
    int r = read_text(pid, tid, "stat", text, sizeof(text), &all);
    if (r < 0)
        return r;
    /* The name may hold anything, brackets too: it ends at the last one. */
    const char *open = memchr(all.data, '(', all.len);
    const char *close = memrchr(all.data, ')', all.len);
    if (!open || !close || close < open || (size_t)(close - all.data) + 3 > all.len)
        return -EBADMSG;
    uint64_t fields[53];
    struct str rest = {close + 2, all.len - (size_t)(close + 2 - all.data)};
    fields_read(rest, fields);
    struct proc_stat stat = {
        .state = close[2],
        .parent = (int)fields[4],
        .exit_status = (int)fields[52],
        .threads = (uint32_t)fields[20],
        .user_ns = ticks_ns(fields[14]),
        .system_ns = ticks_ns(fields[15]),
        .children_cpu_ns = ticks_ns(fields[16] + fields[17]),
        .start_ns = boot_to_mono_ns(ticks_ns(fields[22])),
        .rss_bytes = fields[24] * (uint64_t)sysconf(_SC_PAGESIZE),
    };
    snprintf(stat.name, sizeof(stat.name), "%.*s", (int)(close - open - 1), open + 1);
    *ret = stat;
    return 0;
}

int proc_io_open(int pid)
{
    char path[96];
    path_make(path, sizeof(path), pid, 0, "io");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int proc_io_read_fd(int fd, struct proc_io *ret)
{
    char text[512];
    ssize_t n = pread(fd, text, sizeof(text), 0);
    if (n < 0)
        return -errno;
    struct str all = {text, (size_t)n};
    struct proc_io io = {0};
    if (str_to_u64(str_field(all, "rchar"), 10, &io.read_bytes) < 0 ||
        str_to_u64(str_field(all, "wchar"), 10, &io.write_bytes) < 0 ||
        str_to_u64(str_field(all, "read_bytes"), 10, &io.storage_read_bytes) < 0 ||
        str_to_u64(str_field(all, "write_bytes"), 10, &io.storage_write_bytes) < 0)
        return -EBADMSG;
    *ret = io;
    return 0;
}

int proc_io_read(int pid, struct proc_io *ret)
{
    AUTO(fd_close) int fd = proc_io_open(pid);
    return fd < 0 ? fd : proc_io_read_fd(fd, ret);
}

int proc_schedstat_read(int pid, int tid, uint64_t *ret_run_ns, uint64_t *ret_wait_ns)
{
    char text[128];
    struct str all;
    int r = read_text(pid, tid, "schedstat", text, sizeof(text), &all);
    if (r < 0)
        return r;
    uint64_t run_ns, wait_ns;
    if (str_to_u64(str_word(&all), 10, &run_ns) < 0 || str_to_u64(str_word(&all), 10, &wait_ns) < 0)
        return -EBADMSG;
    *ret_run_ns = run_ns;
    *ret_wait_ns = wait_ns;
    return 0;
}

int proc_switches_read(int pid, int tid, uint64_t *ret_voluntary, uint64_t *ret_involuntary)
{
    char text[4096];
    struct str all;
    int r = read_text(pid, tid, "status", text, sizeof(text), &all);
    if (r < 0)
        return r;
    uint64_t voluntary, involuntary;
    if (str_to_u64(str_field(all, "voluntary_ctxt_switches"), 10, &voluntary) < 0 ||
        str_to_u64(str_field(all, "nonvoluntary_ctxt_switches"), 10, &involuntary) < 0)
        return -EBADMSG;
    *ret_voluntary = voluntary;
    *ret_involuntary = involuntary;
    return 0;
}

int proc_pss_read(int pid, uint64_t *ret_bytes)
{
    char text[2048];
    struct str all;
    int r = read_text(pid, 0, "smaps_rollup", text, sizeof(text), &all);
    if (r < 0)
        return r;
    struct str field = str_field(all, "Pss");
    uint64_t kib;
    if (str_to_u64(str_word(&field), 10, &kib) < 0)
        return -EBADMSG;
    *ret_bytes = kib * 1024;
    return 0;
}

int proc_threads_read(int pid, int *tids, size_t max, size_t *ret_count, size_t *ret_left)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return -errno;
    size_t count = 0, left = 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        uint64_t tid;
        if (str_to_u64(str_from(entry->d_name), 10, &tid) < 0)
            continue;
        if (count < max)
            tids[count++] = (int)tid;
        else
            left++;
    }
    closedir(folder);
    *ret_count = count;
    *ret_left = left;
    return 0;
}

int proc_children_read(int pid, int tid, int *pids, size_t max, size_t *ret_count, size_t *ret_left)
{
    char text[8192];
    struct str all;
    int r = read_text(pid, tid, "children", text, sizeof(text), &all);
    if (r == -ENOENT && access("/proc/thread-self/children", F_OK) < 0)
        return -ENOSYS;
    if (r < 0)
        return r;
    size_t count = 0, left = 0;
    while (all.len > 0) {
        uint64_t child;
        if (str_to_u64(str_word(&all), 10, &child) < 0)
            break;
        if (count < max)
            pids[count++] = (int)child;
        else
            left++;
    }
    *ret_count = count;
    *ret_left = left;
    return 0;
}

void proc_exe_read(int pid, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    ssize_t n = readlink(path, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
}

void proc_command_read(int pid, char *text, size_t size)
{
    struct str all = {0};
    char words[4096];
    if (read_text(pid, 0, "cmdline", words, sizeof(words) - 1, &all) < 0)
        all.len = 0;
    while (all.len > 0 && all.data[all.len - 1] == '\0')
        all.len--;
    struct redact redact = REDACT_INIT;
    size_t len = 0;
    text[0] = '\0';
    for (bool more = all.len > 0; more && len + 1 < size;) {
        const char *start = all.data;
        struct str word = str_cut(&all, '\0');
        more = start + word.len < all.data; /* also before an empty last one */
        if (command_arguments_are_kept())
            len += (size_t)snprintf(text + len, size - len, "%.*s", STR_FMT(word));
        else
            len += redact_word(&redact, word, text + len, size - len);
        if (more && len + 1 < size)
            memcpy(text + len++, " ", 2);
    }
}
