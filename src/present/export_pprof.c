/* pprof: the gzipped protobuf that `go tool pprof` and most services read.
 *
 * Each kind of message goes out as soon as it is built, so that memory stays that of one
 * message however large the profile is. Two values a sample: how many, and their weight; or
 * those that the caller has (a heap: calls and bytes, of all and of what lives).
 * Addresses are those of the ELF file, under mappings that span all addresses: pprof knows
 * this as "addresses already adjusted" and subtracts nothing. */
#include "base/gzip.h"
#include "base/intern.h"
#include "base/protow.h"
#include "base/vec.h"
#include "present/export_common.h"

#include <errno.h>
#include <inttypes.h>

/* Field numbers of perftools.profiles.Profile and its parts. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_DROP_FRAMES = 7,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,

    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,

    SAMPLE_LOCATION_ID = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,

    LABEL_KEY = 1,
    LABEL_STR = 2,
    LABEL_NUM = 3,

    MAPPING_ID = 1,
    MAPPING_MEMORY_LIMIT = 3,
    MAPPING_FILENAME = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILENAMES = 8,
    MAPPING_HAS_LINE_NUMBERS = 9,
    MAPPING_HAS_INLINE_FRAMES = 10,

    LOCATION_ID = 1,
    LOCATION_MAPPING_ID = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,

    LINE_FUNCTION_ID = 1,
    LINE_LINE = 2,

    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILENAME = 4,
    FUNCTION_START_LINE = 5,
};

struct pprof {
    const struct profile *profile;
    const struct export_opts *opts;
    struct arena arena;
    struct intern strings; /* id n is string n of the table; string 0 is "" */
    struct protow message;
    struct gzip_writer *gzip;
    struct export_nodes nodes;
    /* Ids of those that are used, 0: it is not. Some readers (Parca) want them to count from 1
     * without a gap, in the order of their tables. */
    uint64_t *frames, *functions, *images;
    VEC(uint64_t) locations; /* of the sample being written */
    bool failed;
};

static uint64_t string_id(struct pprof *pprof, struct str text)
{
    uint32_t id = 0;
    if (text.len > 0 &&
        intern_add(&pprof->strings, export_utf8(&pprof->arena, text), &id, NULL) < 0)
        pprof->failed = true;
    return id;
}

static void emit(struct pprof *pprof)
{
    if (pprof->message.failed ||
        gzip_writer_put(pprof->gzip, pprof->message.data, pprof->message.len) < 0)
        pprof->failed = true;
    protow_clear(&pprof->message);
}

static void write_value_type(struct pprof *pprof, uint32_t field, const char *type,
                             const char *unit)
{
    protow_begin(&pprof->message, field);
    protow_uint(&pprof->message, VALUE_TYPE_TYPE, string_id(pprof, str_from(type)));
    protow_uint(&pprof->message, VALUE_TYPE_UNIT, string_id(pprof, str_from(unit)));
    protow_end(&pprof->message);
}

/* What the values of a sample are, and which of them is meant unless one is chosen. */
static const char *write_types(struct pprof *pprof)
{
    const struct profile *profile = pprof->profile;
    const struct export_values *values = pprof->opts->values;
    const char *unit = export_unit(profile->unit);
    if (values) {
        for (size_t i = 0; i < values->count; i++)
            write_value_type(pprof, PROFILE_SAMPLE_TYPE, values->types[i].type,
                             values->types[i].unit);
        if (values->drop)
            protow_uint(&pprof->message, PROFILE_DROP_FRAMES,
                        string_id(pprof, str_from(values->drop)));
        return values->main;
    }
    write_value_type(pprof, PROFILE_SAMPLE_TYPE, "samples", "count");
    write_value_type(pprof, PROFILE_SAMPLE_TYPE, profile->series, unit);
    write_value_type(pprof, PROFILE_PERIOD_TYPE, profile->series, unit);
    protow_uint(&pprof->message, PROFILE_PERIOD,
                profile->count ? profile->weight / profile->count : 0);
    return profile->series;
}

static void write_head(struct pprof *pprof)
{
    const struct profile *profile = pprof->profile;
    struct protow *message = &pprof->message;
    const char *main_type = write_types(pprof);
    protow_uint(message, PROFILE_TIME_NANOS, pprof->opts->start_real_ns);
    protow_uint(message, PROFILE_DURATION_NANOS, profile->end_ns - profile->start_ns);
    protow_uint(message, PROFILE_DEFAULT_SAMPLE_TYPE, string_id(pprof, str_from(main_type)));
    const char *title = export_title(profile, pprof->opts, &pprof->arena);
    protow_uint(message, PROFILE_COMMENT,
                string_id(pprof, str_from(arena_printf(&pprof->arena, "whyslow: %s", title))));
    for (size_t i = 0; pprof->opts->comments && pprof->opts->comments[i]; i++)
        protow_uint(message, PROFILE_COMMENT, string_id(pprof, str_from(pprof->opts->comments[i])));
    emit(pprof);
}

static void write_label(struct pprof *pprof, const char *key, struct str text, uint64_t number)
{
    if (text.len == 0 && number == 0)
        return;
    struct protow *message = &pprof->message;
    protow_begin(message, SAMPLE_LABEL);
    protow_uint(message, LABEL_KEY, string_id(pprof, str_from(key)));
    protow_uint(message, LABEL_STR, string_id(pprof, text));
    protow_uint(message, LABEL_NUM, number);
    protow_end(message);
}

static void write_sample(struct pprof *pprof, const struct profile_total *total)
{
    const struct profile *profile = pprof->profile;
    struct protow *message = &pprof->message;
    pprof->locations.len = 0;
    /* Frame 0 is "[no stack]". */
    uint32_t stack = total->stack;
    do {
        uint64_t frame = stack ? profile->stacks[stack].frame : 0;
        if (VEC_PUSH(&pprof->locations, pprof->frames[frame]) < 0)
            pprof->failed = true;
        stack = stack ? profile->stacks[stack].parent : 0;
    } while (stack != 0);
    protow_begin(message, PROFILE_SAMPLE);
    protow_packed(message, SAMPLE_LOCATION_ID, pprof->locations.data, pprof->locations.len);
    const struct export_values *several = pprof->opts->values;
    const uint64_t values[] = {total->count, total->weight};
    if (several)
        protow_packed(message, SAMPLE_VALUE,
                      several->rows + (size_t)(total - profile->totals) * several->count,
                      several->count);
    else
        protow_packed(message, SAMPLE_VALUE, values, ARRAY_SIZE(values));
    const struct profile_thread *thread = &profile->threads[total->thread];
    const struct profile_process *process = &profile->processes[thread->process];
    if (total->thread != 0) {
        write_label(pprof, "thread", thread->name, 0);
        write_label(pprof, "thread_id", STR(""), thread->tid);
        write_label(pprof, "process", export_basename(process->exe), 0);
        write_label(pprof, "process_id", STR(""), process->pid);
    }
    protow_end(message);
    emit(pprof);
}

static void write_mappings(struct pprof *pprof)
{
    struct protow *message = &pprof->message;
    for (size_t i = 1; i < pprof->profile->image_count; i++) {
        if (!pprof->images[i])
            continue;
        const struct image_info *image = &pprof->profile->images[i];
        protow_begin(message, PROFILE_MAPPING);
        protow_uint(message, MAPPING_ID, pprof->images[i]);
        protow_uint(message, MAPPING_MEMORY_LIMIT, UINT64_MAX);
        protow_uint(message, MAPPING_FILENAME, string_id(pprof, image->path));
        protow_uint(message, MAPPING_BUILD_ID, string_id(pprof, image->build_id));
        /* All that is known is in the file; a reader must not look again elsewhere. */
        protow_uint(message, MAPPING_HAS_FUNCTIONS, 1);
        protow_uint(message, MAPPING_HAS_FILENAMES, 1);
        protow_uint(message, MAPPING_HAS_LINE_NUMBERS, 1);
        protow_uint(message, MAPPING_HAS_INLINE_FRAMES, 1);
        protow_end(message);
        emit(pprof);
    }
}

static void write_locations(struct pprof *pprof)
{
    const struct profile *profile = pprof->profile;
    struct protow *message = &pprof->message;
    for (size_t i = 0; i < profile->frame_count; i++) {
        if (!pprof->frames[i])
            continue;
        const struct profile_frame *frame = &profile->frames[i];
        protow_begin(message, PROFILE_LOCATION);
        protow_uint(message, LOCATION_ID, pprof->frames[i]);
        protow_uint(message, LOCATION_MAPPING_ID, pprof->images[frame->image]);
        protow_uint(message, LOCATION_ADDRESS, frame->address);
        for (uint32_t p = 0; p < frame->place_count; p++) {
            const struct profile_place *place = &profile->places[frame->places + p];
            protow_begin(message, LOCATION_LINE);
            protow_uint(message, LINE_FUNCTION_ID, pprof->functions[place->function]);
            protow_uint(message, LINE_LINE, place->line);
            protow_end(message);
        }
        protow_end(message);
        emit(pprof);
    }
}

static void write_functions(struct pprof *pprof)
{
    const struct profile *profile = pprof->profile;
    struct protow *message = &pprof->message;
    for (size_t i = 0; i < profile->function_count; i++) {
        if (!pprof->functions[i])
            continue;
        const struct profile_function *function = &profile->functions[i];
        struct str name = function->name.len ? function->name : STR("[unnamed]");
        struct str linkage = function->linkage.len ? function->linkage : name;
        protow_begin(message, PROFILE_FUNCTION);
        protow_uint(message, FUNCTION_ID, pprof->functions[i]);
        protow_uint(message, FUNCTION_NAME, string_id(pprof, name));
        protow_uint(message, FUNCTION_SYSTEM_NAME, string_id(pprof, linkage));
        protow_uint(message, FUNCTION_FILENAME, string_id(pprof, function->file));
        protow_uint(message, FUNCTION_START_LINE, function->line);
        protow_end(message);
        emit(pprof);
    }
}

static void write_strings(struct pprof *pprof)
{
    for (size_t i = 0; i <= pprof->strings.len; i++) {
        protow_text(&pprof->message, PROFILE_STRING_TABLE, intern_get(&pprof->strings, (uint32_t)i),
                    true);
        emit(pprof);
    }
}

/* From marks to ids. */
static void ids_give(uint64_t *used, size_t first, size_t count)
{
    uint64_t id = 0;
    for (size_t i = first; i < count; i++)
        used[i] = used[i] ? ++id : 0;
}

static int pprof_begin(struct pprof *pprof, struct why *why)
{
    const struct profile *profile = pprof->profile;
    int r = export_nodes_build(&pprof->arena, profile, &pprof->nodes, why);
    if (r < 0)
        return r;
    pprof->frames = arena_alloc(&pprof->arena, profile->frame_count * sizeof(uint64_t));
    pprof->functions = arena_alloc(&pprof->arena, profile->function_count * sizeof(uint64_t));
    pprof->images = arena_alloc(&pprof->arena, profile->image_count * sizeof(uint64_t));
    if (!pprof->frames || !pprof->functions || !pprof->images)
        return why_nomem(why);
    for (size_t i = 1; i < pprof->nodes.count; i++) {
        const struct export_node *node = &pprof->nodes.nodes[i];
        pprof->frames[node->frame] = 1;
        pprof->functions[profile->places[node->place].function] = 1;
        pprof->images[profile->frames[node->frame].image] = 1;
    }
    ids_give(pprof->frames, 0, profile->frame_count);
    ids_give(pprof->functions, 0, profile->function_count);
    if (profile->image_count > 0)
        pprof->images[0] = 0; /* of no image */
    ids_give(pprof->images, 1, profile->image_count);
    return 0;
}

static int pprof_write(const struct profile *profile, const struct export_opts *opts, FILE *out,
                       struct why *why)
{
    struct pprof pprof = {.profile = profile, .opts = opts};
    int r = pprof_begin(&pprof, why);
    if (r == 0 && gzip_writer_open(out, &pprof.gzip) < 0)
        r = why_nomem(why);
    if (r == 0) {
        write_head(&pprof);
        for (size_t i = 0; i < profile->total_count && !pprof.failed; i++)
            write_sample(&pprof, &profile->totals[i]);
        write_mappings(&pprof);
        write_locations(&pprof);
        write_functions(&pprof);
        write_strings(&pprof);
        int ended = gzip_writer_finish(pprof.gzip);
        bool memory = pprof.message.failed || arena_failed(&pprof.arena) || ended == -ENOMEM;
        r = memory ? why_nomem(why) : export_flush(out, why);
        if (r == 0 && (pprof.failed || ended < 0))
            r = why_nomem(why);
    }
    gzip_writer_close(pprof.gzip);
    VEC_FREE(&pprof.locations);
    protow_deinit(&pprof.message);
    intern_deinit(&pprof.strings);
    arena_deinit(&pprof.arena);
    return r;
}

extern const struct exporter exporter_pprof;
const struct exporter exporter_pprof = {
    .name = "pprof",
    .extension = ".pb.gz",
    .about = "pprof: go tool pprof, Pyroscope, Grafana, Speedscope",
    .binary = true,
    .write = pprof_write,
};
