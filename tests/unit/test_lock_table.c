/* Locks put together from rows of waits and holds: what they are called, of what kind they are,
 * how long who waited, and who held them. */
#include "unit.h"

#include "analyze/lock_table.h"
#include "made_waits.h"

#include <errno.h>
#include <math.h>

enum { FUNCTIONS_MAX = 64 };

struct world {
    struct made_waits *made;
    struct arena arena;
    struct lock_table table;
    struct image_info images[4];
    struct profile_function functions[FUNCTIONS_MAX];
    struct profile_place places[FUNCTIONS_MAX];
    struct profile_frame frames[FUNCTIONS_MAX];
    struct profile_stack stacks[FUNCTIONS_MAX];
    uint32_t threads[3];
};

/* Each function is one frame with one place; image 1 is the program, 2 libc, 3 the kernel. */
static void world_begin(struct world *world)
{
    *world = (struct world){.made = made_waits_new(1000)};
    struct profile *profile = &world->made->waits.profile;
    uint32_t process = made_waits_process(world->made, 0);
    for (int i = 0; i < 3; i++)
        world->threads[i] = made_waits_thread(world->made, process, 0, 1000);
    static const char *const paths[] = {"", "/opt/app", "/lib/x86_64-linux-gnu/libc.so.6",
                                        "[kernel]"};
    for (int i = 0; i < 4; i++)
        world->images[i] = (struct image_info){.path = str_from(paths[i]), .build_id = STR("")};
    profile->images = world->images;
    profile->image_count = 4;
    profile->functions = world->functions;
    profile->places = world->places;
    profile->frames = world->frames;
    profile->stacks = world->stacks;
    profile->function_count = profile->place_count = 1;
    profile->frame_count = profile->stack_count = 1;
}

static void world_end(struct world *world)
{
    arena_deinit(&world->arena);
    free(world->made);
}

static uint32_t push(struct world *world, uint32_t parent, const char *name, uint32_t image,
                     uint32_t line)
{
    struct profile *profile = &world->made->waits.profile;
    uint32_t id = (uint32_t)profile->stack_count;
    assert_true(id < FUNCTIONS_MAX);
    struct str file = line ? STR("/src/app/queue.c") : STR("");
    bool unnamed = name[0] == '[';
    world->functions[id] = (struct profile_function){.name = str_from(name),
                                                     .linkage = unnamed ? STR("") : str_from(name),
                                                     .file = file,
                                                     .image = image,
                                                     .kernel = image == 3,
                                                     .unnamed = unnamed};
    world->places[id] = (struct profile_place){.function = id, .file = file, .line = line};
    world->frames[id] = (struct profile_frame){
        .kind = FRAME_USER, .image = image, .places = id, .place_count = 1};
    world->stacks[id] = (struct profile_stack){parent, id};
    profile->function_count = profile->place_count = id + 1;
    profile->frame_count = profile->stack_count = id + 1;
    return id;
}

static uint32_t object_add(struct world *world, enum object_kind kind, uint64_t key,
                           const char *name)
{
    uint32_t id = (uint32_t)world->made->waits.object_count++;
    world->made->objects[id] = (struct object_info){
        .kind = kind, .process = 1, .key = key, .name = str_from(name)};
    return id;
}

static uint32_t row_put(struct world *world, enum wait_kind kind, uint32_t thread, uint32_t stack,
                        uint32_t object, double ms, uint64_t count)
{
    struct wait_info info;
    memset(&info, 0, sizeof(info));
    info.kind = kind;
    info.thread = world->threads[thread];
    info.stack = stack;
    info.object = object;
    uint32_t row = made_waits_row(world->made, &info);
    for (uint64_t i = 0; i < count; i++)
        wait_tally_one(&world->made->rows[row].tally, i, made_ns(ms));
    return row;
}

static const struct lock_row *lock_of(const struct world *world, uint32_t row)
{
    uint32_t lock = world->table.of_wait[row];
    assert_true(lock > 0 && lock <= world->table.count);
    return &world->table.rows[lock - 1];
}

static void build(struct world *world)
{
    assert_int_equal(lock_table_build(&world->arena, &world->made->waits, NULL, &world->table), 0);
}

static void the_lock_that_was_waited_for_longest_is_first(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t main_ = push(&world, 0, "main", 1, 10);
    uint32_t push_ = push(&world, main_, "queue_push", 1, 41);
    uint32_t pop = push(&world, main_, "queue_pop", 1, 60);
    uint32_t lock_push = push(&world, push_, "___pthread_mutex_lock", 2, 0);
    uint32_t lock_pop = push(&world, pop, "___pthread_mutex_lock", 2, 0);
    uint32_t small = object_add(&world, OBJECT_FUTEX, 0x1000, "small_mutex");
    uint32_t large = object_add(&world, OBJECT_FUTEX, 0x2000, "");
    uint32_t a = row_put(&world, WAIT_BLOCKED, 0, lock_push, small, 1, 10);
    row_put(&world, WAIT_BLOCKED, 1, lock_pop, large, 4, 25);
    uint32_t b = row_put(&world, WAIT_BLOCKED, 0, lock_push, large, 2, 100);
    row_put(&world, WAIT_BLOCKED, 1, lock_push, large, 2, 50);
    build(&world);
    assert_int_equal(world.table.count, 2);
    const struct lock_row *first = &world.table.rows[0];
    assert_ptr_equal(lock_of(&world, b), first);
    assert_string_equal(first->name, "in queue_push (queue.c:41)");
    assert_false(first->named);
    assert_int_equal(first->kind, LOCK_MUTEX);
    assert_int_equal(first->object, large);
    assert_int_equal(first->threads, 2);
    assert_int_equal(first->waits.count, 175);
    assert_int_equal(first->waits.total_ns, made_ns(400));
    assert_int_equal(first->waits.max_ns, made_ns(4));
    assert_float_equal(first->mean_waiters, 0.4, 1e-9); /* 400 ms of 1 s */
    /* Waiters of one stack are one, whatever their thread; the longest first. */
    assert_int_equal(first->waiter_count, 2);
    assert_int_equal(first->waiters[0].stack, lock_push);
    assert_int_equal(first->waiters[0].ns, made_ns(300));
    assert_int_equal(first->waiters[0].count, 150);
    assert_int_equal(first->waiters[1].ns, made_ns(100));
    /* Nothing is known of its holders. */
    assert_int_equal(first->holders_are, LOCK_HOLDERS_NONE);
    assert_int_equal(first->holds.count, 0);
    assert_true(isnan(first->off_cpu_hold_pct));
    const struct lock_row *second = lock_of(&world, a);
    assert_string_equal(second->name, "small_mutex");
    assert_true(second->named);
    assert_ptr_equal(second, &world.table.rows[1]);
    world_end(&world);
}

static void holds_say_how_long_and_where_it_was_held(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t main_ = push(&world, 0, "main", 1, 10);
    uint32_t unlock = push(&world, main_, "___pthread_mutex_unlock", 2, 0);
    uint32_t lock = push(&world, main_, "___pthread_mutex_lock", 2, 0);
    uint32_t mutex = object_add(&world, OBJECT_FUTEX, 0x1000, "m");
    uint32_t wait = row_put(&world, WAIT_BLOCKED, 0, lock, mutex, 1, 10);
    world.made->rows[wait].info.waker_stack = unlock;
    world.made->rows[wait].tally.owned_ns = made_ns(8);
    world.made->rows[wait].tally.owner_off_ns = made_ns(2);
    build(&world);
    const struct lock_row *row = &world.table.rows[0];
    assert_int_equal(row->holders_are, LOCK_HOLDERS_WAKER);
    assert_int_equal(row->holders[0].stack, unlock);
    assert_int_equal(row->holders[0].ns, made_ns(10));
    assert_float_equal(row->off_cpu_hold_pct, 25, 1e-9);
    /* With holds these count, and not what the waits tell of the owner. */
    uint32_t hold = row_put(&world, WAIT_HOLD, 1, main_, mutex, 5, 4);
    build(&world);
    assert_float_equal(world.table.rows[0].off_cpu_hold_pct, 25, 1e-9); /* not known of the hold */
    world.made->rows[hold].tally.owned_ns = made_ns(20);
    world.made->rows[hold].tally.owner_off_ns = made_ns(15);
    build(&world);
    row = &world.table.rows[0];
    assert_int_equal(world.table.count, 1);
    assert_int_equal(row->waits.count, 10);
    assert_int_equal(row->holds.count, 4);
    assert_int_equal(row->holds.total_ns, made_ns(20));
    assert_int_equal(row->holders_are, LOCK_HOLDERS_HELD);
    assert_int_equal(row->holders[0].stack, main_);
    assert_float_equal(row->off_cpu_hold_pct, 75, 1e-9);
    world_end(&world);
}

static void a_holder_nobody_saw_releasing_is_where_it_slept_meanwhile(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t main_ = push(&world, 0, "main", 1, 10);
    uint32_t lock = push(&world, main_, "___pthread_mutex_lock", 2, 0);
    uint32_t unlock = push(&world, main_, "___pthread_mutex_unlock", 2, 0);
    uint32_t nap = push(&world, main_, "nap_under_lock", 1, 20);
    uint32_t other = push(&world, main_, "nap_elsewhere", 1, 30);
    uint32_t mutex = object_add(&world, OBJECT_FUTEX, 0x1000, "m");
    uint32_t wait = row_put(&world, WAIT_BLOCKED, 0, lock, mutex, 100, 0);
    world.made->rows[wait].info.waker_thread = world.threads[1];
    made_waits_event(world.made, wait, 100, 200, 200);
    uint32_t naps[] = {row_put(&world, WAIT_BLOCKED, 1, other, 0, 1, 0),
                       row_put(&world, WAIT_BLOCKED, 1, nap, 0, 1, 0),
                       row_put(&world, WAIT_BLOCKED, 2, nap, 0, 1, 0)};
    made_waits_event(world.made, naps[0], 10, 90, 90);
    made_waits_event(world.made, naps[0], 95, 105, 105); /* 5 ms of it while the other waits */
    made_waits_event(world.made, naps[1], 110, 190, 190);
    made_waits_event(world.made, naps[0], 200, 300, 300);
    made_waits_event(world.made, naps[2], 100, 200, 200); /* a thread that has no part in it */
    build(&world);
    const struct lock_row *row = &world.table.rows[0];
    assert_int_equal(row->holders_are, LOCK_HOLDERS_MEANWHILE);
    assert_int_equal(row->holder_count, 2);
    assert_int_equal(row->holders[0].stack, nap);
    assert_int_equal(row->holders[0].ns, made_ns(80));
    assert_int_equal(row->holders[1].stack, other);
    assert_int_equal(row->holders[1].ns, made_ns(5));
    /* Holds that are a small part of the waits do not explain them; large ones do. */
    uint32_t hold = row_put(&world, WAIT_HOLD, 2, unlock, mutex, 1, 1);
    build(&world);
    assert_int_equal(world.table.rows[0].holders_are, LOCK_HOLDERS_MEANWHILE);
    assert_true(isnan(world.table.rows[0].off_cpu_hold_pct));
    wait_tally_one(&world.made->rows[hold].tally, 0, made_ns(60));
    build(&world);
    assert_int_equal(world.table.rows[0].holders_are, LOCK_HOLDERS_HELD);
    /* And a stack of whoever handed it over is better than where it was before. */
    world.made->rows[hold].tally.total_ns = 1;
    world.made->rows[wait].info.waker_stack = unlock;
    build(&world);
    assert_int_equal(world.table.rows[0].holders_are, LOCK_HOLDERS_WAKER);
    world_end(&world);
}

static void words_of_one_glibc_lock_are_one_and_mutexes_side_by_side_are_not(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t main_ = push(&world, 0, "main", 1, 10);
    uint32_t condition = push(&world, main_, "__pthread_cond_wait", 2, 0);
    uint32_t read_ = push(&world, main_, "___pthread_rwlock_rdlock", 2, 0);
    uint32_t write_ = push(&world, main_, "___pthread_rwlock_wrlock", 2, 0);
    uint32_t mutex = push(&world, main_, "std::sync::mutex::Mutex<T>::lock", 1, 0);
    uint32_t a = row_put(&world, WAIT_BLOCKED, 0, condition,
                         object_add(&world, OBJECT_FUTEX, 0x1028, ""), 1, 3);
    uint32_t b = row_put(&world, WAIT_BLOCKED, 0, condition,
                         object_add(&world, OBJECT_FUTEX, 0x102c, ""), 2, 3);
    uint32_t c = row_put(&world, WAIT_BLOCKED, 0, read_,
                         object_add(&world, OBJECT_FUTEX, 0x2008, ""), 1, 3);
    uint32_t d = row_put(&world, WAIT_BLOCKED, 0, write_,
                         object_add(&world, OBJECT_FUTEX, 0x200c, ""), 1, 3);
    uint32_t e = row_put(&world, WAIT_BLOCKED, 0, mutex,
                         object_add(&world, OBJECT_FUTEX, 0x3000, ""), 1, 3);
    uint32_t f = row_put(&world, WAIT_BLOCKED, 0, mutex,
                         object_add(&world, OBJECT_FUTEX, 0x3004, ""), 1, 3);
    build(&world);
    assert_int_equal(world.table.count, 4);
    assert_ptr_equal(lock_of(&world, a), lock_of(&world, b));
    assert_int_equal(lock_of(&world, a)->kind, LOCK_CONDITION);
    assert_int_equal(lock_of(&world, a)->waits.total_ns, made_ns(9));
    assert_int_equal(lock_of(&world, a)->waiter_count, 1);
    assert_ptr_equal(lock_of(&world, c), lock_of(&world, d));
    assert_int_equal(lock_of(&world, c)->kind, LOCK_RWLOCK);
    assert_ptr_not_equal(lock_of(&world, e), lock_of(&world, f));
    assert_int_equal(lock_of(&world, e)->kind, LOCK_MUTEX);
    world_end(&world);
}

static void kernel_locks_are_known_by_the_kernels_functions(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t main_ = push(&world, 0, "main", 1, 10);
    uint32_t mmap_ = push(&world, main_, "vm_mmap_pgoff", 3, 0);
    uint32_t down = push(&world, mmap_, "down_write_killable", 3, 0);
    uint32_t slow = push(&world, down, "rwsem_down_write_slowpath", 3, 0);
    uint32_t a = row_put(&world, WAIT_BLOCKED, 0, slow,
                         object_add(&world, OBJECT_KERNEL_LOCK, 0xffff888000001000, ""), 1, 3);
    uint32_t b = row_put(&world, WAIT_BLOCKED, 0, main_,
                         object_add(&world, OBJECT_KERNEL_LOCK, 0xffff888000002000, "mmap_lock"), 1,
                         1);
    uint32_t c = row_put(
        &world, WAIT_BLOCKED, 0, 0,
        object_add(&world, OBJECT_KERNEL_LOCK, 0xffff888000003000, "spinlock runqueues+0x40"), 1,
        1);
    build(&world);
    assert_int_equal(lock_of(&world, c)->kind, LOCK_KERNEL_SPIN);
    assert_string_equal(lock_of(&world, c)->name, "spinlock runqueues+0x40");
    assert_int_equal(lock_of(&world, a)->kind, LOCK_KERNEL_RWSEM);
    assert_string_equal(lock_of(&world, a)->name, "in vm_mmap_pgoff ([kernel])");
    assert_int_equal(lock_of(&world, b)->kind, LOCK_KERNEL_OTHER);
    assert_string_equal(lock_of(&world, b)->name, "mmap_lock");
    world_end(&world);
}

static void what_is_no_lock_is_left_out_and_counted(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t main_ = push(&world, 0, "main", 1, 10);
    uint32_t join = push(&world, main_, "__pthread_clockjoin_ex", 2, 0);
    uint32_t lock = push(&world, main_, "___pthread_mutex_lock", 2, 0);
    row_put(&world, WAIT_BLOCKED, 0, join, object_add(&world, OBJECT_FUTEX, 0x10, ""), 9, 2);
    row_put(&world, WAIT_BLOCKED, 0, main_, object_add(&world, OBJECT_PIPE, 7, "pipe:[7]"), 9, 2);
    row_put(&world, WAIT_RUNQ, 0, 0, 0, 9, 2);
    uint32_t idle = row_put(&world, WAIT_BLOCKED, 0, lock,
                            object_add(&world, OBJECT_FUTEX, 0x20, ""), 7, 1);
    build(&world);
    assert_int_equal(world.table.count, 1);
    assert_int_equal(world.table.left_out_count, 2);
    assert_int_equal(world.table.left_out_ns, made_ns(18));
    /* With classes these decide. */
    enum wait_class classes[8] = {WAIT_CLASS_IDLE, WAIT_CLASS_LOCK, WAIT_CLASS_NET, WAIT_CLASS_RUNQ,
                                  WAIT_CLASS_IDLE};
    assert_true(idle < 8);
    classes[idle] = WAIT_CLASS_IDLE;
    struct wait_classes given = {.rows = classes};
    assert_int_equal(lock_table_build(&world.arena, &world.made->waits, &given, &world.table), 0);
    assert_int_equal(world.table.count, 1);
    assert_int_equal(world.table.rows[0].waits.total_ns, made_ns(18));
    assert_int_equal(world.table.left_out_ns, made_ns(7));
    world_end(&world);
}

static void a_lock_without_a_stack_has_its_address_and_what_the_call_tells(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t plain = row_put(&world, WAIT_BLOCKED, 0, 0,
                             object_add(&world, OBJECT_FUTEX, 0x7f0000001234, ""), 1, 1);
    uint32_t two = row_put(&world, WAIT_BLOCKED, 0, 0, object_add(&world, OBJECT_FUTEX, 0x20, ""),
                           1, 1);
    uint32_t pi = row_put(&world, WAIT_BLOCKED, 0, 0, object_add(&world, OBJECT_FUTEX, 0x30, ""), 1,
                          1);
    world.made->rows[two].info.detail = WAIT_FUTEX_VALUE_2;
    world.made->rows[pi].info.detail = WAIT_FUTEX_PI;
    build(&world);
    assert_string_equal(lock_of(&world, plain)->name, "lock at 0x7f0000001234");
    assert_int_equal(lock_of(&world, plain)->kind, LOCK_UNKNOWN);
    assert_int_equal(lock_of(&world, two)->kind, LOCK_MUTEX);
    assert_int_equal(lock_of(&world, pi)->kind, LOCK_PI_MUTEX);
    assert_int_equal(lock_of(&world, pi)->waiter_count, 0);
    /* Nothing at all is an empty table. */
    world.made->waits.row_count = 1;
    build(&world);
    assert_int_equal(world.table.count, 0);
    world_end(&world);
}

static void sites(void **state)
{
    (void)state;
    static const struct {
        const char *functions[5]; /* from the innermost; the last is the site */
        enum lock_kind kind;
    } cases[] = {
        {{"__lll_lock_wait", "___pthread_mutex_lock", "work"}, LOCK_MUTEX},
        {{"[libc.so.6]", "pthread_mutex_lock", "work"}, LOCK_MUTEX},
        {{"__lll_lock_wait", "__pthread_mutex_cond_lock", "__pthread_cond_wait", "work"},
         LOCK_MUTEX},
        {{"__futex_abstimed_wait_cancelable64", "pthread_cond_timedwait@@GLIBC_2.3.2", "work"},
         LOCK_CONDITION},
        {{"do_futex_wait.constprop.0", "__new_sem_wait_slow64", "sem_wait@@GLIBC_2.34", "work"},
         LOCK_SEMAPHORE},
        {{"pthread_barrier_wait", "work"}, LOCK_BARRIER},
        {{"__lll_lock_wait_private", "malloc"}, LOCK_UNKNOWN},
        {{"syscall", "my_lock"}, LOCK_UNKNOWN},
        {{"__lll_lock_wait", "pthread_mutex_lock", "std::mutex::lock()",
          "std::unique_lock<std::mutex>::lock()", "Pool::run()"},
         LOCK_MUTEX},
        {{"syscall", "std::sys::pal::unix::futex::futex_wait",
          "std::sys::sync::rwlock::futex::RwLock::write_contended",
          "std::sync::poison::rwlock::RwLock<alloc::vec::Vec<u8>>::write", "app::work"},
         LOCK_RWLOCK_WRITE},
        {{"syscall", "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
          "<std::sync::poison::mutex::Mutex<u64>>::lock", "app::work"},
         LOCK_MUTEX},
        {{"syscall", "parking_lot_core::parking_lot::park",
          "parking_lot::raw_mutex::RawMutex::lock_slow", "app::work"},
         LOCK_MUTEX},
        {{"runtime.futex", "runtime.futexsleep", "runtime.lock2", "runtime.mallocgc"},
         LOCK_GO_RUNTIME},
        {{"pthread_cond_wait", "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
          "work"},
         LOCK_CONDITION},
        {{"__sanitizer::FutexWait(__sanitizer::atomic_uint32_t*, unsigned int)",
          "__sanitizer::Semaphore::Wait()", "__sanitizer::Mutex::Lock()", "work"},
         LOCK_MUTEX},
        {{"do_futex_wait.constprop.0", "sem_wait", "PGSemaphoreLock", "LWLockAcquire",
          "XLogInsert"},
         LOCK_SEMAPHORE},
        /* The user's own functions are no locks, however they are called. */
        {{"sem_manager_run"}, LOCK_UNKNOWN},
        {{"mutex_test"}, LOCK_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world world;
        world_begin(&world);
        uint32_t stack = push(&world, 0, "main", 1, 0), expected = 0;
        unsigned count = 0;
        while (count < 5 && cases[i].functions[count])
            count++;
        for (unsigned j = count; j-- > 0;) {
            stack = push(&world, stack, cases[i].functions[j], j == count - 1 ? 1 : 2, 0);
            expected = j == count - 1 ? stack : expected;
        }
        stack = push(&world, stack, "futex_wait_queue", 3, 0);
        stack = push(&world, stack, "schedule", 3, 0);
        struct lock_site site = lock_site_find(&world.made->waits.profile, stack, false);
        if (site.function != expected || site.kind != cases[i].kind)
            fail_msg("%s: in %.*s, %s", cases[i].functions[0],
                     STR_FMT(world.functions[site.function].name), lock_kind_name(site.kind));
        world_end(&world);
    }
}

static void a_holder_that_sleeps_is_known_by_its_own_function(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    const struct profile *profile = &world.made->waits.profile;
    uint32_t start = push(&world, 0, "start_thread", 2, 0);
    uint32_t flush = push(&world, start, "log_flush", 1, 41);
    uint32_t sleep_ = push(&world, flush, "__clock_nanosleep", 2, 0);
    uint32_t kernel = push(&world, sleep_, "hrtimer_nanosleep", 3, 0);
    uint32_t unlock = push(&world, flush, "___pthread_mutex_unlock", 2, 0);
    assert_int_equal(lock_holder_find(profile, kernel, false).function, flush);
    assert_int_equal(lock_holder_find(profile, unlock, false).function, flush);
    /* Of a stack that is all library, the innermost of it. */
    assert_int_equal(lock_holder_find(profile, start, false).function, start);
    assert_int_equal(lock_holder_find(profile, 0, false).function, 0);
    world_end(&world);
}

static void a_lock_is_chosen_by_id_or_by_a_name_that_is_its_own(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    uint32_t main_ = push(&world, 0, "main", 1, 10);
    row_put(&world, WAIT_BLOCKED, 0, main_, object_add(&world, OBJECT_FUTEX, 0x10, "one"), 1, 1);
    row_put(&world, WAIT_BLOCKED, 0, main_, object_add(&world, OBJECT_FUTEX, 0x20, "two"), 2, 1);
    row_put(&world, WAIT_BLOCKED, 0, main_, object_add(&world, OBJECT_FUTEX, 0x30, "two"), 3, 1);
    build(&world);
    struct why why = {0};
    size_t lock = 99;
    assert_int_equal(lock_table_choose(&world.table, "l1", &lock, &why), 0);
    assert_string_equal(world.table.rows[lock].name, "one");
    assert_int_equal(lock_table_choose(&world.table, "3", &lock, &why), 0);
    assert_int_equal(lock, 0);
    assert_int_equal(lock_table_choose(&world.table, "one", &lock, &why), 0);
    assert_int_equal(lock, 2);
    assert_int_equal(lock_table_choose(&world.table, "two", &lock, &why), -EINVAL);
    assert_non_null(strstr(why.what, "2 locks"));
    assert_int_equal(lock_table_choose(&world.table, "l4", &lock, &why), -ENOENT);
    assert_int_equal(lock_table_choose(&world.table, "three", &lock, &why), -ENOENT);
    assert_int_equal(lock_table_choose(&world.table, "", &lock, &why), -ENOENT);
    assert_int_equal(lock, 2);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lock_that_was_waited_for_longest_is_first),
        cmocka_unit_test(holds_say_how_long_and_where_it_was_held),
        cmocka_unit_test(a_holder_nobody_saw_releasing_is_where_it_slept_meanwhile),
        cmocka_unit_test(words_of_one_glibc_lock_are_one_and_mutexes_side_by_side_are_not),
        cmocka_unit_test(kernel_locks_are_known_by_the_kernels_functions),
        cmocka_unit_test(what_is_no_lock_is_left_out_and_counted),
        cmocka_unit_test(a_lock_without_a_stack_has_its_address_and_what_the_call_tells),
        {"the_site_of_a_lock_is_the_first_function_that_is_not_the_locks_own", sites, NULL, NULL,
         NULL},
        cmocka_unit_test(a_holder_that_sleeps_is_known_by_its_own_function),
        cmocka_unit_test(a_lock_is_chosen_by_id_or_by_a_name_that_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
