/* All that is said about a run: what screens, files and pages are drawn from. */
#pragma once

#include "analyze/ledger.h"
#include "analyze/opportunity.h"
#include "analyze/run_hotspots.h"
#include "analyze/wrong_tool.h"

struct run_about { /* what was run, and how */
    const char *command, *run_id, *folder;
    unsigned secrets;           /* of the command, shown as "[redacted]" */
    const char *scenario;       /* where it came from: "command line", "scenario.toml", … */
    const char *input;          /* file for its stdin; NULL: /dev/null */
    const char *chosen;         /* M8: why this command; NULL: the user named it */
    const char *stability;      /* "stable: …", "unstable: …"; never NULL */
    const char *runs;           /* "20 runs after 1 warm-up, in 12 s" */
    const char *golden;         /* "every run printed the same", … */
    const char *const *marks;   /* what spoils it: failed checks that were forced; ends with NULL */
    const char *const *missing; /* steps that were not finished, with why; ends with NULL */
    const char *const *notes;   /* what else there is to know: cut, repeated; ends with NULL */
    double elapsed_ns, budget_ns;
    double own_cpu_ns;
};

struct interpretation {
    struct run_about about;
    const struct evidence *evidence;
    struct findings findings; /* ranked */
    struct opportunity_sum together;
    struct run_hotspots hotspots;
    struct ledger ledger;
    struct wrong_tools wrong_tools;
};
