/* One function a tool: where its makers leave the version. */
#include "host/fp_tool_files.h"

#include "base/fd.h"
#include "base/trust.h"
#include "host/build_internal.h"

#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum {
    TEXT_BYTES_MAX = 1 << 20,
    STATUS_BYTES_MAX = 64 << 20,
    ENTRIES_MAX = 4096,
    NOTE_BYTES_MAX = 4096,
};

static const struct str nothing = {"", 0};

bool fp_tool_file_make(struct arena *arena, const char *name, const char *path,
                       struct fp_tool_file *ret)
{
    const char *slash = strrchr(path, '/');
    const char *above = slash ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
    if (!above)
        return false;
    *ret = (struct fp_tool_file){
        .name = name,
        .path = path,
        .prefix = arena_dup_len(arena, path, (size_t)(above - path)),
        .base = slash + 1,
    };
    return !arena_failed(arena);
}

static struct str text_read(struct arena *arena, const char *path, size_t size_max)
{
    struct str text;
    return trust_path(path) && file_read_regular(arena, path, size_max, &text, NULL) == 0 ? text
                                                                                          : nothing;
}

static bool elf_read(struct arena *arena, const char *path, struct build_elf *ret)
{
    struct why why;
    return trust_path(path) &&
           build_elf_open(arena, path, clock_mono_ns() + NS_PER_SEC, ret, &why) == 0;
}

/* What a version is written with, from the start of the text. */
static struct str version_take(struct str text)
{
    size_t len = 0;
    while (len < text.len && text.data[len] && strchr("0123456789.", text.data[len]))
        len++;
    while (len > 0 && text.data[len - 1] == '.')
        len--;
    return (struct str){text.data, len};
}

static struct str after(struct str text, const char *mark)
{
    const char *found = text.len > 0 ? memmem(text.data, text.len, mark, strlen(mark)) : NULL;
    if (!found)
        return nothing;
    found += strlen(mark);
    return (struct str){found, (size_t)(text.data + text.len - found)};
}

/* "#define KEY 18": the rest of the line after the key. */
static struct str define_find(struct str text, const char *key)
{
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        if (str_is(str_word(&line), "#define") && str_is(str_word(&line), key))
            return str_trim(line);
    }
    return nothing;
}

/* The one entry of a folder that starts with `start`; NULL when there is none, or more. Of two
 * names of one version, "18" and a link "18.1.8", the longer is the one that tells. */
static const char *entry_only(struct arena *arena, const char *folder, const char *start)
{
    DIR *dir = trust_path(folder) ? opendir(folder) : NULL;
    const char *found = NULL;
    bool several = false;
    struct dirent *entry;
    for (size_t i = 0; dir && i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, start, strlen(start)) != 0 ||
            (!*start && version_take(str_from(entry->d_name)).len == 0))
            continue;
        size_t same = found ? MIN(strlen(found), strlen(entry->d_name)) : 0;
        several = several || (found && strncmp(found, entry->d_name, same) != 0);
        if (!found || strlen(entry->d_name) > strlen(found))
            found = arena_dup(arena, entry->d_name);
    }
    if (dir)
        closedir(dir);
    return several ? NULL : found;
}

/* PREFIX/lib/gcc/TRIPLET/VERSION: "x86_64-linux-gnu-gcc-12" names both, "gcc" neither. */
static const char *gcc_folder(struct arena *arena, const struct fp_tool_file *file)
{
    static const char *const places[] = {"lib", "lib64"};
    const char *gcc = strstr(file->base, "gcc");
    size_t triplet = (size_t)(gcc - file->base);
    struct utsname machine;
    if (uname(&machine) < 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        const char *all = arena_printf(arena, "%s/%s/gcc", file->prefix, places[i]);
        const char *name = triplet > 1 ? arena_dup_len(arena, file->base, triplet - 1)
                                       : entry_only(arena, all, machine.machine);
        const char *one = name ? arena_printf(arena, "%s/%s", all, name) : NULL;
        const char *version = one ? entry_only(arena, one, gcc[3] == '-' ? gcc + 4 : "") : NULL;
        if (version)
            return arena_printf(arena, "%s/%s", one, version);
    }
    return NULL;
}

/* A compiler signs what it makes; crtbegin.o was made by the very gcc it comes with. */
static struct str gcc_version(struct arena *arena, const struct fp_tool_file *file)
{
    const char *folder = gcc_folder(arena, file);
    AUTO(build_elf_close) struct build_elf start = {.fd = -1};
    if (!folder)
        return nothing;
    if (elf_read(arena, arena_printf(arena, "%s/crtbegin.o", folder), &start)) {
        struct str comment = after(build_elf_bytes(&start, ".comment"), "GCC: ");
        comment.len = strnlen(comment.data, comment.len);
        if (comment.len > 0)
            return str_from(arena_printf(arena, "%s %.*s", file->name, STR_FMT(comment)));
    }
    return str_from(arena_printf(arena, "%s %s", file->name, strrchr(folder, '/') + 1));
}

static struct str clang_version(struct arena *arena, const struct fp_tool_file *file)
{
    const char *version = entry_only(arena, arena_printf(arena, "%s/lib/clang", file->prefix), "");
    if (!version)
        version = entry_only(arena, arena_printf(arena, "%s/lib64/clang", file->prefix), "");
    return version ? str_from(arena_printf(arena, "clang version %s", version)) : nothing;
}

struct str fp_tool_compiler(struct arena *arena, const struct fp_tool_file *file)
{
    if (strstr(file->base, "clang"))
        return clang_version(arena, file);
    return strstr(file->base, "gcc") ? gcc_version(arena, file) : nothing;
}

/* Of GNU: the library it shares with its sisters has the version in its name, else the text that
 * --version prints is a constant of the program. */
struct str fp_tool_linker(struct arena *arena, const struct fp_tool_file *file)
{
    AUTO(build_elf_close) struct build_elf elf = {.fd = -1};
    if (!elf_read(arena, file->path, &elf))
        return nothing;
    struct str version = version_take(after(build_elf_bytes(&elf, ".dynstr"), "libbfd-"));
    if (version.len > 0)
        return str_from(arena_printf(arena, "GNU ld %.*s", STR_FMT(version)));
    struct str rest = after(build_elf_bytes(&elf, ".rodata"), "(GNU Binutils");
    rest.len = strnlen(rest.data, MIN(rest.len, (size_t)100));
    return rest.len > 0 ? str_from(arena_printf(arena, "GNU ld (GNU Binutils%.*s", STR_FMT(rest)))
                        : nothing;
}

struct str fp_tool_go(struct arena *arena, const struct fp_tool_file *file)
{
    struct str text = text_read(arena, arena_printf(arena, "%s/VERSION", file->prefix),
                                TEXT_BYTES_MAX);
    struct str line = str_trim(str_cut(&text, '\n'));
    return str_starts(line, "go") ? line : nothing;
}

struct str fp_tool_python(struct arena *arena, const struct fp_tool_file *file)
{
    struct str text = text_read(
        arena, arena_printf(arena, "%s/include/%s/patchlevel.h", file->prefix, file->base),
        TEXT_BYTES_MAX);
    struct str version = after(define_find(text, "PY_VERSION"), "\"");
    version.len = version.len > 0 ? version.len - 1 : 0; /* the other quote */
    return version.len > 0 ? str_from(arena_printf(arena, "Python %.*s", STR_FMT(version)))
                           : nothing;
}

struct str fp_tool_node(struct arena *arena, const struct fp_tool_file *file)
{
    struct str text = text_read(
        arena, arena_printf(arena, "%s/include/node/node_version.h", file->prefix), TEXT_BYTES_MAX);
    struct str major = define_find(text, "NODE_MAJOR_VERSION");
    struct str minor = define_find(text, "NODE_MINOR_VERSION");
    struct str patch = define_find(text, "NODE_PATCH_VERSION");
    return patch.len > 0 ? str_from(arena_printf(arena, "v%.*s.%.*s.%.*s", STR_FMT(major),
                                                 STR_FMT(minor), STR_FMT(patch)))
                         : nothing;
}

struct str fp_tool_java(struct arena *arena, const struct fp_tool_file *file)
{
    struct str text = text_read(arena, arena_printf(arena, "%s/release", file->prefix),
                                TEXT_BYTES_MAX);
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        struct str key = str_cut(&line, '=');
        if (str_is(key, "JAVA_RUNTIME_VERSION") && line.len > 2 && line.data[0] == '"')
            return str_from(arena_printf(arena, "java %.*s", (int)line.len - 2, line.data + 1));
    }
    return nothing;
}

/* .note.package, as Fedora and others have it: a note of JSON. */
static struct str package_note(struct arena *arena, struct build_elf *elf)
{
    struct str note = build_elf_bytes(elf, ".note.package");
    const char *start = note.len > 0 && note.len <= NOTE_BYTES_MAX
                            ? memchr(note.data, '{', note.len)
                            : NULL;
    if (!start)
        return nothing;
    size_t len = strnlen(start, (size_t)(note.data + note.len - start));
    json_t *json = json_loadb(start, len, JSON_DISABLE_EOF_CHECK, NULL);
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *version = json_string_value(json_object_get(json, "version"));
    struct str found = name && version
                           ? str_from(arena_printf(arena, "package %s %s", name, version))
                           : nothing;
    json_decref(json);
    return found;
}

/* Debian's list of the files of each package, and of their versions. */
static struct str package_listed(struct arena *arena, const char *package, const char *path)
{
    struct str list = text_read(arena, arena_printf(arena, "/var/lib/dpkg/info/%s.list", package),
                                TEXT_BYTES_MAX);
    bool has = false;
    while (list.len > 0 && !has)
        has = str_is(str_cut(&list, '\n'), path);
    if (!has)
        return nothing;
    struct str status = text_read(arena, "/var/lib/dpkg/status", STATUS_BYTES_MAX);
    struct str of = after(status, arena_printf(arena, "\nPackage: %s\n", package));
    const char *end = of.len > 0 ? memmem(of.data, of.len, "\n\n", 2) : NULL;
    of.len = end ? (size_t)(end - of.data) : of.len;
    struct str version = after(of, "\nVersion: ");
    version = str_trim(str_cut(&version, '\n'));
    return version.len > 0
               ? str_from(arena_printf(arena, "package %s %.*s", package, STR_FMT(version)))
               : nothing;
}

struct str fp_tool_identity(struct arena *arena, const struct fp_tool_file *file,
                            const char *package)
{
    AUTO(build_elf_close) struct build_elf elf = {.fd = -1};
    if (!elf_read(arena, file->path, &elf))
        return nothing; /* a script or a wrapper: which tool it starts is not known */
    struct str found = package_note(arena, &elf);
    const char *const names[] = {package, file->base,
                                 arena_printf(arena, "%s-minimal", file->base)};
    for (size_t i = 0; i < ARRAY_SIZE(names) && found.len == 0; i++)
        if (names[i] && strncmp(file->path, "/usr/", 5) == 0)
            found = package_listed(arena, names[i], file->path);
    if (found.len > 0)
        return found;
    const char *build_id = build_elf_build_id(&elf);
    return build_id ? str_from(arena_printf(arena, "%s, build-id %s", file->base, build_id))
                    : nothing;
}
