/* The files a run leaves behind. */
#pragma once

#include "base/arena.h"
#include "base/why.h"
#include "model/value.h"

/* OUT/RUN-ID, made anew; -EEXIST when it is there already. */
MUST_USE int artifacts_folder_make(struct arena *arena, const char *out, const char *run_id,
                                   const char **ret, struct why *why);
/* Points OUT/latest to the run. A filesystem without links goes without. */
void artifacts_latest(const char *out, const char *run_id);

MUST_USE int artifact_json(const char *folder, const char *name, const char *schema,
                           const struct value *root, struct why *why);
/* *ret is malloc'ed. */
MUST_USE int json_text_make(const char *schema, const struct value *root, char **ret,
                            size_t *ret_len, struct why *why);

struct scenario {
    char *const *argv;
    const char *run_id;
    uint32_t runs;
    uint32_t warmup;
    uint64_t budget_ns;
    const char *golden_sha256; /* NULL: the output is not the same every time */
};
MUST_USE int scenario_artifact(const char *folder, const struct scenario *scenario,
                               struct why *why);
