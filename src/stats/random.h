/* A seeded generator (splitmix64): the same seed gives the same draws on every machine, so
 * that an interval or a p-value computed twice from the same runs is the same. Not for
 * secrets. The state is the caller's; any value is a good seed. */
#pragma once

#include <stdint.h>

uint64_t random_next(uint64_t *state);
/* 0 to bound-1; `bound` is at least 1. Uneven by less than bound/2^64. */
uint64_t random_below(uint64_t *state, uint64_t bound);
/* 0 up to, not including, 1. */
double random_unit(uint64_t *state);
/* Standard normal, for simulations. */
double random_normal(uint64_t *state);
