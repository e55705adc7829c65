/* What a recording is of: the document "target" (docs/recording.md has the keys). */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "model/profile.h"

struct target_facts {
    bool known;   /* the document is there and makes sense */
    bool machine; /* all processes, or those of a cgroup: there is no root */
    uint32_t root_pid;
    uint64_t start_ns, end_ns; /* of collecting; 0: it does not say */
};

/* What is no JSON, or says odd things, is as if it were not there. */
void target_facts_read(struct str json_text, struct target_facts *ret);
/* Of a command that was started: as it was asked for, in `arena`. Empty: it does not say. */
struct str target_command_read(struct arena *arena, struct str json_text);
/* The last program of the root's pid (exec makes another process of it) and its main thread;
 * both 0 where there is none. */
void target_facts_root(const struct target_facts *facts, const struct profile *profile,
                       uint32_t *ret_process, uint32_t *ret_thread);
