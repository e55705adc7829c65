/* stub: replaced by the recording writer. */
#include "store/writer.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>

struct recording_writer {
    struct sink sink;
    uint32_t next;
    uint64_t samples;
    struct why why;
};

static int any_id(struct sink *sink, uint32_t *ret_id)
{
    *ret_id = ++((struct recording_writer *)sink)->next;
    return 0;
}
static int put_text(struct sink *sink, struct str text, uint32_t *ret_id)
{
    (void)text;
    return any_id(sink, ret_id);
}
static int put_process(struct sink *sink, const struct process_info *info, uint32_t *ret_id)
{
    (void)info;
    return any_id(sink, ret_id);
}
static int put_process_end(struct sink *sink, uint32_t process, uint64_t end_ns, int status)
{
    (void)sink;
    (void)process;
    (void)end_ns;
    (void)status;
    return 0;
}
static int put_thread(struct sink *sink, const struct thread_info *info, uint32_t *ret_id)
{
    (void)info;
    return any_id(sink, ret_id);
}
static int put_thread_end(struct sink *sink, uint32_t thread, uint64_t end_ns)
{
    (void)sink;
    (void)thread;
    (void)end_ns;
    return 0;
}
static int put_series(struct sink *sink, const struct series_info *info, uint32_t *ret_id)
{
    (void)info;
    return any_id(sink, ret_id);
}
static int put_sample(struct sink *sink, const struct sample *sample)
{
    (void)sample;
    ((struct recording_writer *)sink)->samples++;
    return 0;
}
static int put_counter(struct sink *sink, const char *name, enum unit unit, uint64_t add)
{
    (void)sink;
    (void)name;
    (void)unit;
    (void)add;
    return 0;
}
static int put_document(struct sink *sink, const char *name, struct str json)
{
    (void)sink;
    (void)name;
    (void)json;
    return 0;
}

static const struct sink_ops ops = {
    .text = put_text,
    .process = put_process,
    .process_end = put_process_end,
    .thread = put_thread,
    .thread_end = put_thread_end,
    .series = put_series,
    .sample = put_sample,
    .counter = put_counter,
    .document = put_document,
};

int recording_create(const char *path, const struct recording_opts *opts,
                     struct recording_writer **ret, struct why *why)
{
    (void)opts;
    struct recording_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return why_nomem(why);
    writer->sink.ops = &ops;
    int r = file_write_atomic(path, "stub\n", 5, why);
    if (r < 0) {
        free(writer);
        return r;
    }
    *ret = writer;
    return 0;
}
struct sink *recording_writer_sink(struct recording_writer *writer)
{
    return &writer->sink;
}
int recording_writer_tick(struct recording_writer *writer)
{
    (void)writer;
    return 0;
}
int recording_writer_commit(struct recording_writer *writer)
{
    (void)writer;
    return 0;
}
int recording_writer_finish(struct recording_writer *writer, struct why *why)
{
    (void)writer;
    (void)why;
    return 0;
}
void recording_writer_close(struct recording_writer *writer)
{
    free(writer);
}
const struct why *recording_writer_why(const struct recording_writer *writer)
{
    return &writer->why;
}
uint64_t recording_writer_committed(const struct recording_writer *writer)
{
    return writer->samples;
}
uint64_t recording_writer_dropped(const struct recording_writer *writer)
{
    (void)writer;
    return 0;
}
