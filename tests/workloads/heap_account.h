/* The account that a program keeps of its own memory, for the truth tests of the heap: what it
 * allocates and frees, by the function that calls, without allocating anything itself.
 *
 * A line of JSON a process is appended to the file that KNOWN_TRUTH names. For C and C++. */
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Functions that call the heap: known_NAME(). */
#define ACCOUNT_SITES(X)                                                                           \
    X(malloc)                                                                                      \
    X(calloc)                                                                                      \
    X(realloc)                                                                                     \
    X(reallocarray)                                                                                \
    X(posix_memalign)                                                                              \
    X(aligned_alloc)                                                                               \
    X(memalign)                                                                                    \
    X(valloc)                                                                                      \
    X(pvalloc)                                                                                     \
    X(other)                                                                                       \
    X(handler)                                                                                     \
    X(destructor)                                                                                  \
    X(compare)                                                                                     \
    X(atexit)                                                                                      \
    X(constructor)                                                                                 \
    X(last)                                                                                        \
    X(deep)                                                                                        \
    X(plugin_a)                                                                                    \
    X(plugin_b)                                                                                    \
    X(strdup)                                                                                      \
    X(child)                                                                                       \
    X(pair)                                                                                        \
    X(new_plain)                                                                                   \
    X(new_array)                                                                                   \
    X(new_nothrow)                                                                                 \
    X(new_array_nothrow)                                                                           \
    X(new_aligned)                                                                                 \
    X(new_array_aligned)                                                                           \
    X(new_aligned_nothrow) X(new_array_aligned_nothrow) X(thrower) X(catcher) X(local)

enum account_site {
#define ACCOUNT_ENUM(name) SITE_##name,
    ACCOUNT_SITES(ACCOUNT_ENUM)
#undef ACCOUNT_ENUM
        SITE_COUNT
};

struct account_tally {
    uint64_t allocations, allocated_bytes, frees, freed_bytes, temporary, grown, grown_bytes;
    int64_t peak_count, peak_bytes;
};

/* A piece of memory, for as long as it is allocated. */
struct piece {
    void *memory;
    uint64_t size;
    uint64_t serial; /* of its allocation in the whole process */
    uint32_t site;
    uint32_t process; /* how many forks lie before it */
};

static struct account_tally account_tallies[SITE_COUNT];
static uint64_t account_serial;
static uint64_t account_live, account_peak;
static uint64_t account_failed, account_unseen, account_inherited, account_inherited_bytes;
static uint64_t account_peak_from, account_peak_to; /* not 0: the peak is known to lie in between */
static uint32_t account_process;
static int account_by_hand; /* peaks are told by account_settle() only, since others take part */
static int account_settled; /* peaks of sites are what they were at the peak */
static __thread uint64_t account_last; /* this thread's newest allocation */

#define ACCOUNT_ADD(where, value) ((void)__atomic_fetch_add(&(where), (value), __ATOMIC_RELAXED))

/* What lives now is the most that ever lived. */
static inline void account_settle(void)
{
    account_settled = 1;
    for (int i = 0; i < SITE_COUNT; i++) {
        struct account_tally *tally = &account_tallies[i];
        tally->peak_count = (int64_t)(tally->allocations - tally->frees);
        tally->peak_bytes = (int64_t)(tally->allocated_bytes - tally->freed_bytes);
    }
}

/* Before memory is given back. */
static inline void piece_gone(struct piece *piece)
{
    if (!piece->memory)
        return;
    piece->memory = NULL;
    if (piece->process != account_process) {
        ACCOUNT_ADD(account_inherited, 1);
        ACCOUNT_ADD(account_inherited_bytes, piece->size);
        return;
    }
    if (!account_by_hand && !account_settled && account_live == account_peak)
        account_settle();
    struct account_tally *tally = &account_tallies[piece->site];
    ACCOUNT_ADD(tally->frees, 1);
    ACCOUNT_ADD(tally->freed_bytes, piece->size);
    if (piece->serial == account_last)
        ACCOUNT_ADD(tally->temporary, 1);
    ACCOUNT_ADD(account_live, -piece->size);
}

/* After memory was had. */
static inline void piece_took(struct piece *piece, enum account_site site, void *memory,
                              size_t size)
{
    if (!memory) {
        ACCOUNT_ADD(account_failed, 1);
        piece->memory = NULL;
        return;
    }
    piece->memory = memory;
    piece->size = size;
    piece->site = site;
    piece->process = account_process;
    piece->serial = __atomic_add_fetch(&account_serial, 1, __ATOMIC_RELAXED);
    account_last = piece->serial;
    struct account_tally *tally = &account_tallies[site];
    ACCOUNT_ADD(tally->allocations, 1);
    ACCOUNT_ADD(tally->allocated_bytes, size);
    uint64_t live = __atomic_add_fetch(&account_live, size, __ATOMIC_RELAXED);
    uint64_t peak = __atomic_load_n(&account_peak, __ATOMIC_RELAXED);
    while (live > peak)
        if (__atomic_compare_exchange_n(&account_peak, &peak, live, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            account_settled = 0;
            break;
        }
}

/* In a child of fork(): its own account begins, what it inherits stays apart. */
static inline void account_forked(void)
{
    memset(account_tallies, 0, sizeof account_tallies);
    account_live = account_peak = account_failed = account_unseen = 0;
    account_inherited = account_inherited_bytes = 0;
    account_by_hand = account_settled = 0;
    account_process++;
}

static inline size_t account_sites(char *text, size_t size)
{
    static const char *const names[] = {
#define ACCOUNT_NAME(name) "known_" #name,
        ACCOUNT_SITES(ACCOUNT_NAME)
#undef ACCOUNT_NAME
    };
    size_t at = 0;
    for (int i = 0; i < SITE_COUNT; i++) {
        const struct account_tally *t = &account_tallies[i];
        if (t->allocations == 0)
            continue;
        at += (size_t)snprintf(
            text + at, size - at,
            "%s\"%s\":{\"allocations\":%lu,\"allocated_bytes\":%lu,\"frees\":%lu,"
            "\"freed_bytes\":%lu,\"temporary\":%lu,\"grown\":%lu,\"grown_bytes\":%lu,"
            "\"peak_count\":%ld,\"peak_bytes\":%ld}",
            at ? "," : "", names[i], t->allocations, t->allocated_bytes, t->frees, t->freed_bytes,
            t->temporary, t->grown, t->grown_bytes, t->peak_count, t->peak_bytes);
    }
    return at;
}

/* Once a process, when nothing more is to come. snprintf() of numbers allocates nothing. */
static inline void account_tell(const char *name)
{
    static char text[32768], sites[24576];
    if (!account_settled && !account_by_hand)
        account_settle();
    const char *path = getenv("KNOWN_TRUTH");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    account_sites(sites, sizeof sites);
    int size = snprintf(
        text, sizeof text,
        "{\"name\":\"%s\",\"pid\":%d,\"settled\":%d,\"sites\":{%s},\"peak_bytes\":%lu,"
        "\"peak_from\":%lu,\"peak_to\":%lu,\"failed\":%lu,\"unseen_frees\":%lu,\"inherited_frees\":"
        "%lu,"
        "\"inherited_bytes\":%lu}\n",
        name, (int)getpid(), account_settled, sites, account_peak, account_peak_from,
        account_peak_to, account_failed, account_unseen, account_inherited,
        account_inherited_bytes);
    if (write(fd, text, (size_t)size) != size)
        abort();
    close(fd);
}
