/* The text of `perf script` with its default fields:
 *
 *     comm 1234/1235 [003] 77.123456:   1001001 cpu-clock:ppp:
 *             55d0c0de1234 inner+0x14 (/usr/bin/app)
 *             55d0c0de1180 outer (inlined)
 *             …
 *
 * Samples are separated by blank lines. Without callchains the frame stands in the head line.
 * A comm may hold anything, so a head is recognised by what follows it. */
#include "collect/import_common.h"

#include <assert.h>
#include <errno.h>

struct script_frame {
    struct str name, image; /* in script.texts, by offset: it moves while it grows */
    size_t name_at, image_at;
    bool inlined;
};

struct script_event {
    uint32_t series;
    bool period; /* weights are periods; else each sample counts 1 */
};

struct script {
    struct import import;
    struct intern event_names;
    VEC(struct script_event) events;
    bool have_cpu;
    /* the sample being read */
    bool open;
    struct sample sample;
    VEC(char) texts;
    VEC(struct script_frame) frames; /* innermost first */
};

struct head {
    struct str comm, event, rest;
    uint32_t pid, tid;
    uint64_t time_ns, period;
    bool has_period;
};

static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
    return s.len > 0;
}

/* "77.123456:" */
static bool parse_time(struct str word, uint64_t *ret_ns)
{
    if (!str_ends(word, ":"))
        return false;
    word.len--;
    struct str seconds = str_cut(&word, '.');
    uint64_t s, ns = 0;
    if (!is_digits(seconds) || !is_digits(word) || word.len > 9 ||
        str_to_u64(seconds, 10, &s) < 0 || s > UINT32_MAX)
        return false;
    for (size_t i = 0; i < 9; i++)
        ns = ns * 10 + (i < word.len ? (uint64_t)(word.data[i] - '0') : 0);
    *ret_ns = s * 1000000000u + ns;
    return true;
}

/* "1234" or "1234/1235"; -1 stands for a task that was gone. */
static bool parse_pid(struct str word, uint32_t *ret_pid, uint32_t *ret_tid)
{
    struct str first = str_cut(&word, '/');
    uint64_t pid, tid;
    if (str_is(first, "-1") && (word.len == 0 || str_is(word, "-1"))) {
        *ret_pid = *ret_tid = 0;
        return true;
    }
    if (!is_digits(first) || str_to_u64(first, 10, &pid) < 0 || pid > UINT32_MAX)
        return false;
    tid = pid;
    if (word.len > 0 && (!is_digits(word) || str_to_u64(word, 10, &tid) < 0 || tid > UINT32_MAX))
        return false;
    *ret_pid = (uint32_t)pid;
    *ret_tid = (uint32_t)tid;
    return true;
}

/* What follows the time: a period (or not), the event with a colon, and the rest. */
static bool parse_event(struct str rest, struct head *head)
{
    struct str word = str_word(&rest);
    head->has_period = is_digits(word);
    if (head->has_period) {
        if (str_to_u64(word, 10, &head->period) < 0 || head->period > INT64_MAX)
            return false;
        word = str_word(&rest);
    }
    if (word.len < 2 || !str_ends(word, ":"))
        return false;
    head->event = (struct str){word.data, word.len - 1};
    head->rest = str_trim(rest);
    return true;
}

static bool parse_head(struct str line, struct head *ret)
{
    struct str rest = line, pid_word = {0}, before = {0};
    for (;;) {
        struct str word = str_word(&rest);
        if (word.len == 0)
            return false;
        struct head head = {0};
        if (pid_word.len > 0 && parse_time(word, &head.time_ns) &&
            parse_pid(pid_word, &head.pid, &head.tid) && parse_event(rest, &head)) {
            head.comm = str_trim((struct str){line.data, (size_t)(pid_word.data - line.data)});
            *ret = head;
            return true;
        }
        /* "[003]" may stand between pid and time. */
        bool cpu = word.len > 2 && word.data[0] == '[' && word.data[word.len - 1] == ']';
        if (!cpu || before.len == 0)
            pid_word = word;
        before = word;
    }
}

static bool script_detect(struct str head)
{
    while (head.len > 0) {
        struct str line = str_cut(&head, '\n');
        struct head found;
        if (line.len > 0 && line.data[0] != '#' && parse_head(line, &found))
            return true;
    }
    return false;
}

/* "app (deleted)" inside "(/usr/bin/app (deleted))": the parenthesis that the last one closes. */
static bool split_image(struct str line, struct str *ret_name, struct str *ret_image)
{
    if (!str_ends(line, ")"))
        return false;
    size_t depth = 0;
    for (size_t i = line.len; i > 0; i--) {
        char c = line.data[i - 1];
        depth += c == ')';
        if (c == '(' && --depth == 0) {
            *ret_image = (struct str){line.data + i, line.len - i - 1};
            *ret_name = str_trim((struct str){line.data, i - 1});
            return true;
        }
    }
    return false;
}

/* "inner+0x14" without the offset. */
static struct str symbol_of(struct str name)
{
    for (size_t i = name.len; i > 3; i--) {
        if (name.data[i - 1] == '+')
            break;
        if (i >= 3 && memcmp(name.data + i - 3, "+0x", 3) == 0)
            return (struct str){name.data, i - 3};
    }
    return str_is(name, "[unknown]") ? STR("") : name;
}

static int keep(struct script *script, struct str text, size_t *ret_at)
{
    if (VEC_RESERVE(&script->texts, script->texts.len + text.len + 1) < 0)
        return -ENOMEM;
    *ret_at = script->texts.len;
    memcpy(script->texts.data + script->texts.len, text.data, text.len);
    script->texts.len += text.len;
    return 0;
}

/* "55d0c0de1234 inner+0x14 (/usr/bin/app)" */
static int frame_add(struct script *script, struct str line)
{
    struct str rest = str_trim(line);
    struct str address = str_word(&rest);
    uint64_t number;
    struct script_frame frame = {.name = STR(""), .image = STR("")};
    if (address.len == 0 || str_to_u64(address, 16, &number) < 0 ||
        !split_image(str_trim(rest), &frame.name, &frame.image)) {
        import_skip(&script->import, "frame_not_understood");
        return 0;
    }
    if (script->frames.len >= IMPORT_DEPTH_MAX) {
        import_skip(&script->import, "frame_too_deep");
        return 0;
    }
    frame.inlined = str_is(frame.image, "inlined");
    frame.name = symbol_of(frame.name);
    frame.name.len = MIN(frame.name.len, (size_t)IMPORT_NAME_BYTES_MAX);
    if (keep(script, frame.name, &frame.name_at) < 0 ||
        keep(script, frame.image, &frame.image_at) < 0 || VEC_PUSH(&script->frames, frame) < 0)
        return why_nomem(script->import.why);
    return 0;
}

/* An inlined frame is in the image of the frame it was inlined into, which comes later. */
static int stack_build(struct script *script, uint32_t *ret)
{
    struct import *import = &script->import;
    uint32_t stack = 0, image = 0;
    int r = 0;
    for (size_t i = script->frames.len; i-- > 0 && r == 0;) {
        const struct script_frame *frame = &script->frames.data[i];
        struct str name = {script->texts.data + frame->name_at, frame->name.len};
        struct str path = {script->texts.data + frame->image_at, frame->image.len};
        uint32_t id;
        if (!frame->inlined)
            r = import_image(import, path, STR(""), &image);
        if (r == 0)
            r = import_frame(import, image, name, &id);
        if (r == 0)
            r = sink_stack(import->sink, stack, id, &stack);
    }
    if (r == 0)
        *ret = stack;
    return r;
}

static int sample_end(struct script *script)
{
    if (!script->open)
        return 0;
    struct import *import = &script->import;
    script->open = false;
    bool skipped;
    int r = import_settle(import, stack_build(script, &script->sample.stack), "too_many_names",
                          &skipped);
    if (r < 0 || skipped)
        return r;
    return import_settle(import, import_samples(import, &script->sample, 1), "bad_sample",
                         &skipped);
}

static bool event_is(struct str event, const char *name)
{
    size_t len = strlen(name);
    return str_starts(event, name) && (event.len == len || event.data[len] == ':');
}

static int event_add(struct script *script, const struct head *head)
{
    struct import *import = &script->import;
    bool clock = event_is(head->event, "cpu-clock") || event_is(head->event, "task-clock");
    bool cpu = clock || event_is(head->event, "cycles") || str_contains(head->event, "/cycles/") ||
               event_is(head->event, "cpu-cycles");
    struct script_event event = {.period = head->has_period};
    bool named_cpu = cpu && !script->have_cpu;
    const char *text = arena_dup_len(import->arena, head->event.data,
                                     MIN(head->event.len, (size_t)64));
    enum unit unit = clock && head->has_period ? UNIT_NS : UNIT_COUNT;
    const char *about = arena_printf(import->arena, "perf script, event %s: %s", text,
                                     unit == UNIT_NS    ? "time on a CPU"
                                     : head->has_period ? "number of events"
                                                        : "number of samples");
    int r = import_series(import, named_cpu ? "cpu" : text, unit, about, &event.series);
    if (r < 0)
        return r;
    import_note(import, "series %s: %s", import->result->series[import->result->series_count - 1],
                about);
    script->have_cpu = script->have_cpu || named_cpu;
    return VEC_PUSH(&script->events, event);
}

static int event_of(struct script *script, const struct head *head, struct script_event *ret)
{
    uint32_t id = intern_find(&script->event_names, head->event);
    if (id == 0) {
        int r = event_add(script, head);
        if (r == 0)
            r = intern_add(&script->event_names, head->event, &id, NULL);
        if (r < 0)
            return r;
    }
    assert(id <= script->events.len && script->events.data);
    *ret = script->events.data[id - 1];
    return 0;
}

static int sample_begin(struct script *script, const struct head *head)
{
    struct import *import = &script->import;
    struct script_event event = {0};
    uint32_t thread = 0;
    bool skipped;
    int r = event_of(script, head, &event);
    if (r == 0)
        r = import_thread(import, head->pid, head->tid, head->comm, &thread);
    r = import_settle(import, r, "too_many_events_or_threads", &skipped);
    if (r < 0 || skipped)
        return r;
    script->open = true;
    script->frames.len = script->texts.len = 0;
    script->sample = (struct sample){
        .series = event.series,
        .thread = thread,
        .time_ns = head->time_ns,
        .weight = event.period ? head->period : 1,
    };
    /* Without callchains the one frame stands here; of a tracepoint it is its text. */
    struct str name, image;
    if (head->rest.len > 0 && split_image(head->rest, &name, &image))
        return frame_add(script, head->rest);
    return 0;
}

static int line_add(void *context, struct str line)
{
    struct script *script = context;
    struct head head;
    struct str text = str_trim(line);
    if (text.len == 0)
        return sample_end(script);
    if (text.data[0] == '#' && !script->open)
        return 0;
    if (parse_head(line, &head)) {
        int r = sample_end(script);
        return r < 0 ? r : sample_begin(script, &head);
    }
    if (script->open && (line.data[0] == '\t' || line.data[0] == ' '))
        return frame_add(script, line);
    import_skip(&script->import, "line_not_understood");
    return 0;
}

static int script_import(struct import_source *source, struct sink *sink,
                         const struct import_opts *opts, struct arena *arena,
                         struct import_result *ret, struct why *why)
{
    struct script script = {.import = {.source = source,
                                       .sink = sink,
                                       .opts = opts,
                                       .arena = arena,
                                       .result = ret,
                                       .why = why,
                                       .format = "perf-script"}};
    int r = import_lines(&script.import, line_add, &script);
    if (r == 0)
        r = sample_end(&script);
    if (r == 0) {
        import_note(&script.import, "perf script's text has no source lines and no build-ids");
        r = import_finish(&script.import);
    }
    intern_deinit(&script.event_names);
    VEC_FREE(&script.events);
    VEC_FREE(&script.texts);
    VEC_FREE(&script.frames);
    import_deinit(&script.import);
    return r;
}

extern const struct importer importer_script;
const struct importer importer_script = {
    .name = "perf-script",
    .about = "the text of 'perf script'",
    .detect = script_detect,
    .import = script_import,
};
