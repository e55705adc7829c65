/* Errors as data: filled at the cause, printed only by cmd/. */
#include "base/why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum why_kind kind_of_errno(int error)
{
    switch (error) {
    case EPERM:
    case EACCES:
    case ENOSYS:
    case EOPNOTSUPP:
    case EROFS:
        return WHY_DENIED;
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EINVAL:
        return WHY_USAGE;
    default:
        return WHY_FAILED;
    }
}

static void fill(struct why *why, enum why_kind kind, int error, const char *remedy,
                 const char *fmt, va_list args)
{
    why->error = error;
    why->kind = kind;
    vsnprintf(why->what, sizeof(why->what), fmt, args);
    snprintf(why->remedy, sizeof(why->remedy), "%s", remedy ? remedy : "");
}

int why_errno(struct why *why, int error, const char *remedy, const char *fmt, ...)
{
    if (why) {
        va_list args;
        va_start(args, fmt);
        fill(why, kind_of_errno(error), error, remedy, fmt, args);
        va_end(args);
        size_t used = strlen(why->what);
        snprintf(why->what + used, sizeof(why->what) - used, ": %s", strerror(error));
    }
    return -error;
}

int why_set(struct why *why, enum why_kind kind, int error, const char *remedy, const char *fmt,
            ...)
{
    if (why) {
        va_list args;
        va_start(args, fmt);
        fill(why, kind, error, remedy, fmt, args);
        va_end(args);
    }
    return -error;
}

int why_nomem(struct why *why)
{
    return why_set(why, WHY_FAILED, ENOMEM, "free some memory and run it again", "out of memory");
}

void why_set_remedy(struct why *why, const char *fmt, ...)
{
    if (!why)
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->remedy, sizeof(why->remedy), fmt, args);
    va_end(args);
}
