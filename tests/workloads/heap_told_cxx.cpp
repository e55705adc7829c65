// operator new and delete, in numbers that are known; and what happens where there is no memory.
#include <cstdint>
#include <cstdio>
#include <new>

#define KNOWN        __attribute__((noinline, noclone, used))
#define HELD(memory) __asm__ volatile("" : "+r"(memory) : : "memory")

struct alignas(64) wide {
    char bytes[192];
};

KNOWN static char *known_new(std::size_t size)
{
    char *memory = new char[size];
    HELD(memory);
    return memory;
}

KNOWN static wide *known_wide()
{
    wide *memory = new wide;
    HELD(memory);
    return memory;
}

KNOWN static int *known_one()
{
    int *memory = new int(1);
    HELD(memory);
    return memory;
}

KNOWN static void *known_nothrow(std::size_t size)
{
    void *memory = ::operator new(size, std::nothrow);
    HELD(memory);
    return memory;
}

KNOWN static int known_failing(std::size_t size)
{
    try {
        char *memory = new char[size];
        HELD(memory);
        return 0;
    } catch (const std::bad_alloc &) {
        return 1;
    }
}

int main(int argc, char **)
{
    char *kept[30];
    for (int i = 0; i < 30; i++)
        kept[i] = known_new(100);
    for (int i = 0; i < 20; i++)
        delete[] kept[i];
    for (int i = 0; i < 10; i++)
        delete known_wide();
    for (int i = 0; i < 50; i++)
        delete known_one();
    ::operator delete(known_nothrow(300), std::nothrow);
    for (int i = 0; argc == 1 && i < 5; i++)
        if (!known_failing(PTRDIFF_MAX / 2))
            return 1;
    for (int i = 0; i < 7; i++)
        delete[] known_new(100);
    std::printf("whole\n");
    return 0;
}
