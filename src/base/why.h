/* Why something failed, and what to do about it.
 *
 * Library code returns 0 or -errno and fills a `struct why` once, at the cause.
 * Callers pass it on untouched; only cmd/ prints it. A NULL why is allowed
 * where the caller does not care for the words. */
#pragma once

#include "base/macros.h"

enum why_kind {
    WHY_FAILED,  /* whyslow's own failure, or the machine's (disk full, out of memory) */
    WHY_USAGE,   /* what was typed cannot be meant: bad option, no such file, bad SQL */
    WHY_DENIED,  /* not permitted, or not possible on this machine */
    WHY_NOTHING, /* nothing failed: there is just nothing to conclude from */
};

struct why {
    int error; /* the errno value returned negated; 0 when nothing failed */
    enum why_kind kind;
    char what[768];   /* one sentence without a full stop: what happened */
    char remedy[384]; /* what to type or change; may be empty */
};

/* Each returns -error, so that a cause reads `return why_errno(...)`.
 * `remedy` may be NULL. why_errno appends strerror(error) and picks the kind
 * from it: EPERM, EACCES, ENOSYS, EOPNOTSUPP, EROFS mean WHY_DENIED; ENOENT,
 * ENOTDIR, EISDIR, EINVAL mean WHY_USAGE; anything else WHY_FAILED. */
int why_errno(struct why *why, int error, const char *remedy, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
int why_set(struct why *why, enum why_kind kind, int error, const char *remedy, const char *fmt,
            ...) PRINTF_LIKE(5, 6);
int why_nomem(struct why *why);

/* Replaces the remedy; for callers that know a better one than the cause did. */
void why_set_remedy(struct why *why, const char *fmt, ...) PRINTF_LIKE(2, 3);
