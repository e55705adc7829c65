/* What unwinding costs: building rows for a large program, loading them from the cache,
 * and walks of stacks in it, again and again (warm) and each for the first time (cold).
 *
 *     bench-unwind [IMAGE]
 *
 * The stacks are made up from the image's own rows: FRAMES calls from random places,
 * with return addresses and registers where the rules say they are. */
#include "base/fd.h"
#include "unwind/image.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    FRAMES = 20,
    STACKS = 2000,
    STACK_BYTES = 16 << 10,
    ROUNDS = 50,
    SP = 7,
    FRAME_BYTES_MAX = 512,
};
#define STACK  UINT64_C(0x7ffd00000000)
#define MAPPED UINT64_C(0x7f0000000000)

struct stack {
    struct unwind_registers registers;
    uint8_t bytes[STACK_BYTES];
};

/* Processor time: what others run meanwhile is not our cost. */
static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t random_u64(void)
{
    static uint64_t state = 0x853c49e6748fea9bu;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int failed(const char *what, const struct why *why)
{
    fprintf(stderr, "bench-unwind: %s: %s\n", what, why->what);
    return 5;
}

static bool judge(const char *name, double value, double target, const char *unit)
{
    bool ok = value <= target;
    printf("unwind %-34s %14.2f %-12s target <= %-10.0f %s\n", name, value, unit, target,
           ok ? "pass" : "MISS");
    return ok;
}

/* A place whose frame hangs on the stack pointer and is not too large. */
static uint64_t random_place(const struct unwind_rows *rows, const struct unwind_rules **ret)
{
    for (;;) {
        size_t i = random_u64() % rows->count;
        const struct unwind_rules *rules = &rows->rules[rows->rule_of[i]];
        if (rules->cfa == UNWIND_CFA_REGISTER && rules->cfa_base == SP && rules->cfa_offset >= 16 &&
            rules->cfa_offset <= FRAME_BYTES_MAX && rules->ra == UNWIND_AT_CFA &&
            (rules->flags & UNWIND_RULES_SIGNAL) == 0) {
            *ret = rules;
            return rows->base + rows->starts[i];
        }
    }
}

static void make_stack(const struct unwind_rows *rows, struct stack *stack)
{
    const struct unwind_rules *rules;
    uint64_t at = 0;
    memset(stack, 0, sizeof(*stack));
    stack->registers.known = 0xffff;
    stack->registers.reg[SP] = STACK;
    stack->registers.pc = MAPPED + random_place(rows, &rules);
    for (unsigned i = 1; i <= FRAMES; i++) {
        const struct unwind_rules *caller = NULL;
        at += (uint64_t)rules->cfa_offset;
        uint64_t returns = i < FRAMES ? MAPPED + random_place(rows, &caller) + 1 : 0;
        memcpy(stack->bytes + at - 8, &returns, sizeof(returns));
        rules = caller;
    }
}

static double walk_all(const struct unwind_space *space, struct unwind_cache *cache,
                       const struct stack *stacks, size_t count, size_t rounds)
{
    static struct unwind_frame frames[64];
    struct unwind_result result;
    uint64_t start = cpu_ns();
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < count; i++) {
            struct unwind_slice slice = {STACK, stacks[i].bytes, STACK_BYTES};
            unwind_walk(space, &stacks[i].registers, &slice, cache, frames, 64, &result);
            if (result.end != UNWIND_ROOT || result.count != FRAMES) {
                fprintf(stderr, "bench-unwind: a walk went wrong: %u frames, %s\n", result.count,
                        unwind_end_text(result.end));
                exit(5);
            }
        }
    return (double)(cpu_ns() - start) / 1000.0 / (double)(rounds * count);
}

/* The best of a few: the machine's noise only ever adds. */
static int load_ms(const char *path, const char *cache_dir, unsigned times, double *ret_ms,
                   struct unwind_image **ret, struct why *why)
{
    struct unwind_image_opts opts = {.cache_dir = cache_dir};
    *ret_ms = 1e9;
    for (unsigned i = 0; i < times; i++) {
        struct unwind_image *image = NULL;
        AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return why_errno(why, EINVAL, NULL, "cannot open '%s'", path);
        uint64_t start = cpu_ns();
        int r = unwind_image_load(fd, &opts, &image, why);
        if (r < 0)
            return r;
        double ms = (double)(cpu_ns() - start) / 1e6;
        *ret_ms = ms < *ret_ms ? ms : *ret_ms;
        unwind_image_free(*ret);
        *ret = image;
    }
    return 0;
}

static bool bench_walks(const struct unwind_image *image, const struct stack *stacks)
{
    struct unwind_space *space = NULL;
    struct unwind_cache *cache = NULL;
    if (unwind_space_new(UNWIND_X86_64, &space) < 0 || unwind_cache_new(&cache) < 0)
        exit(5);
    for (size_t i = 0; i < image->segments_count; i++) {
        const struct unwind_segment *segment = &image->segments[i];
        uint64_t start = segment->vaddr & ~UINT64_C(4095);
        if (segment->executable &&
            unwind_space_map(space, MAPPED + start, segment->vaddr + segment->memory_size - start,
                             segment->offset & ~UINT64_C(4095), image, 1) < 0)
            exit(5);
    }
    double cold = walk_all(space, NULL, stacks, STACKS, 2);
    double first = walk_all(space, cache, stacks, STACKS, 1);
    walk_all(space, cache, stacks, 4, 1); /* the pc cache has these now */
    double warm = walk_all(space, cache, stacks, 4, STACKS * ROUNDS / 4);
    printf("unwind %-34s %14.2f us\n", "walk, every pc new, no cache", cold);
    bool ok = judge("walk, every pc new", first, 10, "us");
    ok &= judge("walk, the same stacks again", warm, 2, "us");
    unwind_cache_free(cache);
    unwind_space_free(space);
    return ok;
}

int main(int argc, char **argv)
{
    glob_t found = {0};
    struct why why = {0};
    struct unwind_image *image = NULL;
    char cache_dir[] = "/tmp/bench-unwind.XXXXXX";
    const char *path = argc > 1 ? argv[1] : "/proc/self/exe";
    if (argc < 2 && glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1", 0, NULL, &found) == 0)
        path = found.gl_pathv[0];
    double built = 0, cached = 0;
    if (!mkdtemp(cache_dir))
        return 5;
    if (load_ms(path, NULL, 5, &built, &image, &why) < 0 ||
        load_ms(path, cache_dir, 6, &cached, &image, &why) < 0 || !image)
        return failed(path, &why);
    printf("unwind %s: %zu rows, %zu rule sets, cached: %s\n", path, image->rows.count,
           image->rows.rules_count, image->cached ? "yes" : "no");
    bool ok = judge("rows built", built, 100, "ms");
    ok &= judge("rows from the cache", cached, 20, "ms");
    struct stack *stacks = malloc(STACKS * sizeof(*stacks));
    if (!stacks)
        return 5;
    for (size_t i = 0; i < STACKS; i++)
        make_stack(&image->rows, &stacks[i]);
    ok &= bench_walks(image, stacks);
    free(stacks);
    unwind_image_free(image);
    globfree(&found);
    glob_t files = {0};
    char pattern[64];
    snprintf(pattern, sizeof(pattern), "%s/*", cache_dir);
    if (glob(pattern, 0, NULL, &files) == 0)
        for (size_t i = 0; i < files.gl_pathc; i++)
            unlink(files.gl_pathv[i]);
    globfree(&files);
    rmdir(cache_dir);
    return ok ? 0 : 1;
}
