/* Small compiler helpers that every layer uses. No state, no functions. */
#pragma once

#include <stddef.h>

/* The caller may not ignore the result. */
#define MUST_USE __attribute__((warn_unused_result))

/* Arguments are checked as printf's are. */
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

/* Runs fn(&variable) when the variable leaves its scope, on every path. */
#define AUTO(fn) __attribute__((cleanup(fn)))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
