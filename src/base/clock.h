/* Time. Recordings use CLOCK_MONOTONIC, as perf and BPF do. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NS_PER_SEC 1000000000ull
#define NS_PER_MS  1000000ull
#define NS_PER_US  1000ull

uint64_t clock_mono_ns(void);
uint64_t clock_real_ns(void);
/* "2026-01-31T12:00:00Z"; needs 21 bytes. */
void clock_format_utc(uint64_t real_ns, char *text, size_t size);
void clock_sleep_ns(uint64_t duration_ns);
