/* Loaded and unloaded by heap_known.c: memory that is asked for by code that goes away. */
#include <stddef.h>
#include <stdlib.h>

void *known_plugin(size_t size);

/* The name that must be told, though the other library lay at the same address. */
__attribute__((noinline)) static void *PLUGIN_NAME(size_t size)
{
    return malloc(size);
}

void *known_plugin(size_t size)
{
    return PLUGIN_NAME(size);
}
