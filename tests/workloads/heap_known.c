/* Memory whose every figure the program knows: what whyslow tells must be equal, not close.
 *
 *     heap-known CASE [NUMBERS]      the account goes to the file in KNOWN_TRUTH (heap_account.h)
 *
 * Compiled without sibling calls, so that known_NAME() is on the stack of the call that it makes.
 */
#include "heap_account.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#define KNOWN __attribute__((noinline))

enum { ENTRIES = SITE_pvalloc + 1, THREADS_MAX = 64, PIECES_MAX = 256 };

static char **arguments;

static long argument(int index, long otherwise)
{
    for (int i = 0; i <= index; i++)
        if (!arguments[i])
            return otherwise;
    return strtol(arguments[index], NULL, 10);
}

/* ---- one function a way to have memory ---- */

KNOWN static void known_malloc(struct piece *piece, size_t size)
{
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): none at all is a case, too */
    piece_took(piece, SITE_malloc, malloc(size), size);
}

KNOWN static void known_calloc(struct piece *piece, size_t size)
{
    size_t each = size % 3 == 0 ? 3 : 1; /* bytes are count times size */
    char *memory = calloc(size / each, each);
    for (size_t i = 0; memory && i < size; i++)
        if (memory[i] != 0)
            abort();
    piece_took(piece, SITE_calloc, memory, size);
}

static void grown(struct piece *piece, enum account_site site, void *memory, size_t size)
{
    if (!memory) {
        account_failed++;
        return;
    }
    bool grows = piece->memory && piece->process == account_process && size > piece->size;
    uint64_t by = size - piece->size;
    piece_gone(piece);
    piece_took(piece, site, memory, size);
    if (grows) {
        ACCOUNT_ADD(account_tallies[site].grown, 1);
        ACCOUNT_ADD(account_tallies[site].grown_bytes, by);
    }
}

KNOWN static void known_realloc(struct piece *piece, size_t size)
{
    grown(piece, SITE_realloc, realloc(piece->memory, size), size);
}

KNOWN static void known_reallocarray(struct piece *piece, size_t size)
{
    grown(piece, SITE_reallocarray, reallocarray(piece->memory, size, 1), size);
}

KNOWN static void known_posix_memalign(struct piece *piece, size_t size)
{
    void *memory = NULL;
    int r = posix_memalign(&memory, 256, size);
    if (r == 0 && (uintptr_t)memory % 256 != 0)
        abort();
    piece_took(piece, SITE_posix_memalign, r == 0 ? memory : NULL, size);
}

KNOWN static void known_aligned_alloc(struct piece *piece, size_t size)
{
    size = (size + 63) / 64 * 64;
    piece_took(piece, SITE_aligned_alloc, aligned_alloc(64, size), size);
}

KNOWN static void known_memalign(struct piece *piece, size_t size)
{
    piece_took(piece, SITE_memalign, memalign(1024, size), size);
}

KNOWN static void known_valloc(struct piece *piece, size_t size)
{
    piece_took(piece, SITE_valloc, valloc(size), size);
}

KNOWN static void known_pvalloc(struct piece *piece, size_t size)
{
    piece_took(piece, SITE_pvalloc, pvalloc(size), size);
}

KNOWN static void known_other(struct piece *piece, size_t size)
{
    piece_took(piece, SITE_other, malloc(size), size);
}

KNOWN static void known_pair(size_t size)
{
    struct piece piece;
    piece_took(&piece, SITE_pair, malloc(size), size);
    void *memory = piece.memory;
    piece_gone(&piece);
    free(memory);
}

/* The caller is on the stack, too: libc's strdup() calls malloc(). */
KNOWN static void known_strdup(struct piece *piece, const char *text)
{
    piece_took(piece, SITE_strdup, strdup(text), strlen(text) + 1);
}

static void give_back(struct piece *piece)
{
    void *memory = piece->memory;
    piece_gone(piece);
    free(memory);
}

typedef void (*entry_fn)(struct piece *piece, size_t size);
static const entry_fn entries[ENTRIES] = {
    known_malloc,        known_calloc,   known_realloc, known_reallocarray, known_posix_memalign,
    known_aligned_alloc, known_memalign, known_valloc,  known_pvalloc,
};
static const char *const entry_names[ENTRIES] = {
    "malloc",        "calloc",   "realloc", "reallocarray", "posix_memalign",
    "aligned_alloc", "memalign", "valloc",  "pvalloc",
};

/* Not every allocator has them all: KNOWN_SKIP names those to be left out. */
static bool skipped(int entry)
{
    const char *skip = getenv("KNOWN_SKIP");
    return skip && strstr(skip, entry_names[entry]);
}

static size_t size_of(int entry, int i)
{
    return 1 + (size_t)(entry * 131 + i * 37) % 2000;
}

/* ---- every entry point, in one thread or in many ---- */

static struct piece pieces[THREADS_MAX][ENTRIES][PIECES_MAX];
static long thread_count, piece_count, pair_count;
static pthread_barrier_t barrier;

static void allocate_all(int thread)
{
    for (int entry = 0; entry < ENTRIES; entry++) {
        if (skipped(entry))
            continue;
        for (int i = 0; i < piece_count; i++) {
            struct piece *piece = &pieces[thread][entry][i];
            if (entry == SITE_realloc || entry == SITE_reallocarray) {
                known_malloc(piece, size_of(entry, i)); /* grown; every third from nothing */
                if (i % 3 == 0)
                    give_back(piece);
            }
            entries[entry](piece, size_of(entry, i) + 10);
        }
    }
}

/* Of its own or of its neighbour's; every tenth is never given back. */
static void free_all(int thread)
{
    for (int entry = 0; entry < ENTRIES; entry++) {
        int of = entry % 2 ? thread : (thread + 1) % (int)thread_count;
        for (int i = 0; i < piece_count; i++)
            if (i % 10 != 3)
                give_back(&pieces[of][entry][i]);
    }
}

static void *work(void *argument_)
{
    int thread = (int)(intptr_t)argument_;
    pthread_barrier_wait(&barrier);
    allocate_all(thread);
    pthread_barrier_wait(&barrier);
    if (thread == 0)
        account_settle();
    pthread_barrier_wait(&barrier);
    /* One goes ahead: what lived at the peak is then the same for all. */
    if (thread == 0)
        give_back(&pieces[0][0][0]);
    pthread_barrier_wait(&barrier);
    free_all(thread);
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < pair_count; i++)
        known_pair(16 + (size_t)i % 100);
    return NULL;
}

static void case_threads(void)
{
    thread_count = argument(0, 16);
    piece_count = argument(1, 100);
    pair_count = argument(2, 1000);
    account_by_hand = 1;
    pthread_t threads[THREADS_MAX] = {0};
    pthread_barrier_init(&barrier, NULL, (unsigned)thread_count);
    for (intptr_t i = 1; i < thread_count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            abort();
    work(NULL);
    for (int i = 1; i < thread_count; i++)
        pthread_join(threads[i], NULL);
}

static void case_entries(void)
{
    thread_count = 1;
    piece_count = argument(0, 200);
    void (*cfree_)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");
    allocate_all(0);
    if (cfree_ && !getenv("KNOWN_SKIP")) {
        struct piece piece;
        known_malloc(&piece, 77);
        void *memory = piece.memory;
        piece_gone(&piece);
        cfree_(memory);
    }
    free_all(0);
    struct piece text;
    for (int i = 0; i < 100; i++) {
        known_strdup(&text, "eleven here");
        give_back(&text);
    }
}

/* What is freed right away, and what only looks so. */
static struct piece passed;
static void *free_and_take(void *unused)
{
    give_back(&passed);
    known_other(&passed, 64); /* perhaps the same address, but another's memory */
    return unused;
}

static void case_temporary(void)
{
    struct piece a, b;
    account_by_hand = 1;
    for (int i = 0; i < 500; i++)
        known_pair(32);
    for (int i = 0; i < 300; i++) {
        known_malloc(&a, 48); /* not temporary: another one came between */
        known_calloc(&b, 48);
        give_back(&a);
        give_back(&b); /* it is: nothing was allocated since */
    }
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        known_malloc(&passed, 64);
        if (pthread_create(&thread, NULL, free_and_take, NULL) != 0)
            abort();
        pthread_join(thread, NULL);
        account_last = 0; /* pthread_create() has allocated, too */
        give_back(&passed);
    }
}

/* Three mountains, the second is the highest; what it is made of is known. */
static void case_peak(void)
{
    static struct piece many[4][1000];
    static const int heights[] = {300, 1000, 600};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < heights[round]; i++) {
            entries[i % 2 ? SITE_malloc : SITE_calloc](&many[round][i], 100 + (size_t)i % 7);
            if (i % 5 == 0) {
                known_other(&many[3][i], 500);
                give_back(&many[3][i]);
            }
        }
        for (int i = 0; i < heights[round]; i++)
            if (i % 4 != 0 || round == 1)
                give_back(&many[round][i]);
    }
}

/* One buffer that is grown in turn, as strings and lists do it, and one that shrinks. */
static void case_growth(void)
{
    struct piece buffer = {0}, shrunk = {0};
    for (size_t size = 16; size <= 1 << 20; size *= 2)
        known_realloc(&buffer, size);
    for (size_t size = 1 << 20; size >= 16; size /= 2)
        known_reallocarray(&shrunk, size);
    give_back(&buffer);
    give_back(&shrunk);
}

/* ---- what is unusual but allowed ---- */

static void case_odd(void)
{
    struct piece piece = {0};
    free(NULL);
    for (int i = 0; i < 10; i++) {
        known_malloc(&piece, 0);
        give_back(&piece);
        known_realloc(&piece, 100);
        errno = 4711;
        give_back(&piece);
        if (errno != 4711)
            abort();
    }
    volatile size_t huge = SIZE_MAX / 2 + 100;
    known_malloc(&piece, huge);
    if (piece.memory || errno != ENOMEM)
        abort();
    void *none = calloc(huge, 4);
    account_failed += none == NULL;
    none = reallocarray(NULL, huge, 4);
    account_failed += none == NULL;
    void *wrong = &piece;
    if (posix_memalign(&wrong, 3, 100) != EINVAL || wrong != &piece)
        abort();
    account_failed++;
    known_malloc(&piece, 500);
    memset(piece.memory, 'x', 500);
    none = realloc(piece.memory, huge); /* it stays where it is, as it is */
    account_failed += none == NULL;
    for (int i = 0; i < 500; i++)
        if (((char *)piece.memory)[i] != 'x')
            abort();
    if (malloc_usable_size(piece.memory) < 500)
        abort();
    void *memory = piece.memory;
    piece_gone(&piece);
    if (realloc(memory, 0) != NULL) /* glibc gives it back */
        abort();
}

/* Memory that libc was asked for by a name that nobody looks at. */
static void case_unseen(void)
{
    void *(*hidden)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "__libc_malloc");
    struct piece piece;
    for (int i = 0; i < 50; i++) {
        free(hidden(40));
        account_unseen++;
        known_malloc(&piece, 40);
    }
}

/* ---- processes ---- */

static void tell_and_leave(const char *name)
{
    account_tell(name);
    _exit(0);
}

static struct piece inherited[100];

static void child(int depth);
static void fork_child(int depth)
{
    pid_t pid = fork();
    if (pid == 0)
        child(depth);
    waitpid(pid, NULL, 0);
}

static void child(int depth)
{
    account_forked();
    for (int i = depth * 20; i < depth * 20 + 20; i++)
        give_back(&inherited[i]);
    for (int i = depth * 20 + 20; i < depth * 20 + 25; i++)
        known_realloc(&inherited[i], inherited[i].size);
    struct piece own[30];
    for (int i = 0; i < 30; i++)
        known_other(&own[i], 1000 + (size_t)i);
    for (int i = 0; i < 10; i++)
        give_back(&own[i]);
    if (depth < 2)
        fork_child(depth + 1);
    tell_and_leave("child");
}

static void case_fork(void)
{
    for (int i = 0; i < 100; i++)
        known_malloc(&inherited[i], 100 + (size_t)i);
    for (int i = 0; i < 3; i++)
        fork_child(0);
    for (int i = 0; i < 60; i++)
        give_back(&inherited[i]);
}

/* Forks while other threads are in the midst of malloc(). */
static bool enough;
static void *busy(void *unused)
{
    struct piece some[8];
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 8; i++)
            known_malloc(&some[i], 30 + (size_t)i);
        for (int i = 0; i < 8; i++)
            give_back(&some[i]);
    }
    return unused;
}

static void case_fork_busy(void)
{
    pthread_t threads[4];
    account_by_hand = 1;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, busy, NULL) != 0)
            abort();
    for (int i = 0; i < argument(0, 40); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            account_forked();
            struct piece own[100];
            for (int k = 0; k < 100; k++)
                known_other(&own[k], 10 + (size_t)k);
            for (int k = 0; k < 50; k++)
                give_back(&own[k]);
            tell_and_leave("busy child");
        }
        waitpid(pid, NULL, 0);
    }
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void case_exec(void)
{
    struct piece piece;
    for (int i = 0; i < 25; i++)
        known_other(&piece, 300);
    account_tell("before exec");
    long left = argument(0, 3);
    char number[24];
    snprintf(number, sizeof number, "%ld", left - 1);
    if (left > 0)
        execl("/proc/self/exe", "heap-known", "exec", number, (char *)NULL);
    else
        execl("/proc/self/exe", "heap-known", "entries", (char *)NULL);
    abort();
}

/* ---- code that comes and goes: libraries that lie where another one lay ---- */

typedef void *(*plugin_fn)(size_t size);

static void case_plugins(void)
{
    const char *paths[2] = {getenv("KNOWN_PLUGIN_A"), getenv("KNOWN_PLUGIN_B")};
    uintptr_t places[2] = {0};
    account_by_hand = 1;
    long same = 0, rounds = argument(0, 20);
    static struct piece kept[2];
    for (int i = 0; i < rounds; i++) {
        int which = i % 2;
        void *handle = dlopen(paths[which], RTLD_NOW | RTLD_LOCAL);
        plugin_fn plugin = handle ? (plugin_fn)dlsym(handle, "known_plugin") : NULL;
        if (!plugin)
            abort();
        places[which] = (uintptr_t)plugin & ~4095UL;
        same += i > 0 && places[0] == places[1];
        enum account_site site = which ? SITE_plugin_b : SITE_plugin_a;
        for (size_t k = 0; k < 100; k++) {
            struct piece piece;
            size_t size = which ? 200 + k : 100 + k;
            piece_took(&piece, site, plugin(size), size);
            if (k == 50 && i < 2)
                kept[which] = piece;
            else
                give_back(&piece);
        }
        dlclose(handle);
    }
    give_back(&kept[0]); /* its code is long gone */
    printf("at the same address: %s\n", same > 0 ? "yes" : "no");
}

/* ---- stacks that are left in other ways than by returning ---- */

static sigjmp_buf out;

KNOWN static void known_deep(int depth, bool jumps)
{
    volatile char room[64];
    room[depth % 64] = 1;
    if (depth > 0 && room[depth % 64]) {
        known_deep(depth - 1, jumps);
        return;
    }
    struct piece piece;
    piece_took(&piece, SITE_deep, malloc(24), 24);
    give_back(&piece);
    if (jumps)
        siglongjmp(out, 1);
}

static void jump_out_of_handler(int signal)
{
    (void)signal;
    known_deep(3, true);
}

static void case_longjmp(void)
{
    struct piece piece;
    struct sigaction action = {.sa_handler = jump_out_of_handler};
    sigaction(SIGUSR1, &action, NULL);
    for (volatile int i = 0; i < 500; i++) {
        if (sigsetjmp(out, 1) == 0)
            known_deep(i % 40, true);
        known_other(&piece, 8); /* where the deep ones were */
        give_back(&piece);
        if (sigsetjmp(out, 1) == 0)
            raise(SIGUSR1);
        known_malloc(&piece, 12);
    }
}

static volatile sig_atomic_t handled;

KNOWN static void known_handler(int signal)
{
    int saved = errno;
    struct piece piece;
    (void)signal;
    piece_took(&piece, SITE_handler, malloc(99), 99);
    if (handled % 10 != 0)
        give_back(&piece);
    handled++;
    errno = saved;
}

static void case_signals(void)
{
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    for (int flags = 0; flags < 2; flags++) {
        struct sigaction action = {.sa_handler = known_handler, .sa_flags = flags ? SA_ONSTACK : 0};
        sigaction(SIGUSR1, &action, NULL);
        sigaction(SIGALRM, &action, NULL);
        for (int i = 0; i < 200; i++) {
            struct piece piece;
            raise(SIGUSR1);
            known_malloc(&piece, 50);
        }
        /* At any place of a loop that allocates nothing itself. */
        struct itimerval often = {.it_interval = {.tv_usec = 500}, .it_value = {.tv_usec = 500}};
        struct itimerval never = {0};
        sig_atomic_t until = handled + 200;
        setitimer(ITIMER_REAL, &often, NULL);
        while (handled < until)
            ;
        setitimer(ITIMER_REAL, &never, NULL);
    }
}

/* ---- at the ends of threads and of the program ---- */

static pthread_key_t key;

KNOWN static void known_destructor(void *value)
{
    struct piece piece;
    piece_took(&piece, SITE_destructor, malloc(333), 333);
    if ((intptr_t)value > 1)
        pthread_setspecific(key, (void *)((intptr_t)value - 1)); /* once more */
    else
        give_back(&piece);
}

static void *ends(void *unused)
{
    struct piece piece;
    known_malloc(&piece, 21);
    pthread_setspecific(key, (void *)3);
    give_back(&piece);
    return unused;
}

static void case_thread_ends(void)
{
    account_by_hand = 1;
    pthread_key_create(&key, known_destructor);
    for (long i = 0; i < argument(0, 200); i++) {
        pthread_t threads[4];
        for (int k = 0; k < 4; k++)
            if (pthread_create(&threads[k], NULL, ends, NULL) != 0)
                abort();
        for (int k = 0; k < 4; k++)
            pthread_join(threads[k], NULL);
    }
}

/* More threads than there are places, one after another; what they leave is freed by main(). */
static struct piece left_over[50][10];
static void *leaves(void *row)
{
    for (int i = 0; i < 10; i++)
        known_malloc(&((struct piece *)row)[i], 40 + (size_t)i);
    for (int i = 0; i < 5; i++)
        give_back(&((struct piece *)row)[i]);
    return NULL;
}

static void case_many_threads(void)
{
    account_by_hand = 1;
    for (long i = 0; i < argument(0, 100); i++) {
        pthread_t threads[50];
        for (int k = 0; k < 50; k++)
            if (pthread_create(&threads[k], NULL, leaves, left_over[k]) != 0)
                abort();
        for (int k = 0; k < 50; k++)
            pthread_join(threads[k], NULL);
        for (int k = 0; k < 50; k++)
            for (int n = 5; n < 10; n++)
                give_back(&left_over[k][n]);
    }
}

KNOWN static int known_compare(const void *a, const void *b)
{
    struct piece piece;
    piece_took(&piece, SITE_compare, malloc(17), 17);
    give_back(&piece);
    return *(const int *)a - *(const int *)b;
}

KNOWN static void known_atexit(void)
{
    struct piece piece;
    for (int i = 0; i < 12; i++) {
        piece_took(&piece, SITE_atexit, malloc(60), 60);
        if (i % 3 == 0)
            give_back(&piece);
    }
}

static void case_reentrant(void)
{
    static int numbers[5000];
    account_by_hand = 1;
    for (int i = 0; i < 5000; i++)
        numbers[i] = i * 7919 % 5000;
    qsort(numbers, 5000, sizeof numbers[0], known_compare); /* it allocates itself */
    for (int i = 0; i < 5000; i++)
        if (numbers[i] != i)
            abort();
    atexit(known_atexit);
}

static struct piece early[20];
__attribute__((constructor(101))) KNOWN static void known_constructor(void)
{
    if (!getenv("KNOWN_EARLY"))
        return;
    for (int i = 0; i < 20; i++)
        piece_took(&early[i], SITE_constructor, malloc(1000), 1000);
}

static const char *told_at_the_end;
__attribute__((destructor(101))) KNOWN static void known_last(void)
{
    if (!told_at_the_end)
        return;
    if (getenv("KNOWN_EARLY"))
        for (int i = 0; i < 20; i++) {
            struct piece piece;
            give_back(&early[i]);
            piece_took(&piece, SITE_last, malloc(70), 70);
        }
    account_tell(told_at_the_end);
}

/* ---- stacks by the million, and very deep ones ---- */

KNOWN static void turn(uint32_t way, int steps);
KNOWN static void turn_left(uint32_t way, int steps)
{
    turn(way >> 1, steps - 1);
}

KNOWN static void turn(uint32_t way, int steps)
{
    struct piece piece;
    if (steps == 0) {
        known_other(&piece, 16);
        if (piece.serial % 4 != 0)
            give_back(&piece);
    } else if (way & 1) {
        turn_left(way, steps);
    } else {
        turn(way >> 1, steps - 1);
    }
}

static void case_wide(void)
{
    int steps = (int)argument(0, 20);
    for (uint32_t way = 0; way < 1U << steps; way++)
        turn(way, steps);
}

static void case_deep(void)
{
    for (int i = 0; i < 3000; i++)
        known_deep(i, false);
}

/* Totals that a sample of them is held against: GiB in sizes of all kinds. */
static void case_large(void)
{
    static struct piece ring[512];
    uint64_t state = (uint64_t)argument(1, 1);
    for (uint64_t bytes = (uint64_t)argument(0, 2) << 30;
         account_tallies[0].allocated_bytes < bytes;) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        struct piece *piece = &ring[state >> 40 & 511];
        give_back(piece);
        known_malloc(piece, 16U << (state >> 50) % 11);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"entries", case_entries},
    {"threads", case_threads},
    {"temporary", case_temporary},
    {"peak", case_peak},
    {"growth", case_growth},
    {"odd", case_odd},
    {"unseen", case_unseen},
    {"fork", case_fork},
    {"fork-busy", case_fork_busy},
    {"exec", case_exec},
    {"plugins", case_plugins},
    {"longjmp", case_longjmp},
    {"signals", case_signals},
    {"thread-ends", case_thread_ends},
    {"many-threads", case_many_threads},
    {"reentrant", case_reentrant},
    {"wide", case_wide},
    {"deep", case_deep},
    {"large", case_large},
};

int main(int argc, char **argv)
{
    arguments = argv + (argc > 1 ? 2 : 1);
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            told_at_the_end = cases[i].name;
            return 0;
        }
    return 2;
}
