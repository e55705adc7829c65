/* The sink of tests: copies what it is given into vectors. */
#include "model/sink_memory.h"

#include <errno.h>
#include <string.h>

static struct sink_memory *of(struct sink *sink)
{
    return (struct sink_memory *)sink; /* the sink is its first member */
}

/* Errors of the caller (-EINVAL) and bounds (-E2BIG) concern one call; running
 * out of room or memory ends the recording. */
static int settle(struct sink_memory *memory, int r)
{
    if (r < 0 && r != -EINVAL && r != -E2BIG && memory->error == 0)
        memory->error = r;
    return r;
}

static struct str keep(struct sink_memory *memory, struct str text)
{
    return (struct str){arena_dup_len(&memory->arena, text.data, text.len), text.len};
}

/* Appends and gives the id; `ret_id` may be NULL. */
#define ADD(memory, vec, item, ret_id)                                                             \
    (arena_failed(&(memory)->arena) || VEC_PUSH(&(memory)->vec, (item)) < 0                        \
         ? settle((memory), -ENOMEM)                                                               \
         : (*(ret_id) = (uint32_t)(memory)->vec.len, 0))

static int memory_text(struct sink *sink, struct str text, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    bool fresh;
    return memory->error ? memory->error
                         : settle(memory, interned_text(&memory->interned, text, ret_id, &fresh));
}

static int memory_process(struct sink *sink, const struct process_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (info->parent > memory->processes.len)
        return -EINVAL;
    struct memory_process process = {.info = *info};
    process.info.exe = keep(memory, info->exe);
    process.info.command = keep(memory, info->command);
    return ADD(memory, processes, process, ret_id);
}

static int memory_process_program(struct sink *sink, uint32_t process, struct str exe,
                                  struct str command)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (process == 0 || process > memory->processes.len)
        return -EINVAL;
    memory->processes.data[process - 1].info.exe = keep(memory, exe);
    memory->processes.data[process - 1].info.command = keep(memory, command);
    return 0;
}

static int memory_process_end(struct sink *sink, uint32_t process, uint64_t end_ns, int wait_status)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (process == 0 || process > memory->processes.len)
        return -EINVAL;
    memory->processes.data[process - 1].end_ns = end_ns;
    memory->processes.data[process - 1].wait_status = wait_status;
    return 0;
}

static int memory_thread(struct sink *sink, const struct thread_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (info->process > memory->processes.len)
        return -EINVAL;
    struct memory_thread thread = {.info = *info};
    thread.info.name = keep(memory, info->name);
    return ADD(memory, threads, thread, ret_id);
}

static int memory_thread_end(struct sink *sink, uint32_t thread, uint64_t end_ns)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (thread == 0 || thread > memory->threads.len)
        return -EINVAL;
    memory->threads.data[thread - 1].end_ns = end_ns;
    return 0;
}

static int memory_image(struct sink *sink, const struct image_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    bool fresh;
    uint32_t id;
    int r = settle(memory, interned_image(&memory->interned, info, &id, &fresh));
    if (r < 0)
        return r;
    if (!fresh) {
        *ret_id = id;
        return 0;
    }
    struct image_info image = *info;
    image.path = keep(memory, info->path);
    image.build_id = keep(memory, info->build_id);
    return ADD(memory, images, image, ret_id);
}

static int memory_mapping(struct sink *sink, const struct mapping_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (info->process > memory->processes.len || info->image > memory->images.len)
        return -EINVAL;
    struct memory_mapping mapping = {.info = *info};
    return ADD(memory, mappings, mapping, ret_id);
}

static int memory_mapping_end(struct sink *sink, uint32_t mapping, uint64_t end_ns)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (mapping == 0 || mapping > memory->mappings.len)
        return -EINVAL;
    memory->mappings.data[mapping - 1].end_ns = end_ns;
    return 0;
}

static int memory_frame(struct sink *sink, const struct frame_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    bool fresh;
    return memory->error ? memory->error
                         : settle(memory, interned_frame(&memory->interned, info, ret_id, &fresh));
}

static int memory_stack(struct sink *sink, uint32_t parent, uint32_t frame, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    bool fresh;
    return memory->error
               ? memory->error
               : settle(memory, interned_stack(&memory->interned, parent, frame, ret_id, &fresh));
}

static int memory_function(struct sink *sink, const struct function_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    bool fresh;
    uint32_t id;
    int r = settle(memory, interned_function(&memory->interned, info, &id, &fresh));
    if (r < 0)
        return r;
    if (fresh)
        return ADD(memory, functions, *info, ret_id);
    *ret_id = id;
    return 0;
}

static int memory_location(struct sink *sink, const struct location_info *info)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    const struct interned *interned = &memory->interned;
    if (info->frame == 0 || info->frame > interned->frames.len ||
        info->function > interned->functions.len || info->file > interned->texts.len)
        return -EINVAL;
    uint64_t *at = map_u64_at(&memory->location_at, (uint64_t)info->frame << 32 | info->depth,
                              NULL);
    if (!at)
        return settle(memory, -ENOMEM);
    if (*at != 0) { /* the last one wins, as in the recording */
        memory->locations.data[*at - 1] = *info;
        return 0;
    }
    uint32_t id;
    int r = ADD(memory, locations, *info, &id);
    *at = memory->locations.len;
    return r;
}

static int memory_source_line(struct sink *sink, uint32_t file, uint32_t line, struct str text)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (file == 0 || file > memory->interned.texts.len)
        return -EINVAL;
    struct memory_source_line row = {.file = file, .line = line, .text = keep(memory, text)};
    uint32_t id;
    return ADD(memory, source_lines, row, &id);
}

static int memory_instruction(struct sink *sink, uint32_t image, uint64_t address, uint32_t size,
                              struct str text)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (image == 0 || image > memory->images.len)
        return -EINVAL;
    struct memory_instruction row = {image, address, size, keep(memory, text)};
    uint32_t id;
    return ADD(memory, instructions, row, &id);
}

static int memory_series(struct sink *sink, const struct series_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (!info->name || !*info->name || sink_memory_series(memory, info->name) != 0)
        return -EINVAL;
    struct series_info series = *info;
    series.name = arena_dup(&memory->arena, info->name);
    series.about = arena_dup(&memory->arena, info->about ? info->about : "");
    return ADD(memory, series, series, ret_id);
}

static int memory_sample(struct sink *sink, const struct sample *sample)
{
    struct sink_memory *memory = of(sink);
    if (memory->error) {
        memory->dropped++;
        return memory->error;
    }
    if (sample->series == 0 || sample->series > memory->series.len ||
        sample->thread > memory->threads.len || sample->stack > memory->interned.stacks.len)
        return -EINVAL;
    size_t max = memory->samples_max ? memory->samples_max : SINK_MEMORY_SAMPLES_MAX;
    uint32_t id;
    int r = memory->samples.len >= max ? settle(memory, -ENOSPC)
                                       : ADD(memory, samples, *sample, &id);
    if (r < 0)
        memory->dropped++;
    return r;
}

const struct memory_counter *sink_memory_counter(const struct sink_memory *memory, const char *name)
{
    for (size_t i = 0; i < memory->counters.len; i++)
        if (strcmp(memory->counters.data[i].name, name) == 0)
            return &memory->counters.data[i];
    return NULL;
}

uint32_t sink_memory_series(const struct sink_memory *memory, const char *name)
{
    for (size_t i = 0; i < memory->series.len; i++)
        if (strcmp(memory->series.data[i].name, name) == 0)
            return (uint32_t)i + 1;
    return 0;
}

static int memory_counter(struct sink *sink, const char *name, enum unit unit, uint64_t value)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    struct memory_counter *known = (struct memory_counter *)sink_memory_counter(memory, name);
    if (known) {
        known->value += value;
        return 0;
    }
    struct memory_counter counter = {arena_dup(&memory->arena, name), unit, value};
    uint32_t id;
    return ADD(memory, counters, counter, &id);
}

static int memory_document(struct sink *sink, const char *name, struct str json)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    struct memory_document document = {arena_dup(&memory->arena, name), keep(memory, json)};
    for (size_t i = 0; i < memory->documents.len; i++) {
        if (strcmp(memory->documents.data[i].name, name) == 0) {
            memory->documents.data[i].json = document.json;
            return arena_failed(&memory->arena) ? settle(memory, -ENOMEM) : 0;
        }
    }
    uint32_t id;
    return ADD(memory, documents, document, &id);
}

static int memory_object(struct sink *sink, const struct object_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (info->process > memory->processes.len)
        return -EINVAL;
    return settle(memory, wait_book_object(&memory->book, info, ret_id));
}

static int memory_object_name(struct sink *sink, uint32_t object, struct str name)
{
    struct sink_memory *memory = of(sink);
    return memory->error ? memory->error
                         : settle(memory, wait_book_object_name(&memory->book, object, name));
}

static int memory_wait(struct sink *sink, const struct wait_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    size_t stacks = memory->interned.stacks.len;
    if (info->thread == 0 || info->thread > memory->threads.len ||
        info->waker_thread > memory->threads.len || info->stack > stacks ||
        info->waker_stack > stacks)
        return -EINVAL;
    return settle(memory, wait_book_wait(&memory->book, info, ret_id));
}

static int memory_wait_add(struct sink *sink, uint32_t wait, const struct wait_tally *tally)
{
    struct sink_memory *memory = of(sink);
    return memory->error ? memory->error
                         : settle(memory, wait_book_add(&memory->book, wait, tally));
}

static int memory_wait_event(struct sink *sink, const struct wait_event *event)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    struct wait_event kept = *event;
    if (event->wait == 0 || event->wait > memory->book.waits.len || !wait_event_settle(&kept))
        return -EINVAL;
    uint32_t id;
    return ADD(memory, wait_events, kept, &id);
}

static int memory_call(struct sink *sink, const struct call_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (info->thread == 0 || info->thread > memory->threads.len ||
        info->stack > memory->interned.stacks.len || info->object > memory->book.objects.len)
        return -EINVAL;
    return settle(memory, call_book_call(&memory->calls, info, ret_id));
}

static int memory_call_add(struct sink *sink, uint32_t call, const struct call_tally *tally)
{
    struct sink_memory *memory = of(sink);
    return memory->error ? memory->error
                         : settle(memory, call_book_call_add(&memory->calls, call, tally));
}

static int memory_device(struct sink *sink, const struct device_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    return memory->error ? memory->error
                         : settle(memory, call_book_device(&memory->calls, info, ret_id));
}

static int memory_device_add(struct sink *sink, uint32_t device, const struct device_tally *tally)
{
    struct sink_memory *memory = of(sink);
    return memory->error ? memory->error
                         : settle(memory, call_book_device_add(&memory->calls, device, tally));
}

static int memory_connection(struct sink *sink, const struct connection_info *info,
                             uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (info->process > memory->processes.len || info->object > memory->book.objects.len)
        return -EINVAL;
    return settle(memory, call_book_connection(&memory->calls, info, ret_id));
}

static int memory_connection_end(struct sink *sink, uint32_t connection,
                                 const struct connection_end *end)
{
    struct sink_memory *memory = of(sink);
    return memory->error
               ? memory->error
               : settle(memory, call_book_connection_end(&memory->calls, connection, end));
}

static int memory_request(struct sink *sink, const struct request_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    size_t texts = memory->interned.texts.len;
    if (info->thread > memory->threads.len || info->stack > memory->interned.stacks.len ||
        info->peer > texts || info->text > texts || info->result > texts)
        return -EINVAL;
    return settle(memory, call_book_request(&memory->calls, info, ret_id));
}

static int memory_request_add(struct sink *sink, uint32_t request,
                              const struct request_tally *tally)
{
    struct sink_memory *memory = of(sink);
    return memory->error ? memory->error
                         : settle(memory, call_book_request_add(&memory->calls, request, tally));
}

static int memory_request_event(struct sink *sink, const struct request_event *event)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    struct request_event kept = *event;
    if (event->payload > memory->interned.texts.len ||
        !call_book_event_settle(&memory->calls, &kept))
        return -EINVAL;
    uint32_t id;
    return ADD(memory, request_events, kept, &id);
}

static int memory_heap_site(struct sink *sink, const struct heap_site_info *info, uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (info->thread == 0 || info->thread > memory->threads.len ||
        info->stack > memory->interned.stacks.len)
        return -EINVAL;
    return settle(memory, heap_book_site(&memory->heap, info, ret_id));
}

static int memory_heap_site_set(struct sink *sink, uint32_t site, const struct heap_tally *tally)
{
    struct sink_memory *memory = of(sink);
    bool changed;
    return memory->error ? memory->error
                         : settle(memory, heap_book_site_set(&memory->heap, site, tally, &changed));
}

static int memory_heap_process_set(struct sink *sink, uint32_t process,
                                   const struct heap_process_tally *tally)
{
    struct sink_memory *memory = of(sink);
    size_t at;
    if (memory->error)
        return memory->error;
    if (process > memory->processes.len)
        return -EINVAL;
    return settle(memory, heap_book_process_set(&memory->heap, process, tally, &at));
}

static int memory_heap_snapshot(struct sink *sink, const struct heap_snapshot_info *info,
                                uint32_t *ret_id)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (!heap_snapshot_is_good(info) || info->process > memory->processes.len)
        return -EINVAL;
    return ADD(memory, heap_snapshots, *info, ret_id);
}

static int memory_heap_snapshot_row(struct sink *sink, const struct heap_snapshot_row *row)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (row->snapshot == 0 || row->snapshot != memory->heap_snapshots.len ||
        row->stack > memory->interned.stacks.len)
        return -EINVAL;
    uint32_t id;
    return ADD(memory, heap_snapshot_rows, *row, &id);
}

static int memory_heap_moment(struct sink *sink, const struct heap_moment *moment)
{
    struct sink_memory *memory = of(sink);
    size_t at;
    if (memory->error)
        return memory->error;
    if (moment->process > memory->processes.len)
        return -EINVAL;
    return settle(memory, heap_book_moment(&memory->heap, moment, &at));
}

static int memory_heap_event(struct sink *sink, const struct heap_event *event)
{
    struct sink_memory *memory = of(sink);
    if (memory->error)
        return memory->error;
    if (!heap_event_is_good(event) || event->thread > memory->threads.len ||
        event->stack > memory->interned.stacks.len)
        return -EINVAL;
    uint32_t id;
    return ADD(memory, heap_events, *event, &id);
}

const struct sink_ops sink_memory_ops = {
    .text = memory_text,
    .process = memory_process,
    .process_program = memory_process_program,
    .process_end = memory_process_end,
    .thread = memory_thread,
    .thread_end = memory_thread_end,
    .image = memory_image,
    .mapping = memory_mapping,
    .mapping_end = memory_mapping_end,
    .frame = memory_frame,
    .stack = memory_stack,
    .function = memory_function,
    .location = memory_location,
    .source_line = memory_source_line,
    .instruction = memory_instruction,
    .series = memory_series,
    .sample = memory_sample,
    .counter = memory_counter,
    .document = memory_document,
    .object = memory_object,
    .object_name = memory_object_name,
    .wait = memory_wait,
    .wait_add = memory_wait_add,
    .wait_event = memory_wait_event,
    .call = memory_call,
    .call_add = memory_call_add,
    .device = memory_device,
    .device_add = memory_device_add,
    .connection = memory_connection,
    .connection_end = memory_connection_end,
    .request = memory_request,
    .request_add = memory_request_add,
    .request_event = memory_request_event,
    .heap_site = memory_heap_site,
    .heap_site_set = memory_heap_site_set,
    .heap_process_set = memory_heap_process_set,
    .heap_snapshot = memory_heap_snapshot,
    .heap_snapshot_row = memory_heap_snapshot_row,
    .heap_moment = memory_heap_moment,
    .heap_event = memory_heap_event,
};

void sink_memory_deinit(struct sink_memory *memory)
{
    arena_deinit(&memory->arena);
    interned_deinit(&memory->interned);
    VEC_FREE(&memory->processes);
    VEC_FREE(&memory->threads);
    VEC_FREE(&memory->images);
    VEC_FREE(&memory->mappings);
    VEC_FREE(&memory->functions);
    VEC_FREE(&memory->locations);
    map_u64_deinit(&memory->location_at);
    VEC_FREE(&memory->source_lines);
    VEC_FREE(&memory->instructions);
    VEC_FREE(&memory->series);
    VEC_FREE(&memory->samples);
    VEC_FREE(&memory->counters);
    VEC_FREE(&memory->documents);
    wait_book_deinit(&memory->book);
    VEC_FREE(&memory->wait_events);
    call_book_deinit(&memory->calls);
    VEC_FREE(&memory->request_events);
    heap_book_deinit(&memory->heap);
    VEC_FREE(&memory->heap_snapshots);
    VEC_FREE(&memory->heap_snapshot_rows);
    VEC_FREE(&memory->heap_events);
    *memory = SINK_MEMORY_INIT;
}
