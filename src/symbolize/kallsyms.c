/* The symbolizer for the kernel and its modules: /proc/kallsyms, or a file like it. */
#include "base/fd.h"
#include "base/sha256.h"
#include "symbolize/internal.h"
#include "symbolize/symbol_cache.h"
#include "symbolize/symbol_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { KALLSYMS_BYTES_MAX = 1 << 28, KERNEL_FACTS_BYTES_MAX = 1 << 20 };
/* No kernel function is longer; behind the last of a module there is nothing. */
static const uint64_t function_bytes_max = 1 << 20;

/* Lower is better. Marks of whole regions and paddings are no functions. */
static uint32_t name_rank(char type, struct str name)
{
    if (str_is(name, "_text") || str_is(name, "_stext") || str_starts(name, "__pfx_") ||
        str_starts(name, "__start_") || str_starts(name, "__stop_"))
        return 8;
    if (type == 'T')
        return 0;
    return type == 'W' || type == 'w' ? 1 : 2;
}

/* "ffffffff81000000 T name\t[module]" */
static int line_add(struct symbol_table *table, struct str line, bool *ret_seen)
{
    uint64_t address;
    struct str word = str_word(&line);
    struct str type = str_word(&line);
    struct str name = str_word(&line);
    struct str module = str_word(&line);
    if (str_to_u64(word, 16, &address) < 0 || type.len != 1 || name.len == 0)
        return 0;
    *ret_seen = true;
    if (address == 0 || strchr("aA", type.data[0]))
        return 0;
    if (!strchr("tTwW", type.data[0]) || str_is(name, "_etext") || str_is(name, "_einittext"))
        return symbol_table_add(table, address, 0, (struct str){"", 0}, UINT32_MAX, SYMBOL_END);
    if (module.len > 0) /* one text with the module, since the two stand side by side */
        name.len = (size_t)(module.data + module.len - name.data);
    return symbol_table_add(table, address, 0, name, name_rank(type.data[0], name), 0);
}

static int text_add(struct symbols *symbols, struct symbol_table *table, struct str text)
{
    bool seen = false;
    while (text.len > 0) {
        int r = line_add(table, str_cut(&text, '\n'), &seen);
        if (r < 0)
            return r;
    }
    if (!seen)
        symbols_note(symbols, "the kernel's symbols cannot be used: the list is empty");
    else if (table->rows.len == 0)
        symbols_note(symbols, "the kernel hides its addresses: run as root, or "
                              "'sysctl kernel.kptr_restrict=0' and kernel.perf_event_paranoid=1");
    else
        symbols->source = "kallsyms";
    return 0;
}

/* Addresses are drawn at boot, and change with the modules that are loaded: these two name a list
 * of symbols as a build-id names a file. Empty when the kernel does not tell. */
static const char *kernel_key(struct arena *arena)
{
    struct str boot, modules = {"", 0};
    if (file_read(arena, "/proc/sys/kernel/random/boot_id", KERNEL_FACTS_BYTES_MAX, &boot, NULL) <
        0)
        return "";
    int r = file_read(arena, "/proc/modules", KERNEL_FACTS_BYTES_MAX, &modules, NULL);
    if (r < 0 && r != -ENOENT) /* a kernel built without modules has no such file */
        return "";
    struct sha256 hash;
    char *text = arena_alloc(arena, SHA256_TEXT_BYTES);
    sha256_init(&hash);
    sha256_add(&hash, boot.data, boot.len);
    /* The third column, how often a module is in use, changes all the time. */
    while (modules.len > 0) {
        struct str line = str_cut(&modules, '\n');
        struct str name = str_word(&line), size = str_word(&line);
        const char *address = line.len > 0 ? memrchr(line.data, ' ', line.len) : NULL;
        sha256_add(&hash, name.data, name.len);
        sha256_add(&hash, size.data, size.len);
        if (address)
            sha256_add(&hash, address, (size_t)(line.data + line.len - address));
    }
    if (!text)
        return "";
    sha256_finish(&hash, text);
    return text;
}

/* From the cache, else read and kept there. */
static int kallsyms_fill(struct symbols *symbols, struct symbol_table *table)
{
    bool own = symbols->fd < 0;
    if (own) {
        symbols->build_id = kernel_key(&symbols->arena);
        int r = symbol_cache_load(symbols, table);
        if (r != -ENOENT)
            return r;
        symbols->fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    }
    char *text = NULL;
    size_t len = 0;
    int r = symbols->fd < 0 ? -errno
                            : symbols_read_all(symbols->fd, KALLSYMS_BYTES_MAX, &text, &len);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        symbols_note(symbols, "the kernel's symbols cannot be read: %s; run as root", strerror(-r));
        return 0;
    }
    r = text_add(symbols, table, (struct str){text, len});
    if (r == 0)
        r = symbol_table_finish(table, NULL, 0);
    free(text);
    if (r == 0 && own)
        symbol_cache_store(symbols, table);
    return r;
}

static int kallsyms_open(struct symbols *symbols, void **ret_state, struct why *why)
{
    struct symbol_table *table = calloc(1, sizeof(*table));
    if (!table)
        return why_nomem(why);
    table->limit = function_bytes_max;
    if (kallsyms_fill(symbols, table) < 0) {
        symbol_table_close(table);
        return why_nomem(why);
    }
    *ret_state = table;
    return 0;
}

/* "nft_do_chain\t[nf_tables]" is shown with a blank; the linker knows only the name. */
static size_t kallsyms_at(struct symbols *symbols, void *state, uint64_t vaddr,
                          struct symbol_hit *ret, size_t max)
{
    size_t found = symbol_table_at(symbols, state, vaddr, ret, max);
    if (found == 0)
        return 0;
    struct symbol_function *function = &symbols->functions.data[ret[0].function];
    const char *blank = function->linkage.len > 0
                            ? memchr(function->linkage.data, '\t', function->linkage.len)
                            : NULL;
    if (!blank)
        return found;
    struct str module = {blank + 1,
                         function->linkage.len - (size_t)(blank + 1 - function->linkage.data)};
    function->linkage.len = (size_t)(blank - function->linkage.data);
    function->name = str_from(
        arena_printf(&symbols->arena, "%.*s %.*s", STR_FMT(function->linkage), STR_FMT(module)));
    return found;
}

const struct symbolizer symbolizer_kallsyms = {
    .name = "kallsyms",
    .kinds = 1u << IMAGE_KERNEL,
    .open = kallsyms_open,
    .at = kallsyms_at,
    .close = symbol_table_close,
};
