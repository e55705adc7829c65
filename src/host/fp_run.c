/* run.*: which run this is. The git revision is read from the files of the
 * repository, so that it is known where no git is installed. */
#include "host/fp.h"

#include "base/clock.h"
#include "base/fd.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GIT_FILE_MAX = 1024 * 1024, GIT_PACKED_MAX = 64 * 1024 * 1024, GIT_LINKS_MAX = 5 };

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

struct git {
    const char *folder; /* of this work tree: HEAD */
    const char *common; /* of the repository: refs, packed-refs */
    const char *na;
};

static bool git_read(struct arena *arena, const char *path, size_t size_max, struct str *ret)
{
    if (file_read(arena, path, size_max, ret, NULL) < 0)
        return false;
    *ret = str_trim(*ret);
    return true;
}

/* A path written in a file of `base`, which may be relative to it. */
static const char *git_join(struct arena *arena, const char *base, struct str path)
{
    return str_starts(path, "/") ? arena_dup_len(arena, path.data, path.len)
                                 : arena_printf(arena, "%s/%.*s", base, STR_FMT(path));
}

/* The nearest .git above `folder`: a folder, or a file that names one (work trees, submodules). */
static struct git git_find(struct arena *arena, const char *folder)
{
    char at[PATH_MAX];
    struct git git = {.na = "the folder is in no git repository"};
    if (!realpath(folder, at))
        return git;
    for (int i = 0; i < PATH_MAX; i++) {
        const char *dot = arena_printf(arena, "%s/.git", strcmp(at, "/") == 0 ? "" : at);
        struct stat st;
        struct str text;
        if (stat(dot, &st) == 0 && S_ISDIR(st.st_mode))
            git.folder = dot;
        else if (stat(dot, &st) == 0 && S_ISREG(st.st_mode) &&
                 git_read(arena, dot, GIT_FILE_MAX, &text) && str_starts(text, "gitdir:"))
            git.folder = git_join(arena, at, str_trim((struct str){text.data + 7, text.len - 7}));
        char *slash = strrchr(at, '/');
        if (git.folder || !slash || strcmp(at, "/") == 0)
            break;
        slash[slash == at] = '\0';
    }
    if (!git.folder)
        return git;
    struct str common;
    git.common = git_read(arena, arena_printf(arena, "%s/commondir", git.folder), GIT_FILE_MAX,
                          &common)
                     ? git_join(arena, git.folder, common)
                     : git.folder;
    git.na = NULL;
    return git;
}

static bool is_hash(struct str text)
{
    if (text.len != 40 && text.len != 64)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!isxdigit((unsigned char)text.data[i]))
            return false;
    return true;
}

static struct str packed_ref(struct arena *arena, const struct git *git, struct str name)
{
    struct str text;
    if (!git_read(arena, arena_printf(arena, "%s/packed-refs", git->common), GIT_PACKED_MAX, &text))
        return (struct str){"", 0};
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        struct str hash = str_word(&line);
        if (str_eq(str_trim(line), name) && is_hash(hash))
            return hash;
    }
    return (struct str){"", 0};
}

/* What a ref holds: a hash, or "ref: another". Per work tree first, then common, then packed. */
static struct str ref_read(struct arena *arena, const struct git *git, struct str name)
{
    struct str text;
    if (git_read(arena, arena_printf(arena, "%s/%.*s", git->folder, STR_FMT(name)), GIT_FILE_MAX,
                 &text) ||
        git_read(arena, arena_printf(arena, "%s/%.*s", git->common, STR_FMT(name)), GIT_FILE_MAX,
                 &text))
        return text;
    return packed_ref(arena, git, name);
}

struct value fp_run_git_revision(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!host_is_live(fp->host))
        return fp_not_live();
    struct git git = git_find(fp->arena, fp->input->folder ? fp->input->folder : ".");
    if (git.na)
        return value_na(git.na);
    struct str name = STR("HEAD");
    for (int i = 0; i < GIT_LINKS_MAX; i++) {
        struct str text = ref_read(fp->arena, &git, name);
        if (is_hash(text))
            return value_str(text);
        if (!str_starts(text, "ref:"))
            break;
        name = str_trim((struct str){text.data + 4, text.len - 4});
        if (str_contains(name, ".."))
            return value_na("the repository's HEAD names no proper ref");
    }
    if (access(arena_printf(fp->arena, "%s/reftable", git.common), F_OK) == 0)
        return value_na("the repository keeps its refs in a reftable, which whyslow cannot read");
    return str_starts(name, "refs/") ? value_na("the branch has no commit yet")
                                     : value_na("the repository's HEAD cannot be read");
}

struct value fp_run_git_branch(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!host_is_live(fp->host))
        return fp_not_live();
    struct git git = git_find(fp->arena, fp->input->folder ? fp->input->folder : ".");
    if (git.na)
        return value_na(git.na);
    struct str text = ref_read(fp->arena, &git, STR("HEAD"));
    if (!str_starts(text, "ref:"))
        return value_na("HEAD is detached");
    text = str_trim((struct str){text.data + 4, text.len - 4});
    if (str_starts(text, "refs/heads/"))
        text = (struct str){text.data + 11, text.len - 11};
    return value_str(text);
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
        int r = file_read(fp->arena, path, GIT_FILE_MAX * 4, &text, NULL);
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
