/* Programs that come to a bad end, or nearly so, with an account of their memory until then.
 *
 *     heap-faults CASE */
#include "heap_account.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#ifdef __GLIBC__ /* another libc may come without the kernel's headers */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#define KNOWN __attribute__((noinline))

KNOWN static void known_malloc(struct piece *piece, size_t size)
{
    piece_took(piece, SITE_malloc, malloc(size), size);
}

KNOWN static void known_other(struct piece *piece, size_t size)
{
    piece_took(piece, SITE_other, malloc(size), size);
}

static void give_back(struct piece *piece)
{
    void *memory = piece->memory;
    piece_gone(piece);
    free(memory);
}

static void say(const char *text)
{
    if (write(1, text, strlen(text)) < 0)
        _exit(99);
}

static void work(void)
{
    static struct piece pieces[1000];
    for (size_t i = 0; i < 1000; i++)
        known_malloc(&pieces[i], 10 + i);
    for (size_t i = 0; i < 1000; i += 2)
        give_back(&pieces[i]);
}

/* Memory until there is no more; then the program frees it and goes on. */
static void case_limit(void)
{
    static struct piece pieces[4096];
    struct rlimit limit = {256 << 20, 256 << 20};
    if (!getenv("LIMITED") && setrlimit(RLIMIT_AS, &limit) != 0)
        abort();
    int had = 0;
    for (int round = 0; round < 3; round++) {
        int i = 0;
        for (; i < 4096; i++) {
            errno = 0;
            known_malloc(&pieces[i], 1 << 20);
            if (!pieces[i].memory)
                break;
        }
        if (i == 0 || i == 4096 || errno != ENOMEM)
            abort();
        had += i;
        for (int k = 0; k < i; k++)
            give_back(&pieces[k]);
    }
    say(had > 3 ? "out of memory three times\n" : "never\n");
}

/* Where the stack ends a handler on another one says so, and goes back. */
static sigjmp_buf out;
static void overflown(int signal)
{
    (void)signal;
    siglongjmp(out, 1);
}

static volatile int endless = 1;
KNOWN static int dive(int depth)
{
    volatile char room[100];
    struct piece piece;
    room[0] = (char)depth;
    known_other(&piece, 20);
    give_back(&piece);
    return endless ? dive(depth + 1) + room[0] : depth;
}

static void case_overflow(void)
{
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = overflown, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, NULL);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(out, 1) == 0)
            dive(0);
        else
            say("overflown\n");
    work(); /* and life goes on */
}

/* Without a handler. */
static void case_overflow_dies(void)
{
    say("diving\n");
    account_tell("dies");
    dive(0);
}

static void case_abort(void)
{
    work();
    account_tell("abort");
    abort();
}

static void case_exit_at_once(void)
{
    work();
    account_tell("exit");
    _exit(3);
}

static void quick(void)
{
    struct piece piece;
    known_other(&piece, 40);
    account_tell("quick");
}

static void case_quick_exit(void)
{
    work();
    at_quick_exit(quick);
    quick_exit(4);
}

static void case_killed(void)
{
    work();
    account_tell("killed");
    raise(SIGKILL);
}

static void case_segv(void)
{
    work();
    account_tell("segv");
    raise(SIGSEGV);
}

/* Works, says so, and waits for whoever kills somebody; then works on. */
static void case_waits(void)
{
    work();
    say("worked\n");
    char byte;
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        ;
    work();
    say("worked on\n");
    account_tell("waits");
}

#ifdef __GLIBC__
/* Whatever is not on the list ends the program. */
static void case_seccomp(void)
{
    static const int allowed[] = {SYS_read,   SYS_write,  SYS_exit,   SYS_exit_group,
                                  SYS_mmap,   SYS_munmap, SYS_brk,    SYS_futex,
                                  SYS_openat, SYS_close,  SYS_getpid, SYS_getrandom};
    enum { ALLOWED = sizeof allowed / sizeof allowed[0] };
    struct sock_filter filter[ALLOWED + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < ALLOWED; i++)
        filter[i + 1] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(ALLOWED - i), 0);
    filter[ALLOWED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[ALLOWED + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {ALLOWED + 3, filter};
    if (getenv("FILTERED_LATE"))
        work();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        abort();
    work();
    say("behind the filter\n");
}
#endif

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"limit", case_limit},
    {"overflow", case_overflow},
    {"overflow-dies", case_overflow_dies},
    {"abort", case_abort},
    {"exit", case_exit_at_once},
    {"quick-exit", case_quick_exit},
    {"killed", case_killed},
    {"segv", case_segv},
    {"waits", case_waits},
    {"work", work},
#ifdef __GLIBC__
    {"seccomp", case_seccomp},
#endif

};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            account_tell(cases[i].name);
            return 0;
        }
    return 2;
}
