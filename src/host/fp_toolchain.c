/* toolchain.*: which tools PATH leads to, read from their files.
 *
 * No tool is started to be asked: many answer by the folder they are started in (rustup, pyenv,
 * asdf), where a file of somebody else then decides what runs, as whoever we are. */
#include "host/fp.h"

#include "base/trust.h"
#include "host/fp_tool_files.h"
#include "version.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct fp_tool {
    const char *name;
    /* By its own files; empty when they do not tell. */
    struct str (*version)(struct arena *arena, const struct fp_tool_file *file);
    const char *package; /* of Debian, where it is not called like the program */
};

static const struct fp_tool tools[] = {
    {"cc", fp_tool_compiler, NULL},
    {"gcc", fp_tool_compiler, NULL},
    {"clang", fp_tool_compiler, NULL},
    {"ld", fp_tool_linker, "binutils"},
    {"rustc", NULL, NULL},
    {"go", fp_tool_go, NULL},
    {"python3", fp_tool_python, NULL},
    {"node", fp_tool_node, "nodejs"},
    {"java", fp_tool_java, NULL},
};

/* PATH as a shell walks it, but only absolute folders: what lies in the folder under test is no
 * tool of this machine. */
static const char *tool_find(struct arena *arena, const char *name)
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

static bool is_rustup(struct arena *arena, const struct fp_tool_file *file)
{
    struct stat own, other;
    const char *beside = arena_printf(arena, "%s/bin/rustup", file->prefix);
    return stat(beside, &other) == 0 && stat(file->path, &own) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

static struct value tool_version(struct arena *arena, const struct fp_tool *tool)
{
    char real[PATH_MAX];
    const char *found = tool_find(arena, tool->name);
    if (!found)
        return value_na("not on PATH");
    if (!realpath(found, real))
        return value_na_printf(arena, "%s: %s", found, strerror(errno));
    if (!trust_path(real))
        return value_na_printf(arena, "not looked at: another user may change %s", real);
    struct fp_tool_file file;
    if (!fp_tool_file_make(arena, tool->name, real, &file))
        return value_na_printf(arena, "%s lies in no folder of its own", real);
    if (is_rustup(arena, &file))
        return value_na("rustup picks one by folder; build.compiler says what made the program");
    struct str text = tool->version ? tool->version(arena, &file) : (struct str){"", 0};
    if (text.len == 0)
        text = fp_tool_identity(arena, &file, tool->package);
    if (text.len == 0)
        return value_na_printf(arena, "%s is a script, or its files do not tell", real);
    return value_str(text);
}

/* arg: the tool. */
struct value fp_tool_version(const struct fp *fp, const struct fp_field *field)
{
    if (!host_is_live(fp->host))
        return fp_not_live();
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
        if (strcmp(tools[i].name, field->arg) == 0)
            return tool_version(fp->arena, &tools[i]);
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
