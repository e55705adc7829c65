/* splitmix64 (Steele, Lea, Flood 2014): one add and two multiplications a draw. */
#include "stats/random.h"

#include <math.h>

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t random_below(uint64_t *state, uint64_t bound)
{
    /* The high half of a 128-bit product: no division, no visible bias. */
    return (uint64_t)(((unsigned __int128)random_next(state) * bound) >> 64);
}

double random_unit(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

double random_normal(uint64_t *state)
{
    double u = 1 - random_unit(state); /* never 0 */
    return sqrt(-2 * log(u)) * cos(2 * M_PI * random_unit(state));
}
