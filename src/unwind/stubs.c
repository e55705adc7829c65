/* Restorers are found by their bytes, call stubs by the names of their sections. */
#include "unwind/stubs.h"

#include <errno.h>
#include <string.h>

enum {
    GAP_MIN = 32,         /* smaller gaps are padding between functions */
    SEARCH_MAX = 64 << 20 /* bytes of code looked at, in all */
};

struct search {
    const struct unwind_elf *file;
    const struct unwind_image *image;
    const struct rows_builder *builder;
    cfi_functions found;
    uint64_t budget;
};

static int add_matches(struct search *search, const uint8_t *code, size_t len, uint32_t start)
{
    const struct unwind_machine_info *info = search->builder->info;
    for (size_t i = 0; i < ARRAY_SIZE(info->restorers); i++) {
        size_t size = info->restorers[i].len;
        if (size == 0)
            continue;
        for (size_t at = 0; at + size <= len;) {
            const uint8_t *hit = memmem(code + at, len - at, info->restorers[i].bytes, size);
            if (!hit)
                break;
            uint32_t offset = start + (uint32_t)(hit - code);
            /* A handler returns to the first byte, and return addresses are looked up
             * one byte before. */
            struct cfi_function function = {.start = offset > 0 ? offset - 1 : 0,
                                            .end = offset + (uint32_t)size,
                                            .origin = offset,
                                            .kind = CFI_RESTORER};
            if (VEC_PUSH(&search->found, function) < 0)
                return -ENOMEM;
            at = (size_t)(hit - code) + size;
        }
    }
    return 0;
}

/* Offsets from the image's base; only the part that the file holds. */
static int search_range(struct search *search, uint32_t start, uint32_t end, struct why *why)
{
    uint64_t base = search->builder->base;
    for (size_t i = 0; i < search->image->segments_count; i++) {
        const struct unwind_segment *segment = &search->image->segments[i];
        if (!segment->executable)
            continue;
        uint64_t from = MAX(base + start, segment->vaddr);
        uint64_t to = MIN(base + end, segment->vaddr + segment->file_size);
        if (from >= to || to - from > search->budget)
            continue;
        search->budget -= to - from;
        struct elf_bytes code;
        int r = unwind_elf_read(search->file, segment->offset + (from - segment->vaddr), to - from,
                                &code, why);
        if (r < 0)
            return r;
        r = add_matches(search, code.data, code.len, (uint32_t)(from - base));
        elf_bytes_free(&code);
        if (r < 0)
            return why_nomem(why);
    }
    return 0;
}

static int find_restorers(struct search *search, const cfi_functions *functions, struct why *why)
{
    uint64_t end_of_code = 0;
    for (size_t i = 0; i < search->image->segments_count; i++) {
        const struct unwind_segment *segment = &search->image->segments[i];
        if (segment->executable)
            end_of_code = MAX(end_of_code, segment->vaddr + segment->memory_size);
    }
    uint32_t end = (uint32_t)(end_of_code - search->builder->base), last = 0;
    if (end_of_code == 0)
        return 0;
    /* Go describes its restorer as if it were a plain function. */
    if (search->file->bytes || unwind_elf_section(search->file, ".note.go.buildid"))
        return search_range(search, 0, end, why);
    for (size_t i = 0; i <= functions->len; i++) {
        uint32_t next = i < functions->len ? functions->data[i].start : end;
        if (next > last && next - last >= GAP_MIN) {
            int r = search_range(search, last, next, why);
            if (r < 0)
                return r;
        }
        if (i < functions->len)
            last = functions->data[i].end;
    }
    return 0;
}

static int find_call_stubs(struct search *search, cfi_functions *ret)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const Elf64_Shdr *section = unwind_elf_section(search->file, names[i]);
        if (!section)
            continue;
        for (size_t j = 0; j < search->image->segments_count; j++) {
            const struct unwind_segment *segment = &search->image->segments[j];
            if (!segment->executable || section->sh_addr < segment->vaddr ||
                section->sh_addr - segment->vaddr > segment->memory_size ||
                section->sh_size > segment->memory_size - (section->sh_addr - segment->vaddr))
                continue;
            uint32_t start = (uint32_t)(section->sh_addr - search->builder->base);
            struct cfi_function function = {.start = start,
                                            .end = start + (uint32_t)section->sh_size,
                                            .origin = start,
                                            .program = (uint32_t)i,
                                            .kind = CFI_STUBS};
            if (VEC_PUSH(ret, function) < 0)
                return -ENOMEM;
            break;
        }
    }
    cfi_sort(ret);
    return 0;
}

int stubs_find(const struct unwind_elf *file, const struct unwind_image *image,
               const struct rows_builder *builder, cfi_functions *functions, struct why *why)
{
    struct search search = {.file = file, .image = image, .builder = builder, .budget = SEARCH_MAX};
    cfi_functions stubs = {0};
    int r = find_restorers(&search, functions, why);
    if (r == 0 && search.found.len > 0) {
        /* What is found by its bytes comes before any table's word. */
        cfi_sort(&search.found);
        cfi_functions tables = *functions;
        *functions = search.found;
        search.found = (cfi_functions){0};
        if (cfi_fill(functions, &tables) < 0)
            r = why_nomem(why);
        VEC_FREE(&tables);
    }
    if (r == 0 && (find_call_stubs(&search, &stubs) < 0 || cfi_fill(functions, &stubs) < 0))
        r = why_nomem(why);
    VEC_FREE(&stubs);
    VEC_FREE(&search.found);
    return r;
}
