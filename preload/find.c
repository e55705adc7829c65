/* Symbols of loaded images, read from their tables; find.h says why. */
#include "find.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <unistd.h>

/* glibc's, and musl's: each has one of them. */
#pragma weak _r_debug
extern struct r_debug *musl_debug __asm__("_dl_debug_addr") __attribute__((weak));

enum { IMAGES_MAX = 65536, CHAIN_MAX = 1 << 20 };

/* What is needed of an image to look something up. */
struct tables {
    uint64_t load;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Half) * versions; /* NULL: it has none */
    const uint32_t *gnu_hash;
    const uint32_t *hash;
};

static bool is_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

int find_is_called(const char *path, const char *name)
{
    const char *at = path;
    for (const char *p = path; *p; p++)
        at = *p == '/' ? p + 1 : at;
    while (*name && *at == *name)
        at++, name++;
    return *name == '\0';
}

const char *find_environment(const char *name)
{
    for (char **row = environ; row && *row; row++) {
        size_t same = 0;
        while (name[same] && (*row)[same] == name[same])
            same++;
        if (!name[same] && (*row)[same] == '=')
            return *row + same + 1;
    }
    return NULL;
}

static const struct link_map *images(void)
{
    const struct r_debug *debug = &_r_debug ? &_r_debug : &musl_debug ? musl_debug : NULL;
    return debug ? debug->r_map : NULL;
}

/* glibc replaces offsets by addresses when it loads an image, musl and the kernel's own leave them
 * as they are. */
static const void *table_at(const struct link_map *image, uint64_t value)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (const void *)(value < image->l_addr ? image->l_addr + value : value);
}

static bool tables_read(const struct link_map *image, struct tables *ret)
{
    struct tables tables = {.load = image->l_addr};
    for (const ElfW(Dyn) *row = image->l_ld; row && row->d_tag != DT_NULL; row++) {
        const void *at = table_at(image, row->d_un.d_ptr);
        switch (row->d_tag) {
        case DT_SYMTAB:
            tables.symbols = at;
            break;
        case DT_STRTAB:
            tables.names = at;
            break;
        case DT_VERSYM:
            tables.versions = at;
            break;
        case DT_GNU_HASH:
            tables.gnu_hash = at;
            break;
        case DT_HASH:
            tables.hash = at;
            break;
        default:
            break;
        }
    }
    *ret = tables;
    return tables.symbols && tables.names && (tables.gnu_hash || tables.hash);
}

/* Defined here, and what a name without a version means: old versions are hidden behind the
 * default. */
static bool is_it(const struct tables *tables, uint32_t index, const char *name)
{
    enum { HIDDEN = 0x8000 };
    const ElfW(Sym) *symbol = &tables->symbols[index];
    unsigned type = ELF64_ST_TYPE(symbol->st_info), bind = ELF64_ST_BIND(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && type != STT_TLS &&
           (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE) &&
           !(tables->versions && (tables->versions[index] & HIDDEN)) &&
           is_same(tables->names + symbol->st_name, name);
}

static uint32_t look_gnu(const struct tables *tables, const char *name)
{
    uint32_t hash = 5381;
    for (const char *p = name; *p; p++)
        hash = hash * 33 + (unsigned char)*p;
    const uint32_t *head = tables->gnu_hash;
    uint32_t buckets = head[0], first = head[1], words = head[2], shift = head[3];
    const uint64_t *bloom = (const void *)(head + 4);
    const uint32_t *bucket = (const void *)(bloom + words), *chain = bucket + buckets;
    uint64_t word = words > 0 ? bloom[hash / 64 % words] : 0;
    if (buckets == 0 || !(word >> hash % 64 & word >> (hash >> shift) % 64 & 1))
        return 0;
    uint32_t index = bucket[hash % buckets];
    for (uint32_t i = 0; index >= first && i < CHAIN_MAX; i++, index++) {
        uint32_t told = chain[index - first];
        if ((told | 1) == (hash | 1) && is_it(tables, index, name))
            return index;
        if (told & 1)
            break;
    }
    return 0;
}

static uint32_t look_hash(const struct tables *tables, const char *name)
{
    uint32_t hash = 0;
    for (const char *p = name; *p; p++) {
        hash = (hash << 4) + (unsigned char)*p;
        hash ^= (hash & 0xf0000000) >> 24;
        hash &= 0x0fffffff;
    }
    uint32_t buckets = tables->hash[0], i = 0;
    const uint32_t *bucket = tables->hash + 2, *chain = bucket + buckets;
    for (uint32_t index = buckets > 0 ? bucket[hash % buckets] : 0; index != 0 && i < CHAIN_MAX;
         index = chain[index], i++)
        if (is_it(tables, index, name))
            return index;
    return 0;
}

/* An indirect one is a function that tells which to take. */
static void *address_of(const struct tables *tables, const ElfW(Sym) * symbol)
{
    uint64_t at = (symbol->st_shndx == SHN_ABS ? 0 : tables->load) + symbol->st_value;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC)
        return (void *)at; /* NOLINT(performance-no-int-to-ptr) */
                           /* NOLINTBEGIN(performance-no-int-to-ptr) */
#if defined(__aarch64__)
    /* What the resolver is told of the machine: nothing that is not on all of them. */
    return ((void *(*)(uint64_t, const void *))at)(0, NULL);
#else
    return ((void *(*)(void))at)();
#endif
    /* NOLINTEND(performance-no-int-to-ptr) */
}

static struct found look(const struct link_map *image, const char *name)
{
    struct tables tables;
    if (!tables_read(image, &tables))
        return (struct found){.image = ""};
    uint32_t index = tables.gnu_hash ? look_gnu(&tables, name) : look_hash(&tables, name);
    return (struct found){
        .address = index != 0 ? address_of(&tables, &tables.symbols[index]) : NULL,
        .image = image->l_name ? image->l_name : "",
    };
}

static struct found find_from(const struct link_map *image, const char *name)
{
    struct found found = {.image = ""};
    for (unsigned i = 0; image && !found.address && i < IMAGES_MAX; i++, image = image->l_next)
        found = look(image, name);
    return found;
}

struct found find_first(const char *name)
{
    return find_from(images(), name);
}

struct found find_next(const char *name)
{
    const struct link_map *image = images();
    for (unsigned i = 0; image && image->l_ld != _DYNAMIC /* ours */ && i < IMAGES_MAX; i++)
        image = image->l_next;
    return find_from(image ? image->l_next : NULL, name);
}

struct found find_in(const char *called, const char *name)
{
    const struct link_map *image = images();
    for (unsigned i = 0; image && i < IMAGES_MAX; i++, image = image->l_next)
        if (image->l_name && find_is_called(image->l_name, called))
            return look(image, name);
    return (struct found){.image = ""};
}
