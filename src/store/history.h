/* Results of benchmarks over time: a small SQLite file, one a repository.
 *
 * Several processes may add at once. A result that is
 * there already (same name, command and time) is not added twice. */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "base/why.h"
#include "model/bench.h"

struct history_entry {
    int64_t id;
    struct bench_origin origin;
    const char *command;
    uint64_t runs;
    double median, low, high, p95; /* of the metric asked for; low and high may be NaN */
};

/* A benchmark on a machine. */
struct history_name {
    const char *name;
    const char *machine;
    uint64_t results;
    const char *last_time;
    const char *last_revision;
    double last_median; /* of the metric; NaN if it was not measured */
};

struct history;

/* `create` makes file and folder; without it a missing file is -ENOENT. */
MUST_USE int history_open(const char *path, bool create, struct history **ret, struct why *why);
void history_close(struct history *history); /* NULL is fine */

/* 1 when it was added, 0 when it was there already. A result without a good run is -EINVAL. */
MUST_USE int history_add(struct history *history, const struct bench_result *result,
                         const struct bench_origin *origin, struct why *why);

/* Texts live in the arena; `ret` is freed with VEC_FREE. Newest first. */
struct history_names {
    struct history_name *data;
    size_t len, cap;
};
MUST_USE int history_list(struct history *history, enum bench_metric metric, struct arena *arena,
                          struct history_names *ret, struct why *why);
/* The results of a name on a machine, oldest first, at most the last `max`. */
struct history_entries {
    struct history_entry *data;
    size_t len, cap;
};
MUST_USE int history_read(struct history *history, const char *name, const char *machine,
                          enum bench_metric metric, size_t max, struct arena *arena,
                          struct history_entries *ret, struct why *why);
