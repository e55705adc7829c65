/* What the calls that allocate promise, one line a promise: with our library loaded and without
 * it, the output must be the same. Nothing here depends on how fast the machine is. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The compiler knows these calls, and would leave out what is done with them here. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void *(*volatile do_reallocarray)(void *, size_t, size_t) = reallocarray;
static void (*volatile do_free)(void *) = free;
static int (*volatile do_posix_memalign)(void **, size_t, size_t) = posix_memalign;
static void *(*volatile do_aligned_alloc)(size_t, size_t) = aligned_alloc;
static void *(*volatile do_memalign)(size_t, size_t) = memalign;
static void *(*volatile do_valloc)(size_t) = valloc;
static void *(*volatile do_pvalloc)(size_t) = pvalloc;

static void said(const char *what, bool is)
{
    int error = errno;
    printf("%s: %s, errno %s\n", what, is ? "yes" : "no", strerrorname_np(error));
    errno = EDOM; /* nothing that succeeds touches it */
}

static bool is_filled(const unsigned char *memory, size_t bytes, unsigned char with)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != with)
            return false;
    return true;
}

static void values(void)
{
    void *a = do_malloc(0), *b = do_malloc(0);
    said("malloc(0) gives memory of its own", a && b && a != b);
    do_free(a);
    do_free(b);
    do_free(NULL);
    said("free() keeps errno", true);
    a = do_malloc((size_t)PTRDIFF_MAX + 1);
    said("malloc() of too much is refused", !a);
    a = do_calloc((size_t)1 << 33, (size_t)1 << 33);
    said("calloc() of more than a size can say is refused", !a);
    a = do_calloc(100, 100);
    said("calloc() is empty", a && is_filled(a, 10000, 0));
    do_free(a);
    a = do_calloc(0, 8);
    said("calloc() of none gives memory", a != NULL);
    do_free(a);
    for (size_t bytes = 1; bytes < ((size_t)64 << 20); bytes *= 3) {
        a = do_malloc(bytes);
        if (!a || malloc_usable_size(a) < bytes || (uintptr_t)a % 16 != 0)
            said("malloc() is as large as asked for, and aligned", false);
        else
            memset(a, 1, bytes);
        do_free(a);
    }
}

static void reallocations(void)
{
    unsigned char *memory = do_realloc(NULL, 10);
    memset(memory, 'x', 10);
    for (size_t bytes = 11; bytes < ((size_t)8 << 20); bytes = bytes * 3 / 2) {
        memory = do_realloc(memory, bytes);
        if (!memory || !is_filled(memory, 10, 'x'))
            said("realloc() keeps what was there", false);
    }
    memory = do_realloc(memory, 5);
    said("realloc() to less keeps the rest", memory && is_filled(memory, 5, 'x'));
    void *refused = do_realloc(memory, (size_t)PTRDIFF_MAX + 1);
    said("realloc() to too much is refused", !refused);
    said("and what was there stays", is_filled(memory, 5, 'x'));
    refused = do_reallocarray(memory, (size_t)1 << 33, (size_t)1 << 33);
    said("so is reallocarray()", !refused && is_filled(memory, 5, 'x'));
    memory = do_reallocarray(memory, 10, 10);
    said("reallocarray() keeps what was there", memory && is_filled(memory, 5, 'x'));
    said("realloc(, 0) frees", do_realloc(memory, 0) == NULL);
    memory = do_realloc(NULL, 0);
    said("realloc(NULL, 0) gives memory", memory != NULL);
    do_free(memory);
}

static void alignments(void)
{
    void *memory = &memory;
    int r = do_posix_memalign(&memory, 3, 100);
    said("posix_memalign() refuses 3", r == EINVAL && memory == &memory);
    r = do_posix_memalign(&memory, 64, (size_t)PTRDIFF_MAX + 1);
    said("and too much", r == ENOMEM && memory == &memory);
    for (size_t alignment = 8; alignment <= 1 << 16; alignment *= 2) {
        r = do_posix_memalign(&memory, alignment, 100);
        if (r != 0 || (uintptr_t)memory % alignment != 0)
            said("posix_memalign() aligns", false);
        do_free(memory);
        memory = do_aligned_alloc(alignment, 3 * alignment);
        if (!memory || (uintptr_t)memory % alignment != 0)
            said("aligned_alloc() aligns", false);
        do_free(memory);
        memory = do_memalign(alignment, 1);
        if (!memory || (uintptr_t)memory % alignment != 0)
            said("memalign() aligns", false);
        do_free(memory);
    }
    memory = do_memalign(48, 100);
    said("memalign() takes 48", memory != NULL);
    do_free(memory);
    memory = do_valloc(100);
    said("valloc() aligns", memory && (uintptr_t)memory % 4096 == 0);
    do_free(memory);
    memory = do_pvalloc(100);
    said("pvalloc() fills pages", memory && malloc_usable_size(memory) >= 4096);
    do_free(memory);
}

static void mappings(void)
{
    enum { BYTES = 1 << 20 };
    void *none = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    said("mmap() of nothing is refused", none == MAP_FAILED);
    char *a = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *b = mmap64(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    a[0] = 'a';
    char *moved = mremap(a, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, b);
    said("mremap() goes where it is told", moved == b && b[0] == 'a');
    moved = mremap(b, BYTES, BYTES / 2, 0);
    said("and shrinks in place", moved == b);
    said("munmap() unmaps", munmap(b, BYTES / 2) == 0);
    said("munmap() refuses what is no page", munmap(b + 1, 1) == -1);
    char *end = sbrk(0);
    said("sbrk() moves the end", sbrk(4096) == end && sbrk(0) == end + 4096);
    said("brk() moves it back", brk(end) == 0 && sbrk(0) == end);
}

/* Whether it may depends on the machine; it must not take a gigabyte for it. */
static void locked(void)
{
    long resident = -1;
    int r = mlockall(MCL_CURRENT | MCL_FUTURE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %ld", &resident) == 1)
        printf("much is resident: %s\n", resident > 50000 ? "yes" : "never");
    if (file)
        fclose(file);
    if (r == 0)
        munlockall();
    errno = EDOM;
}

static void libraries(void)
{
    const char *error = dlerror();
    printf("errors before: %s\n", error ? error : "none");
    void *library = dlopen("libm.so.6", RTLD_NOW);
    void *again = dlopen("libm.so.6", RTLD_NOW | RTLD_NOLOAD);
    said("dlopen() gives the same", library && library == again);
    said("dlclose() closes", library && again && dlclose(library) == 0 && dlclose(again) == 0);
}

/* In C++, while this is a program in C. */
static void plugin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*run)(int) = library ? (int (*)(int))dlsym(library, "heap_hooks_plugin") : NULL;
    printf("plugin: %d\n", run ? run(1000) : -1);
    const char *error = dlerror();
    printf("and no error: %s\n", error ? error : "none");
    if (library)
        dlclose(library);
}

/* ---- threads ---- */

static pthread_key_t key;
static atomic_int ended;

/* Comes again as long as it may, and allocates each time. */
static void thread_end(void *memory)
{
    static __thread int rounds;
    do_free(memory);
    ended++;
    if (++rounds < 3)
        pthread_setspecific(key, do_malloc(100));
}

static void *allocate_much(void *arg)
{
    void *kept[64] = {NULL};
    for (unsigned i = 0; i < 20000; i++) {
        void **at = &kept[i * 2654435761u % 64];
        do_free(*at);
        *at = do_malloc(i % 500);
        if (*at)
            memset(*at, (int)i, i % 500);
    }
    for (size_t i = 0; i < 64; i++)
        do_free(kept[i]);
    pthread_setspecific(key, do_malloc(10));
    return arg;
}

static void threads(void)
{
    pthread_t thread[40];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    said("the smallest stack is taken",
         pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN) == 0);
    pthread_key_create(&key, thread_end);
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < 40; i++)
            if (pthread_create(&thread[i], &attr, allocate_much, NULL) != 0)
                abort();
        for (size_t i = 0; i < 40; i++)
            pthread_join(thread[i], NULL);
    }
    printf("ends of threads: %d\n", ended);
}

/* ---- processes ---- */

static atomic_bool stop;

static void *allocate_on(void *arg)
{
    while (!stop)
        do_free(do_malloc(100));
    return arg;
}

static int status_of(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

static void *child_thread(void *arg)
{
    do_free(do_malloc(1000));
    return arg;
}

/* 0: all is well. */
static int child(int depth)
{
    char *memory = do_malloc(1000);
    memset(memory, 1, 1000);
    pthread_t thread;
    if (pthread_create(&thread, NULL, child_thread, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    if (depth < 2) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(depth + 1));
        if (status_of(pid) != 0)
            return 2;
    }
    do_free(memory);
    return 0;
}

static void *fork_much(void *arg)
{
    atomic_int *bad = arg;
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(0));
        *bad += status_of(pid) != 0;
    }
    return NULL;
}

static void forks(void)
{
    pthread_t busy[3], forking[2];
    atomic_int bad = 0;
    for (size_t i = 0; i < 3; i++)
        pthread_create(&busy[i], NULL, allocate_on, NULL);
    for (size_t i = 0; i < 2; i++)
        pthread_create(&forking[i], NULL, fork_much, &bad);
    for (size_t i = 0; i < 2; i++)
        pthread_join(forking[i], NULL);
    stop = true;
    for (size_t i = 0; i < 3; i++)
        pthread_join(busy[i], NULL);
    printf("children that went wrong: %d\n", bad);
}

static void others(void)
{
    pid_t pid = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (pid == 0) {
        do_free(do_malloc(100)); // in the parent's memory; NOLINT(clang-analyzer-unix.Vfork)
        _exit(7);
    }
    printf("vfork: %d\n", WEXITSTATUS(status_of(pid)));
    char name[] = "sh", option[] = "-c", script[] = "exit 9";
    char *arguments[] = {name, option, script, NULL};
    if (posix_spawnp(&pid, "sh", NULL, NULL, arguments, environ) == 0)
        printf("posix_spawn: %d\n", WEXITSTATUS(status_of(pid)));
    printf("system: %d\n", WEXITSTATUS(system("exit 11")));
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        quick_exit(do_malloc(1) ? 3 : 4);
    printf("quick_exit: %d\n", WEXITSTATUS(status_of(pid)));
    pid = fork();
    if (pid == 0) {
        do_free(do_malloc(1));
        abort();
    }
    printf("abort: %d\n", WTERMSIG(status_of(pid)));
}

int main(int argc, char **argv)
{
    errno = EDOM;
    values();
    reallocations();
    alignments();
    mappings();
    locked();
    libraries();
    if (argc > 1)
        plugin(argv[1]);
    threads();
    fflush(NULL);
    forks();
    others();
    return 0;
}
