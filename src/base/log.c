/* One pointer between library code and whoever shows its messages. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static log_handler *installed;

void log_set_handler(log_handler *handler)
{
    installed = handler;
}

void log_message(enum log_level level, const char *fmt, ...)
{
    if (!installed)
        return;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    installed(level, text);
}
