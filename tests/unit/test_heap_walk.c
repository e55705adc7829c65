/* Promises of the walk in the heap library (preload/heap_walk.h): the stacks that it finds are
 * those that libgcc finds, in code of all kinds, however much of the last stack was kept. */
#include "unit.h"

#include "heap_walk_setup.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
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
    while (skip < seen.count && seen.pc[skip] != pcs[0])
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
    heap_walk_forked(); /* what was published is in the window before */
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

/* ---- the same places, and yet another stack ----
 *
 * What lies innermost is where it was, and all return addresses stand where they stood last time.
 * But one is left over from then: where the frame in the middle lies, only its fp tells. */

static NOIPA void shifted_inner(void)
{
    look(HEAP_MALLOC);
    sink++;
}

static NOIPA void shifted(size_t bytes)
{
    char *memory = alloca(bytes);
    __asm__ volatile("" ::"r"(memory) : "memory");
    shifted_inner();
    sink++;
}

static NOIPA void shifts(size_t before, size_t bytes)
{
    char *memory = alloca(before);
    __asm__ volatile("" ::"r"(memory) : "memory");
    shifted(bytes);
    sink++;
}

static NOIPA void shifts_too(size_t before, size_t bytes)
{
    char *memory = alloca(before);
    __asm__ volatile("" ::"r"(memory) : "memory");
    shifted(bytes);
    sink += 2;
}

static void what_is_left_over_from_the_last_stack_is_not_believed(void **state)
{
    (void)state;
    static void (*const way[])(size_t, size_t) = {shifts, shifts_too};
    for (size_t i = 0; i < 8; i++)
        way[i % 2](i % 2 ? 192 : 64, i % 2 ? 128 : 256);
    for (size_t i = 0; i < 8; i++)
        way[i % 2](i % 2 ? 64 : 192, i % 2 ? 256 : 128);
}

/* ---- signals ---- */

static NOIPA void handler(int number)
{
    (void)number;
    look(HEAP_MALLOC);
    all_kinds(1);
    look(HEAP_MALLOC);
}

static NOIPA void raises(int depth)
{
    look(HEAP_MALLOC);
    raise(SIGUSR1);
    if (depth > 0)
        raises(depth - 1);
#if defined(__x86_64__)
    __asm__ volatile("int3"); /* interrupted where no call lies before the pc */
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
        raises(3);
        raises(1);
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

/* ---- bounds ---- */

/* As look(), where libgcc is no judge. */
static NOIPA uint32_t walk(enum heap_entry entry)
{
    struct heap_at at = HEAP_HERE(entry);
    return heap_walk(self, &at);
}

static NOIPA void deep(int depth, bool on_the_way_back)
{
    static uint64_t pcs[HEAP_FRAMES_MAX + 1];
    uint32_t node = walk(HEAP_MALLOC);
    size_t count = pcs_of(node, pcs, HEAP_FRAMES_MAX + 1);
    assert_in_range(count, 1, HEAP_FRAMES_MAX);
    if (depth > 0)
        deep(depth - 1, on_the_way_back);
    if (on_the_way_back)
        assert_in_range(pcs_of(walk(HEAP_MALLOC), pcs, HEAP_FRAMES_MAX + 1), 1, HEAP_FRAMES_MAX);
    sink++;
}

static void very_deep_stacks_are_cut_and_cost_no_more(void **state)
{
    (void)state;
    enum { DEPTH = 4000 };
    deep(DEPTH, true);
    const struct heap_thread_place *place = self->place;
    /* Each level: one frame more. When there are too many half of them are found anew. */
    assert_in_range(place->frames, DEPTH, 12 * DEPTH);
    assert_int_equal(place->walks, 2 * (DEPTH + 1));
    assert_in_range(heap_process->nodes, HEAP_FRAMES_MAX, 12 * HEAP_FRAMES_MAX);
    /* And from its bottom, with nothing known: not more than fits. */
    heap_walker_forget(self->walker);
    look(HEAP_MALLOC);
}

static NOIPA long grow(int depth)
{
    long nodes = walk(HEAP_MALLOC);
    if (depth == 0)
        return nodes;
    nodes += grow(depth - 1);
    nodes += 2 * grow(depth - 1);
    sink++;
    return nodes;
}

static void recursion_is_folded_when_the_tree_gets_large(void **state)
{
    (void)state;
    grow(20);
    assert_in_range(heap_process->nodes, HEAP_FOLD_FROM, HEAP_FOLD_FROM + HEAP_FOLD_FROM / 16);
    uint32_t folded = 0;
    for (uint32_t i = 2; i < heap_process->nodes; i++) {
        const struct heap_node *node = &heap_nodes[i];
        if (node->folded == 0)
            continue;
        folded++;
        assert_true(node->folded < i);
        assert_int_equal(heap_nodes[node->folded].folded, 0);
        assert_int_equal(heap_function_of(heap_nodes[node->folded].pc), heap_function_of(node->pc));
    }
    assert_true(folded > 0);
}

static void a_full_tree_gives_the_nearest_that_is_in_it(void **state)
{
    (void)state;
    uint32_t whole = look(HEAP_MALLOC);
    heap_process->nodes_max = heap_process->nodes + 40;
    grow(10);
    assert_in_range(heap_process->nodes, whole, heap_process->nodes_max);
    uint32_t node = walk(HEAP_CALLOC); /* another place: no room for it */
    assert_int_equal(heap_nodes[node].leaf, 0);
    assert_int_equal(node, heap_nodes[heap_nodes[whole].parent].parent);
    /* Not even for a root: "somewhere". */
    window_begin();
    heap_walk_forked();
    heap_process->nodes_max = 2;
    assert_int_equal(walk(HEAP_MALLOC), 1);
}

/* ---- code without rules ---- */

#if defined(__x86_64__)
uint32_t without_rules_fp(uint32_t (*call)(enum heap_entry));
uint32_t without_rules(uint32_t (*call)(enum heap_entry), uint64_t fp);
__asm__(".text\n"
        ".globl without_rules_fp, without_rules\n"
        "without_rules_fp:\n\tpush %rbp\n\tmov %rsp, %rbp\n\tpush %rbx\n\tpush %rbx\n"
        "\tmov %rdi, %rax\n\txor %edi, %edi\n\tcall *%rax\n\tpop %rbx\n\tpop %rbx\n\tpop %rbp\n"
        "\tret\n"
        "without_rules:\n\tpush %rbp\n\tmov %rsi, %rbp\n"
        "\tmov %rdi, %rax\n\txor %edi, %edi\n\tcall *%rax\n\tpop %rbp\n\tret\n");

static NOIPA void look_through_code_without_rules(void)
{
    static uint64_t pcs[PCS_MAX], here[PCS_MAX];
    uint64_t zero[4] = {0};
    for (int i = 0; i < 3; i++) {
        uint32_t direct = look(HEAP_MALLOC);
        uint32_t through = without_rules_fp(walk);
        size_t count = pcs_of(through, pcs, PCS_MAX), whole = pcs_of(direct, here, PCS_MAX);
        assert_int_equal(count, whole + 1);
        assert_memory_equal(pcs + 2, here + 1, (whole - 1) * sizeof(*pcs));
        assert_int_equal(end_of(through), HEAP_END_ROOT);
    }
    /* A frame pointer that is none: the stack ends, and nobody is killed. */
    uint64_t sp = (uint64_t)__builtin_frame_address(0);
    const uint64_t nonsense[] = {0,
                                 1,
                                 8,
                                 sp - (1 << 20),
                                 sp + 3,
                                 sp + (1 << 30),
                                 ~UINT64_C(0),
                                 ~UINT64_C(7),
                                 ~UINT64_C(15),
                                 (uint64_t)zero,
                                 0x7f0000000000};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++) {
        uint32_t node = without_rules(walk, nonsense[i]);
        assert_in_range(pcs_of(node, here, PCS_MAX), 1, 2);
        assert_int_equal(end_of(node), HEAP_END_NO_RULE);
    }
    assert_true(heap_process->no_rules >= 2);
}

static void *in_thread_without_rules(void *context)
{
    self = thread_make();
    look_through_code_without_rules();
    return context;
}

static void code_without_rules_is_walked_by_frame_pointer(void **state)
{
    (void)state;
    pthread_t thread;
    look_through_code_without_rules();
    assert_int_equal(pthread_create(&thread, NULL, in_thread_without_rules, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}
#endif

/* ---- images ---- */

static const struct heap_image *image_of(uint64_t pc, uint16_t epoch)
{
    const struct heap_image *row = (const void *)((char *)heap_process + heap_process->images_at);
    for (uint32_t i = 0; i < heap_process->images; i++)
        if (pc >= row[i].start && pc < row[i].end && row[i].epoch <= epoch &&
            (row[i].gone_epoch == 0 || row[i].gone_epoch > epoch))
            return &row[i];
    return NULL;
}

static uint16_t epoch_of(uint32_t node)
{
    while (heap_nodes[node].parent != 0)
        node = heap_nodes[node].parent;
    return heap_nodes[node].epoch;
}

static uint32_t called_back;
static NOIPA int call_back(const void *a, const void *b)
{
    called_back = look(HEAP_MALLOC);
    return a < b;
}

static void images_are_published_with_their_epochs(void **state)
{
    (void)state;
    uint64_t pcs[PCS_MAX];
    const struct heap_image *image = image_of(0, 0);
    assert_null(image);
    uint32_t before = look(HEAP_MALLOC);
    size_t count = pcs_of(before, pcs, PCS_MAX);
    for (size_t i = 0; i < count; i++)
        assert_non_null(image_of(pcs[i], 0));
    Dl_info info;
    assert_true(dladdr((void *)setup, &info) != 0);
    image = image_of(pcs[0], 0);
    assert_ptr_equal(image->start, info.dli_fbase);
    assert_string_equal(image->path, "");

    /* One more with code of its own that calls back: libm is not in this program. */
    void *library = dlopen(getenv("WALK_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    heap_walk_images_changed(false);
    void (*call)(int (*)(const void *, const void *)) = NULL;
    *(void **)&call = dlsym(library, "walk_plugin");
    assert_non_null(call);
    call(call_back);
    uint32_t in_library = called_back;
    pcs_of(in_library, pcs, PCS_MAX);
    image = image_of(pcs[1], 0);
    assert_non_null(image);
    assert_string_equal(image->path, getenv("WALK_PLUGIN"));
    assert_int_equal(heap_process->image_epoch, 0);

    dlclose(library);
    heap_walk_images_changed(true);
    assert_int_equal(heap_process->image_epoch, 1);
    assert_int_equal(image->gone_epoch, 1);
    assert_null(image_of(pcs[1], 1));
    uint32_t after = look(HEAP_MALLOC);
    assert_int_equal(epoch_of(before), 0);
    assert_int_equal(epoch_of(in_library), 0);
    assert_int_equal(epoch_of(after), 1);
    /* Nothing is gone: nothing changes. */
    heap_walk_images_changed(true);
    assert_int_equal(heap_process->image_epoch, 1);
}

static void a_child_begins_with_an_empty_tree_and_the_images_of_its_parent(void **state)
{
    (void)state;
    look(HEAP_MALLOC);
    uint32_t images = heap_process->images;
    window_begin();
    heap_walk_forked();
    assert_int_equal(heap_process->nodes, 2);
    assert_in_range(heap_process->images, images, images + 8);
    uint32_t node = look(HEAP_MALLOC);
    assert_in_range(node, 2, heap_process->nodes - 1);
    assert_true(heap_nodes[node].parent != 0);
}

/* ---- a handler that does not come back ---- */

static sigjmp_buf out;
static void leave(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

static NOIPA void interrupted_somewhere(unsigned us)
{
    struct itimerval timer = {.it_value.tv_usec = us};
    if (sigsetjmp(out, 1) == 0) {
        setitimer(ITIMER_REAL, &timer, NULL);
        for (;;)
            grow(3);
    }
}

static void walks_that_are_never_finished_do_no_harm(void **state)
{
    (void)state;
    signal(SIGALRM, leave);
    for (unsigned i = 0; i < 300; i++) {
        interrupted_somewhere(20 + i % 50);
        tree(2);
    }
    signal(SIGALRM, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(code_of_all_kinds_is_walked_as_libgcc_does, setup),
        cmocka_unit_test_setup(what_is_left_over_from_the_last_stack_is_not_believed, setup),
        cmocka_unit_test_setup(signal_handlers_lead_to_what_they_interrupted, setup),
        cmocka_unit_test_setup(threads_share_one_tree, setup),
        cmocka_unit_test_setup(coroutines_have_stacks_of_their_own, setup),
        cmocka_unit_test_setup(very_deep_stacks_are_cut_and_cost_no_more, setup),
        cmocka_unit_test_setup(recursion_is_folded_when_the_tree_gets_large, setup),
        cmocka_unit_test_setup(a_full_tree_gives_the_nearest_that_is_in_it, setup),
#if defined(__x86_64__)
        cmocka_unit_test_setup(code_without_rules_is_walked_by_frame_pointer, setup),
#endif
        cmocka_unit_test_setup(images_are_published_with_their_epochs, setup),
        cmocka_unit_test_setup(a_child_begins_with_an_empty_tree_and_the_images_of_its_parent,
                               setup),
        cmocka_unit_test_setup(walks_that_are_never_finished_do_no_harm, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
