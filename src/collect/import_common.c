/* Threads, frames, series and counters, made once for all importers. */
#include "collect/import_common.h"

#include "base/jsonw.h"
#include "unwind/unwind.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void import_deinit(struct import *import)
{
    intern_deinit(&import->thread_keys);
    intern_deinit(&import->process_keys);
    VEC_FREE(&import->thread_ids);
    VEC_FREE(&import->process_ids);
}

void import_skip(struct import *import, const char *reason)
{
    struct import_result *result = import->result;
    for (size_t i = 0; i < result->skip_count; i++) {
        if (strcmp(result->skips[i].reason, reason) == 0) {
            result->skips[i].count++;
            return;
        }
    }
    if (result->skip_count < IMPORT_REASONS_MAX)
        result->skips[result->skip_count++] = (struct import_skip){reason, 1};
}

void import_note(struct import *import, const char *fmt, ...)
{
    if (import->result->note_count >= IMPORT_NOTES_MAX)
        return;
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    import->result->notes[import->result->note_count++] = arena_dup(import->arena, text);
}

int import_sink_failed(struct import *import, int r)
{
    return why_errno(import->why, -r, "make room, or choose another place with -o",
                     "cannot store what was read from '%s'", import->source->path);
}

int import_settle(struct import *import, int r, const char *reason, bool *ret_skipped)
{
    *ret_skipped = r == -E2BIG || r == -EINVAL;
    if (*ret_skipped) {
        import_skip(import, reason);
        return 0;
    }
    return r < 0 ? import_sink_failed(import, r) : 0;
}

int import_lines(struct import *import, int (*add)(void *context, struct str line), void *context)
{
    struct str line;
    bool cut;
    int r;
    while ((r = import_source_line(import->source, &line, &cut, import->why)) > 0) {
        if (cut)
            import_skip(import, "line_too_long");
        else
            r = add(context, line);
        if (r < 0)
            break;
    }
    return r;
}

int import_frame(struct import *import, uint32_t image, struct str name, uint32_t *ret)
{
    struct frame_info frame = {.kind = FRAME_NAMED, .image = image};
    if (name.len == 0 && image == 0)
        frame = (struct frame_info){.kind = FRAME_UNKNOWN, .reason = UNWIND_NO_MAPPING};
    name.len = MIN(name.len, (size_t)IMPORT_NAME_BYTES_MAX);
    int r = name.len > 0 ? sink_text(import->sink, name, &frame.name) : 0;
    return r < 0 ? r : sink_frame(import->sink, &frame, ret);
}

int import_image(struct import *import, struct str path, struct str build_id, uint32_t *ret)
{
    *ret = 0;
    if (path.len == 0 || str_is(path, "[unknown]") || str_is(path, "inlined"))
        return 0;
    struct image_info image = {.path = path, .build_id = build_id};
    image.path.len = MIN(path.len, (size_t)IMPORT_NAME_BYTES_MAX);
    if (str_starts(path, "[kernel") || str_starts(path, "[guest.kernel") || str_ends(path, ".ko") ||
        str_ends(path, "vmlinux") || (path.data[0] == '[' && str_ends(path, ".ko]")))
        image.kind = IMAGE_KERNEL;
    else if (str_is(path, "[vdso]"))
        image.kind = IMAGE_VDSO;
    return sink_image(import->sink, &image, ret);
}

struct thread_key {
    uint32_t pid, tid;
    char name[64]; /* as much as tells threads apart */
};

static int process_at(struct import *import, uint32_t pid, uint32_t *ret)
{
    uint32_t key;
    bool fresh;
    if (intern_add(&import->process_keys, (struct str){(const char *)&pid, sizeof(pid)}, &key,
                   &fresh) < 0)
        return -ENOMEM;
    if (fresh) {
        uint32_t id;
        struct process_info info = {.pid = pid, .exe = STR(""), .command = STR("")};
        if (import->process_ids.len == 0 && import->command)
            info.command = str_from(import->command);
        int r = sink_process(import->sink, &info, &id);
        if (r < 0)
            return r;
        if (VEC_PUSH(&import->process_ids, id) < 0)
            return -ENOMEM;
    }
    *ret = import->process_ids.data[key - 1];
    return 0;
}

int import_thread(struct import *import, uint32_t pid, uint32_t tid, struct str name, uint32_t *ret)
{
    *ret = 0;
    if (pid == 0 && tid == 0 && name.len == 0)
        return 0;
    struct thread_key key = {.pid = pid, .tid = tid};
    memcpy(key.name, name.data, MIN(name.len, sizeof(key.name)));
    struct str bytes = {(const char *)&key, sizeof(key)};
    uint32_t known = intern_find(&import->thread_keys, bytes);
    if (known == 0) {
        if (import->thread_ids.len >= IMPORT_THREADS_MAX)
            return -E2BIG;
        struct thread_info info = {.tid = tid, .name = name};
        info.name.len = MIN(name.len, (size_t)IMPORT_NAME_BYTES_MAX);
        uint32_t id;
        int r = process_at(import, pid, &info.process);
        if (r == 0)
            r = sink_thread(import->sink, &info, &id);
        if (r < 0)
            return r;
        if (VEC_PUSH(&import->thread_ids, id) < 0 ||
            intern_add(&import->thread_keys, bytes, &known, NULL) < 0)
            return -ENOMEM;
    }
    *ret = import->thread_ids.data[known - 1];
    return 0;
}

int import_series(struct import *import, const char *name, enum unit unit, const char *about,
                  uint32_t *ret)
{
    struct import_result *result = import->result;
    if (result->series_count >= IMPORT_SERIES_MAX)
        return -E2BIG;
    char fit[48];
    size_t len = 0;
    for (; *name && len < sizeof(fit) - 8; name++) {
        unsigned char c = (unsigned char)*name;
        fit[len++] = isalnum(c) || c == '.' || c == '-' || c == '_' ? (char)tolower(c) : '_';
    }
    fit[len] = '\0';
    const char *unique = arena_dup(import->arena, len ? fit : "samples");
    for (size_t i = 0, n = 2; i < result->series_count; i++) {
        if (strcmp(result->series[i], unique) != 0)
            continue;
        unique = arena_printf(import->arena, "%s-%zu", fit, n++);
        i = (size_t)-1; /* the new name is compared with all of them */
    }
    struct series_info info = {unique, SERIES_SUM, unit, about};
    int r = sink_series(import->sink, &info, ret);
    if (r == 0)
        result->series[result->series_count++] = unique;
    return r;
}

int import_samples(struct import *import, const struct sample *sample, uint64_t count)
{
    struct sample one = *sample;
    bool many = count > IMPORT_LINE_SAMPLES_MAX || import->spread + count > IMPORT_SAMPLES_MAX ||
                count == 0 || sample->weight < count;
    if (many)
        count = 1;
    import->spread += count;
    /* The first ones carry what does not divide, so that the sum stays exact. */
    uint64_t each = sample->weight / count, rest = sample->weight % count;
    for (uint64_t i = 0; i < count; i++) {
        one.weight = each + (i < rest);
        int r = sink_sample(import->sink, &one);
        if (r < 0)
            return r;
    }
    import->result->samples += count;
    return 0;
}

static int put_counters(struct import *import)
{
    const struct import_result *result = import->result;
    int r = sink_counter(import->sink, "cpu.samples", UNIT_COUNT, result->samples);
    for (size_t i = 0; i < result->skip_count && r == 0; i++) {
        const char *name = arena_printf(import->arena, "import.skipped.%s",
                                        result->skips[i].reason);
        r = sink_counter(import->sink, name, UNIT_COUNT, result->skips[i].count);
    }
    return r;
}

static int put_document(struct import *import)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    jsonw_key(&json, "schema");
    jsonw_text(&json, STR("whyslow.import/1"));
    jsonw_key(&json, "format");
    jsonw_text(&json, str_from(import->format));
    jsonw_key(&json, "file");
    jsonw_text(&json, str_from(import->source->path));
    if (import->command) {
        jsonw_key(&json, "command");
        jsonw_text(&json, str_from(import->command));
    }
    if (import->start_real_ns) {
        jsonw_key(&json, "start_real_ns");
        jsonw_u64(&json, import->start_real_ns);
    }
    jsonw_key(&json, "notes");
    jsonw_array_begin(&json);
    for (size_t i = 0; i < import->result->note_count; i++)
        jsonw_text(&json, str_from(import->result->notes[i]));
    jsonw_array_end(&json);
    jsonw_object_end(&json);
    bool good = fclose(out) == 0;
    int r = good ? sink_document(import->sink, "import", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

int import_finish(struct import *import)
{
    const struct import_result *result = import->result;
    if (result->samples == 0) {
        uint64_t skipped = 0;
        for (size_t i = 0; i < result->skip_count; i++)
            skipped += result->skips[i].count;
        const char *first = result->skip_count ? result->skips[0].reason : "none";
        return why_set(import->why, WHY_FAILED, ENODATA,
                       "check the file with the tool that wrote it, or force a --format",
                       "'%s' (%s) has no sample that could be read (%llu records skipped, first "
                       "reason: %s)",
                       import->source->path, import->format, (unsigned long long)skipped, first);
    }
    int r = put_counters(import);
    if (r == 0)
        r = put_document(import);
    if (r < 0)
        return import_sink_failed(import, r);
    return arena_failed(import->arena) ? why_nomem(import->why) : 0;
}
