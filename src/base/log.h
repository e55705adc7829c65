/* Messages for the person running whyslow: never results, never errors.
 *
 * Library code says what it noticed; main.c installs the function that shows
 * it. Without one (unit tests, a library user) nothing is printed. */
#pragma once

#include "base/macros.h"

enum log_level {
    LOG_WARNING, /* something is missing or weaker than asked for */
    LOG_INFO,    /* a step worth knowing about */
    LOG_DEBUG,   /* for us; with --verbose */
};

typedef void log_handler(enum log_level level, const char *text);

/* Set once at start-up, before any thread exists. */
void log_set_handler(log_handler *handler);

void log_message(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
#define log_warning(...) log_message(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_message(LOG_DEBUG, __VA_ARGS__)
