/* One run of the target under the built collectors, into a recording. */
#pragma once

#include "cmd/run_report.h"

struct record_opts {
    char *const *argv;
    const char *path;
    const char *command;
    const char *recording; /* path of the file to make */
    uint64_t timeout_ns;
    const struct value *fingerprint; /* goes into the recording as a document */
};

MUST_USE int run_record(const struct record_opts *opts, struct run_recorded *ret, struct why *why);
