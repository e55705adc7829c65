/* `whyslow export`: a recording's series becomes a file for another tool.
 *
 * recording → profile (narrowed) → exporter → file, whole or not at all. */
#include "analyze/profile_load.h"
#include "analyze/series_honesty.h"
#include "base/fd.h"
#include "base/temporary.h"
#include "cmd/cmd.h"
#include "cmd/export_heap.h"
#include "cmd/newest.h"
#include "cmd/report_parts.h" /* --time means the same in both */
#include "present/exporters.h"
#include "store/reader.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct export_cmd_opts {
    const char *format;
    const char *output;
    const char *series;
    const char *time;
    const char *filter;
    const char *focus;
    const char *title;
    bool list;
    struct output_opts rendering;
};

static const struct opt export_options[] = {
    {"format", 'f', OPT_TEXT, offsetof(struct export_cmd_opts, format), "F",
     "the format, by name (see --list); without it, chosen by what FILE ends with"},
    {"output", 'o', OPT_FILE, offsetof(struct export_cmd_opts, output), "FILE",
     "where to write; '-' or nothing is standard output"},
    {"series", 0, OPT_TEXT, offsetof(struct export_cmd_opts, series), "NAME",
     "which series of the recording; heap: what lives and what was allocated", .fallback = "cpu"},
    {"time", 0, OPT_TEXT, offsetof(struct export_cmd_opts, time), "A..B",
     "only this part: seconds since the first sample (1.5..3) or percent (10%..20%)"},
    {"filter", 0, OPT_TEXT, offsetof(struct export_cmd_opts, filter), "TEXT",
     "only samples of a thread, process or image whose name contains TEXT"},
    {"focus", 0, OPT_TEXT, offsetof(struct export_cmd_opts, focus), "TEXT",
     "only samples with a function whose name contains TEXT, stacks beginning there"},
    {"title", 0, OPT_TEXT, offsetof(struct export_cmd_opts, title), "TEXT",
     "title of the profile; without it, the recorded command"},
    {"list", 0, OPT_FLAG, offsetof(struct export_cmd_opts, list), NULL,
     "list the formats and what reads them"},
    OUTPUT_OPTIONS(struct export_cmd_opts, rendering),
    {0},
};

static int list_formats(const struct cmd_call *call, struct why *why)
{
    static const struct column columns[] = {
        {"format", "format", SHOW_ALWAYS, false, false},
        {"extension", "file ends with", SHOW_ALWAYS, false, false},
        {"about", "read by", SHOW_ALWAYS, false, true},
    };
    const struct export_cmd_opts *opts = call->opts;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = value_map(&arena);
    struct value table = value_table(&arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; exporters[i]; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            return why_nomem(why);
        row->cells[0] = value_text(exporters[i]->name);
        row->cells[1] = value_text(exporters[i]->extension);
        row->cells[2] = value_text(exporters[i]->about);
    }
    value_put(&root, "formats", NULL, table);
    if (arena_failed(&arena))
        return why_nomem(why);
    struct report report = {.schema = "whyslow.export_formats/1", .root = &root};
    int r = cmd_render(call, &opts->rendering, &report, why);
    return r < 0 ? r : EXIT_DONE;
}

static bool to_stdout(const struct export_cmd_opts *opts)
{
    return !opts->output || strcmp(opts->output, "-") == 0;
}

static int choose_format(const struct export_cmd_opts *opts, const struct exporter **ret,
                         struct why *why)
{
    const char *remedy = "choose one with --format; 'whyslow export --list' shows them";
    if (opts->format) {
        *ret = exporter_find(opts->format);
        return *ret ? 0
                    : why_set(why, WHY_USAGE, EINVAL, "'whyslow export --list' shows the formats",
                              "there is no format '%s'", opts->format);
    }
    if (to_stdout(opts))
        return why_set(why, WHY_USAGE, EINVAL, remedy, "no format was given");
    *ret = exporter_for_file(opts->output);
    return *ret ? 0
                : why_set(why, WHY_USAGE, EINVAL, remedy, "the name '%s' does not tell the format",
                          opts->output);
}

/* The wall clock of a moment of the recording. An imported recording has the clock of where
 * it came from: then only what its importer noted counts. */
struct clocks {
    bool imported;
    uint64_t start_real_ns;
};

static int look_for_import(void *context, const struct recorded_document *row)
{
    struct clocks *clocks = context;
    if (!str_is(row->name, "import"))
        return 0;
    clocks->imported = true;
    json_t *document = json_loadb(row->json.data, row->json.len, 0, NULL);
    json_int_t start = json_integer_value(json_object_get(document, "start_real_ns"));
    clocks->start_real_ns = start > 0 ? (uint64_t)start : 0;
    json_decref(document);
    return 0;
}

static uint64_t meta_number(struct recording *recording, const char *key)
{
    sqlite3_stmt *stmt = NULL;
    uint64_t number = 0;
    if (sqlite3_prepare_v2(recording_db(recording), "SELECT value FROM meta WHERE key = ?", -1,
                           &stmt, NULL) == SQLITE_OK &&
        sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        int64_t found = sqlite3_column_int64(stmt, 0);
        number = found > 0 ? (uint64_t)found : 0;
    }
    sqlite3_finalize(stmt);
    return number;
}

static int real_start(struct recording *recording, uint64_t start_ns, uint64_t *ret,
                      struct why *why)
{
    struct clocks clocks = {0};
    int r = recording_each_document(recording, look_for_import, &clocks, why);
    if (r < 0)
        return r;
    uint64_t real_ns = meta_number(recording, "created_real_ns");
    uint64_t mono_ns = meta_number(recording, "created_mono_ns");
    if (clocks.imported)
        *ret = clocks.start_real_ns;
    else
        *ret = real_ns && mono_ns ? real_ns + (start_ns - mono_ns) : 0;
    return 0;
}

static int load(const struct export_cmd_opts *opts, const struct exporter *exporter,
                struct recording *recording, struct arena *arena, struct profile *ret,
                struct export_opts *ret_opts, struct why *why)
{
    if (export_is_heap(recording, opts->series)) {
        if (opts->time || opts->filter || opts->focus)
            return why_set(why, WHY_USAGE, EINVAL, "leave it out",
                           "%s narrows samples, and the heap has sums",
                           opts->time     ? "--time"
                           : opts->filter ? "--filter"
                                          : "--focus");
        return export_heap_load(arena, recording, opts->series, ret, &ret_opts->values, why);
    }
    struct profile_opts wanted = {
        .series = opts->series,
        .samples = exporter->samples,
        .filter = opts->filter,
        .focus = opts->focus,
    };
    const struct recorded_series *series = recording_series_find(recording, opts->series);
    if (opts->time && series) {
        int r = report_time_range(opts->time, series, &wanted.from_ns, &wanted.to_ns, why);
        if (r < 0)
            return r;
    }
    return profile_load(arena, recording, &wanted, ret, why);
}

/* A file of that name is replaced only when the new one is whole; what is no plain file
 * (a pipe, /dev/null) is written to as it is. */
static int write_file(const char *path, const struct exporter *exporter,
                      const struct profile *profile, const struct export_opts *opts,
                      struct why *why)
{
    struct stat st;
    bool plain = stat(path, &st) < 0 || S_ISREG(st.st_mode);
    char *temporary = NULL;
    if (plain && asprintf(&temporary, "%s.%d.part", path, (int)getpid()) < 0)
        return why_nomem(why);
    const char *target = plain ? temporary : path;
    if (plain)
        temporary_sweep_beside(path, ".part");
    FILE *out = plain ? file_open_private(target, false) : fopen(target, "we");
    int r = out ? 0
                : why_errno(why, errno, "choose another place with -o", "cannot write '%s'", path);
    if (r == 0 && plain)
        (void)flock(fileno(out), LOCK_EX | LOCK_NB); /* for temporary_sweep_beside() */
    if (r == 0)
        r = exporter->write(profile, opts, out, why);
    if (out && fclose(out) != 0 && r == 0)
        r = why_errno(why, errno, "make room, or choose another place with -o", "cannot write '%s'",
                      path);
    if (r == 0 && plain && rename(temporary, path) < 0)
        r = why_errno(why, errno, "choose another place with -o", "cannot write '%s'", path);
    if (r < 0 && plain && out)
        unlink(temporary);
    free(temporary);
    return r;
}

static int write_out(const struct cmd_call *call, const struct exporter *exporter,
                     const struct profile *profile, const struct export_opts *wanted,
                     struct why *why)
{
    const struct export_cmd_opts *opts = call->opts;
    if (!to_stdout(opts)) {
        int r = write_file(opts->output, exporter, profile, wanted, why);
        if (r == 0)
            fprintf(call->notes, "%s: %s, %llu samples\n", opts->output, exporter->name,
                    (unsigned long long)profile->count);
        return r;
    }
    if (exporter->binary && isatty(fileno(call->out)))
        return why_set(why, WHY_USAGE, EINVAL, "write it to a file with -o FILE, or into a pipe",
                       "%s is binary and would garble the terminal", exporter->name);
    return exporter->write(profile, wanted, call->out, why);
}

static int export_recording(const struct cmd_call *call, const struct exporter *exporter,
                            struct recording *recording, struct why *why)
{
    const struct export_cmd_opts *opts = call->opts;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct profile profile = {0};
    struct series_honesty honesty;
    struct export_opts wanted = {.title = opts->title};
    int r = load(opts, exporter, recording, &arena, &profile, &wanted, why);
    if (r == 0)
        r = series_honesty_load(&arena, recording, profile.series, &honesty, why);
    if (r == 0)
        r = real_start(recording, profile.start_ns, &wanted.start_real_ns, why);
    if (r < 0)
        return r;
    const char *comments[] = {
        arena_printf(&arena, "%s: %s", profile.series, profile.about),
        series_honesty_line(&arena, &honesty),
        NULL,
    };
    if (arena_failed(&arena))
        return why_nomem(why);
    wanted.comments = comments;
    return write_out(call, exporter, &profile, &wanted, why);
}

static int export_run(const struct cmd_call *call, struct why *why)
{
    const struct export_cmd_opts *opts = call->opts;
    if (opts->list)
        return list_formats(call, why);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    const char *path = call->argc > 0 ? call->argv[0] : NULL;
    int r = path ? 0 : newest_recording(&arena, opts->series, &path, why);
    if (r < 0)
        return r;
    if (!path)
        return why_set(why, WHY_USAGE, EINVAL, "whyslow export REC -o FILE",
                       "name the recording to export; there is none in this folder");
    const struct exporter *exporter = NULL;
    struct recording *recording = NULL;
    r = choose_format(opts, &exporter, why);
    if (r == 0 && exporter)
        r = recording_open(path, &recording, why);
    if (r == 0 && exporter)
        r = export_recording(call, exporter, recording, why);
    recording_close(recording);
    return r < 0 ? r : EXIT_DONE;
}

static const struct cmd_example examples[] = {
    {"whyslow export recording.whyslow -o cpu.pb.gz", "for 'go tool pprof -http : cpu.pb.gz'"},
    {"whyslow export recording.whyslow -o profile.json.gz", "for profiler.firefox.com"},
    {"whyslow export recording.whyslow -f folded | flamegraph.pl > flame.svg",
     "through a pipe, without a file"},
    {"whyslow export heap.whyslow --series heap -o heap.pb.gz",
     "for 'go tool pprof -sample_index=inuse_space heap.pb.gz'"},
    {"whyslow export recording.whyslow -o hot.afdo --filter myapp",
     "for clang -fprofile-sample-use=hot.afdo"},
    {NULL, NULL},
};

const struct command cmd_export = {
    .name = "export",
    .group = "Look into a recording",
    .operands = "[REC]",
    .summary = "write a profile for another tool: pprof, Firefox, speedscope, callgrind …",
    .about = "Writes one series of a recording in the format of another tool. The format is "
             "chosen by --format, or by what the file's name ends with; --list shows them. "
             "docs/exchange.md says what each format keeps and what it loses.\n\n"
             "Weights are as measured (nanoseconds for CPU time), so sums in the other tool are "
             "those of 'whyslow report'. --time, --filter and --focus narrow it as they do "
             "there. A file is replaced only when the new one is whole.",
    .options = export_options,
    .options_size = sizeof(struct export_cmd_opts),
    .operands_min = 0,
    .operands_max = 1,
    .examples = examples,
    .run = export_run,
};
