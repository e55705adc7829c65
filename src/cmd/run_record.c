/* Start held, attach the collector, let go, drain until the end, read the zombie, reap. */
#include "cmd/run_record.h"

#include "base/clock.h"
#include "cmd/run_artifacts.h"
#include "store/writer.h"
#include "version.h"

#include <errno.h>
#include <stdlib.h>

enum { DRAIN_MS = 10 };

static int documents_put(const struct record_opts *opts, struct sink *sink, struct why *why)
{
    char *json = NULL;
    size_t len = 0;
    int r = json_text_make("whyslow.fingerprint/1", opts->fingerprint, &json, &len, why);
    if (r < 0)
        return r;
    r = sink_document(sink, "fingerprint", (struct str){json, len});
    free(json);
    return r < 0 ? why_errno(why, -r, NULL, "cannot write to '%s'", opts->recording) : 0;
}

/* Until the target has ended; its zombie is still there then. */
static int pump(struct spawn *spawn, struct collector *collector, struct recording_writer *writer,
                struct why *why)
{
    for (;;) {
        int r = spawn_wait(spawn, clock_mono_ns() + DRAIN_MS * NS_PER_MS, why);
        if (r != 0)
            return r < 0 ? r : 0;
        r = collector_usage.drain(collector, why);
        if (r < 0)
            return r;
        if (recording_writer_tick(writer) < 0) {
            *why = *recording_writer_why(writer);
            return -why->error;
        }
    }
}

static int collect(const struct record_opts *opts, struct spawn *spawn,
                   struct recording_writer *writer, struct run_recorded *ret, struct why *why)
{
    struct collector *collector = NULL;
    struct collector_target target = {
        .pid = spawn_pid(spawn), .start_ns = clock_mono_ns(), .command = opts->command};
    int r = collector_usage.start(&target, recording_writer_sink(writer), &collector, why);
    if (r < 0)
        return r;
    r = spawn_release(spawn, why);
    if (r == 0)
        r = pump(spawn, collector, writer, why);
    if (r == 0)
        r = collector_usage.stop(collector, why);
    if (r == 0)
        r = collector_usage.finish(collector, why);
    if (r == 0)
        usage_counts(collector, &ret->usage);
    collector_usage.close(collector);
    return r;
}

static int record_into(const struct record_opts *opts, struct recording_writer *writer,
                       struct run_recorded *ret, struct why *why)
{
    int r = documents_put(opts, recording_writer_sink(writer), why);
    if (r < 0)
        return r;
    struct spawn_opts spawn_opts = {
        .argv = opts->argv,
        .path = opts->path,
        .input = SPAWN_NULL,
        .output = SPAWN_CAPTURE, /* as in the baseline, so that the run is the same */
        .error = SPAWN_CAPTURE,
        .timeout_ns = opts->timeout_ns,
        .hold = true,
    };
    struct spawn *spawn = NULL;
    r = spawn_start(&spawn_opts, &spawn, why);
    if (r < 0)
        return r;
    r = collect(opts, spawn, writer, ret, why);
    if (r == 0)
        r = spawn_finish(spawn, &ret->result, why);
    spawn_close(spawn);
    return r < 0 ? r : recording_writer_finish(writer, why);
}

int run_record(const struct record_opts *opts, struct run_recorded *ret, struct why *why)
{
    struct recording_writer *writer = NULL;
    struct recording_opts recording = {.version = WHYSLOW_VERSION};
    int r = recording_create(opts->recording, &recording, &writer, why);
    if (r < 0)
        return r;
    struct run_recorded recorded = {0};
    r = record_into(opts, writer, &recorded, why);
    recorded.samples = recording_writer_committed(writer);
    recorded.dropped = recording_writer_dropped(writer);
    recording_writer_close(writer);
    if (r == 0)
        *ret = recorded;
    return r;
}
