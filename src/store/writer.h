/* Writing a recording: the sink behind collectors that ends in a SQLite file.
 *
 *     r = recording_create(path, &(struct recording_opts){.version = …}, &writer, why);
 *     struct sink *sink = recording_writer_sink(writer);
 *     … sink_sample(sink, &sample) …, recording_writer_tick(writer) while waiting …
 *     r = recording_writer_finish(writer, why);
 *     recording_writer_close(writer);
 *
 * What was given to the sink is committed every second, and by
 * recording_writer_commit(). Killing the writer at any moment leaves a file
 * that opens with everything up to the last commit, samples and totals in
 * agreement. An existing file is never overwritten.
 *
 * After a failed write (disk full) the sink returns the error, the file keeps
 * what was committed, and every sample that did not get there is counted.
 * A call with an id that was never given out is -EINVAL, a text or table
 * beyond its bounds -E2BIG: such a call is refused, the recording goes on.
 *
 * Of waits that are told one by one at most four million are kept; the rest are
 * in the tallies of their rows, and counted as loss.wait_events. Of requests it is
 * one million, and loss.request_events. Of moments of the heap it is one million
 * (loss.store_moments), of rows of its snapshots four (loss.store_snapshot_rows).
 *
 * Memory is taken at the start and when tables grow, never per sample.
 * A writer belongs to one thread. Other processes may read meanwhile. */
#pragma once

#include "base/why.h"
#include "model/sink.h"

struct recording_opts {
    const char *version;         /* of whyslow, for readers of other versions */
    uint64_t (*clock_ns)(void);  /* NULL: clock_mono_ns(); tests bring their own */
    uint64_t commit_interval_ns; /* 0: one second */
};

struct recording_writer;

/* -EEXIST (usage) when the file, or what is left of one, is there already. */
MUST_USE int recording_create(const char *path, const struct recording_opts *opts,
                              struct recording_writer **ret, struct why *why);

/* Of a recording of ours whose writer was killed: what lies beside it goes into it, so that it is
 * one file. -EBUSY: somebody still writes or reads it. */
MUST_USE int recording_fold(const char *path);

/* Valid until recording_writer_close(). */
struct sink *recording_writer_sink(struct recording_writer *writer);

/* Commits if it is time to; for loops that wait for samples. */
MUST_USE int recording_writer_tick(struct recording_writer *writer);
MUST_USE int recording_writer_commit(struct recording_writer *writer);

/* Commits, marks the recording as finished and folds it into one file on disk,
 * synced. Only recording_writer_close() may follow. */
MUST_USE int recording_writer_finish(struct recording_writer *writer, struct why *why);

/* Without finish, keeps what was committed. NULL is fine. */
void recording_writer_close(struct recording_writer *writer);

/* The first failure; its error is 0 while there was none. */
const struct why *recording_writer_why(const struct recording_writer *writer);
/* Samples that are safe in the file, and samples that never will be. */
uint64_t recording_writer_committed(const struct recording_writer *writer);
uint64_t recording_writer_dropped(const struct recording_writer *writer);
