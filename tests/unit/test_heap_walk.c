/* Promises of the walk in the heap library (preload/heap_walk.h): the stacks that it finds are
 * those that libgcc finds, in code of all kinds, however much of the last stack was kept. */
#include "unit.h"

#include "heap_walk_setup.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

enum { PCS_MAX = 1024 };

#define NOIPA __attribute__((noipa, noinline))
#ifdef __clang__
#undef NOIPA
#define NOIPA __attribute__((noinline, optnone))
#endif

static __thread struct heap_thread *self;
static unsigned long compared;
static __thread enum heap_end expected_end = HEAP_END_ROOT;

struct seen {
    uint64_t pc[PCS_MAX];
    size_t count;
};

static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *data)
{
    struct seen *seen = data;
    int before = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &before);
    if (seen->count < PCS_MAX && pc != 0)
        seen->pc[seen->count++] = pc + (before ? 1 : 0);
    return _URC_NO_REASON;
}

static void differ(const uint64_t *ours, size_t ours_count, const uint64_t *theirs, size_t count)
{
    for (size_t i = 0; i < ours_count || i < count; i++) {
        Dl_info info = {0};
        uint64_t pc = i < count ? theirs[i] : ours[i];
        dladdr((void *)(pc - 1), &info);
        print_message("# %3zu ours %12lx libgcc %12lx %s %s\n", i, i < ours_count ? ours[i] : 0,
                      i < count ? theirs[i] : 0, info.dli_fname, info.dli_sname);
    }
    fail_msg("stacks differ");
}

/* A hook: walks from its caller, and compares with libgcc. The node. */
static NOIPA uint32_t look(enum heap_entry entry)
{
    struct heap_at at = HEAP_HERE(entry);
    static __thread struct seen seen;
    static __thread uint64_t pcs[PCS_MAX];
    uint32_t node = heap_walk(self, &at);
    assert_int_equal(heap_nodes[node].leaf, 1);
    assert_int_equal(heap_nodes[node].pc, entry);
    size_t count = pcs_of(node, pcs, PCS_MAX), skip = 0;
    seen.count = 0;
    _Unwind_Backtrace(see, &seen);
    while (skip < seen.count && seen.pc[skip] != at.pc)
        skip++;
    if (count != seen.count - skip || memcmp(pcs, seen.pc + skip, count * sizeof(*pcs)) != 0)
        differ(pcs, count, seen.pc + skip, seen.count - skip);
    assert_int_equal(end_of(node), expected_end);
    __atomic_fetch_add(&compared, 1, __ATOMIC_RELAXED);
    return node;
}

static int setup(void **state)
{
    (void)state;
    window_begin();
    self = thread_make();
    return 0;
}

/* ---- kinds of code ---- */

static volatile int sink;

static NOIPA void tree(int depth)
{
    look(HEAP_MALLOC);
    if (depth == 0)
        return;
    tree(depth - 1);
    sink++;
    tree(depth - 1);
    look(HEAP_CALLOC);
}

static NOIPA void with_alloca(size_t bytes, int depth)
{
    char *memory = alloca(bytes);
    memset(memory, 1, bytes);
    look(HEAP_MALLOC);
    if (depth > 0)
        with_alloca(bytes * 2 + 16, depth - 1);
    look(HEAP_MALLOC);
    sink += memory[0];
}

static NOIPA void realigned(int depth)
{
    char memory[64] __attribute__((aligned(64)));
    memset(memory, depth, sizeof(memory));
    __asm__ volatile("" ::"r"(memory) : "memory");
    look(HEAP_MALLOC);
    if (depth > 0)
        realigned(depth - 1);
    with_alloca(24, 1);
    look(HEAP_REALLOC);
    sink += memory[0];
}

static NOIPA void realigned_alloca(int depth, size_t bytes)
{
    char memory[128] __attribute__((aligned(128)));
    char *more = alloca(bytes);
    __asm__ volatile("" ::"r"(memory), "r"(more) : "memory");
    look(HEAP_MALLOC);
    if (depth > 0)
        realigned_alloca(depth - 1, bytes + 40);
    look(HEAP_REALLOC);
    sink++;
}

/* Many values that live over calls: all registers are saved, fp among them. */
static NOIPA long busy(long a, long b, long c, int depth)
{
    long d = a * b, e = b * c, f = a * c, g = a + b, h = b + c;
    for (int i = 0; i < 3; i++) {
        look(HEAP_NEW);
        d += e + i, e ^= f, f += g * d, g -= h, h += i;
        if (depth > 0)
            h += busy(d, e, f, depth - 1);
    }
    return d + e + f + g + h;
}

static NOIPA void many_arguments(long a, long b, long c, long d, long e, long f, long g, long h,
                                 long i)
{
    look(HEAP_NEW_ARRAY);
    sink += (int)(a + b + c + d + e + f + g + h + i);
}

static NOIPA void large_frame(int depth)
{
    char memory[100000];
    memset(memory, depth, sizeof(memory));
    __asm__ volatile("" ::"r"(memory) : "memory");
    look(HEAP_MALLOC);
    if (depth > 0)
        large_frame(depth - 1);
    look(HEAP_MALLOC);
    sink += memory[5];
}

static NOIPA int by_sort(const void *a, const void *b)
{
    look(HEAP_MALLOC);
    return *(const int *)a - *(const int *)b;
}

static NOIPA void all_kinds(int times)
{
    for (int i = 0; i < times; i++) {
        tree(4);
        with_alloca(10 + (size_t)i, 4);
        realigned(3);
        realigned_alloca(3, 17);
        busy(i, 2, 3, 2);
        many_arguments(1, 2, 3, 4, 5, 6, 7, 8, i);
        large_frame(3);
        int numbers[] = {5, 3, 9, 1, i};
        qsort(numbers, 5, sizeof(int), by_sort);
        look(HEAP_MALLOC);
    }
}

static void code_of_all_kinds_is_walked_as_libgcc_does(void **state)
{
    (void)state;
    compared = 0;
    all_kinds(3);
    assert_true(compared > 300);
    assert_int_equal(heap_process->no_rules, 0);
    assert_true(self->place->recognised > self->place->frames);
}

/* ---- signals ---- */

static NOIPA void handler(int number)
{
    (void)number;
    look(HEAP_MALLOC);
    all_kinds(1);
    look(HEAP_MALLOC);
}

static NOIPA void raises(int depth, char *place)
{
    char here[8];
    look(HEAP_MALLOC);
    raise(SIGUSR1);
    if (depth > 0)
        raises(depth - 1, here);
#if defined(__x86_64__)
    /* Interrupted where no call lies before the pc. */
    __asm__ volatile("int3" : "+r"(place));
#endif
    look(HEAP_MALLOC);
    sink++;
}

static void signal_handlers_lead_to_what_they_interrupted(void **state)
{
    (void)state;
    for (int on_another_stack = 0; on_another_stack < 2; on_another_stack++) {
        static char stack[1 << 20];
        stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
        struct sigaction action = {.sa_handler = handler,
                                   .sa_flags = on_another_stack ? SA_ONSTACK : 0};
        assert_int_equal(sigaltstack(&other, NULL), 0);
        assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
        assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
        raises(3, NULL);
        raises(1, NULL);
    }
}

/* ---- threads ---- */

static void *in_thread(void *context)
{
    (void)context;
    self = thread_make();
    all_kinds(2);
    return (void *)(uintptr_t)look(HEAP_MALLOC);
}

static void threads_share_one_tree(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    void *node[THREADS];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, in_thread, NULL), 0);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], &node[i]), 0);
        for (size_t i = 1; i < THREADS; i++)
            assert_ptr_equal(node[i], node[0]);
    }
    /* Each step is there once. */
    for (uint32_t i = 2; i < heap_process->nodes; i++) {
        const struct heap_node *node_i = &heap_nodes[i];
        assert_true(node_i->pc == 0 || node_i->parent < i || node_i->leaf);
    }
}

/* ---- stacks of its own ---- */

static ucontext_t outside, inside;

static void coroutine(void)
{
    all_kinds(1);
    swapcontext(&inside, &outside);
    look(HEAP_MALLOC);
}

static void coroutines_have_stacks_of_their_own(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        size_t size = (size_t)(i + 4) << 18;
        char *stack = heap_map(size);
        getcontext(&inside);
        inside.uc_stack = (stack_t){.ss_sp = stack, .ss_size = size};
        inside.uc_link = &outside;
        makecontext(&inside, coroutine, 0);
        /* glibc has no rule for where it begins; nor has libgcc. */
        expected_end = HEAP_END_NO_RULE;
        swapcontext(&outside, &inside);
        expected_end = HEAP_END_ROOT;
        all_kinds(1);
        expected_end = HEAP_END_NO_RULE;
        swapcontext(&outside, &inside);
        expected_end = HEAP_END_ROOT;
        munmap(stack, size);
        all_kinds(1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(code_of_all_kinds_is_walked_as_libgcc_does, setup),
        cmocka_unit_test_setup(signal_handlers_lead_to_what_they_interrupted, setup),
        cmocka_unit_test_setup(threads_share_one_tree, setup),
        cmocka_unit_test_setup(coroutines_have_stacks_of_their_own, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
