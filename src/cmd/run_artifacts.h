/* The files a run leaves behind. */
#pragma once

#include "base/arena.h"
#include "base/why.h"
#include "model/value.h"

struct interpretation; /* analyze/interpretation.h */

#define ARTIFACTS_FOLDER "whyslow-out" /* where --out names no other */
/* A folder of that name which nobody asked for must be ours, be it by a link of ours: whoever made
 * it could lead us anywhere. -EPERM when it is not. */
MUST_USE int artifacts_default_check(const char *out, struct why *why);

/* OUT/RUN-ID, made anew; -EEXIST when it is there already. */
MUST_USE int artifacts_folder_make(struct arena *arena, const char *out, const char *run_id,
                                   const char **ret, struct why *why);
/* Points OUT/latest to the run. A filesystem without links goes without; anything but a link of
 * our own is left alone, with a warning. */
void artifacts_latest(const char *out, const char *run_id);

MUST_USE int artifact_write(const char *folder, const char *name, const char *text, size_t len,
                            struct why *why);
MUST_USE int artifact_json(const char *folder, const char *name, const char *schema,
                           const struct value *root, struct why *why);
/* *ret is malloc'ed. */
MUST_USE int json_text_make(const char *schema, const struct value *root, char **ret,
                            size_t *ret_len, struct why *why);
/* All that is said of a run, a file each: the table is in present/run_files.c. Tries all of them;
 * the first error is told. */
MUST_USE int artifacts_said(struct arena *arena, const char *folder,
                            const struct interpretation *said, struct why *why);
/* profile_result.json, where somebody wants it. */
MUST_USE int artifact_summary(struct arena *arena, const char *path,
                              const struct interpretation *said, struct why *why);
