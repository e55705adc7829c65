/* pprof: Go's profiles, gperftools, and what many services hand out.
 *
 * Two passes over the bytes, since a message may refer to one that comes later: tables first
 * (strings, functions, mappings, locations), then samples. Ids are the file's own and may be
 * any 64-bit number. Of several sample types each becomes a series; a "samples/count" beside
 * another one says how many samples a weight stands for and is not a series of its own. */
#include "base/gzip.h"
#include "base/map.h"
#include "base/protor.h"
#include "collect/import_common.h"
#include "unwind/unwind.h"

#include <errno.h>

enum {
    FILE_BYTES_MAX = 1 << 30,
    ENTRIES_MAX = 1 << 23, /* strings, functions, locations; each */
    TYPES_MAX = 16,
    INLINE_MAX = 256,
};

struct pprof_function {
    uint32_t text; /* id of its name in the sink */
    uint32_t linkage, file;
    uint32_t line;
};

struct pprof_line {
    uint64_t function; /* the file's id */
    uint32_t line;
};

struct pprof_location {
    struct str bytes; /* the message, read again when a sample first uses it */
    uint32_t frame;   /* in the sink, 0: not made yet */
};

struct pprof_type {
    struct str type, unit;
    uint32_t series; /* 0: none of its own */
    bool counts;     /* says how many samples the others stand for */
    uint64_t scale;  /* to the unit of the series: 1000 for microseconds */
};

struct list { /* a VEC with a name, to be handed on */
    uint64_t *data;
    size_t len, cap;
};

struct pprof {
    struct import import;
    struct str bytes;
    VEC(struct str) strings;
    VEC(struct pprof_function) functions;
    struct map_u64 function_ids; /* the file's id to index */
    VEC(uint32_t) images;
    struct map_u64 image_ids;
    VEC(struct pprof_location) locations;
    struct map_u64 location_ids;
    struct pprof_type types[TYPES_MAX];
    size_t type_count;
    uint64_t default_type; /* string index */
    /* of one sample */
    struct list sample_locations, sample_values;
};

static int damaged(struct pprof *pprof, const char *what)
{
    return why_set(pprof->import.why, WHY_FAILED, EBADMSG,
                   "copy the file again, or check it with 'go tool pprof -raw FILE'",
                   "'%s': damaged pprof: %s", pprof->import.source->path, what);
}

static struct str string_at(const struct pprof *pprof, uint64_t index)
{
    return index < pprof->strings.len ? pprof->strings.data[index] : STR("");
}

/* A field of a small message by number; the last one wins, as protobuf says. */
static uint64_t number_of(struct str message, uint32_t field_number)
{
    struct protor in = protor_from(message);
    struct protor_field field;
    uint64_t number = 0;
    while (protor_next(&in, &field))
        if (field.number == field_number && field.wire != PROTOR_BYTES)
            number = field.value;
    return number;
}

static int read_strings(struct pprof *pprof)
{
    struct protor in = protor_from(pprof->bytes);
    struct protor_field field;
    while (protor_next(&in, &field)) {
        if (field.number == 14 && field.wire == PROTOR_VARINT)
            pprof->default_type = field.value;
        if (field.number == 9 && field.wire == PROTOR_VARINT && field.value <= INT64_MAX)
            pprof->import.start_real_ns = field.value;
        if (field.number != 6 || field.wire != PROTOR_BYTES)
            continue;
        if (pprof->strings.len >= ENTRIES_MAX)
            return damaged(pprof, "too many strings");
        if (VEC_PUSH(&pprof->strings, field.bytes) < 0)
            return why_nomem(pprof->import.why);
    }
    return in.bad ? damaged(pprof, "a field goes beyond the end of the file") : 0;
}

static int text_of(struct pprof *pprof, uint64_t string, uint32_t *ret)
{
    struct str text = string_at(pprof, string);
    text.len = MIN(text.len, (size_t)IMPORT_NAME_BYTES_MAX);
    *ret = 0;
    return text.len > 0 ? sink_text(pprof->import.sink, text, ret) : 0;
}

static int add_function(struct pprof *pprof, struct str message)
{
    uint64_t line = number_of(message, 5);
    struct pprof_function function = {.line = line <= UINT32_MAX ? (uint32_t)line : 0};
    uint64_t name = number_of(message, 2), linkage = number_of(message, 3);
    if (string_at(pprof, name).len == 0)
        name = linkage;
    int r = text_of(pprof, name, &function.text);
    if (r == 0)
        r = text_of(pprof, linkage, &function.linkage);
    if (r == 0)
        r = text_of(pprof, number_of(message, 4), &function.file);
    if (r < 0)
        return r;
    uint64_t *slot = map_u64_at(&pprof->function_ids, number_of(message, 1), NULL);
    if (!slot)
        return -ENOMEM;
    *slot = pprof->functions.len;
    return pprof->functions.len >= ENTRIES_MAX ? -E2BIG : VEC_PUSH(&pprof->functions, function);
}

static int add_mapping(struct pprof *pprof, struct str message)
{
    uint32_t image;
    struct str build_id = string_at(pprof, number_of(message, 6));
    build_id.len = MIN(build_id.len, (size_t)128);
    int r = import_image(&pprof->import, string_at(pprof, number_of(message, 5)), build_id, &image);
    if (r < 0)
        return r;
    uint64_t *slot = map_u64_at(&pprof->image_ids, number_of(message, 1), NULL);
    if (!slot)
        return -ENOMEM;
    *slot = pprof->images.len;
    return pprof->images.len >= ENTRIES_MAX ? -E2BIG : VEC_PUSH(&pprof->images, image);
}

static int add_location(struct pprof *pprof, struct str message)
{
    struct pprof_location location = {.bytes = message};
    uint64_t *slot = map_u64_at(&pprof->location_ids, number_of(message, 1), NULL);
    if (!slot)
        return -ENOMEM;
    *slot = pprof->locations.len;
    return pprof->locations.len >= ENTRIES_MAX ? -E2BIG : VEC_PUSH(&pprof->locations, location);
}

static int add_type(struct pprof *pprof, struct str message)
{
    if (pprof->type_count >= TYPES_MAX)
        return damaged(pprof, "too many sample types");
    pprof->types[pprof->type_count++] = (struct pprof_type){
        .type = string_at(pprof, number_of(message, 1)),
        .unit = string_at(pprof, number_of(message, 2)),
    };
    return 0;
}

static int read_tables(struct pprof *pprof)
{
    struct import *import = &pprof->import;
    struct protor in = protor_from(pprof->bytes);
    struct protor_field field;
    while (protor_next(&in, &field)) {
        if (field.wire != PROTOR_BYTES)
            continue;
        int r = 0;
        if (field.number == 1)
            r = add_type(pprof, field.bytes);
        else if (field.number == 3)
            r = add_mapping(pprof, field.bytes);
        else if (field.number == 4)
            r = add_location(pprof, field.bytes);
        else if (field.number == 5)
            r = add_function(pprof, field.bytes);
        if (field.number == 1 && r < 0)
            return r;
        bool skipped;
        r = import_settle(import, r, "table_entry_refused", &skipped);
        if (r < 0)
            return r;
    }
    return pprof->type_count == 0 ? damaged(pprof, "it has no sample types") : 0;
}

struct unit_row {
    const char *name;
    enum unit unit;
    uint64_t scale;
};
static const struct unit_row unit_rows[] = {
    {"nanoseconds", UNIT_NS, 1},
    {"nanosecond", UNIT_NS, 1},
    {"ns", UNIT_NS, 1},
    {"microseconds", UNIT_NS, 1000},
    {"us", UNIT_NS, 1000},
    {"milliseconds", UNIT_NS, 1000000},
    {"ms", UNIT_NS, 1000000},
    {"seconds", UNIT_NS, 1000000000},
    {"bytes", UNIT_BYTES, 1},
    {"kilobytes", UNIT_BYTES, 1024},
    {"megabytes", UNIT_BYTES, 1 << 20},
    {"count", UNIT_COUNT, 1},
};

static struct unit_row unit_of(struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(unit_rows); i++)
        if (str_is(name, unit_rows[i].name))
            return unit_rows[i];
    return (struct unit_row){"count", UNIT_COUNT, 1};
}

/* Which type is the CPU's: the one called so; else, when the only one counts samples, that
 * one. Wall-clock time and allocations are never called "cpu". */
static size_t cpu_type(const struct pprof *pprof)
{
    for (size_t i = 0; i < pprof->type_count; i++)
        if (str_is(pprof->types[i].type, "cpu"))
            return i;
    return pprof->type_count == 1 && str_is(pprof->types[0].type, "samples") ? 0 : SIZE_MAX;
}

static int make_series(struct pprof *pprof)
{
    struct import *import = &pprof->import;
    size_t cpu = cpu_type(pprof);
    for (size_t i = 0; i < pprof->type_count; i++) {
        struct pprof_type *type = &pprof->types[i];
        struct unit_row unit = unit_of(type->unit);
        type->scale = unit.scale;
        type->counts = pprof->type_count == 2 && str_is(type->type, "samples") &&
                       str_is(type->unit, "count");
        if (type->counts)
            continue;
        const char *about = arena_printf(import->arena, "pprof, sample type %.*s/%.*s",
                                         (int)MIN(type->type.len, 64u), type->type.data,
                                         (int)MIN(type->unit.len, 64u), type->unit.data);
        const char *name = arena_dup_len(import->arena, type->type.data,
                                         MIN(type->type.len, (size_t)64));
        int r = import_series(import, i == cpu ? "cpu" : name, unit.unit, about, &type->series);
        if (r < 0)
            return import_sink_failed(import, r);
        import_note(import, "series %s: %s",
                    import->result->series[import->result->series_count - 1], about);
    }
    return 0;
}

static int function_id(struct pprof *pprof, uint64_t id, uint32_t image, uint32_t *ret_name,
                       uint32_t *ret_file, uint32_t *ret)
{
    const uint64_t *index = map_u64_find(&pprof->function_ids, id);
    *ret = *ret_name = *ret_file = 0;
    if (!index || *index >= pprof->functions.len)
        return 0;
    const struct pprof_function *function = &pprof->functions.data[*index];
    if (function->text == 0)
        return 0;
    *ret_name = function->text;
    *ret_file = function->file;
    struct function_info info = {
        .name = function->text,
        .linkage = function->linkage,
        .file = function->file,
        .line = function->line,
        .image = image,
    };
    return sink_function(pprof->import.sink, &info, ret);
}

static uint32_t image_of(const struct pprof *pprof, uint64_t mapping)
{
    const uint64_t *index = map_u64_find(&pprof->image_ids, mapping);
    return index && *index < pprof->images.len ? pprof->images.data[*index] : 0;
}

/* A location becomes a frame when the first sample uses it. With an address it is that of its
 * image; without one its name and its place in the file tell it apart from others. */
static int location_frame(struct pprof *pprof, size_t index, uint32_t *ret)
{
    struct sink *sink = pprof->import.sink;
    struct str message = pprof->locations.data[index].bytes;
    struct pprof_line lines[INLINE_MAX];
    size_t count = 0;
    struct protor in = protor_from(message);
    struct protor_field field;
    while (protor_next(&in, &field) && count < INLINE_MAX) {
        if (field.number != 4 || field.wire != PROTOR_BYTES)
            continue;
        uint64_t line = number_of(field.bytes, 2);
        lines[count++] = (struct pprof_line){number_of(field.bytes, 1),
                                             line <= UINT32_MAX ? (uint32_t)line : 0};
    }
    uint32_t image = image_of(pprof, number_of(message, 2));
    uint64_t address = number_of(message, 3);
    uint32_t name = 0, file, function = 0, frame;
    if (count > 0) {
        int r = function_id(pprof, lines[0].function, image, &name, &file, &function);
        if (r < 0)
            return r;
    }
    struct frame_info info = {.kind = FRAME_USER, .image = image, .address = address};
    if (address == 0 || image == 0)
        info = (struct frame_info){.kind = FRAME_NAMED,
                                   .image = image,
                                   .name = name,
                                   .address = address ? address : index + 1};
    if (count == 0 && image == 0)
        info = (struct frame_info){
            .kind = FRAME_UNKNOWN, .reason = UNWIND_NO_MAPPING, .address = address};
    int r = sink_frame(sink, &info, &frame);
    for (uint32_t depth = 0; depth < count && r == 0; depth++) {
        r = function_id(pprof, lines[depth].function, image, &name, &file, &function);
        if (r == 0 && function != 0)
            r = sink_location(
                sink, &(struct location_info){frame, depth, function, file, lines[depth].line});
    }
    if (r < 0)
        return r;
    pprof->locations.data[index].frame = frame;
    *ret = frame;
    return 0;
}

static int push(void *context, uint64_t value)
{
    struct list *list = context;
    if (list->len >= IMPORT_DEPTH_MAX)
        return -E2BIG;
    return VEC_PUSH(list, value);
}

static int sample_stack(struct pprof *pprof, const struct list *locations, uint32_t *ret)
{
    uint32_t stack = 0;
    for (size_t i = locations->len; i-- > 0;) {
        const uint64_t *index = map_u64_find(&pprof->location_ids, locations->data[i]);
        if (!index || *index >= pprof->locations.len)
            return -EINVAL;
        uint32_t frame = pprof->locations.data[*index].frame;
        int r = frame ? 0 : location_frame(pprof, *index, &frame);
        if (r == 0)
            r = sink_stack(pprof->import.sink, stack, frame, &stack);
        if (r < 0)
            return r;
    }
    *ret = stack;
    return 0;
}

/* Labels as whyslow, Go, perf_to_profile and others name them. */
static int sample_thread(struct pprof *pprof, struct str message, uint32_t *ret)
{
    struct protor in = protor_from(message);
    struct protor_field field;
    struct str name = STR("");
    uint64_t pid = 0, tid = 0;
    while (protor_next(&in, &field)) {
        if (field.number != 3 || field.wire != PROTOR_BYTES)
            continue;
        struct str key = string_at(pprof, number_of(field.bytes, 1));
        struct str text = string_at(pprof, number_of(field.bytes, 2));
        uint64_t number = number_of(field.bytes, 3);
        if (text.len > 0 && (str_is(key, "thread") || str_is(key, "thread_name") ||
                             str_is(key, "thread_comm") || str_is(key, "thread name")))
            name = text;
        if (text.len > 0 && number == 0 && str_to_u64(text, 10, &number) < 0)
            number = 0;
        if (str_is(key, "thread_id") || str_is(key, "thread id") || str_is(key, "tid"))
            tid = number;
        if (str_is(key, "process_id") || str_is(key, "pid"))
            pid = number;
    }
    if (pid > UINT32_MAX || tid > UINT32_MAX)
        pid = tid = 0;
    return import_thread(&pprof->import, (uint32_t)pid, (uint32_t)tid, name, ret);
}

static int sample_give(struct pprof *pprof, const struct list *values, uint32_t thread,
                       uint32_t stack)
{
    uint64_t count = 1;
    for (size_t i = 0; i < pprof->type_count; i++)
        if (pprof->types[i].counts)
            count = values->data[i];
    for (size_t i = 0; i < pprof->type_count; i++) {
        const struct pprof_type *type = &pprof->types[i];
        uint64_t weight;
        if (type->series == 0 || values->data[i] == 0)
            continue;
        if (values->data[i] > INT64_MAX) { /* negative: a difference of two profiles */
            import_skip(&pprof->import, "negative_value");
            continue;
        }
        if (__builtin_mul_overflow(values->data[i], type->scale, &weight) || weight > INT64_MAX) {
            import_skip(&pprof->import, "value_too_large");
            continue;
        }
        struct sample sample = {
            .series = type->series, .thread = thread, .stack = stack, .weight = weight};
        bool alone = pprof->type_count == 1 && str_is(type->type, "samples");
        int r = import_samples(&pprof->import, &sample, alone ? weight : count);
        if (r < 0)
            return r;
    }
    return 0;
}

static int sample_add(struct pprof *pprof, struct str message)
{
    struct list *locations = &pprof->sample_locations, *values = &pprof->sample_values;
    locations->len = values->len = 0;
    struct protor in = protor_from(message);
    struct protor_field field;
    int r = 0;
    while (r == 0 && protor_next(&in, &field)) {
        if (field.number == 1)
            r = protor_each(&field, push, locations);
        else if (field.number == 2)
            r = protor_each(&field, push, values);
    }
    if (in.bad || r == -EBADMSG || (r == 0 && values->len != pprof->type_count))
        return -EINVAL;
    uint32_t thread = 0, stack = 0;
    if (r == 0)
        r = sample_thread(pprof, message, &thread);
    if (r == 0)
        r = sample_stack(pprof, locations, &stack);
    return r < 0 ? r : sample_give(pprof, values, thread, stack);
}

static int read_samples(struct pprof *pprof)
{
    struct protor in = protor_from(pprof->bytes);
    struct protor_field field;
    while (protor_next(&in, &field)) {
        if (field.number != 2 || field.wire != PROTOR_BYTES)
            continue;
        bool skipped;
        int r = import_settle(&pprof->import, sample_add(pprof, field.bytes), "bad_sample",
                              &skipped);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_all(struct pprof *pprof)
{
    int r = read_strings(pprof);
    if (r == 0)
        r = read_tables(pprof);
    if (r == 0)
        r = make_series(pprof);
    if (r == 0)
        r = read_samples(pprof);
    if (r == 0) {
        import_note(&pprof->import, "a pprof has no times of single samples");
        r = import_finish(&pprof->import);
    }
    return r;
}

static int unpack(struct import_source *source, char **ret, size_t *ret_len, struct why *why)
{
    char *packed = NULL;
    size_t len = 0;
    int r = import_source_all(source, FILE_BYTES_MAX, &packed, &len, why);
    if (r < 0)
        return r;
    if (!gzip_is((struct str){packed, len})) {
        *ret = packed;
        *ret_len = len;
        return 0;
    }
    r = gzip_unpack((struct str){packed, len}, FILE_BYTES_MAX, ret, ret_len);
    free(packed);
    if (r == -ENOMEM)
        return why_nomem(why);
    if (r == -EFBIG)
        return why_set(why, WHY_FAILED, EFBIG, "export a smaller part of the profile there",
                       "'%s' unpacks to more than %d MiB", source->path, FILE_BYTES_MAX >> 20);
    return r < 0 ? why_set(why, WHY_FAILED, EBADMSG, "copy the file again: it may be cut off",
                           "'%s': damaged gzip", source->path)
                 : 0;
}

static int pprof_import(struct import_source *source, struct sink *sink,
                        const struct import_opts *opts, struct arena *arena,
                        struct import_result *ret, struct why *why)
{
    struct pprof pprof = {.import = {.source = source,
                                     .sink = sink,
                                     .opts = opts,
                                     .arena = arena,
                                     .result = ret,
                                     .why = why,
                                     .format = "pprof"}};
    char *bytes = NULL;
    size_t len = 0;
    int r = unpack(source, &bytes, &len, why);
    if (r == 0) {
        pprof.bytes = (struct str){bytes, len};
        r = read_all(&pprof);
    }
    free(bytes);
    VEC_FREE(&pprof.strings);
    VEC_FREE(&pprof.functions);
    VEC_FREE(&pprof.images);
    VEC_FREE(&pprof.locations);
    VEC_FREE(&pprof.sample_locations);
    VEC_FREE(&pprof.sample_values);
    map_u64_deinit(&pprof.function_ids);
    map_u64_deinit(&pprof.image_ids);
    map_u64_deinit(&pprof.location_ids);
    import_deinit(&pprof.import);
    return r;
}

/* Plain protobuf: fields of a Profile with the wire types they must have, from the start. */
static bool pprof_detect(struct str head)
{
    if (gzip_is(head))
        return true;
    struct protor in = protor_from(head);
    struct protor_field field;
    unsigned good = 0;
    while (protor_next(&in, &field)) {
        bool message = field.number <= 6 || field.number == 11 || field.number == 13;
        if (field.number > 15 || (message && field.number != 13 && field.wire != PROTOR_BYTES))
            return false;
        good++;
    }
    /* The head may end in the middle of a field: then the ones before decide. */
    return good > 0 && (!in.bad || good >= 3);
}

extern const struct importer importer_pprof;
const struct importer importer_pprof = {
    .name = "pprof",
    .about = "pprof, gzipped or plain: Go, gperftools, Pyroscope",
    .detect = pprof_detect,
    .import = pprof_import,
};
