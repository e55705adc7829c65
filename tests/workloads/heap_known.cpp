/* The C++ part of heap_known.c: every form of new and delete, what exceptions leave behind, and
 * objects that end with their thread. With REPLACED the program has an operator new of its own.
 *
 *     heap-known-cpp CASE */
#include "heap_account.h"

#include <exception>
#include <new>
#include <pthread.h>

#define KNOWN __attribute__((noinline))

namespace {

using std::align_val_t;
using std::nothrow;
constexpr align_val_t wide{128};

void escape(void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory"); // or the compiler leaves out the pair
}

#ifdef REPLACED
} // namespace
void *operator new(size_t size)
{
    void *memory = malloc(size);
    escape(memory);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}
void operator delete(void *memory) noexcept
{
    free(memory);
}
void operator delete(void *memory, size_t) noexcept
{
    free(memory);
}
namespace {
#endif

typedef void (*take_fn)(struct piece *piece, size_t size);
typedef void (*give_fn)(void *memory, size_t size);

#define TAKE(name, call)                                                                           \
    KNOWN void known_##name(struct piece *piece, size_t size)                                      \
    {                                                                                              \
        void *memory = call;                                                                       \
        escape(memory);                                                                            \
        piece_took(piece, SITE_##name, memory, size);                                              \
    }
TAKE(new_plain, operator new(size))
TAKE(new_array, operator new[](size))
TAKE(new_nothrow, operator new(size, nothrow))
TAKE(new_array_nothrow, operator new[](size, nothrow))
TAKE(new_aligned, operator new(size, wide))
TAKE(new_array_aligned, operator new[](size, wide))
TAKE(new_aligned_nothrow, operator new(size, wide, nothrow))
TAKE(new_array_aligned_nothrow, operator new[](size, wide, nothrow))
TAKE(thrower, operator new(size))
TAKE(catcher, new char[size])
TAKE(local, new char[size])

/* For each form of new those of delete that go with it. */
const struct {
    take_fn take;
    give_fn give[3];
} forms[] = {
    {known_new_plain,
     {[](void *p, size_t) { operator delete(p); }, [](void *p, size_t n) { operator delete(p, n); },
      [](void *p, size_t) { operator delete(p, nothrow); }}},
    {known_new_array,
     {[](void *p, size_t) { operator delete[](p); },
      [](void *p, size_t n) { operator delete[](p, n); },
      [](void *p, size_t) { operator delete[](p, nothrow); }}},
    {known_new_nothrow,
     {[](void *p, size_t) { operator delete(p, nothrow); },
      [](void *p, size_t) { operator delete(p); },
      [](void *p, size_t n) { operator delete(p, n); }}},
    {known_new_array_nothrow,
     {[](void *p, size_t) { operator delete[](p, nothrow); },
      [](void *p, size_t) { operator delete[](p); },
      [](void *p, size_t n) { operator delete[](p, n); }}},
    {known_new_aligned,
     {[](void *p, size_t) { operator delete(p, wide); },
      [](void *p, size_t n) { operator delete(p, n, wide); },
      [](void *p, size_t) { operator delete(p, wide, nothrow); }}},
    {known_new_array_aligned,
     {[](void *p, size_t) { operator delete[](p, wide); },
      [](void *p, size_t n) { operator delete[](p, n, wide); },
      [](void *p, size_t) { operator delete[](p, wide, nothrow); }}},
    {known_new_aligned_nothrow,
     {[](void *p, size_t) { operator delete(p, wide, nothrow); },
      [](void *p, size_t) { operator delete(p, wide); },
      [](void *p, size_t n) { operator delete(p, n, wide); }}},
    {known_new_array_aligned_nothrow,
     {[](void *p, size_t) { operator delete[](p, wide, nothrow); },
      [](void *p, size_t) { operator delete[](p, wide); },
      [](void *p, size_t n) { operator delete[](p, n, wide); }}},
};

void give_back(struct piece *piece, give_fn give)
{
    void *memory = piece->memory;
    size_t size = piece->size;
    piece_gone(piece);
    give(memory, size);
}

void case_forms()
{
    static struct piece pieces[sizeof forms / sizeof forms[0]][60];
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++)
        for (size_t i = 0; i < 60; i++) {
            forms[form].take(&pieces[form][i], 1 + form * 17 + i * 23);
            if ((uintptr_t)pieces[form][i].memory % (form >= 4 ? 128 : 16) != 0)
                abort();
        }
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++)
        for (size_t i = 0; i < 60; i++)
            if (i % 10 != 0)
                give_back(&pieces[form][i], forms[form].give[i % 3]);
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++)
        for (size_t i = 0; i < 60; i++) {
            struct piece piece;
            forms[form].take(&piece, 8 + i);
            give_back(&piece, forms[form].give[i % 3]);
        }
}

void delete_array(void *memory, size_t)
{
    delete[] static_cast<char *>(memory);
}

struct guard {
    struct piece piece;
    ~guard() { give_back(&piece, [](void *p, size_t) { operator delete(p); }); }
};

/* Memory at every level, given back by whoever unwinds the stack. */
KNOWN int fall(int depth)
{
    guard here;
    known_thrower(&here.piece, 40 + (size_t)depth);
    if (depth == 0) {
        account_last = 0; // the exception itself is allocated, too
        throw depth;
    }
    int r = fall(depth - 1);
    escape(&here);
    return r;
}

void case_exceptions()
{
    account_by_hand = 1;
    for (int i = 0; i < 300; i++) {
        struct piece piece;
        try {
            fall(i % 30);
        } catch (int) {
            known_catcher(&piece, 20); // before the exception is freed, and after
            give_back(&piece, delete_array);
        }
        account_last = 0;
        known_new_plain(&piece, 10);
    }
}

int handlers;
void new_handler()
{
    struct piece piece;
    known_catcher(&piece, 64); // in the midst of operator new
    if (handlers++ % 2)
        give_back(&piece, delete_array);
    if (handlers % 4 == 0)
        std::set_new_handler(nullptr);
}

/* operator new that fails throws through whoever stands between. */
void case_bad_alloc()
{
    account_by_hand = 1;
    volatile size_t huge = SIZE_MAX / 2;
    int caught = 0;
    for (int i = 0; i < 100; i++) {
        std::set_new_handler(i % 2 ? new_handler : nullptr);
        try {
            escape(operator new(huge));
        } catch (const std::bad_alloc &) {
            caught++;
        }
        if (operator new(huge, nothrow))
            abort();
        account_last = 0;
        struct piece piece;
        known_new_array(&piece, 33);
        if (i % 3)
            give_back(&piece, delete_array);
        known_thrower(&piece, 44);
    }
    if (caught != 100)
        abort();
}

struct owner {
    struct piece piece;
    owner() { known_local(&piece, 256); }
    ~owner()
    {
        struct piece late;
        give_back(&piece, delete_array);
        known_local(&late, 128);
        give_back(&late, delete_array);
        known_local(&late, 64);
    }
};
thread_local owner mine;

void *uses_mine(void *unused)
{
    escape(&mine);
    account_last = 0;
    return unused;
}

void case_thread_local()
{
    account_by_hand = 1;
    for (int i = 0; i < 100; i++) {
        pthread_t threads[4];
        for (auto &thread : threads)
            if (pthread_create(&thread, nullptr, uses_mine, nullptr) != 0)
                abort();
        for (auto &thread : threads)
            pthread_join(thread, nullptr);
    }
}

const struct {
    const char *name;
    void (*run)();
} cases[] = {
    {"forms", case_forms},
    {"exceptions", case_exceptions},
    {"bad-alloc", case_bad_alloc},
    {"thread-local", case_thread_local},
};

} // namespace

int main(int argc, char **argv)
{
    for (const auto &row : cases)
        if (argc > 1 && strcmp(argv[1], row.name) == 0) {
            row.run();
            account_tell(row.name);
            return 0;
        }
    return 2;
}
