/* run.*: which run this is. */
#include "host/fp.h"

#include "base/clock.h"
#include "base/fd.h"
#include "host/git.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { ENVIRONMENT_BYTES_MAX = 4 * 1024 * 1024 };

const char *run_id_make(struct arena *arena)
{
    uint64_t now_ns = clock_real_ns();
    time_t seconds = (time_t)(now_ns / NS_PER_SEC);
    struct tm tm;
    uint16_t noise;
    if (getrandom(&noise, sizeof(noise), GRND_NONBLOCK) != sizeof(noise))
        noise = (uint16_t)(now_ns ^ (uint64_t)getpid());
    if (!gmtime_r(&seconds, &tm))
        tm = (struct tm){0};
    char text[32];
    strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm);
    return arena_printf(arena, "%s-%04x", text, noise);
}

struct value fp_run_id(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return value_text(fp->input->run_id ? fp->input->run_id : run_id_make(fp->arena));
}

struct value fp_run_git_revision(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!host_is_live(fp->host))
        return fp_not_live();
    const char *na;
    struct str revision = git_revision(fp->arena, fp->input->folder ? fp->input->folder : ".", &na);
    return na ? value_na(na) : value_str(revision);
}

struct value fp_run_git_branch(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!host_is_live(fp->host))
        return fp_not_live();
    const char *na;
    struct str branch = git_branch(fp->arena, fp->input->folder ? fp->input->folder : ".", &na);
    return na ? value_na(na) : value_str(branch);
}

struct value fp_run_time(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    char text[32];
    clock_format_utc(clock_real_ns(), text, sizeof(text));
    return value_text(arena_dup(fp->arena, text));
}

struct value fp_run_user(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return host_is_live(fp->host) ? value_uint(geteuid(), UNIT_NONE) : fp_not_live();
}

struct value fp_run_cwd(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    char path[PATH_MAX];
    if (!host_is_live(fp->host))
        return fp_not_live();
    const char *link = arena_printf(fp->arena, "%s/cwd", fp->proc);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    if (len < 0)
        return value_na_printf(fp->arena, "%s: %s", link, strerror(errno));
    return value_text(arena_dup_len(fp->arena, path, (size_t)len));
}

/* Its size shifts the stack of the target, and with it the alignment of everything on it. */
struct value fp_run_environment(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!host_is_live(fp->host))
        return fp_not_live();
    if (fp->input->pid > 0) {
        struct str text;
        const char *path = arena_printf(fp->arena, "%s/environ", fp->proc);
        int r = file_read(fp->arena, path, ENVIRONMENT_BYTES_MAX, &text, NULL);
        if (r < 0)
            return value_na_printf(fp->arena, "%s: %s", path, strerror(-r));
        return value_uint(text.len, UNIT_BYTES);
    }
    size_t bytes = 0;
    for (char **entry = environ; entry && *entry; entry++)
        bytes += strlen(*entry) + 1;
    return value_uint(bytes, UNIT_BYTES);
}

struct value fp_run_uptime(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str text;
    double seconds;
    if (host_read(fp->host, "/proc/uptime", &text, NULL) < 0 ||
        str_to_f64(str_word(&text), &seconds) < 0)
        return value_na("/proc/uptime cannot be read");
    return value_real(seconds, UNIT_NONE);
}
