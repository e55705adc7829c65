// What operator new and delete promise, one line a promise: with our library loaded and without
// it, the output must be the same. Exceptions pass through the hooks, handlers are called.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace
{

void *reserve;
int handled;
void *volatile kept; // or the compiler leaves calls out

void say(const char *what, bool is)
{
    std::printf("%s: %s\n", what, is ? "yes" : "no");
}

void give_up()
{
    handled++;
    std::set_new_handler(nullptr);
}

// Frees what makes the second try succeed.
void give_back()
{
    handled++;
    std::free(reserve);
    reserve = nullptr;
    std::set_new_handler(nullptr);
}

template <class F> bool throws(F call)
{
    try {
        call();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

const std::size_t too_much = std::size_t(1) << 62;

void forms(std::size_t size)
{
    const std::align_val_t aligned{256};
    kept = ::operator new(size);
    ::operator delete(kept);
    kept = ::operator new(size);
    ::operator delete(kept, size);
    kept = ::operator new[](size);
    ::operator delete[](kept);
    kept = ::operator new[](size);
    ::operator delete[](kept, size);
    kept = ::operator new(size, std::nothrow);
    ::operator delete(kept, std::nothrow);
    kept = ::operator new[](size, std::nothrow);
    ::operator delete[](kept, std::nothrow);
    void *memory = ::operator new(size, aligned);
    if (reinterpret_cast<std::uintptr_t>(memory) % 256 != 0)
        say("new is aligned", false);
    ::operator delete(memory, aligned);
    kept = ::operator new(size, aligned);
    ::operator delete(kept, size, aligned);
    kept = ::operator new[](size, aligned);
    ::operator delete[](kept, aligned);
    kept = ::operator new[](size, aligned);
    ::operator delete[](kept, size, aligned);
    kept = ::operator new(size, aligned, std::nothrow);
    ::operator delete(kept, aligned, std::nothrow);
    kept = ::operator new[](size, aligned, std::nothrow);
    ::operator delete[](kept, aligned, std::nothrow);
}

void refusals()
{
    say("new throws", throws([] { kept = ::operator new(too_much); }));
    say("new[] throws", throws([] { kept = ::operator new[](too_much); }));
    say("aligned new throws",
        throws([] { kept = ::operator new (too_much, std::align_val_t{64}); }));
    say("new of an odd alignment throws",
        throws([] { kept = ::operator new (8, std::align_val_t{24}); }));
    say("nothrow new is empty", ::operator new(too_much, std::nothrow) == nullptr);
    say("nothrow aligned new is empty",
        ::operator new[](too_much, std::align_val_t{64}, std::nothrow) == nullptr);
    std::set_new_handler(give_up);
    say("new throws after its handler", throws([] { kept = ::operator new(too_much); }));
    std::printf("handled: %d\n", handled);
}

} // namespace

int main()
{
    for (std::size_t size = 0; size < 100000; size = size * 3 + 1)
        forms(size);
    ::operator delete(nullptr);
    refusals();
    // Counts go on after what was thrown: deeper and shallower than where it came from.
    for (int i = 0; i < 1000; i++)
        if (!throws([] { kept = ::operator new(too_much); }))
            say("new throws again", false);
    forms(10);
    reserve = std::malloc(100);
    std::set_new_handler(give_back);
    say("new throws when its handler is gone", throws([] { kept = ::operator new(too_much); }));
    std::printf("handled: %d, reserve %s\n", handled, reserve ? "there" : "gone");
    return 0;
}
