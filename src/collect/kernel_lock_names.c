/* Names for locks of the kernel: of a static one its symbol, of others who takes it. */
#include "collect/kernel_locks.h"
#include "format/contention.h"

#include <stdlib.h>

/* No variable of the kernel that holds locks is larger, as a rule; behind the last one of a
 * section there is other people's memory. */
static const uint64_t variable_bytes_max = 1 << 16;

static int by_address(const void *a, const void *b)
{
    const struct kernel_lock *one = a, *other = b;
    return one->address < other->address ? -1 : one->address > other->address;
}

/* The first lock at or above an address. */
static size_t lock_from(const struct kernel_lock *locks, size_t count, uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (locks[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct nearest {
    uint64_t below;    /* the highest symbol not above the lock, 0: none */
    struct str symbol; /* empty: it is no variable */
};

/* "ffffffff82a0b080 D tasklist_lock", "ffffffffc0a01000 b lock\t[module]" */
static void line_look(struct str line, const struct kernel_lock *locks, size_t count,
                      struct nearest *nearest)
{
    uint64_t address;
    struct str word = str_word(&line), type = str_word(&line), name = str_word(&line);
    if (str_to_u64(word, 16, &address) < 0 || address == 0 || type.len != 1 || name.len == 0 ||
        strchr("aA", type.data[0]))
        return;
    bool variable = strchr("bBdDgGsSvV", type.data[0]);
    for (size_t i = lock_from(locks, count, address);
         i < count && locks[i].address - address < variable_bytes_max; i++) {
        if (nearest[i].below > address)
            continue;
        if (nearest[i].below < address || nearest[i].symbol.len == 0)
            nearest[i] = (struct nearest){address, variable ? name : (struct str){"", 0}};
    }
}

void kernel_lock_symbols(struct arena *arena, struct str text, struct kernel_lock *locks,
                         size_t count)
{
    struct nearest *nearest = arena_alloc(arena, count * sizeof(*nearest));
    if (!nearest || count == 0)
        return;
    qsort(locks, count, sizeof(*locks), by_address);
    while (text.len > 0)
        line_look(str_cut(&text, '\n'), locks, count, nearest);
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = locks[i].address - nearest[i].below;
        struct str name = nearest[i].symbol;
        if (name.len == 0)
            continue;
        locks[i].symbol = str_from(offset == 0 ? arena_dup_len(arena, name.data, name.len)
                                               : arena_printf(arena, "%.*s+%#llx", STR_FMT(name),
                                                              (unsigned long long)offset));
    }
}

static const char *kind_word(uint32_t flags)
{
    static const struct {
        uint32_t mask, flags;
        const char *word;
    } kinds[] = {
        {CONTENTION_MUTEX, CONTENTION_MUTEX, "mutex"},
        {CONTENTION_PERCPU | CONTENTION_READ, CONTENTION_PERCPU | CONTENTION_READ,
         "per-CPU rwsem (read)"},
        {CONTENTION_PERCPU, CONTENTION_PERCPU, "per-CPU rwsem (write)"},
        {CONTENTION_SPIN | CONTENTION_READ, CONTENTION_SPIN | CONTENTION_READ, "rwlock (read)"},
        {CONTENTION_SPIN | CONTENTION_WRITE, CONTENTION_SPIN | CONTENTION_WRITE, "rwlock (write)"},
        {CONTENTION_SPIN, CONTENTION_SPIN, "spinlock"},
        {CONTENTION_RT | CONTENTION_READ, CONTENTION_RT | CONTENTION_READ, "rt rwlock (read)"},
        {CONTENTION_RT | CONTENTION_WRITE, CONTENTION_RT | CONTENTION_WRITE, "rt rwlock (write)"},
        {CONTENTION_RT, CONTENTION_RT, "rtmutex"},
        {CONTENTION_READ, CONTENTION_READ, "rwsem (read)"},
        {CONTENTION_WRITE, CONTENTION_WRITE, "rwsem (write)"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if ((flags & kinds[i].mask) == kinds[i].flags)
            return kinds[i].word;
    return "semaphore";
}

struct str kernel_lock_name(struct arena *arena, const struct kernel_lock *lock,
                            struct str function)
{
    const char *kind = kind_word(lock->flags);
    if (lock->symbol.len > 0)
        return str_from(arena_printf(arena, "%s %.*s", kind, STR_FMT(lock->symbol)));
    const char *own = lock->flags & CONTENTION_MMAP_LOCK ? " mmap_lock" : "";
    if (function.len > 0)
        return str_from(arena_printf(arena, "%s%s in %.*s", kind, own, STR_FMT(function)));
    if (*own)
        return str_from(arena_printf(arena, "%s%s", kind, own));
    return str_from(arena_printf(arena, "%s at %#llx", kind, (unsigned long long)lock->address));
}

/* Beginnings of names; what the compiler splits off has more behind them. */
bool kernel_lock_is_locking(struct str function)
{
    static const char *const beginnings[] = {
        "bpf_",
        "__bpf_",
        "___bpf_",
        "__traceiter_contention",
        "trace_contention",
        "mutex_",
        "__mutex_",
        "ww_mutex_",
        "__ww_mutex_",
        "rt_mutex_",
        "__rt_mutex_",
        "rtlock_",
        "rt_spin_",
        "rt_read_",
        "rt_write_",
        "rwbase_",
        "rwsem_",
        "__rwsem_",
        "down_read",
        "__down_read",
        "down_write",
        "__down_write",
        "down_killable",
        "down_interruptible",
        "down_timeout",
        "__down",
        "percpu_down_",
        "__percpu_down_",
        "percpu_rwsem_",
        "__percpu_rwsem_",
        "_raw_spin_",
        "__raw_spin_",
        "do_raw_spin_",
        "_raw_read_",
        "__raw_read_",
        "_raw_write_",
        "__raw_write_",
        "raw_spin_rq_",
        "queued_spin_",
        "queued_read_",
        "queued_write_",
        "native_queued_",
        "__pv_queued_",
        "pv_queued_",
        "resilient_",
        "osq_",
        "up_read", /* the lock inside the lock */
        "up_write",
        "lock_sock_nested",
        "__lock_sock",
    };
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
        if (str_starts(function, beginnings[i]))
            return true;
    return str_is(function, "down") || str_is(function, "up");
}
