/* The table of function names whose kind is sure. A name ending in '*' matches as a prefix.
 * Names are the linker's, or demangled ones where those are the same in every build. */
#include "analyze/categories.h"

#include "base/macros.h"

struct row {
    const char *name;
    const char *category;
};

static const struct row rows[] = {
    {"malloc", "alloc"},
    {"calloc", "alloc"},
    {"realloc", "alloc"},
    {"reallocarray", "alloc"},
    {"free", "alloc"},
    {"cfree", "alloc"},
    {"memalign", "alloc"},
    {"aligned_alloc", "alloc"},
    {"posix_memalign", "alloc"},
    {"__libc_malloc", "alloc"},
    {"__libc_calloc", "alloc"},
    {"__libc_realloc", "alloc"},
    {"__libc_memalign", "alloc"},
    {"__libc_free", "alloc"},
    {"_int_malloc", "alloc"},
    {"_int_realloc", "alloc"},
    {"_int_memalign", "alloc"},
    {"_int_free*", "alloc"},
    {"malloc_consolidate*", "alloc"},
    {"unlink_chunk*", "alloc"},
    {"sysmalloc*", "alloc"},
    {"systrim*", "alloc"},
    {"tcache_*", "alloc"},
    {"operator new(*", "alloc"},
    {"operator new[](*", "alloc"},
    {"operator delete(*", "alloc"},
    {"operator delete[](*", "alloc"},
    {"_Znwm*", "alloc"},
    {"_Znam*", "alloc"},
    {"_ZdlPv*", "alloc"},
    {"_ZdaPv*", "alloc"},
    {"tc_malloc*", "alloc"},
    {"tc_free*", "alloc"},
    {"tc_new*", "alloc"},
    {"tc_delete*", "alloc"},
    {"mi_malloc*", "alloc"},
    {"mi_free*", "alloc"},
    {"_mi_*", "alloc"},
    {"je_malloc*", "alloc"},
    {"je_free*", "alloc"},
    {"je_arena_*", "alloc"},
    {"__rust_alloc*", "alloc"},
    {"__rust_dealloc*", "alloc"},
    {"__rust_realloc*", "alloc"},
    {"__rdl_alloc*", "alloc"},
    {"__rdl_dealloc*", "alloc"},
    {"runtime.mallocgc*", "alloc"},
    {"runtime.newobject", "alloc"},
    {"runtime.makeslice", "alloc"},
    {"runtime.growslice", "alloc"},
    {"runtime.gcDrain*", "alloc"},
    {"runtime.scanobject", "alloc"},
    {"memcpy", "copy"},
    {"memmove", "copy"},
    {"mempcpy", "copy"},
    {"memset", "copy"},
    {"__memcpy_*", "copy"},
    {"__memmove_*", "copy"},
    {"__mempcpy_*", "copy"},
    {"__memset_*", "copy"},
    {"bcopy", "copy"},
    {"bzero", "copy"},
    {"runtime.memmove", "copy"},
    {"runtime.memclrNoHeapPointers", "copy"},
    {"pthread_mutex_lock", "lock"},
    {"pthread_mutex_trylock", "lock"},
    {"pthread_mutex_unlock", "lock"},
    {"__pthread_mutex_lock*", "lock"},
    {"___pthread_mutex_lock*", "lock"},
    {"__pthread_mutex_trylock*", "lock"},
    {"___pthread_mutex_trylock*", "lock"},
    {"__pthread_mutex_unlock*", "lock"},
    {"___pthread_mutex_unlock*", "lock"},
    {"pthread_rwlock_*", "lock"},
    {"__pthread_rwlock_*", "lock"},
    {"___pthread_rwlock_*", "lock"},
    {"pthread_spin_lock", "lock"},
    {"__pthread_spin_lock", "lock"},
    {"pthread_cond_*", "lock"},
    {"__pthread_cond_*", "lock"},
    {"___pthread_cond_*", "lock"},
    {"__lll_lock_*", "lock"},
    {"__lll_unlock_*", "lock"},
    {"runtime.lock2", "lock"},
    {"runtime.unlock2", "lock"},
    {"sync.(*Mutex).*", "lock"},
    {"sync.(*RWMutex).*", "lock"},
    {"strlen", "string"},
    {"strcmp", "string"},
    {"strncmp", "string"},
    {"strchr", "string"},
    {"strstr", "string"},
    {"strcpy", "string"},
    {"memcmp", "string"},
    {"memchr", "string"},
    {"__strlen_*", "string"},
    {"__strnlen_*", "string"},
    {"__strcmp_*", "string"},
    {"__strncmp_*", "string"},
    {"__strcasecmp_*", "string"},
    {"__strchr_*", "string"},
    {"__strchrnul_*", "string"},
    {"__strrchr_*", "string"},
    {"__strcpy_*", "string"},
    {"__strncpy_*", "string"},
    {"__strcat_*", "string"},
    {"__strstr_*", "string"},
    {"__memcmp_*", "string"},
    {"__memchr_*", "string"},
    {"__memrchr_*", "string"},
    {"__rawmemchr_*", "string"},
    {"inflate_fast", "compress"},
    {"inflate_table", "compress"},
    {"deflate_fast", "compress"},
    {"deflate_slow", "compress"},
    {"ZSTD_*", "compress"},
    {"LZ4_*", "compress"},
    {"BZ2_*", "compress"},
    {"lzma_*", "compress"},
    {"sha1_block_data_order*", "hash"},
    {"sha256_block_data_order*", "hash"},
    {"sha512_block_data_order*", "hash"},
    {"md5_block_asm_data_order", "hash"},
    {"XXH3_*", "hash"},
    {"XXH64*", "hash"},
    {"XXH32*", "hash"},
    {"regexec", "regex"},
    {"re_search_internal", "regex"},
    {"pcre2_match_*", "regex"},
    {"pcre2_jit_match_*", "regex"},
};

/* Unlike str_starts(), the '*' of "sync.(*Mutex).*" in the middle is a star. */
static bool matches(struct str name, const char *pattern)
{
    size_t len = strlen(pattern);
    if (pattern[len - 1] != '*')
        return str_is(name, pattern);
    return name.len >= len - 1 && memcmp(name.data, pattern, len - 1) == 0;
}

const char *category_of(const struct profile_function *function)
{
    if (function->kernel)
        return "kernel";
    if (function->unnamed)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (matches(function->name, rows[i].name) || matches(function->linkage, rows[i].name))
            return rows[i].category;
    return NULL;
}
