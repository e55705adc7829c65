/* Everything that is known of a run, joined: what it costs, and what each axis recorded.
 *
 * Recordings of several runs of the same program, each of the axes that do not disturb each other:
 * ids (stacks, threads, functions) are those of one recording and mean nothing in another; a place
 * (model/finding.h) means the same in all. Pure data from here on: detectors and rankings read it,
 * nobody measures any more. */
#pragma once

#include "analyze/critical_path.h"
#include "analyze/embedded.h"
#include "analyze/heap_honesty.h"
#include "analyze/heap_sums.h"
#include "analyze/honesty.h"
#include "analyze/hot_lines.h"
#include "analyze/hotspots.h"
#include "analyze/io_honesty.h"
#include "analyze/io_request_groups.h"
#include "analyze/io_sums.h"
#include "analyze/lock_table.h"
#include "analyze/path_costs.h"
#include "analyze/wait_classes.h"
#include "analyze/wait_groups.h"
#include "analyze/wait_honesty.h"
#include "host/build_info.h"
#include "model/finding.h"
#include "model/span.h"

enum axis { AXIS_CPU, AXIS_WAITS, AXIS_IO, AXIS_HEAP, AXES }; /* locks are part of waits */
enum { AXIS_BIT_CPU = 1, AXIS_BIT_WAITS = 2, AXIS_BIT_IO = 4, AXIS_BIT_HEAP = 8 };
const char *axis_name(enum axis axis); /* "cpu", "waits", "io", "heap" */

/* Above this an axis is stopped, and its times rank nothing: its counts still count (M18). */
#define AXIS_OVERHEAD_MAX 0.20

struct axis_state {
    const char *na;        /* why there is nothing of it; NULL: there is */
    const char *artifact;  /* file name in the folder of the run */
    const char *path;      /* of the recording */
    double wall_ns;        /* of the recorded run; NaN */
    struct estimate added; /* against the baseline's median: ns; NaN: not known */
    double overhead;       /* 0.03: 3% more; NaN: overhead_na says why */
    const char *overhead_na;
    bool disturbed; /* by more than AXIS_OVERHEAD_MAX, and by us */
    bool sampled;   /* heap: estimates from samples */
    /* Shares of what was to be recorded, 0 … 1; NaN: not known. */
    double lost;      /* is not there, or not whole: calls without their stack or object */
    double uncounted; /* of these: is in no table, or only by its name */
    double scale;     /* ns of this recording → ns of the baseline */
};

/* Medians over the baseline's runs; NaN: not known. */
struct run_costs {
    size_t runs;
    double wall_ns, wall_low_ns, wall_high_ns; /* 95% interval of the median; NaN with few runs */
    double wall_min_ns, wall_max_ns;           /* of all runs: stands in then */
    /* Where no plain run was finished: how long the recorded one is, which is what there is to
     * divide up, and whether it ended by itself. It is no measure of what recording costs. */
    double recorded_ns;
    bool recorded_whole;
    double cpu_ns, user_ns, system_ns;
    double faults_minor, faults_major;
    double switches_voluntary, switches_involuntary;
    double read_bytes, written_bytes, storage_read_bytes, storage_written_bytes;
    double peak_rss_bytes;
    /* While the baseline ran, a run: what a cgroup's limit took, what the hypervisor took. */
    double throttled_ns, steal_ns;
    double others_ns;    /* CPU time that other programs had meanwhile, on all CPUs */
    bool outputs_differ; /* between runs */
    uint32_t cpus;       /* that it may use */
};

/* Of what the hypervisor took, the program's part, as CPU time: 0 where it took nothing or nobody
 * knows. Only CPUs that are wanted can be taken, so it is shared as they were. */
double run_costs_stolen_ns(const struct run_costs *costs);

struct evidence_input {
    struct {
        const char *recording; /* path; NULL: none, `na` says why */
        const char *artifact, *na;
        double wall_ns;
        bool is_dear; /* the collectors slow the program down, not the machine */
    } axes[AXES];
    struct run_costs costs;
    const struct build_info *binary; /* NULL: binary_na */
    const char *binary_na;
    const struct value *fingerprint, *checks;
    const char *command; /* as a shell would take it */
    const struct spans *spans;
};

struct evidence {
    struct arena *arena;
    const char *command;
    struct axis_state axes[AXES];
    struct run_costs costs;
    const struct build_info *binary; /* NULL: binary_na */
    const char *binary_na;
    const struct value *fingerprint, *checks;
    const struct spans *spans; /* never NULL */

    /* AXIS_CPU, unless axes[].na. Ids are those of AXIS_WAITS when both are of one recording. */
    struct profile cpu; /* with samples */
    struct hotspots hotspots;
    struct hot_lines lines; /* heaviest first */
    struct embedded embedded;
    struct honesty cpu_honesty;
    bool cpu_with_waits;

    /* AXIS_WAITS */
    struct waits waits;
    struct critical_path path;
    struct wait_classes classes;
    struct wait_groups groups;
    struct lock_table locks;
    struct wait_honesty wait_honesty;

    /* AXIS_IO */
    struct io io;
    struct io_sums io_sums;
    struct io_request_groups requests;
    struct io_honesty io_honesty;

    /* AXIS_HEAP */
    struct heap heap;
    struct heap_sums heap_sums;
    struct heap_honesty heap_honesty;

    /* From cpu and waits: where the wall time of a run goes. */
    struct path_costs costs_on_path;
};

/* What of a plain run's wall time the path neither computed nor waited for something: more than
 * that the environment did not take. NaN: not known. */
double evidence_gap_ns(const struct evidence *evidence);
/* Of it what the hypervisor took, by what the path computed of all that was computed; 0 where it
 * took nothing, nobody knows, or the kernel counts such time as the program's own. */
double evidence_stolen_ns(const struct evidence *evidence);
/* For how long threads of the program beside the path can have had all CPUs, in a plain run. */
double evidence_siblings_ns(const struct evidence *evidence);

/* An axis that cannot be read is n/a with the reason, no error; out of memory is one. */
MUST_USE int evidence_load(struct arena *arena, const struct evidence_input *input,
                           struct evidence *ret, struct why *why);

static inline bool evidence_has(const struct evidence *evidence, enum axis axis)
{
    return !evidence->axes[axis].na;
}
