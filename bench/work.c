/* A program with an exact amount of work, for benches that must know the true difference:
 *
 *     work UNITS [HOT]
 *
 * Each unit is the same chain of dependent multiplications, some 10 us; HOT (0 to 1000, in
 * thousandths) more of them are done on top: `work 2000 20` does exactly 2% more than
 * `work 2000`. No memory, no system call in between: nothing else differs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 8000 };

static uint64_t unit(uint64_t x)
{
    for (int i = 0; i < STEPS; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

int main(int argc, char **argv)
{
    long units = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    long more = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    if (units < 1 || units > 100000000 || more < 0 || more > 100000) {
        fprintf(stderr, "usage: work UNITS [THOUSANDTHS-MORE]\n");
        return 2;
    }
    uint64_t x = 1;
    for (long i = 0; i < units + units * more / 1000; i++)
        x = unit(x);
    return x == 0; /* used, so that it is computed */
}
