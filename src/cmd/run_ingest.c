/* From what is printed to spans. */
#include "cmd/run_ingest.h"

#include "base/fd.h"

#include <string.h>

static void line_keep(struct ingest *ingest, struct ingest_stream *stream)
{
    size_t need = ingest->kept.len + stream->len + 1;
    if (!memmem(stream->line, stream->len, SPAN_LINE_MARK, strlen(SPAN_LINE_MARK)))
        return;
    if (need > INGEST_BYTES_MAX || VEC_RESERVE(&ingest->kept, need) < 0) {
        ingest->dropped++;
        return;
    }
    memcpy(ingest->kept.data + ingest->kept.len, stream->line, stream->len);
    ingest->kept.data[need - 1] = '\n';
    ingest->kept.len = need;
}

/* Most output is not for us: a line is given up at its first byte, and its end looked for. */
static void ingest_take(struct spawn_listener *listener, bool error, const char *data, size_t len)
{
    struct ingest *ingest = (struct ingest *)listener;
    struct ingest_stream *stream = &ingest->streams[error];
    while (len > 0) {
        const char *end = memchr(data, '\n', len);
        size_t part = end ? (size_t)(end - data) : len;
        if (stream->len == 0 && part > 0 && !stream->passed)
            stream->passed = data[0] != '{';
        if (!stream->passed && stream->len + part > sizeof(stream->line))
            stream->passed = true;
        if (!stream->passed) {
            memcpy(stream->line + stream->len, data, part);
            stream->len += part;
        }
        if (!end)
            return;
        if (!stream->passed)
            line_keep(ingest, stream);
        stream->len = 0;
        stream->passed = false;
        data = end + 1;
        len -= part + 1;
    }
}

static void ingest_begin(struct spawn_listener *listener)
{
    struct ingest *ingest = (struct ingest *)listener;
    ingest->kept.len = 0;
    ingest->dropped = 0;
    for (size_t i = 0; i < ARRAY_SIZE(ingest->streams); i++) {
        ingest->streams[i].len = 0;
        ingest->streams[i].passed = false;
    }
}

void ingest_init(struct ingest *ingest)
{
    *ingest = (struct ingest){.listener = {.begin = ingest_begin, .take = ingest_take}};
}

void ingest_deinit(struct ingest *ingest)
{
    VEC_FREE(&ingest->kept);
}

int run_ingest(struct run *run, struct ingest *ingest, struct why *why)
{
    for (size_t i = 0; i < ARRAY_SIZE(ingest->streams); i++) /* the last may have no end */
        if (ingest->streams[i].len > 0 && !ingest->streams[i].passed)
            line_keep(ingest, &ingest->streams[i]);
    struct str text = {ingest->kept.data, ingest->kept.len};
    /* With a check command the output went to a file. */
    const char *path = run->plan.ingest ? run->plan.ingest : run->golden.output_path;
    struct why file_why = {0};
    if (path && file_read(run->arena, path, INGEST_FILE_BYTES_MAX, &text, &file_why) < 0) {
        run_note(run, &run->missing, "perf.profile lines: %s", file_why.what);
        text = (struct str){0};
    }
    if (span_lines_read(run->arena, text, &run->spans) < 0)
        return why_nomem(why);
    run->spans.artifact = run->plan.ingest;
    run->spans.odd += path ? 0 : ingest->dropped;
    if (run->spans.odd > 0)
        run_note(run, &run->notes,
                 "%llu of %llu perf.profile lines made no sense and were left out",
                 (unsigned long long)run->spans.odd, (unsigned long long)run->spans.lines);
    return 0;
}
