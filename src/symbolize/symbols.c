/* The symbols of one image: opening, asking, and handing a batch of frames to a sink. */
#include "symbolize/symbols.h"

#include "base/fd.h"
#include "model/interned.h"
#include "symbolize/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VDSO_BYTES_MAX = 1 << 20 };

void symbols_note(struct symbols *symbols, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (size_t i = 0; i < symbols->note_count; i++)
        if (strcmp(symbols->notes[i], text) == 0)
            return;
    if (symbols->note_count < SYMBOLS_NOTES_MAX)
        symbols->notes[symbols->note_count++] = arena_dup(&symbols->arena, text);
}

uint32_t symbols_function_add(struct symbols *symbols, const struct symbol_function *function)
{
    if (symbols->functions.len >= INTERNED_FUNCTIONS_MAX ||
        VEC_PUSH(&symbols->functions, *function) < 0)
        return UINT32_MAX;
    return (uint32_t)symbols->functions.len - 1;
}

int symbols_read_all(int fd, size_t size_max, char **ret, size_t *ret_len)
{
    size_t len = 0;
    size_t size = 1 << 16;
    char *text = malloc(size);
    while (text) {
        ssize_t n = pread(fd, text + len, size - len, (off_t)len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int error = errno;
            free(text);
            return -error;
        }
        len += (size_t)n;
        if (n == 0 || len >= size_max) {
            *ret = text;
            *ret_len = MIN(len, size_max);
            return 0;
        }
        if (len == size) {
            char *larger = realloc(text, 2 * size);
            if (!larger)
                free(text);
            text = larger;
            size *= 2;
        }
    }
    return -ENOMEM;
}

/* The vDSO is the same in every process of this machine: ours lies in our own memory. */
static int vdso_open(struct symbols *symbols, struct why *why)
{
    const char *base = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (!base)
        return why_set(why, WHY_DENIED, ENOENT, NULL, "this machine has no vDSO");
    GElf_Ehdr header;
    memcpy(&header, base, sizeof(header));
    /* The section headers stand at its end. */
    uint64_t len = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || len < sizeof(header) ||
        len > VDSO_BYTES_MAX)
        return why_set(why, WHY_DENIED, EOPNOTSUPP, NULL, "the vDSO has an unknown form");
    void *copy = malloc(len);
    if (!copy)
        return why_nomem(why);
    memcpy(copy, base, len);
    return elf_file_open_memory(copy, len, "[vdso]", &symbols->elf, why);
}

static int image_open(struct symbols *symbols, int fd, struct why *why)
{
    if (symbols->kind == IMAGE_VDSO)
        return vdso_open(symbols, why);
    if (fd >= 0) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (copy < 0)
            return why_errno(why, errno, "raise 'ulimit -n'", "cannot keep '%s' open",
                             symbols->path);
        if (symbols->kind == IMAGE_FILE)
            return elf_file_open(copy, symbols->path, &symbols->elf, why);
        symbols->fd = copy;
    } else if (symbols->kind == IMAGE_FILE)
        return why_set(why, WHY_FAILED, EBADF, NULL, "'%s' is not open", symbols->path);
    return 0;
}

int symbols_open(int fd, const struct image_info *info, const struct symbols_opts *opts,
                 struct symbols **ret, struct why *why)
{
    static const struct symbols_opts plain = {.lines = true};
    struct symbols *symbols = calloc(1, sizeof(*symbols));
    if (!symbols)
        return why_nomem(why);
    if (!opts)
        opts = &plain;
    symbols->elf = symbols->debug = ELF_FILE_NONE;
    symbols->fd = -1;
    symbols->kind = info->kind;
    symbols->path = arena_dup_len(&symbols->arena, info->path.data, info->path.len);
    symbols->build_id = arena_dup_len(&symbols->arena, info->build_id.data, info->build_id.len);
    symbols->root = opts->root && strcmp(opts->root, "/") != 0
                        ? arena_dup(&symbols->arena, opts->root)
                        : "";
    symbols->cache_dir = opts->cache_dir ? arena_dup(&symbols->arena, opts->cache_dir) : NULL;
    symbols->owner = opts->owner;
    symbols->debuginfod = opts->debuginfod;
    symbols->lines = opts->lines;
    symbols->source = "none";
    int r = image_open(symbols, fd, why);
    if (r == 0 && symbols->elf.elf) {
        symbols->elf.cache_dir = symbols->cache_dir;
        char build_id[2 * ELF_BUILD_ID_BYTES_MAX + 1];
        if (elf_file_build_id(&symbols->elf, build_id))
            symbols->build_id = arena_dup(&symbols->arena, build_id);
        if (symbols->elf.fd >= 0)
            symbols_named_by(symbols, symbols->elf.fd);
        debug_file_find(symbols);
        symbols->debug.cache_dir = symbols->cache_dir;
    }
    for (size_t i = 0; i < symbolizers_count && r == 0; i++)
        if (symbolizers[i]->kinds & 1u << symbols->kind)
            r = symbolizers[i]->open(symbols, &symbols->state[i], why);
    if (r == 0 && arena_failed(&symbols->arena))
        r = why_nomem(why);
    if (r < 0) {
        symbols_close(symbols);
        return r;
    }
    *ret = symbols;
    return 0;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = symbolizers_count; i-- > 0;)
        if (symbols->state[i])
            symbolizers[i]->close(symbols->state[i]);
    elf_file_close(&symbols->elf);
    elf_file_close(&symbols->debug);
    if (symbols->fd >= 0)
        fd_close(&symbols->fd);
    VEC_FREE(&symbols->functions);
    arena_deinit(&symbols->arena);
    free(symbols);
}

static size_t hits_at(struct symbols *symbols, uint64_t vaddr, struct symbol_hit *ret, size_t max)
{
    for (size_t i = symbolizers_count; i-- > 0;) {
        size_t found = symbols->state[i]
                           ? symbolizers[i]->at(symbols, symbols->state[i], vaddr, ret, max)
                           : 0;
        if (found > 0)
            return found;
    }
    return 0;
}

size_t symbols_at(struct symbols *symbols, uint64_t vaddr, struct symbol *ret, size_t max)
{
    struct symbol_hit hits[SYMBOLS_INLINE_MAX];
    size_t count = hits_at(symbols, vaddr, hits, MIN(max, (size_t)SYMBOLS_INLINE_MAX));
    for (size_t i = 0; i < count; i++) {
        const struct symbol_function *function = &symbols->functions.data[hits[i].function];
        const struct symbol_function *outer = &symbols->functions.data[hits[count - 1].function];
        ret[i] = (struct symbol){
            .name = function->name,
            .linkage = function->linkage,
            .file = hits[i].file,
            .line = hits[i].line,
            .function_file = function->file,
            .function_line = function->line,
            .start = outer->start,
            .size_bytes = outer->size_bytes,
        };
    }
    return count;
}

/* What was given to the sink already in this batch. */
struct emission {
    struct symbols *symbols;
    struct sink *sink;
    uint32_t image;
    struct map_u64 functions; /* index → id */
    struct map_u64 texts;     /* where a text lies → id; files are asked for again and again */
};

static int emit_text(struct emission *emission, struct str text, uint32_t *ret)
{
    *ret = 0;
    if (text.len == 0)
        return 0;
    uint64_t *known = map_u64_at(&emission->texts, (uintptr_t)text.data, NULL);
    if (!known)
        return -ENOMEM;
    if (*known == 0) {
        uint32_t id;
        text.len = MIN(text.len, (size_t)INTERNED_TEXT_BYTES_MAX);
        int r = sink_text(emission->sink, text, &id);
        if (r < 0)
            return r;
        *known = id;
    }
    *ret = (uint32_t)*known;
    return 0;
}

static int emit_function(struct emission *emission, uint32_t index, uint32_t *ret)
{
    uint64_t *known = map_u64_at(&emission->functions, index, NULL);
    if (!known)
        return -ENOMEM;
    if (*known == 0) {
        const struct symbol_function *function = &emission->symbols->functions.data[index];
        struct function_info info = {
            .line = function->line,
            .image = emission->image,
            .address = function->start,
            .size_bytes = function->size_bytes,
        };
        uint32_t id = 0;
        int r = emit_text(emission, function->name, &info.name);
        if (r == 0)
            r = emit_text(emission, function->linkage, &info.linkage);
        if (r == 0)
            r = emit_text(emission, function->file, &info.file);
        if (r == 0)
            r = sink_function(emission->sink, &info, &id);
        if (r < 0)
            return r;
        *known = id;
    }
    *ret = (uint32_t)*known;
    return 0;
}

static int emit_frame(struct emission *emission, uint32_t frame, const struct symbol_hit *hits,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct location_info info = {.frame = frame, .depth = (uint32_t)i, .line = hits[i].line};
        int r = emit_function(emission, hits[i].function, &info.function);
        if (r == 0)
            r = emit_text(emission, hits[i].file, &info.file);
        if (r == 0)
            r = sink_location(emission->sink, &info);
        if (r < 0)
            return r;
    }
    return 0;
}

static int frame_order(const void *a, const void *b)
{
    const struct symbols_frame *left = a;
    const struct symbols_frame *right = b;
    return left->address < right->address ? -1 : left->address > right->address;
}

int symbols_emit(struct symbols *symbols, uint32_t image, struct symbols_frame *frames,
                 size_t count, struct sink *sink)
{
    struct emission emission = {.symbols = symbols, .sink = sink, .image = image};
    struct symbol_hit hits[SYMBOLS_INLINE_MAX];
    size_t found = 0;
    int r = 0;
    if (count > 1)
        qsort(frames, count, sizeof(*frames), frame_order);
    for (size_t i = 0; i < count && r == 0; i++) {
        if (i == 0 || frames[i].address != frames[i - 1].address)
            found = hits_at(symbols, frames[i].address, hits, ARRAY_SIZE(hits));
        r = emit_frame(&emission, frames[i].frame, hits, found);
    }
    map_u64_deinit(&emission.functions);
    map_u64_deinit(&emission.texts);
    return r;
}

const char *symbols_source(const struct symbols *symbols)
{
    return symbols->source;
}

const char *const *symbols_notes(const struct symbols *symbols)
{
    return symbols->notes;
}
