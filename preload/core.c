/* The memory shared with whyslow, places and records in it; core.h says what is promised. */
#include "core.h"

#include "find.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Another libc lacks these, and must not fail to load us for it. */
#pragma weak gnu_get_libc_version
extern void *main_stack_end __asm__("__libc_stack_end") __attribute__((weak));

enum {
    PAGE = 4096,
    RINGERS = 1024,
    HOMELESS_RETRY = 64,
    TOLD_MAX = 128,
    ROOM_KEPT_BYTES = 8 << 10,
    RING_ANEW_BYTES = 32 << 10
};

bool core_on, core_io_on, core_sandboxed;
struct core_io core_io;
__thread struct core_self core_self __attribute__((tls_model("initial-exec")));

static struct preload_header *header;
static struct {
    char *places; /* NULL: the family is off */
    size_t place_bytes;
    uint32_t place_count;
} families[PRELOAD_FAMILIES];
/* In a page that a fork leaves empty in the child, so that the child knows, however it was
 * made: 0 there. */
static uint64_t *generation_page;
static uint64_t generations;
static uint32_t process_id;
/* Hash of the address in the upper half, thread in the lower: one store, one load. */
static uint64_t ringers[RINGERS];

long core_raw6(long number, long a, long b, long c, long d, long e, long f)
{
    return preload_raw6(number, a, b, c, d, e, f);
}

uint64_t core_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The process as it is now. A child of fork() finds the page empty and becomes one of its own;
 * two threads that find it so agree on the first. */
static uint64_t generation_now(void)
{
    uint64_t generation = __atomic_load_n(generation_page, __ATOMIC_ACQUIRE);
    if (LIKELY(generation != 0))
        return generation;
    uint64_t next = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED);
    process_id = (uint32_t)core_raw(SYS_getpid, 0, 0, 0, 0);
    if (__atomic_compare_exchange_n(generation_page, &generation, next, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        __atomic_fetch_add(&header->processes, 1, __ATOMIC_RELAXED);
        return next;
    }
    return generation;
}

static uint32_t own_tid(void)
{
    struct core_self *self = &core_self;
    uint64_t generation = generation_now();
    if (UNLIKELY(self->tid_generation != generation)) {
        self->tid = (uint32_t)core_raw(SYS_gettid, 0, 0, 0, 0);
        self->tid_generation = generation;
    }
    return self->tid;
}

static struct preload_thread *place_take(enum preload_family_name family, uint32_t tid)
{
    uint32_t serial = __atomic_add_fetch(&header->families[family].serial, 1, __ATOMIC_RELAXED);
    uint32_t count = families[family].place_count;
    for (uint32_t i = 0; i < count; i++) {
        struct preload_thread *place = (void *)(families[family].places +
                                                (size_t)((serial + i) % count) *
                                                    families[family].place_bytes);
        uint32_t expected = PRELOAD_FREE;
        if (__atomic_load_n(&place->state, __ATOMIC_RELAXED) != PRELOAD_FREE ||
            !__atomic_compare_exchange_n(&place->state, &expected, PRELOAD_TAKEN, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        place->pid = process_id;
        place->tid = tid;
        place->serial = serial;
        place->open_start_ns = 0;
        place->anew_head = place->anew_bytes = 0;
        /* Only some may be large at a time: programs of thousands of threads exist. */
        place->ring_limit = (serial + i) % count < PRELOAD_RINGS_LARGE ? PRELOAD_RING_BYTES
                                                                       : PRELOAD_RING_LIMIT;
        place->since_ns = core_now_ns();
        __atomic_store_n(&place->state, PRELOAD_LIVED, __ATOMIC_RELEASE);
        return place;
    }
    return NULL;
}

struct preload_thread *core_place(struct core_self *self, enum preload_family_name family)
{
    uint64_t generation = generation_now();
    struct core_home *home = &self->homes[family];
    if (LIKELY(home->generation == generation && home->place))
        return home->place;
    if (home->generation != generation) {
        /* A new thread, or the one that survived a fork: holds are the parent's. */
        home->generation = generation;
        home->place = NULL;
        home->homeless = 0;
        home->stacks = 0;
        if (family == PRELOAD_LOCK_HOOKS)
            self->held_count = 0;
    }
    if (home->homeless++ % HOMELESS_RETRY == 0)
        home->place = place_take(family, own_tid());
    if (!home->place)
        __atomic_fetch_add(&header->families[family].homeless, 1, __ATOMIC_RELAXED);
    core_io.process = process_id;
    return home->place;
}

static struct preload_thread *place_of(struct core_self *self)
{
    return core_place(self, PRELOAD_LOCK_HOOKS);
}

/* Bytes that are to be read. */
static uint64_t ring_waiting(const struct preload_thread *place, uint64_t tail)
{
    uint64_t used = place->head - tail;
    bool skips = tail < place->anew_head && used >= place->anew_bytes;
    return skips ? used - place->anew_bytes : used;
}

/* Room for a record of `bytes` with `spare` behind it, in one piece; NULL: none. */
struct preload_record *core_ring_room(struct preload_thread *place, uint32_t bytes, uint32_t spare)
{
    uint64_t head = place->head;
    uint64_t tail = __atomic_load_n(&place->tail, __ATOMIC_ACQUIRE);
    uint64_t used = head - tail;
    uint32_t at = (uint32_t)(head % PRELOAD_RING_BYTES);
    uint32_t to_end = PRELOAD_RING_BYTES - at;
    /* One that has been read to its end begins anew: its memory is touched only as far as what
     * is unread at a time reaches. Until that is read, what lies before is all the room. */
    bool anew = used == 0 && at >= RING_ANEW_BYTES;
    uint32_t pad = to_end < bytes || anew ? to_end : 0;
    if (ring_waiting(place, tail) + bytes + spare > place->ring_limit ||
        used + pad + bytes > PRELOAD_RING_BYTES)
        return NULL;
    if (anew) {
        place->anew_head = head + pad;
        place->anew_bytes = pad;
    }
    if (pad > 0) {
        struct preload_record *record = (void *)(place->ring + at);
        *record = (struct preload_record){.kind = PRELOAD_PAD, .bytes = pad};
        __atomic_store_n(&place->head, head + pad, __ATOMIC_RELEASE);
        at = 0;
    }
    return (void *)(place->ring + at);
}

void core_ring_put(struct preload_thread *place, uint32_t bytes)
{
    __atomic_store_n(&place->head, place->head + bytes, __ATOMIC_RELEASE);
}

/* Mostly it is said already, and only read here. A mark that crosses with whyslow's look may be
 * missed: what is in the place is then read with the next one, or at the end. */
void core_place_mark(const struct preload_thread *place, enum preload_family_name family)
{
    size_t at = (size_t)((const char *)place - families[family].places) /
                families[family].place_bytes;
    uint64_t *word = &header->families[family].fresh[at / 64], bit = UINT64_C(1) << at % 64;
    if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
        __atomic_fetch_or(word, bit, __ATOMIC_RELEASE);
}

void core_settle(void)
{
    struct core_self *self = &core_self;
    for (int i = 0; i < PRELOAD_FAMILIES; i++)
        if (families[i].places && !self->busy && !core_sandboxed) {
            self->busy = true;
            const struct preload_thread *place = core_place(self, (enum preload_family_name)i);
            if (place)
                core_place_mark(place, (enum preload_family_name)i);
            self->busy = false;
        }
    core_sandboxed = true;
}

static bool is_known(const struct preload_known *known, const struct preload_registers *at)
{
    for (unsigned i = 0; i < PRELOAD_REGISTERS; i++)
        if ((known->registers >> i & 1) && known->at.reg[i] != at->reg[i])
            return false;
    /* In the order of the walk: each slot lies in a frame that the ones before have shown to
     * be there, so that reading it is safe. */
    uint32_t slots = known->slots < PRELOAD_KNOWN_SLOTS ? known->slots : PRELOAD_KNOWN_SLOTS;
    for (uint32_t i = 0; i < slots; i++) {
        uint64_t value;
        __builtin_memcpy(&value, (const char *)at->sp + known->offsets[i], sizeof(value));
        if (value != known->values[i])
            return false;
    }
    return true;
}

static uint32_t stack_recognise(struct preload_thread *place, const struct preload_registers *at)
{
    uint64_t tag = preload_known_tag(at->pc, at->sp);
    unsigned first = preload_known_set(tag);
    for (unsigned i = first; i < first + PRELOAD_KNOWN_WAYS; i++) {
        if (LIKELY(__atomic_load_n(&place->known_tags[i], __ATOMIC_RELAXED) != tag))
            continue;
        const struct preload_known *known = &place->known[i];
        uint32_t sequence = __atomic_load_n(&known->sequence, __ATOMIC_ACQUIRE);
        uint32_t number = known->number;
        if ((sequence & 1) || number == 0 || known->at.pc != at->pc || known->at.sp != at->sp ||
            !is_known(known, at))
            continue;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&known->sequence, __ATOMIC_RELAXED) == sequence)
            return number;
    }
    return 0;
}

/* The kernel reads the set of signals before it finds that there is no such operation. Unlike
 * process_vm_readv() this is a call that no sandbox forbids. */
static bool is_readable(uint64_t address)
{
    if (core_sandboxed)
        return false;
    return core_raw(SYS_rt_sigprocmask, -1, (long)address, 0, 8) != -EFAULT;
}

/* How much lies above sp: up to where the stack begins if that is near, never into a hole. */
static uint32_t slice_bytes(uint64_t sp)
{
    uint64_t thread = (uint64_t)__builtin_thread_pointer();
    uint64_t main_top = &main_stack_end ? (uint64_t)main_stack_end + 64 : 0;
    uint64_t end = sp + PRELOAD_SLICE_BYTES;
    if (thread > sp && thread < end)
        end = thread; /* a thread's own block stands at the beginning of its stack */
    if (main_top > sp && main_top < end)
        end = main_top;
    for (uint64_t page = (sp | (PAGE - 1)) + 1; page < end; page += PAGE)
        if (!is_readable(page)) {
            end = page;
            break;
        }
    return (uint32_t)(end - sp) & ~7u;
}

/* What a stack is to leave of the ring to others; all: it is not told. Until whyslow has read one
 * it is not recognised: it is told each time, since a short program is over by then. But ways of
 * one depth, which look alike here, are not to fill what others need. */
static uint32_t ring_kept(struct core_home *home, const struct preload_thread *place,
                          const struct preload_registers *at)
{
    uint32_t limit = place->ring_limit;
    uint64_t tag = preload_known_tag(at->pc, at->sp);
    uint64_t tail = __atomic_load_n(&place->tail, __ATOMIC_RELAXED);
    struct core_recent *recent = &home->recent[0];
    while (recent < &home->recent[CORE_RECENT - 1] && recent->tag != tag)
        recent++;
    if (recent->tag != tag)
        recent = &home->recent[home->recent_next++ % CORE_RECENT];
    if (recent->tag != tag || recent->tail != tail)
        *recent = (struct core_recent){.tag = tag, .tail = tail};
    if (recent->told++ < TOLD_MAX)
        return limit / 4;
    /* All has been read, and it is still not known: another one of the same depth may have come,
     * or it cannot be taught. It is told again, more and more rarely. */
    if (tail != place->head)
        return limit / 2;
    recent->passed++;
    return (recent->passed & (recent->passed - 1)) != 0 ? limit : limit / 4;
}

static uint32_t stack_tell(struct core_home *home, struct preload_thread *place,
                           const struct preload_registers *at, uint64_t time_ns)
{
    uint32_t kept = ring_kept(home, place, at);
    uint32_t slice = kept == place->ring_limit ? 0 : slice_bytes(at->sp);
    uint32_t bytes = (uint32_t)sizeof(struct preload_stack) + slice;
    struct preload_stack *stack = slice > 0 ? (void *)core_ring_room(place, bytes, kept) : NULL;
    if (!stack) {
        place->stacks_skipped++;
        return 0;
    }
    stack->record = (struct preload_record){.kind = PRELOAD_STACK, .bytes = bytes};
    stack->number = ++home->stacks;
    stack->slice_bytes = slice;
    stack->time_ns = time_ns;
    stack->at = *at;
    /* Not with memcpy(): a sanitizer's would object to reading a stack as a whole. */
    volatile uint64_t *to = (void *)(stack + 1);
    const volatile uint64_t *from = (const void *)at->sp;
    for (uint32_t i = 0; i < slice / 8; i++)
        to[i] = from[i];
    core_ring_put(place, bytes);
    return home->stacks;
}

uint32_t core_stack(struct core_self *self, enum preload_family_name family,
                    struct preload_thread *place, const struct preload_registers *at,
                    uint64_t time_ns)
{
    uint32_t number = stack_recognise(place, at);
    if (UNLIKELY(number == 0)) {
        number = stack_tell(&self->homes[family], place, at, time_ns);
        core_place_mark(place, family);
        return number;
    }
    place->recognised++;
    return number;
}

static uint32_t stack_of(struct core_self *self, struct preload_thread *place,
                         const struct preload_registers *at, uint64_t time_ns)
{
    return core_stack(self, PRELOAD_LOCK_HOOKS, place, at, time_ns);
}

static void ring_wait(struct preload_thread *place, const struct preload_wait *wait)
{
    struct preload_wait *to = (void *)core_ring_room(place, sizeof(*wait), 0);
    if (!to) {
        place->dropped++;
        if (wait->record.kind == PRELOAD_WAIT)
            place->dropped_ns += wait->end_ns - wait->start_ns;
        return;
    }
    *to = *wait;
    core_ring_put(place, sizeof(*wait));
}

static bool row_is(const struct preload_row *row, const struct preload_wait *wait)
{
    return row->object == wait->object && row->stack == wait->stack && row->other == wait->other &&
           row->kind == wait->record.kind && row->lock == wait->record.lock &&
           row->flags == wait->record.flags;
}

static void row_begin(struct preload_row *row)
{
    __atomic_store_n(&row->sequence, row->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void row_end(struct preload_row *row)
{
    __atomic_store_n(&row->sequence, row->sequence + 1, __ATOMIC_RELEASE);
}

/* Compilers are not to make a memset() of it. */
static void row_make(struct preload_row *row, const struct preload_wait *wait)
{
    row->kind = wait->record.kind;
    row->lock = wait->record.lock;
    row->flags = wait->record.flags;
    row->other = wait->other;
    row->stack = wait->stack;
    row->object = wait->object;
    row->count = row->total_ns = row->max_ns = 0;
    row->first_ns = wait->start_ns;
    __atomic_store_n(&row->taken, 0, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < PRELOAD_BUCKETS; i++)
        *(volatile uint32_t *)&row->buckets[i] = 0;
}

static void row_add(struct preload_row *row, const struct preload_wait *wait)
{
    uint64_t ns = wait->end_ns - wait->start_ns;
    row->count++;
    row->total_ns += ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    row->last_ns = wait->end_ns;
    row->buckets[preload_bucket(ns)]++;
}

static struct preload_row *row_find(struct preload_thread *place, const struct preload_wait *wait,
                                    uint64_t tag)
{
    for (unsigned i = 0; i < PRELOAD_ROWS; i++)
        if (UNLIKELY(place->row_tags[i] == tag) && row_is(&place->rows[i], wait))
            return &place->rows[i];
    return NULL;
}

/* One that whyslow has read to its end; NULL: of a few there is none. */
static struct preload_row *row_free(struct core_self *self, struct preload_thread *place,
                                    const struct preload_wait *wait, uint64_t tag)
{
    enum { TRIES = 4 };
    for (unsigned i = 0; i < TRIES; i++) {
        unsigned at = self->row_next++ % PRELOAD_ROWS;
        struct preload_row *row = &place->rows[at];
        if (row->count != __atomic_load_n(&row->taken, __ATOMIC_ACQUIRE))
            continue;
        row_begin(row);
        row_make(row, wait);
        row_end(row);
        place->row_tags[at] = tag;
        return row;
    }
    return NULL;
}

static bool rows_wait(struct core_self *self, struct preload_thread *place,
                      const struct preload_wait *wait)
{
    uint64_t tag = (wait->object ^ (uint64_t)wait->stack << 32 ^ (uint64_t)wait->other << 42 ^
                    wait->record.kind) *
                       UINT64_C(0x9e3779b97f4a7c15) |
                   1;
    struct preload_row *row = row_find(place, wait, tag);
    if (!row)
        row = row_free(self, place, wait, tag);
    if (!row)
        return false;
    row_begin(row);
    row_add(row, wait);
    row_end(row);
    __atomic_store_n(&place->added, place->added + 1, __ATOMIC_RELEASE);
    return true;
}

/* Waits that are worth telling one by one are few. Long holds may be many: they must leave room. */
static bool is_single(const struct preload_thread *place, const struct preload_wait *wait)
{
    uint64_t ns = wait->end_ns - wait->start_ns;
    if (wait->record.kind == PRELOAD_WAIT)
        return ns >= PRELOAD_LONG_NS;
    return ns >= PRELOAD_HOLD_LONG_NS &&
           ring_waiting(place, __atomic_load_n(&place->tail, __ATOMIC_RELAXED)) <
               place->ring_limit / 2;
}

static void wait_put(struct core_self *self, struct preload_thread *place,
                     struct preload_wait *wait)
{
    bool single = is_single(place, wait);
    if (!single && wait->record.kind == PRELOAD_HOLD &&
        wait->end_ns - wait->start_ns >= PRELOAD_HOLD_LONG_NS)
        wait->record.flags |= PRELOAD_SUMMED;
    if (single || !rows_wait(self, place, wait))
        ring_wait(place, wait);
    core_place_mark(place, PRELOAD_LOCK_HOOKS);
}

bool core_enter(struct core_self *self, bool *on)
{
    if (self->busy)
        return false;
    if (UNLIKELY(__atomic_load_n(&header->over, __ATOMIC_RELAXED))) {
        *on = false;
        return false;
    }
    self->busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

void core_leave(struct core_self *self)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->busy = false;
}

static bool enter(struct core_self *self)
{
    return core_enter(self, &core_on);
}

static void leave(struct core_self *self)
{
    core_leave(self);
}

void core_wait_begin(struct core_wait *wait, enum preload_lock lock, const void *object,
                     uint32_t other, const struct preload_registers *registers)
{
    struct core_self *self = &core_self;
    *wait = (struct core_wait){.object = object, .other = other, .lock = (uint8_t)lock};
    if (!enter(self))
        return;
    struct preload_thread *place = place_of(self);
    if (place) {
        uint64_t start_ns = core_now_ns();
        wait->stack = stack_of(self, place, registers, start_ns);
        wait->start_ns = start_ns;
        place->open_object = (uint64_t)object;
        place->open_lock = lock;
        place->open_other = other;
        place->open_stack = wait->stack;
        __atomic_store_n(&place->open_start_ns, start_ns, __ATOMIC_RELEASE);
    }
    leave(self);
}

struct preload_thread *core_place_still(const struct core_self *self,
                                        enum preload_family_name family)
{
    const struct core_home *home = &self->homes[family];
    return home->generation == __atomic_load_n(generation_page, __ATOMIC_ACQUIRE) ? home->place
                                                                                  : NULL;
}

static struct preload_thread *place_still(const struct core_self *self)
{
    return core_place_still(self, PRELOAD_LOCK_HOOKS);
}

void core_wait_forget(const struct core_wait *wait)
{
    struct preload_thread *place = place_still(&core_self);
    if (wait->start_ns > 0 && place)
        __atomic_store_n(&place->open_start_ns, 0, __ATOMIC_RELAXED);
}

void core_wait_end(struct core_wait *wait, unsigned flags)
{
    struct core_self *self = &core_self;
    if (wait->start_ns == 0 || !enter(self))
        return;
    struct preload_thread *place = place_still(self);
    if (place) {
        wait->end_ns = core_now_ns();
        struct preload_wait record = {
            .record = {PRELOAD_WAIT, wait->lock, (uint8_t)flags, sizeof(record)},
            .object = (uint64_t)wait->object,
            .start_ns = wait->start_ns,
            .end_ns = wait->end_ns,
            .other = wait->other,
            .stack = wait->stack,
        };
        wait_put(self, place, &record);
        __atomic_store_n(&place->open_start_ns, 0, __ATOMIC_RELAXED);
    }
    leave(self);
}

void core_hold_begin(const void *lock, enum preload_lock kind, uint64_t since_ns, unsigned flags)
{
    struct core_self *self = &core_self;
    if (!enter(self))
        return;
    /* Holds are told from a place; taking one here also settles whose holds these are. */
    if (place_of(self)) {
        uint32_t at = 0;
        while (at < self->held_count && self->held[at].lock != lock)
            at++;
        if (at == CORE_HELD_MAX)
            at = self->acquisitions % CORE_HELD_MAX; /* one that is never released here */
        else if (at == self->held_count)
            self->held_count++;
        self->held[at] = (struct core_held){
            .lock = lock,
            .since_ns = since_ns > 0 ? since_ns : core_now_ns(),
            .kind = (uint8_t)kind,
            .flags = (uint8_t)flags,
        };
    }
    leave(self);
}

bool core_hold_take(const void *lock, struct core_hold *ret)
{
    struct core_self *self = &core_self;
    bool found = false;
    if (!enter(self))
        return false;
    for (uint32_t i = 0; i < self->held_count && place_still(self); i++) {
        if (self->held[i].lock != lock)
            continue;
        ret->held = self->held[i];
        ret->end_ns = core_now_ns();
        self->held[i] = self->held[--self->held_count];
        found = true;
        break;
    }
    leave(self);
    return found;
}

static void hold_put(struct core_self *self, struct preload_thread *place,
                     const struct core_hold *hold, uint32_t stack)
{
    struct preload_wait record = {
        .record = {PRELOAD_HOLD, hold->held.kind, hold->held.flags, sizeof(record)},
        .object = (uint64_t)hold->held.lock,
        .start_ns = hold->held.since_ns,
        .end_ns = hold->end_ns,
        .stack = stack,
    };
    wait_put(self, place, &record);
}

void core_hold_end(const struct core_hold *hold, const struct preload_registers *registers)
{
    struct core_self *self = &core_self;
    if (!enter(self))
        return;
    struct preload_thread *place = place_still(self);
    if (place)
        hold_put(self, place, hold, stack_of(self, place, registers, hold->end_ns));
    leave(self);
}

void core_hold_end_at(const struct core_hold *hold, uint32_t stack)
{
    struct core_self *self = &core_self;
    if (!enter(self))
        return;
    struct preload_thread *place = place_still(self);
    if (place)
        hold_put(self, place, hold, stack);
    leave(self);
}

static uint64_t object_hash(const void *object)
{
    return (uint64_t)object * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t *ringer_of(uint64_t hash)
{
    return &ringers[hash >> 54];
}

void core_ring(const void *object)
{
    uint64_t hash = object_hash(object);
    __atomic_store_n(ringer_of(hash), hash << 32 | own_tid(), __ATOMIC_RELAXED);
}

void core_ring_forget(const void *object)
{
    uint64_t hash = object_hash(object);
    uint64_t *cell = ringer_of(hash);
    if (__atomic_load_n(cell, __ATOMIC_RELAXED) >> 32 == (hash & UINT32_MAX))
        __atomic_store_n(cell, 0, __ATOMIC_RELAXED);
}

uint32_t core_ring_by(const void *object)
{
    uint64_t hash = object_hash(object);
    uint64_t cell = __atomic_load_n(ringer_of(hash), __ATOMIC_RELAXED);
    return cell >> 32 == (hash & UINT32_MAX) ? (uint32_t)cell : 0;
}

/* A target whose memory is limited gets fewer places, so that the limit stays its own. */
static uint32_t places_wanted(size_t place_bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return PRELOAD_THREADS_MAX;
    size_t fit = limit.rlim_cur / 32 / place_bytes;
    return fit < 4 ? 4 : fit > PRELOAD_THREADS_MAX ? PRELOAD_THREADS_MAX : (uint32_t)fit;
}

static char *part_map(int fd, uint64_t offset, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    return memory == MAP_FAILED ? NULL : memory;
}

static void family_map(int fd, enum preload_family_name family, uint64_t offset, size_t before,
                       size_t place_bytes)
{
    if (!header->families[family].on)
        return;
    uint32_t count = places_wanted(place_bytes);
    char *memory = part_map(fd, offset, before + count * place_bytes);
    if (!memory)
        return;
    families[family].places = memory + before;
    families[family].place_bytes = place_bytes;
    families[family].place_count = count;
    if (family == PRELOAD_IO_HOOKS)
        core_io.objects = (void *)memory;
}

static bool memory_map(const char *path)
{
    struct stat stat = {0};
    int fd = (int)core_raw(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    /* The name could be another file's by now: only one that is as large as ours is mapped. */
    bool fits = core_raw(SYS_fstat, fd, (long)&stat, 0, 0) == 0 &&
                (uint64_t)stat.st_size == PRELOAD_BYTES;
    header = fits ? (void *)part_map(fd, 0, PRELOAD_HEADER_BYTES) : NULL;
    if (header && header->magic == PRELOAD_MAGIC && header->version == PRELOAD_VERSION &&
        header->bytes == PRELOAD_BYTES) {
        family_map(fd, PRELOAD_LOCK_HOOKS, PRELOAD_HEADER_BYTES, 0, sizeof(struct preload_thread));
        family_map(fd, PRELOAD_IO_HOOKS, PRELOAD_IO_OFFSET, sizeof(struct preload_io_objects),
                   sizeof(struct preload_io_thread));
    }
    core_raw(SYS_close, fd, 0, 0, 0);
    return families[PRELOAD_LOCK_HOOKS].places || families[PRELOAD_IO_HOOKS].places;
}

static bool generation_make(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    /* Large pages of the machine round up; Linux before 4.14 cannot do it. */
    if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
        munmap(page, PAGE);
        return false;
    }
    generation_page = page;
    generation_now();
    return true;
}

__attribute__((constructor(101))) static void core_begin(void)
{
    int saved = errno;
    const char *path = find_environment(PRELOAD_VARIABLE);
    /* Owners are read where glibc keeps them: with any other libc hooks only pass on. */
    if (hooks_resolve() && gnu_get_libc_version && path && memory_map(path) && generation_make()) {
        core_on = families[PRELOAD_LOCK_HOOKS].places != NULL;
        core_io_on = families[PRELOAD_IO_HOOKS].places != NULL;
    }
    errno = saved;
}
