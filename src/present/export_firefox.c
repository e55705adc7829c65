/* The Firefox Profiler's processed format, version 66: the front end upgrades it to its own.
 *
 * Tables of columns, shared by all threads: strings, sources, libraries, functions, frames and
 * stacks; then for each thread its samples with time steps, weights and CPU time. A node of
 * export_common is a row of the stack table, a place is a row of the frame table. Weights are
 * milliseconds ("tracing-ms"), so that what the front end shows is measured time and not a
 * number of samples times an interval. */
#include "base/gzip.h"
#include "base/intern.h"
#include "base/jsonw.h"
#include "base/vec.h"
#include "present/export_common.h"

#include <ctype.h>
#include <errno.h>

enum {
    GECKO_VERSION = 31,
    PROCESSED_VERSION = 66,
    RESOURCE_LIBRARY = 1,
    CATEGORY_OTHER = 0,
    CATEGORY_USER = 1,
    CATEGORY_KERNEL = 2,
};

struct ids { /* a VEC with a name, to be handed on */
    uint32_t *data;
    size_t len, cap;
};

struct firefox {
    const struct profile *profile;
    const struct export_opts *opts;
    struct arena arena;
    struct export_nodes nodes;
    struct export_rows rows;
    struct intern strings; /* string n is id n + 1 */
    struct intern sources;
    uint32_t *func_of;  /* function to row + 1 */
    uint32_t *lib_of;   /* image to row + 1 */
    uint32_t *frame_of; /* place to row + 1 */
    struct ids funcs;   /* rows to functions */
    struct ids libs;    /* rows to images */
    struct ids frames;  /* rows to nodes: the first that has this place */
    struct jsonw json;
    bool failed;
};

static uint32_t string_of(struct firefox *fox, struct str text)
{
    uint32_t id = 1;
    if (intern_add(&fox->strings, text, &id, NULL) < 0)
        fox->failed = true;
    return id - 1;
}

static void add_row(struct firefox *fox, uint32_t *row_of, struct ids *rows, uint32_t what)
{
    if (*row_of != 0)
        return;
    if (VEC_PUSH(rows, what) < 0)
        fox->failed = true;
    else
        *row_of = (uint32_t)rows->len;
}

/* Everything gets its row number before anything is written. */
static void number(struct firefox *fox)
{
    const struct profile *profile = fox->profile;
    for (uint32_t i = 1; i < fox->nodes.count; i++) {
        const struct export_node *node = &fox->nodes.nodes[i];
        uint32_t id = profile->places[node->place].function;
        const struct profile_function *function = &profile->functions[id];
        add_row(fox, &fox->frame_of[node->place], &fox->frames, i);
        add_row(fox, &fox->func_of[id], &fox->funcs, id);
        uint32_t source;
        if (function->file.len > 0 && intern_add(&fox->sources, function->file, &source, NULL) < 0)
            fox->failed = true;
        if (function->image != 0)
            add_row(fox, &fox->lib_of[function->image], &fox->libs, function->image);
    }
}

static void put_u64(struct jsonw *json, const char *key, uint64_t number)
{
    jsonw_key(json, key);
    jsonw_u64(json, number);
}

static void put_bool(struct jsonw *json, const char *key, bool truth)
{
    jsonw_key(json, key);
    jsonw_bool(json, truth);
}

static void put_text(struct jsonw *json, const char *key, struct str text)
{
    jsonw_key(json, key);
    jsonw_text(json, text);
}

static void put_null(struct jsonw *json, const char *key)
{
    jsonw_key(json, key);
    jsonw_null(json);
}

/* A column in which every row is the same. */
enum constant { ALL_NULL, ALL_ZERO, ALL_ONE, ALL_FALSE };
static void put_constant(struct jsonw *json, const char *key, size_t count, enum constant what)
{
    jsonw_key(json, key);
    jsonw_array_begin(json);
    for (size_t i = 0; i < count; i++) {
        if (what == ALL_NULL)
            jsonw_null(json);
        else if (what == ALL_FALSE)
            jsonw_bool(json, false);
        else
            jsonw_u64(json, what == ALL_ONE);
    }
    jsonw_array_end(json);
}

static void write_category(struct jsonw *json, const char *name, const char *color)
{
    jsonw_object_begin(json);
    put_text(json, "name", str_from(name));
    put_text(json, "color", str_from(color));
    jsonw_key(json, "subcategories");
    jsonw_array_begin(json);
    jsonw_text(json, STR("Other"));
    jsonw_array_end(json);
    jsonw_object_end(json);
}

static void write_extra(struct firefox *fox)
{
    struct jsonw *json = &fox->json;
    jsonw_key(json, "extra");
    jsonw_array_begin(json);
    jsonw_object_begin(json);
    put_text(json, "label", STR("Measured by whyslow"));
    jsonw_key(json, "entries");
    jsonw_array_begin(json);
    for (size_t i = 0; fox->opts->comments && fox->opts->comments[i]; i++) {
        jsonw_object_begin(json);
        put_text(json, "label", STR("note"));
        put_text(json, "format", STR("string"));
        put_text(json, "value", str_from(fox->opts->comments[i]));
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
    jsonw_object_end(json);
    jsonw_array_end(json);
}

static void write_meta(struct firefox *fox)
{
    const struct profile *profile = fox->profile;
    struct jsonw *json = &fox->json;
    uint64_t interval_ns = profile->unit == UNIT_NS && profile->count
                               ? profile->weight / profile->count
                               : 1000000;
    jsonw_key(json, "meta");
    jsonw_object_begin(json);
    jsonw_key(json, "interval");
    jsonw_decimal(json, MAX(interval_ns, 1000u), 6);
    jsonw_key(json, "startTime");
    jsonw_decimal(json, fox->opts->start_real_ns, 6);
    put_u64(json, "processType", 0);
    put_text(json, "product", str_from(export_title(profile, fox->opts, &fox->arena)));
    put_text(json, "importedFrom", STR("whyslow"));
    put_u64(json, "stackwalk", 1);
    put_bool(json, "debug", false);
    put_u64(json, "version", GECKO_VERSION);
    put_u64(json, "preprocessedProfileVersion", PROCESSED_VERSION);
    put_bool(json, "symbolicated", true);
    put_bool(json, "symbolicationNotSupported", true);
    put_bool(json, "usesOnlyOneStackType", true);
    put_bool(json, "sourceCodeIsNotOnSearchfox", true);
    jsonw_key(json, "markerSchema");
    jsonw_array_begin(json);
    jsonw_array_end(json);
    jsonw_key(json, "sampleUnits");
    jsonw_object_begin(json);
    put_text(json, "time", STR("ms"));
    put_text(json, "eventDelay", STR("ms"));
    put_text(json, "threadCPUDelta", STR("ns"));
    jsonw_object_end(json);
    jsonw_key(json, "categories");
    jsonw_array_begin(json);
    write_category(json, "Other", "grey");
    write_category(json, "User", "yellow");
    write_category(json, "Kernel", "orange");
    jsonw_array_end(json);
    write_extra(fox);
    jsonw_object_end(json);
}

/* Breakpad's way of writing the first 16 bytes of a build-id: as a GUID, so the first three
 * groups are byte-swapped, upper case, with an age of 0. */
static void breakpad_id(struct str build_id, char text[34])
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    memset(text, '0', 33);
    text[33] = '\0';
    for (size_t i = 0; i < 16; i++) {
        size_t from = (size_t)order[i] * 2;
        for (size_t n = 0; n < 2 && from + n < build_id.len; n++)
            if (isxdigit((unsigned char)build_id.data[from + n]))
                text[2 * i + n] = (char)toupper((unsigned char)build_id.data[from + n]);
    }
}

static void write_libs(struct firefox *fox)
{
    struct jsonw *json = &fox->json;
    jsonw_key(json, "libs");
    jsonw_array_begin(json);
    for (size_t i = 0; i < fox->libs.len; i++) {
        const struct image_info *image = &fox->profile->images[fox->libs.data[i]];
        struct str name = export_basename(image->path);
        char id[34];
        breakpad_id(image->build_id, id);
        jsonw_object_begin(json);
        put_text(json, "arch", STR(""));
        put_text(json, "name", name);
        put_text(json, "path", image->path);
        put_text(json, "debugName", name);
        put_text(json, "debugPath", image->path);
        put_text(json, "breakpadId", str_from(id));
        if (image->build_id.len > 0)
            put_text(json, "codeId", image->build_id);
        else
            put_null(json, "codeId");
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

#define COLUMN(json, name, i, count, ...)                                                          \
    do {                                                                                           \
        jsonw_key((json), (name));                                                                 \
        jsonw_array_begin(json);                                                                   \
        for (size_t i = 0; i < (count); i++) {                                                     \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        jsonw_array_end(json);                                                                     \
    } while (0)

static void put_row_or_null(struct jsonw *json, uint32_t row_plus_one)
{
    if (row_plus_one == 0)
        jsonw_null(json);
    else
        jsonw_u64(json, row_plus_one - 1);
}

static void put_number_or_null(struct jsonw *json, uint64_t number)
{
    if (number == 0)
        jsonw_null(json);
    else
        jsonw_u64(json, number);
}

static void write_functions(struct firefox *fox)
{
    struct jsonw *json = &fox->json;
    const struct profile_function *functions = fox->profile->functions;
    size_t count = fox->funcs.len;
    const uint32_t *funcs = fox->funcs.data;
    jsonw_key(json, "funcTable");
    jsonw_object_begin(json);
    COLUMN(json, "name", i, count, {
        struct str name = functions[funcs[i]].name;
        jsonw_u64(json, string_of(fox, name.len ? name : STR("[unnamed]")));
    });
    put_constant(json, "isJS", count, ALL_FALSE);
    put_constant(json, "relevantForJS", count, ALL_FALSE);
    COLUMN(json, "resource", i, count,
           jsonw_i64(json, (int64_t)fox->lib_of[functions[funcs[i]].image] - 1));
    COLUMN(json, "source", i, count,
           put_row_or_null(json, intern_find(&fox->sources, functions[funcs[i]].file)));
    COLUMN(json, "lineNumber", i, count, put_number_or_null(json, functions[funcs[i]].line));
    put_constant(json, "columnNumber", count, ALL_NULL);
    put_constant(json, "originalLocation", count, ALL_NULL);
    put_u64(json, "length", count);
    jsonw_object_end(json);
}

static unsigned category(const struct profile_frame *frame)
{
    switch (frame->kind) {
    case FRAME_KERNEL:
        return CATEGORY_KERNEL;
    case FRAME_UNKNOWN:
        return CATEGORY_OTHER;
    default:
        return CATEGORY_USER;
    }
}

/* JSON numbers are doubles: a kernel address does not fit, and is of no use in a library. */
static void put_address(struct jsonw *json, const struct profile_frame *frame)
{
    if (frame->address == 0 || frame->address >= 1ull << 53)
        jsonw_i64(json, -1);
    else
        jsonw_u64(json, frame->address);
}

static void write_frames(struct firefox *fox)
{
    struct jsonw *json = &fox->json;
    const struct profile *profile = fox->profile;
    size_t count = fox->frames.len;
#define NODE(i)  (&fox->nodes.nodes[fox->frames.data[i]])
#define FRAME(i) (&profile->frames[NODE(i)->frame])
#define PLACE(i) (&profile->places[NODE(i)->place])
    jsonw_key(json, "frameTable");
    jsonw_object_begin(json);
    COLUMN(json, "address", i, count, put_address(json, FRAME(i)));
    COLUMN(json, "inlineDepth", i, count, jsonw_u64(json, MIN(NODE(i)->inline_depth, 255u)));
    COLUMN(json, "category", i, count, jsonw_u64(json, category(FRAME(i))));
    put_constant(json, "subcategory", count, ALL_ZERO);
    COLUMN(json, "func", i, count, jsonw_u64(json, fox->func_of[PLACE(i)->function] - 1));
    put_constant(json, "nativeSymbol", count, ALL_NULL);
    put_constant(json, "innerWindowID", count, ALL_ZERO);
    COLUMN(json, "line", i, count, put_number_or_null(json, PLACE(i)->line));
    put_constant(json, "column", count, ALL_NULL);
    put_constant(json, "originalLocation", count, ALL_NULL);
    put_u64(json, "length", count);
    jsonw_object_end(json);
#undef NODE
#undef FRAME
#undef PLACE
}

static void write_stacks(struct firefox *fox)
{
    struct jsonw *json = &fox->json;
    const struct export_node *nodes = fox->nodes.nodes;
    size_t count = fox->nodes.count - 1; /* node 0 is none */
    jsonw_key(json, "stackTable");
    jsonw_object_begin(json);
    COLUMN(json, "frame", i, count, jsonw_u64(json, fox->frame_of[nodes[i + 1].place] - 1));
    COLUMN(json, "prefixOffset", i, count, {
        uint32_t parent = nodes[i + 1].parent;
        jsonw_u64(json, parent ? i + 1 - parent : 0);
    });
    put_u64(json, "length", count);
    jsonw_object_end(json);
}

static void write_resources(struct firefox *fox)
{
    struct jsonw *json = &fox->json;
    size_t count = fox->libs.len;
    jsonw_key(json, "resourceTable");
    jsonw_object_begin(json);
    COLUMN(json, "lib", i, count, jsonw_u64(json, i));
    COLUMN(json, "name", i, count,
           jsonw_u64(json, string_of(fox, export_basename(
                                              fox->profile->images[fox->libs.data[i]].path))));
    put_constant(json, "host", count, ALL_NULL);
    COLUMN(json, "type", i, count, jsonw_u64(json, RESOURCE_LIBRARY));
    put_u64(json, "length", count);
    jsonw_object_end(json);
}

static void write_sources(struct firefox *fox)
{
    struct jsonw *json = &fox->json;
    size_t count = fox->sources.len;
    jsonw_key(json, "sources");
    jsonw_object_begin(json);
    put_constant(json, "id", count, ALL_NULL);
    COLUMN(json, "filename", i, count,
           jsonw_u64(json, string_of(fox, intern_get(&fox->sources, (uint32_t)i + 1))));
    put_constant(json, "startLine", count, ALL_ONE);
    put_constant(json, "startColumn", count, ALL_ONE);
    put_constant(json, "sourceMapURL", count, ALL_NULL);
    put_constant(json, "content", count, ALL_NULL);
    put_u64(json, "length", count);
    jsonw_object_end(json);
}

static void write_empty(struct jsonw *json, const char *table, const char *const *columns)
{
    jsonw_key(json, table);
    jsonw_object_begin(json);
    for (; *columns; columns++)
        put_constant(json, *columns, 0, ALL_NULL);
    put_u64(json, "length", 0);
    jsonw_object_end(json);
}

static void write_shared(struct firefox *fox)
{
    static const char *const symbols[] = {"libIndex", "address", "name", "functionSize", NULL};
    static const char *const locations[] = {"source", "line", "column", NULL};
    struct jsonw *json = &fox->json;
    jsonw_key(json, "shared");
    jsonw_object_begin(json);
    write_functions(fox);
    write_frames(fox);
    write_stacks(fox);
    write_resources(fox);
    write_sources(fox);
    write_empty(json, "nativeSymbols", symbols);
    write_empty(json, "sourceLocationTable", locations);
    /* Last: writing the others has collected them. */
    jsonw_key(json, "stringArray");
    jsonw_array_begin(json);
    for (uint32_t i = 1; i <= fox->strings.len; i++)
        jsonw_text(json, intern_get(&fox->strings, i));
    jsonw_array_end(json);
    jsonw_object_end(json);
}

static void write_samples(struct firefox *fox, size_t begin, size_t end)
{
    struct jsonw *json = &fox->json;
    const struct export_rows *rows = &fox->rows;
    bool time = fox->profile->unit == UNIT_NS;
    bool bytes = fox->profile->unit == UNIT_BYTES;
    size_t count = end - begin;
    uint64_t before_ns = fox->profile->start_ns;
    jsonw_key(json, "samples");
    jsonw_object_begin(json);
    COLUMN(json, "stack", i, count,
           put_row_or_null(json, fox->nodes.of_stack[export_rows_at(rows, begin + i).stack]));
    COLUMN(json, "timeDeltas", i, count, {
        uint64_t now_ns = MAX(export_rows_at(rows, begin + i).time_ns, before_ns);
        jsonw_decimal(json, now_ns - before_ns, 6);
        before_ns = now_ns;
    });
    COLUMN(json, "weight", i, count,
           jsonw_decimal(json, export_rows_at(rows, begin + i).weight, time ? 6 : 0));
    put_text(json, "weightType", str_from(time ? "tracing-ms" : bytes ? "bytes" : "samples"));
    if (time)
        COLUMN(json, "threadCPUDelta", i, count,
               jsonw_u64(json, export_rows_at(rows, begin + i).weight));
    put_u64(json, "length", count);
    jsonw_object_end(json);
}

static void write_thread(struct firefox *fox, uint32_t part)
{
    static const char *const markers[] = {"data",  "name",     "startTime", "endTime",
                                          "phase", "category", NULL};
    const struct profile *profile = fox->profile;
    const struct profile_thread *thread = &profile->threads[part];
    const struct profile_process *process = &profile->processes[thread->process];
    struct jsonw *json = &fox->json;
    jsonw_object_begin(json);
    put_text(json, "processType", STR("default"));
    put_u64(json, "processStartupTime", 0);
    put_null(json, "processShutdownTime");
    put_u64(json, "registerTime", 0);
    put_null(json, "unregisterTime");
    jsonw_key(json, "pausedRanges");
    jsonw_array_begin(json);
    jsonw_array_end(json);
    put_text(json, "name", thread->name);
    put_bool(json, "isMainThread", thread->tid == process->pid);
    put_text(json, "processName", export_basename(process->exe));
    /* A pid that came back is another process: the id of the recording keeps them apart. */
    put_text(json, "pid",
             str_from(arena_printf(&fox->arena, "%u.%u", process->pid, thread->process)));
    put_u64(json, "tid", thread->tid);
    write_samples(fox, fox->rows.begin[part], fox->rows.begin[part + 1]);
    write_empty(json, "markers", markers);
    jsonw_object_end(json);
}

static void write_all(struct firefox *fox)
{
    struct jsonw *json = &fox->json;
    jsonw_object_begin(json);
    write_meta(fox);
    write_libs(fox);
    write_shared(fox);
    jsonw_key(json, "threads");
    jsonw_array_begin(json);
    for (size_t i = 0; i < fox->rows.part_count; i++)
        write_thread(fox, fox->rows.parts[i]);
    jsonw_array_end(json);
    jsonw_object_end(json);
    fputc('\n', json->out);
}

static int firefox_begin(struct firefox *fox, struct why *why)
{
    const struct profile *profile = fox->profile;
    int r = export_nodes_build(&fox->arena, profile, &fox->nodes, why);
    if (r == 0)
        r = export_rows_build(&fox->arena, profile, 0, true, &fox->rows, why);
    if (r < 0)
        return r;
    fox->func_of = arena_alloc(&fox->arena, profile->function_count * sizeof(uint32_t));
    fox->lib_of = arena_alloc(&fox->arena, profile->image_count * sizeof(uint32_t));
    fox->frame_of = arena_alloc(&fox->arena, MAX(profile->place_count, 1u) * sizeof(uint32_t));
    if (!fox->func_of || !fox->lib_of || !fox->frame_of)
        return why_nomem(why);
    number(fox);
    return fox->failed ? why_nomem(why) : 0;
}

static int firefox_write(const struct profile *profile, const struct export_opts *opts, FILE *out,
                         struct why *why)
{
    struct firefox fox = {.profile = profile, .opts = opts};
    int r = firefox_begin(&fox, why);
    if (r == 0) {
        jsonw_init(&fox.json, out, 0);
        write_all(&fox);
        r = fox.failed || arena_failed(&fox.arena) ? why_nomem(why) : export_flush(out, why);
    }
    VEC_FREE(&fox.funcs);
    VEC_FREE(&fox.libs);
    VEC_FREE(&fox.frames);
    intern_deinit(&fox.strings);
    intern_deinit(&fox.sources);
    arena_deinit(&fox.arena);
    return r;
}

static int firefox_gz_write(const struct profile *profile, const struct export_opts *opts,
                            FILE *out, struct why *why)
{
    FILE *packed = gzip_stream(out);
    if (!packed)
        return why_nomem(why);
    int r = firefox_write(profile, opts, packed, why);
    if (fclose(packed) != 0 && r == 0)
        r = why_errno(why, errno, NULL, "cannot write the export");
    return r < 0 ? r : export_flush(out, why);
}

extern const struct exporter exporter_firefox, exporter_firefox_gz;
const struct exporter exporter_firefox = {
    .name = "firefox",
    .extension = ".json",
    .about = "profiler.firefox.com, with time",
    .samples = true,
    .write = firefox_write,
};
const struct exporter exporter_firefox_gz = {
    .name = "firefox-gz",
    .extension = ".json.gz",
    .about = "the same, gzipped",
    .binary = true,
    .samples = true,
    .write = firefox_gz_write,
};
