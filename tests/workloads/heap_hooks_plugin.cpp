// A library in C++ for a program in C: operator new comes into being with it.
#include <cstdio>
#include <new>
#include <string>
#include <vector>

extern "C" int heap_hooks_plugin(int count);

extern "C" int heap_hooks_plugin(int count)
{
    std::vector<std::string> texts;
    for (int i = 0; i < count; i++)
        texts.push_back(std::string(100, 'x') + std::to_string(i));
    try {
        texts.reserve(texts.max_size() / 2);
    } catch (const std::bad_alloc &) {
        std::printf("thrown and caught\n");
    }
    return static_cast<int>(texts.size());
}
