/* Files told from commands, and whether two of them may be compared. */
#include "cmd/ab_source.h"

#include "base/fd.h"
#include "cmd/run_artifacts.h"
#include "store/identify.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first character that is no blank; 0 when it cannot be had. */
static int first_character(const char *path)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    unsigned char head[256];
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return 0;
    ssize_t len = read(fd, head, sizeof(head));
    for (ssize_t i = 0; i < len; i++)
        if (!isspace(head[i]))
            return head[i];
    return 0;
}

int ab_source_open(struct arena *arena, const char *text, struct ab_source *ret, struct why *why)
{
    struct ab_source source = {.kind = AB_COMMAND, .text = text};
    struct identity identity;
    int first = first_character(text);
    if (first == '{') {
        int r = bench_file_read(arena, text, &source.file, why);
        if (r < 0)
            return r;
        source.kind = AB_STORED;
    } else if (first && identify_recording(text, &identity, NULL) == 0) {
        source.kind = AB_RECORDING;
    } else if (str_ends(str_from(text), ".json") && access(text, F_OK) < 0) {
        return why_errno(why, errno, "make one with 'whyslow bench --export-json FILE CMD'",
                         "no stored result '%s'", command_text_shown(arena, text));
    }
    *ret = source;
    return 0;
}

void ab_source_close(struct ab_source *source)
{
    bench_file_deinit(&source->file);
}

static const struct bench_result *find(const struct bench_file *file, const char *name)
{
    for (size_t i = 0; i < file->results.len; i++)
        if (strcmp(file->results.data[i].name, name) == 0)
            return &file->results.data[i];
    return NULL;
}

static int take(struct ab_source *source, const struct bench_result *result,
                const struct ab_cli *cli, struct why *why)
{
    size_t failed = 0;
    for (size_t i = 0; i < result->runs.len; i++)
        failed += result->runs.data[i].failed;
    if (failed > 0 && !cli->ignore_failure)
        return why_set(why, WHY_USAGE, EINVAL,
                       "measure it anew; or count them with "
                       "--ignore-failure",
                       "%zu of %zu runs in '%s' failed", failed, result->runs.len, source->text);
    source->result = result;
    return 0;
}

static int name_wanted(const struct ab_source *source, struct why *why)
{
    return why_set(why, WHY_USAGE, EINVAL,
                   "name one with --name; the names are in its results[].name",
                   "'%s' holds %zu results", source->text, source->file.results.len);
}

int ab_source_choose(struct ab_source *source, const struct ab_cli *cli, struct why *why)
{
    const struct bench_file *file = &source->file;
    if (!cli->name && file->results.len > 1)
        return name_wanted(source, why);
    const struct bench_result *result = cli->name ? find(file, cli->name) : &file->results.data[0];
    if (!result)
        return why_set(why, WHY_USAGE, EINVAL, "the names are in its results[].name",
                       "'%s' holds no result named '%s'", source->text, cli->name);
    return take(source, result, cli, why);
}

int ab_sources_choose(struct ab_source *a, struct ab_source *b, const struct ab_cli *cli,
                      struct why *why)
{
    /* Several results without a name: clear when just one name is in both files. */
    struct ab_cli chosen = *cli;
    bool several = a->file.results.len > 1 || b->file.results.len > 1;
    for (size_t i = 0; !cli->name && several && i < a->file.results.len; i++) {
        const char *name = a->file.results.data[i].name;
        if (!find(&b->file, name))
            continue;
        if (chosen.name)
            return name_wanted(a->file.results.len > 1 ? a : b, why);
        chosen.name = name;
    }
    int r = ab_source_choose(a, &chosen, why);
    return r < 0 ? r : ab_source_choose(b, &chosen, why);
}

/* The first field that forbids it, for the message. */
static const char *first_field(struct arena *arena, const struct value *table)
{
    for (const struct table_row *row = table->table->first; row; row = row->next)
        if (str_is(table_text(table->table, row, "verdict"), "incomparable")) {
            struct str field = table_text(table->table, row, "field");
            struct str effect = table_text(table->table, row, "effect");
            return arena_printf(arena, "%.*s (%.*s)", STR_FMT(field), STR_FMT(effect));
        }
    return "a field";
}

static int paths_check(struct arena *arena, const char *path_a, const char *path_b,
                       const char *names, bool force, struct value *ret, const char **ret_warning,
                       struct why *why)
{
    unsigned incomparable = 0;
    struct value table;
    int r = fingerprint_diff(arena, path_a, path_b, &table, &incomparable, why);
    if (r < 0)
        return r;
    const char *what = incomparable == 0
                           ? NULL
                           : arena_printf(arena,
                                          "the fingerprints of %s differ in %u field%s that must "
                                          "match, first %s",
                                          names, incomparable, incomparable == 1 ? "" : "s",
                                          first_field(arena, &table));
    if (what && !force)
        return why_set(why, WHY_USAGE, EINVAL,
                       "measure both on the same machine: whyslow compare 'CMD A' 'CMD B'; or "
                       "--force",
                       "%s", what);
    *ret_warning = what;
    *ret = table;
    return 0;
}

/* True when one has none; then it is refused or warned about. */
static int missing_check(struct arena *arena, const struct ab_source *source, bool force,
                         const char **ret_warning, struct why *why)
{
    if (source->file.has_fingerprint)
        return 0;
    const char *what = arena_printf(arena,
                                    "'%s' holds no fingerprint: it may come from another "
                                    "machine",
                                    source->text);
    if (!force)
        return why_set(why, WHY_USAGE, EINVAL,
                       "make it with 'whyslow bench --export-json FILE'; or --force", "%s", what);
    *ret_warning = what;
    return 1;
}

int ab_fingerprints_check(struct arena *arena, const struct ab_source *a, const struct ab_source *b,
                          bool force, struct value *ret, const char **ret_warning, struct why *why)
{
    int r = missing_check(arena, a, force, ret_warning, why);
    if (r == 0)
        r = missing_check(arena, b, force, ret_warning, why);
    if (r != 0) {
        *ret = value_na("a file without a fingerprint");
        return r < 0 ? r : 0;
    }
    return paths_check(arena, a->text, b->text,
                       arena_printf(arena, "'%s' and '%s'", a->text, b->text), force, ret,
                       ret_warning, why);
}

struct value ab_fingerprint_here(struct arena *arena, const char *binary)
{
    struct host host = {.root = "", .arena = arena};
    /* Before the binary is read: reading it would warm the cache. */
    double share = 0;
    bool share_known = fingerprint_resident_share(binary, &share) == 0;
    struct build_info *info = ARENA_NEW(arena, struct build_info);
    struct why why = {0};
    bool known = info && build_info_read(arena, binary, info, &why) == 0;
    struct fingerprint_input input = {.host = &host,
                                      .binary = known ? info : NULL,
                                      .binary_na = known ? NULL : arena_dup(arena, why.what),
                                      .folder = ".",
                                      .resident_share = share_known ? &share : NULL};
    return fingerprint_read(&input);
}

int ab_fingerprint_check_here(struct arena *arena, const struct ab_source *source,
                              const struct value *here, bool force, struct value *ret,
                              const char **ret_warning, struct why *why)
{
    int r = missing_check(arena, source, force, ret_warning, why);
    if (r != 0) {
        *ret = value_na("a file without a fingerprint");
        return r < 0 ? r : 0;
    }
    /* A file in memory: what compares fingerprints takes files. */
    AUTO(fd_close) int fd = memfd_create("whyslow-fingerprint", MFD_CLOEXEC);
    if (fd < 0)
        return why_errno(why, errno, NULL, "cannot make a file in memory");
    char *text = NULL;
    size_t len = 0;
    r = json_text_make("whyslow.fingerprint/1", here, &text, &len, why);
    if (r == 0) {
        r = fd_write_all(fd, text, len);
        if (r < 0)
            why_errno(why, -r, NULL, "cannot write a file in memory");
    }
    free(text);
    if (r < 0)
        return r;
    return paths_check(arena, source->text, arena_printf(arena, "/proc/self/fd/%d", fd),
                       arena_printf(arena, "'%s' and this machine", source->text), force, ret,
                       ret_warning, why);
}
