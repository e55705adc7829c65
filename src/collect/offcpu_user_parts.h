/* What the files of the user tier of waits share; nobody else includes this.
 *
 * offcpu_user.c         the collector's life
 * offcpu_user_call.c    what a system call waits for, from its number and arguments
 * offcpu_user_look.c    a look at one blocked thread
 * offcpu_user_reader.c  whom to look at and when; what was seen, until its time has come
 * offcpu_user_threads.c who is on the CPU and off, since when: switches to rows of waits */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/lock_names.h"
#include "collect/objects.h"
#include "collect/offcpu_user.h"
#include "collect/stacks.h"

enum {
    USER_READER_HZ = 97, /* a prime: not in step with programs that do things 100 times a second */
    USER_SLICE_BYTES = 16 << 10,
    USER_SLICE_BYTES_MAX = 256 << 10,
    USER_THREADS_MAX = 1 << 16,
};
#define USER_PERIOD_NS (NS_PER_SEC / USER_READER_HZ)
#define USER_LONG_NS   NS_PER_MS /* waits from here on are told one by one */
/* A shorter wait that nobody looked at is taken for one as last seen of its thread. A longer one
 * would have been seen, had it been the reader's to see: it stays without a cause. */
#define USER_ALIKE_NS (5 * USER_PERIOD_NS)

/* ---- offcpu_user_call.c: pure ---- */

/* A line of /proc/PID/task/TID/syscall. */
struct user_call {
    int32_t syscall; /* WAIT_SYSCALL_NONE: blocked outside of one, in a page fault mostly */
    uint64_t args[6];
    uint64_t sp, pc;
};
/* A thread of the kernel itself. */
static inline bool user_call_in_kernel(const struct user_call *call)
{
    return call->sp == 0 && call->pc == 0;
}
/* 0; -EAGAIN when the thread runs; -EBADMSG. */
MUST_USE int user_call_parse(struct str line, struct user_call *ret);

enum user_call_on {
    USER_CALL_ON_NOTHING,
    USER_CALL_ON_FD,
    USER_CALL_ON_FDS, /* struct pollfd at `address`, `count` of them */
    USER_CALL_ON_FUTEX,
    USER_CALL_ON_CHILD,
};
/* What `limit` of the facts is. */
enum user_limit {
    USER_LIMIT_UNKNOWN,
    USER_LIMIT_MS,         /* from the call's beginning on */
    USER_LIMIT_TIMESPEC,   /* the same, at this address */
    USER_LIMIT_TIMEVAL,    /* the same */
    USER_LIMIT_UNTIL,      /* a moment, as a struct timespec at this address */
    USER_LIMIT_UNTIL_REAL, /* the same, of the clock on the wall */
};
struct user_call_facts {
    enum user_call_on on;
    int fd;
    uint64_t address;
    uint64_t count;
    int child;       /* pid, 0: any */
    uint32_t flags;  /* WAIT_LIMITED, WAIT_FAULT */
    uint32_t detail; /* enum wait_futex */
    enum user_limit limit_is;
    uint64_t limit;
    bool may_be_disk;
};
void user_call_facts(const struct user_call *call, struct user_call_facts *ret);

/* ---- offcpu_user_look.c ---- */

struct user_look {
    uint64_t begin_ns, end_ns; /* blocked in the same place at both */
    int pid, tid;
    bool ran; /* on the CPU, or about to be: nothing below is known */
    struct user_call call;
    struct user_call_facts facts;
    uint32_t flags;  /* enum wait_flag */
    int fd;          /* what is waited for; -1 */
    uint32_t object; /* the sink's, of the fd; 0 */
    int owner;       /* tid that has the lock; 0: not known */
    /* The call's time limit: from its beginning on, or the moment; 0: none, or not known. */
    uint64_t limit_ns, until_ns;
    uint8_t *bytes; /* the stack from sp on */
    size_t len, cap;
};
/* Fills all but the stack's memory, which is the caller's. 0; -EAGAIN: it runs, or did
 * meanwhile; other -errno: gone or denied. */
MUST_USE int user_look(int pid, int tid, struct user_look *look);
/* As many bytes as there are. */
size_t user_memory_read(int pid, uint64_t address, void *to, size_t len);
/* Fills limit_ns or until_ns from the call's facts; both 0: it cannot be read. */
void user_limit_read(struct user_look *look);
/* For people: why threads of a process may not be looked at, and what would allow it. */
void user_look_denied(int error, int pid, char *text, size_t size);

/* ---- offcpu_user_threads.c ---- */

struct user_cause {
    uint32_t stack;
    uint32_t object;
    uint32_t flags;
    uint32_t detail;
    int32_t syscall;
    uint32_t waker_thread, waker_stack;
    uint64_t limit_ns, until_ns; /* as in a look */
};

enum user_where {
    USER_UNSEEN,
    USER_ON,      /* a CPU */
    USER_BLOCKED, /* off it by its own will */
    USER_READY,   /* off it by force, or not yet begun */
    USER_GONE,
};

struct user_thread {
    int pid, tid;
    enum user_where where;
    bool assumed;     /* nothing was told of it yet: as /proc showed it at the start */
    bool told;        /* the sink knows it */
    bool observed;    /* `cause` was seen during this very wait */
    bool cause_known; /* or during an earlier one */
    bool cut_off;     /* its stack went on beyond what was read */
    uint64_t born_ns; /* as far as we know */
    uint64_t since_ns;
    uint64_t off_ns;                  /* off the CPU so far, this time not included */
    uint64_t running_ns;              /* not told yet */
    uint64_t looked_ns;               /* when the last look at it began */
    uint64_t delay_ns, delay_read_ns; /* ready, not running, by the kernel's books; when read */
    uint32_t slice_bytes;
    /* Where a frame pointer was found that nobody shows: for the same place it is the same. */
    uint64_t pointer_pc, pointer_sp, pointer, pointer_return;
    uint32_t pointer_misses;
    uint32_t denials;      /* looks that were refused, one after the other */
    struct user_call call; /* floor: where it was seen last */
    struct user_cause cause;
    uint64_t cause_ns; /* when it was seen */
    /* Of a wait for a mutex: who had it when looked at, and how long that was off by then. */
    int owner_tid;
    uint64_t owner_since_ns, owner_off_ns;
    struct wait_tally shorts; /* waits that are as `cause`, not told yet */
    struct wait_tally ready;  /* in the run queue, not told yet */
};

struct user_threads {
    struct sink *sink;
    struct stacks *stacks;
    uint32_t offcpu, running; /* series */
    int root_pid;             /* held before its exec: not the target yet; 0 */
    bool futexes_only;
    bool floor; /* nothing tells when a thread began to run */
    bool (*covered)(void *context, int pid, int tid);
    void *covered_context;

    VEC(struct user_thread) threads;
    VEC(uint8_t) wanted; /* beside: worth a look */
    struct map_u64 tids; /* to index + 1 */
    VEC(uint32_t) gone;  /* a queue: slots of threads that ended */
    size_t gone_first;
    uint64_t flush_ns; /* the next time */

    uint64_t seen, observed, alike, unknown, broken, too_many, refused, preempted;
    uint64_t blocked_ns, observed_ns, alike_ns, ready_ns, running_ns;
    uint64_t delay_ns; /* of threads that ended: as last read of each */
    bool delay_known;
};

void user_threads_deinit(struct user_threads *t);
/* Each returns 0 or a failure of the sink. Times must not go back. */
MUST_USE int user_threads_switch(struct user_threads *t, uint64_t time_ns, int pid, int tid,
                                 bool out, bool preempted);
MUST_USE int user_threads_fork(struct user_threads *t, uint64_t time_ns, int pid, int tid);
MUST_USE int user_threads_exec(struct user_threads *t, uint64_t time_ns, int pid);
MUST_USE int user_threads_exit(struct user_threads *t, uint64_t time_ns, int tid);
/* Here before us: `runs` as /proc says. */
MUST_USE int user_threads_present(struct user_threads *t, uint64_t time_ns, int pid, int tid,
                                  bool runs);
/* Whether it waits, and has so since begin_ns at the latest. */
bool user_threads_waits(const struct user_threads *t, int tid, uint64_t begin_ns);
/* The cause of what a thread waits for just now: seen during this wait. */
MUST_USE int user_threads_observe(struct user_threads *t, uint64_t end_ns, int tid,
                                  const struct user_cause *cause, int owner_tid);
/* Seen of the thread, but in no wait that could be told: short ones are taken for it. */
MUST_USE int user_threads_suppose(struct user_threads *t, int tid, const struct user_cause *cause);
/* NULL: not known. Valid until the next call. */
struct user_thread *user_threads_find(struct user_threads *t, int tid);
/* How long it was ready but not running, by the kernel's books; a fifth of a second old at most. */
void user_threads_delay_read(struct user_threads *t, struct user_thread *thread, uint64_t now_ns);
/* Tells the sink what was added up, each 100 ms. */
MUST_USE int user_threads_until(struct user_threads *t, uint64_t time_ns);
/* The recording ends here; waits that have not ended are told as such. */
MUST_USE int user_threads_end(struct user_threads *t, uint64_t time_ns);

/* ---- offcpu_user_reader.c ---- */

enum { USER_LOOKS_MAX = 256 };

struct user_reader {
    struct user_threads *threads;
    struct stacks *stacks;
    struct sink *sink;
    struct objects *objects;
    struct lock_names *names;
    struct user_look looks[USER_LOOKS_MAX]; /* a ring */
    size_t first, count;
    size_t memory_bytes;
    size_t cursor; /* the next thread's turn */
    int64_t budget_ns;
    uint64_t last_round_ns;

    uint64_t rounds, looked, ran, used, nearby, stale, left_out, gone, denied, failed, fds_unknown;
    uint64_t complete, truncated, pointers;
    uint64_t ends[UNWIND_ENDS];
    uint64_t own_ns;
    int denied_error, denied_pid;
};

/* Objects and names of locks; the rest is the caller's to fill in. */
MUST_USE int user_reader_init(struct user_reader *reader, struct sink *sink);
void user_reader_deinit(struct user_reader *reader);
/* Looks at as many threads as the budget allows. */
MUST_USE int user_reader_round(struct user_reader *reader, uint64_t now_ns);
/* All that happened up to then is known: what was seen up to then finds its wait. */
MUST_USE int user_reader_until(struct user_reader *reader, uint64_t time_ns);
