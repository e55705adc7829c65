/* A recording's tables become arrays indexed by id.
 *
 * tables → names → totals (or the samples of a time range) → filter and focus → sums */
#include "analyze/profile_load.h"

#include "analyze/profile_parts.h"
#include "analyze/target_load.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void *loader_keep(struct loader *loader, const void *data, size_t count, size_t size)
{
    void *copy = arena_alloc(loader->arena, MAX(count, (size_t)1) * size);
    if (copy && count > 0)
        memcpy(copy, data, count * size);
    return copy;
}

static struct str keep_text(struct loader *loader, struct str text)
{
    return (struct str){arena_dup_len(loader->arena, text.data, text.len), text.len};
}

#define PUSH(loader, vec, ...)                                                                     \
    (VEC_PUSH(&(loader)->vec, ((__typeof__((loader)->vec.data[0]))__VA_ARGS__)) < 0                \
         ? why_nomem((loader)->why)                                                                \
         : 0)

static int add_text(void *context, const struct recorded_text *row)
{
    struct loader *loader = context;
    struct str text = keep_text(loader, row->text);
    return PUSH(loader, texts, {text.data, text.len});
}

static int add_process(void *context, const struct recorded_process *row)
{
    struct loader *loader = context;
    return PUSH(loader, processes,
                {
                    .pid = row->info.pid,
                    .parent = row->info.parent,
                    .start_ns = row->info.start_ns,
                    .exe = keep_text(loader, row->info.exe),
                    .command = keep_text(loader, row->info.command),
                });
}

static int add_thread(void *context, const struct recorded_thread *row)
{
    struct loader *loader = context;
    return PUSH(loader, threads,
                {
                    .process = row->info.process,
                    .tid = row->info.tid,
                    .start_ns = row->info.start_ns,
                    .end_ns = row->ended ? row->end_ns : UINT64_MAX,
                    .name = keep_text(loader, row->info.name),
                });
}

static int add_image(void *context, const struct recorded_image *row)
{
    struct loader *loader = context;
    return PUSH(loader, images,
                {
                    .kind = row->info.kind,
                    .path = keep_text(loader, row->info.path),
                    .build_id = keep_text(loader, row->info.build_id),
                    .size_bytes = row->info.size_bytes,
                });
}

static int add_mapping(void *context, const struct recorded_mapping *row)
{
    struct loader *loader = context;
    return PUSH(loader, mappings,
                {
                    .process = row->info.process,
                    .image = row->info.image,
                    .start_ns = row->info.start_ns,
                    .end_ns = row->ended ? row->end_ns : UINT64_MAX,
                    .address = row->info.address,
                    .size_bytes = row->info.size_bytes,
                    .file_offset = row->info.file_offset,
                });
}

static int add_function(void *context, const struct recorded_function *row)
{
    struct loader *loader = context;
    const struct function_info *info = &row->info;
    return PUSH(loader, functions,
                {
                    .name = loader->texts.data[info->name],
                    .linkage = loader->texts.data[info->linkage],
                    .file = loader->texts.data[info->file],
                    .line = info->line,
                    .image = info->image,
                    .address = info->address,
                    .size_bytes = info->size_bytes,
                    .kernel = loader->images.data[info->image].kind == IMAGE_KERNEL,
                });
}

static int add_frame(void *context, const struct recorded_frame *row)
{
    struct loader *loader = context;
    int r = PUSH(loader, frame_names, {row->info.name});
    if (r < 0)
        return r;
    return PUSH(loader, frames,
                {
                    .kind = row->info.kind,
                    .reason = row->info.reason,
                    .image = row->info.image,
                    .address = row->info.address,
                });
}

/* Locations come by frame and depth: those of one frame stand together, innermost first. */
static int add_location(void *context, const struct location_info *row)
{
    struct loader *loader = context;
    struct profile_frame *frame = &loader->frames.data[row->frame];
    if (frame->place_count == 0)
        frame->places = (uint32_t)loader->places.len;
    if (loader->places.len >= UINT32_MAX / 2)
        return why_set(loader->why, WHY_FAILED, E2BIG, "record for a shorter time",
                       "the recording has too many locations");
    frame->place_count++;
    return PUSH(loader, places,
                {
                    .function = row->function,
                    .file = loader->texts.data[row->file],
                    .line = row->line,
                });
}

static int add_total(void *context, const struct recorded_total *row)
{
    struct loader *loader = context;
    if (!loader->series || row->series != loader->series->id)
        return 0;
    return PUSH(loader, totals, {row->thread, row->stack, row->count, row->weight});
}

static int add_document(void *context, const struct recorded_document *row)
{
    struct loader *loader = context;
    if (str_is(row->name, "fingerprint"))
        loader->profile->fingerprint_json = keep_text(loader, row->json);
    if (str_is(row->name, "target"))
        loader->command = target_command_read(loader->arena, row->json);
    return 0;
}

/* The 0th entries, which stand for "none". */
static int load_begin(struct loader *loader)
{
    struct str empty = STR("");
    int r = PUSH(loader, texts, {"", 0});
    if (r == 0)
        r = PUSH(loader, processes, {.exe = empty, .command = empty});
    if (r == 0)
        r = PUSH(loader, threads, {.name = STR("[no thread]")});
    if (r == 0)
        r = PUSH(loader, images, {.path = empty, .build_id = empty});
    if (r == 0)
        r = PUSH(loader, mappings, {0});
    if (r == 0)
        r = PUSH(loader, functions,
                 {.name = STR("[no stack]"), .linkage = empty, .file = empty, .unnamed = true});
    if (r == 0)
        r = PUSH(loader, places, {.file = empty});
    if (r == 0)
        r = PUSH(loader, frames, {.kind = FRAME_UNKNOWN, .place_count = 1});
    if (r == 0)
        r = PUSH(loader, frame_names, {0});
    return r;
}

static int load_tables(struct loader *loader)
{
    struct recording *recording = loader->recording;
    struct why *why = loader->why;
    int r = load_begin(loader);
    if (r == 0)
        r = recording_each_text(recording, add_text, loader, why);
    if (r == 0)
        r = recording_each_process(recording, add_process, loader, why);
    if (r == 0)
        r = recording_each_thread(recording, add_thread, loader, why);
    if (r == 0)
        r = recording_each_image(recording, add_image, loader, why);
    if (r == 0)
        r = recording_each_mapping(recording, add_mapping, loader, why);
    if (r == 0)
        r = recording_each_function(recording, add_function, loader, why);
    if (r == 0)
        r = recording_each_frame(recording, add_frame, loader, why);
    if (r == 0)
        r = recording_each_location(recording, add_location, loader, why);
    if (r == 0)
        r = recording_each_document(recording, add_document, loader, why);
    return r;
}

static int load_stacks(struct loader *loader)
{
    struct profile *profile = loader->profile;
    uint32_t count = recording_count(loader->recording, RECORDING_STACK);
    struct profile_stack node = {0};
    /* The first look checks that the table has as many rows as it has ids. */
    int r = count == 0 ? 0
                       : recording_stack_node(loader->recording, 1, &node.parent, &node.frame,
                                              loader->why);
    if (r < 0)
        return r;
    profile->stacks = arena_alloc(loader->arena, ((size_t)count + 1) * sizeof(node));
    if (!profile->stacks)
        return why_nomem(loader->why);
    profile->stack_count = (size_t)count + 1;
    for (uint32_t id = 1; id <= count && r == 0; id++) {
        r = recording_stack_node(loader->recording, id, &node.parent, &node.frame, loader->why);
        profile->stacks[id] = node;
    }
    return r;
}

/* As it was asked for. Where that is not known, since it ran already or the recording is of an
 * older whyslow, the first process that says what it runs. One of which only a name is known may
 * be the same process before its exec was seen. */
static struct str recorded_command(const struct loader *loader)
{
    struct str first = STR("");
    if (loader->command.len > 0)
        return loader->command;
    for (size_t i = 1; i < loader->processes.len; i++) {
        const struct profile_process *process = &loader->processes.data[i];
        if (process->exe.len > 0)
            return process->command.len > 0 ? process->command : process->exe;
        if (first.len == 0)
            first = process->command;
    }
    return first;
}

#define KEEP(loader, ret, ret_count, vec)                                                          \
    do {                                                                                           \
        (ret) = loader_keep((loader), (loader)->vec.data, (loader)->vec.len,                       \
                            sizeof((loader)->vec.data[0]));                                        \
        (ret_count) = (loader)->vec.len;                                                           \
    } while (0)

static void keep_tables(struct loader *loader)
{
    struct profile *profile = loader->profile;
    KEEP(loader, profile->processes, profile->process_count, processes);
    KEEP(loader, profile->threads, profile->thread_count, threads);
    KEEP(loader, profile->images, profile->image_count, images);
    KEEP(loader, profile->mappings, profile->mapping_count, mappings);
    KEEP(loader, profile->functions, profile->function_count, functions);
    KEEP(loader, profile->places, profile->place_count, places);
    KEEP(loader, profile->frames, profile->frame_count, frames);
    KEEP(loader, profile->totals, profile->total_count, totals);
}

/* Checked once here, so that no later sum of parts can overflow. */
static int sum_up(struct loader *loader)
{
    struct profile *profile = loader->profile;
    for (size_t i = 0; i < profile->total_count; i++) {
        const struct profile_total *total = &profile->totals[i];
        if (__builtin_add_overflow(profile->weight, total->weight, &profile->weight) ||
            __builtin_add_overflow(profile->count, total->count, &profile->count))
            return why_set(loader->why, WHY_FAILED, EBADMSG, "copy the file again, or record again",
                           "'%s': damaged totals: series '%s' adds up to more than any machine has",
                           recording_path(loader->recording), profile->series);
    }
    if ((profile->count > 0 && profile->weight > 0) || loader->opts->names_only)
        return 0;
    const struct profile_opts *opts = loader->opts;
    if (opts->filter || opts->focus || opts->from_ns || opts->to_ns)
        return why_set(loader->why, WHY_USAGE, ENODATA, "leave out a time range, filter or focus",
                       "no sample of series '%s' is left by time range, filter and focus",
                       profile->series);
    return why_set(loader->why, WHY_NOTHING, ENODATA,
                   strcmp(profile->series, "io") == 0
                       ? "record for longer, or a program that does more"
                       : "record for longer, or a program that uses more CPU time",
                   "'%s' has no sample in series '%s'", recording_path(loader->recording),
                   profile->series);
}

static int load(struct loader *loader)
{
    struct profile *profile = loader->profile;
    int r = load_tables(loader);
    if (r == 0)
        r = load_stacks(loader);
    if (r == 0)
        r = profile_name_frames(loader);
    if (r == 0)
        r = profile_group_threads(loader);
    if (r == 0)
        r = profile_join_threads(loader);
    bool range = loader->opts->from_ns || loader->opts->to_ns;
    assert(loader->series || (!range && !loader->opts->samples));
    if (r == 0 && !range)
        r = recording_each_total(loader->recording, add_total, loader, loader->why);
    if (r == 0 && (range || loader->opts->samples))
        r = profile_read_samples(loader);
    if (r == 0)
        r = profile_narrow(loader);
    if (r < 0)
        return r;
    profile->command = recorded_command(loader);
    keep_tables(loader);
    if (arena_failed(loader->arena))
        return why_nomem(loader->why);
    return sum_up(loader);
}

static int choose_series(struct loader *loader)
{
    const char *name = loader->opts->series ? loader->opts->series : "cpu";
    const struct recorded_series *series = recording_series_find(loader->recording, name);
    if (!series && loader->opts->names_only)
        return 0;
    bool waits = recording_series_find(loader->recording, "offcpu") != NULL;
    bool calls = recording_series_find(loader->recording, "io") != NULL;
    bool memory = recording_count(loader->recording, RECORDING_HEAP_SITE) > 0;
    if (!series)
        return why_set(loader->why, WHY_USAGE, ENOENT,
                       waits    ? "it has waits: 'whyslow waits REC', or --series offcpu"
                       : calls  ? "it has calls: 'whyslow io REC', or --series io"
                       : memory ? "it has allocations: 'whyslow heap REC'"
                                : "list them: whyslow query REC \"SELECT name, about FROM series\"",
                       "'%s' has no series '%s'", recording_path(loader->recording), name);
    if (series->info.kind != SERIES_SUM)
        return why_set(loader->why, WHY_USAGE, EINVAL, "look at it with 'whyslow query'",
                       "series '%s' is a level over time: its weights do not add up to a profile",
                       name);
    loader->series = series;
    return 0;
}

int profile_load(struct arena *arena, struct recording *recording, const struct profile_opts *opts,
                 struct profile *ret, struct why *why)
{
    struct profile profile = {0};
    struct loader loader = {
        .arena = arena, .recording = recording, .opts = opts, .profile = &profile, .why = why};
    int r = choose_series(&loader);
    profile.series = arena_dup(arena, opts->series ? opts->series : "cpu");
    profile.about = "";
    profile.fingerprint_json = STR("");
    if (r == 0 && loader.series) {
        profile.series = arena_dup(arena, loader.series->info.name);
        profile.unit = loader.series->info.unit;
        profile.about = arena_dup(arena, loader.series->info.about);
        profile.start_ns = loader.series->start_ns;
        profile.end_ns = loader.series->end_ns;
    }
    if (r == 0)
        r = load(&loader);
    VEC_FREE(&loader.texts);
    VEC_FREE(&loader.processes);
    VEC_FREE(&loader.threads);
    VEC_FREE(&loader.images);
    VEC_FREE(&loader.mappings);
    VEC_FREE(&loader.functions);
    VEC_FREE(&loader.places);
    VEC_FREE(&loader.frames);
    VEC_FREE(&loader.frame_names);
    VEC_FREE(&loader.totals);
    if (r < 0)
        return r;
    *ret = profile;
    return 0;
}
