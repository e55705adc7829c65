/* `whyslow import`: a profile of another tool becomes a recording.
 *
 * source → which importer → sink of a new recording → a short report. */
#include "base/arena.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "collect/importers.h"
#include "store/writer.h"
#include "symbolize/symbols.h"
#include "version.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct import_cmd_opts {
    const char *format;
    const char *output;
    const char *unit;
    bool debuginfod;
    bool no_symbols;
    bool list;
    bool keep_arguments;
    struct output_opts rendering;
};

static const struct opt import_options[] = {
    {"output", 'o', OPT_FILE, offsetof(struct import_cmd_opts, output), "REC",
     "the recording to make", .fallback = "imported.whyslow"},
    {"format", 'f', OPT_TEXT, offsetof(struct import_cmd_opts, format), "F",
     "the format, by name (see --list); without it, the file's first bytes tell"},
    {"unit", 0, OPT_CHOICE, offsetof(struct import_cmd_opts, unit), "UNIT",
     "what the numbers of a folded file are; it does not say itself", .fallback = "count",
     .choices = "count|ns|bytes"},
    {"debuginfod", 0, OPT_FLAG, offsetof(struct import_cmd_opts, debuginfod), NULL,
     "ask the servers of DEBUGINFOD_URLS for missing debug information (perf.data only)"},
    {"no-symbols", 0, OPT_FLAG, offsetof(struct import_cmd_opts, no_symbols), NULL,
     "do not name the functions of a perf.data"},
    {"list", 0, OPT_FLAG, offsetof(struct import_cmd_opts, list), NULL, "list the formats"},
    KEEP_ARGUMENTS_OPTION(offsetof(struct import_cmd_opts, keep_arguments)),
    OUTPUT_OPTIONS(struct import_cmd_opts, rendering),
    {0},
};

static int list_formats(const struct cmd_call *call, struct why *why)
{
    static const struct column columns[] = {
        {"format", "format", SHOW_ALWAYS, false, false},
        {"about", "what it is", SHOW_ALWAYS, false, true},
    };
    const struct import_cmd_opts *opts = call->opts;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = value_map(&arena);
    struct value table = value_table(&arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; importers[i]; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            return why_nomem(why);
        row->cells[0] = value_text(importers[i]->name);
        row->cells[1] = value_text(importers[i]->about);
    }
    value_put(&root, "formats", NULL, table);
    if (arena_failed(&arena))
        return why_nomem(why);
    struct report report = {.schema = "whyslow.import_formats/1", .root = &root};
    int r = cmd_render(call, &opts->rendering, &report, why);
    return r < 0 ? r : EXIT_DONE;
}

static int choose(const struct import_cmd_opts *opts, struct import_source *source,
                  const struct importer **ret, struct why *why)
{
    struct str head;
    int r = import_source_peek(source, IMPORT_HEAD_BYTES, &head, why);
    if (r < 0)
        return r;
    if (head.len == 0)
        return why_set(why, WHY_USAGE, ENODATA, "check how it was made", "'%s' is empty",
                       source->path);
    if (opts->format) {
        *ret = importer_find(opts->format);
        return *ret ? 0
                    : why_set(why, WHY_USAGE, EINVAL, "'whyslow import --list' shows the formats",
                              "there is no format '%s'", opts->format);
    }
    *ret = importer_detect(head);
    return *ret ? 0
                : why_set(why, WHY_USAGE, EINVAL,
                          "say what it is with --format; 'whyslow import --list' shows the formats",
                          "'%s' is in no format that whyslow knows", source->path);
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    (void)total;
    progress_update(context, done >> 20, "MiB read");
}

static void put_skips(struct arena *arena, struct value *root, const struct import_result *result)
{
    static const struct column columns[] = {
        {"reason", "skipped because", SHOW_ALWAYS, false, false},
        {"count", "records", SHOW_ALWAYS, true, false},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < result->skip_count; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            return;
        row->cells[0] = value_text(result->skips[i].reason);
        row->cells[1] = value_uint(result->skips[i].count, UNIT_COUNT);
    }
    if (result->skip_count > 0)
        value_put(root, "skipped", NULL, table);
    else
        value_put_machine(root, "skipped", table);
}

static int tell(const struct cmd_call *call, const struct importer *importer, struct arena *arena,
                const struct import_result *result, struct why *why)
{
    const struct import_cmd_opts *opts = call->opts;
    struct value root = value_map(arena);
    value_put(&root, "recording", NULL, value_text(opts->output));
    value_put(&root, "format", NULL, value_text(importer->name));
    value_put(&root, "samples", NULL, value_uint(result->samples, UNIT_COUNT));
    struct value series = value_list(arena), notes = value_list(arena);
    bool cpu = false;
    for (size_t i = 0; i < result->series_count; i++) {
        value_append(&series, value_text(result->series[i]));
        cpu = cpu || strcmp(result->series[i], "cpu") == 0;
    }
    for (size_t i = 0; i < result->note_count; i++)
        value_append(&notes, value_text(result->notes[i]));
    value_put(&root, "series", NULL, series);
    value_put(&root, "notes", NULL, notes);
    put_skips(arena, &root, result);
    const char *which = cpu ? "" : arena_printf(arena, " --series %s", result->series[0]);
    value_put(&root, "next", NULL,
              value_text(arena_printf(arena, "whyslow report %s%s", opts->output, which)));
    if (arena_failed(arena))
        return why_nomem(why);
    struct report report = {.schema = "whyslow.import/1", .root = &root};
    return cmd_render(call, &opts->rendering, &report, why);
}

static enum unit unit_of(const char *name)
{
    if (strcmp(name, "ns") == 0)
        return UNIT_NS;
    return strcmp(name, "bytes") == 0 ? UNIT_BYTES : UNIT_COUNT;
}

/* Into a new recording; one that came to nothing is taken away again. */
static int import_into(const struct cmd_call *call, struct import_source *source,
                       const struct importer *importer, struct arena *arena,
                       struct import_result *result, struct why *why)
{
    const struct import_cmd_opts *opts = call->opts;
    char cache[4096];
    struct import_opts wanted = {
        .unit = unit_of(opts->unit),
        .debuginfod = opts->debuginfod,
        .no_symbols = opts->no_symbols,
        .cache_dir = symbols_cache_dir(cache, sizeof(cache)),
    };
    struct recording_opts recording = {.version = WHYSLOW_VERSION};
    struct recording_writer *writer = NULL;
    int r = recording_create(opts->output, &recording, &writer, why);
    if (r < 0)
        return r;
    struct progress progress;
    progress_begin(&progress, call->notes, "import", source->size_bytes >> 20);
    source->progress = show_progress;
    source->progress_context = &progress;
    r = importer->import(source, recording_writer_sink(writer), &wanted, arena, result, why);
    if (recording_writer_why(writer)->error != 0 && r < 0)
        *why = *recording_writer_why(writer);
    if (r == 0)
        r = recording_writer_finish(writer, why);
    progress_end(&progress);
    recording_writer_close(writer);
    if (r < 0) {
        const char *suffixes[] = {"", "-wal", "-shm"};
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
            unlink(arena_printf(arena, "%s%s", opts->output, suffixes[i]));
    }
    return r;
}

static int import_run(const struct cmd_call *call, struct why *why)
{
    const struct import_cmd_opts *opts = call->opts;
    if (opts->list)
        return list_formats(call, why);
    if (call->argc != 1)
        return why_set(why, WHY_USAGE, EINVAL, "whyslow import FILE -o REC",
                       "name the file to import");
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    AUTO(import_source_close) struct import_source source = {.fd = -1};
    const struct importer *importer = NULL;
    struct import_result result = {0};
    int r = import_source_open(call->argv[0], &source, why);
    if (r == 0)
        r = choose(opts, &source, &importer, why);
    if (r == 0 && importer)
        r = import_into(call, &source, importer, &arena, &result, why);
    if (r == 0 && importer)
        r = tell(call, importer, &arena, &result, why);
    return r < 0 ? r : EXIT_DONE;
}

static const struct cmd_example examples[] = {
    {"whyslow import perf.data -o app.whyslow", "what perf record has written"},
    {"perf record -o - -- ./app | whyslow import - -o app.whyslow", "through a pipe"},
    {"whyslow import cpu.pb.gz -o app.whyslow", "a profile of Go, or of a service"},
    {"whyslow import stacks.folded --unit ns -o app.whyslow",
     "folded stacks whose numbers are nanoseconds"},
    {NULL, NULL},
};

const struct command cmd_import = {
    .name = "import",
    .group = "Look into a recording",
    .operands = "FILE",
    .summary = "make a recording of perf.data, pprof, folded stacks or perf script's text",
    .about = "Reads a profile of another tool and makes a recording of it, for 'report', 'export' "
             "and 'query'. The format is told by the file's first bytes, or by --format; '-' "
             "reads standard input. docs/exchange.md says what is kept of each format.\n\n"
             "A record that makes no sense is skipped and counted by reason, in the report and "
             "in the recording (counters import.skipped.*). A file without a sample is an error.",
    .options = import_options,
    .options_size = sizeof(struct import_cmd_opts),
    .operands_min = 0,
    .operands_max = 1,
    .examples = examples,
    .run = import_run,
};
