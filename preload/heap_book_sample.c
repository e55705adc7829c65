/* Sampling by bytes: samples are the points of a Poisson process over the bytes that a thread
 * allocates. A piece of S bytes is hit with P = 1 - e^(-S/R), so it stands for 1/P pieces. Without
 * libm: a program without it must not get it from us. */
#include "heap_book.h"

#define LN_2   0.69314718055994530942
#define SQRT_2 1.41421356237309504880

enum { EXPM1_TERMS = 10, LN_TERMS = 12, SURE = 40 };

/* 1 - e^-x without loss where x is small: halved until the series is short, then doubled. */
static double hit_chance(double x)
{
    if (x > SURE)
        return 1;
    unsigned halvings = 0;
    while (x > 0.125) {
        x /= 2;
        halvings++;
    }
    double term = -x, sum = -x;
    for (unsigned n = 2; n <= EXPM1_TERMS; n++) {
        term *= -x / n;
        sum += term;
    }
    for (; halvings > 0; halvings--)
        sum *= sum + 2;
    return -sum;
}

/* -ln(number / 2^53), for 1 to 2^53. */
static double minus_ln(uint64_t number)
{
    int exponent = 63 - __builtin_clzll(number);
    double mantissa = (double)number / (double)(UINT64_C(1) << exponent);
    if (mantissa > SQRT_2) {
        mantissa /= 2;
        exponent++;
    }
    double z = (mantissa - 1) / (mantissa + 1), power = z, sum = 0;
    for (unsigned n = 0; n < LN_TERMS; n++) {
        sum += power / (2 * n + 1);
        power *= z * z;
    }
    return (53 - exponent) * LN_2 - 2 * sum;
}

static uint64_t seed(const struct heap_thread *thread)
{
    uint64_t x = (uint64_t)thread->place ^ (uint64_t)heap_process->pid << 32 ^
                 heap_process->start_ns ^ (uint64_t)thread->place->serial << 20 ^ heap_header->tick;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) | 1;
}

static uint64_t draw(struct heap_thread *thread)
{
    uint64_t x = thread->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    thread->random = x;
    return (x * UINT64_C(0x2545f4914f6cdd1d)) >> 11;
}

/* Whole bytes are enough: sizes are whole. */
static int64_t interval(struct heap_thread *thread)
{
    return (int64_t)(minus_ln(draw(thread) + 1) * (double)heap_header->sample_bytes);
}

/* The countdown is below 0: a sample, or a thread that has not begun to count. */
bool heap_book_wants_sample(struct heap_thread *thread)
{
    if (thread->random == 0) {
        thread->random = seed(thread);
        thread->countdown += interval(thread);
        if (thread->countdown >= 0)
            return false;
    }
    /* It has no memory: what comes after a sample is as if it began anew. */
    thread->countdown = interval(thread);
    return true;
}

struct heap_weight heap_weigh(uint64_t size, uint64_t every, bool rounded_up)
{
    double chance = hit_chance((double)(size + (size == 0)) / (double)every);
    double bytes = (double)size / chance;
    return (struct heap_weight){
        .count = (uint64_t)(1 / chance) + rounded_up,
        .bytes = (uint64_t)(bytes + 0.5),
        .variance = bytes * bytes * (1 - chance),
    };
}

bool heap_round_up(struct heap_thread *thread, uint64_t size, uint64_t every)
{
    double number = 1 / hit_chance((double)(size + (size == 0)) / (double)every);
    double rest = number - (double)(uint64_t)number;
    return (double)draw(thread) < rest * (double)(UINT64_C(1) << 53);
}
