/* From a file to the places where the program of bpf/heap.bpf.c goes. */
#pragma once

#include "symbolize/elf_file.h"

enum { HEAP_PLACES_MAX = 1024 };

struct heap_places {
    size_t call_count, return_count;
    uint64_t call_at[HEAP_PLACES_MAX], call_cookie[HEAP_PLACES_MAX]; /* enum heap_kernel_place */
    uint64_t return_at[HEAP_PLACES_MAX]; /* for the kernel to tell of the return */
    size_t trampolines;                  /* functions of which it does */
    size_t left_out;                     /* of which not all ways out are known */
};

/* `whole`: a program, whose own symbols are looked through as well. Nothing is found in what does
 * not define malloc(), or cannot be read. */
void heap_places_find(struct elf_file *file, bool whole, struct heap_places *ret);
