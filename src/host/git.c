/* HEAD, refs and packed refs of a repository. */
#include "host/git.h"

#include "base/fd.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GIT_FILE_MAX = 1024 * 1024, GIT_PACKED_MAX = 64 * 1024 * 1024, GIT_LINKS_MAX = 5 };

static bool git_read(struct arena *arena, const char *path, size_t size_max, struct str *ret)
{
    if (file_read_own(arena, path, size_max, ret, NULL) < 0)
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

/* A .git is a folder, or a file that names one (work trees, submodules). */
struct git git_find(struct arena *arena, const char *folder)
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

struct str git_revision(struct arena *arena, const char *folder, const char **ret_na)
{
    struct git git = git_find(arena, folder);
    *ret_na = git.na;
    if (git.na)
        return (struct str){"", 0};
    struct str name = STR("HEAD");
    for (int i = 0; i < GIT_LINKS_MAX; i++) {
        struct str text = ref_read(arena, &git, name);
        if (is_hash(text))
            return text;
        if (!str_starts(text, "ref:"))
            break;
        name = str_trim((struct str){text.data + 4, text.len - 4});
        if (str_contains(name, "..")) {
            *ret_na = "the repository's HEAD names no proper ref";
            return (struct str){"", 0};
        }
    }
    if (access(arena_printf(arena, "%s/reftable", git.common), F_OK) == 0)
        *ret_na = "the repository keeps its refs in a reftable, which whyslow cannot read";
    else
        *ret_na = str_starts(name, "refs/") ? "the branch has no commit yet"
                                            : "the repository's HEAD cannot be read";
    return (struct str){"", 0};
}

struct str git_branch(struct arena *arena, const char *folder, const char **ret_na)
{
    struct git git = git_find(arena, folder);
    *ret_na = git.na;
    if (git.na)
        return (struct str){"", 0};
    struct str text = ref_read(arena, &git, STR("HEAD"));
    if (!str_starts(text, "ref:")) {
        *ret_na = "HEAD is detached";
        return (struct str){"", 0};
    }
    text = str_trim((struct str){text.data + 4, text.len - 4});
    if (str_starts(text, "refs/heads/"))
        text = (struct str){text.data + 11, text.len - 11};
    return text;
}
