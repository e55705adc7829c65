/* Prints what addresses mean, as addr2line -f -i -a does, for symbols.py to compare.
 *
 *     symbols_dump [-k|-j|-v] [-r ROOT] [-c CACHE] [-d] [-q] IMAGE < addresses
 *
 * -k: the kernel (IMAGE is a kallsyms file, or - for this machine's), -j: a perf map, -v: the
 * vDSO, -d: may use debuginfod, -q: only count. Ends with the source and the notes. */
#include "base/clock.h"
#include "base/fd.h"
#include "symbolize/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void address_print(struct symbols *symbols, uint64_t address)
{
    struct symbol found[SYMBOLS_INLINE_MAX];
    size_t count = symbols_at(symbols, address, found, SYMBOLS_INLINE_MAX);
    printf("0x%016" PRIx64 "\n", address);
    for (size_t i = 0; i < count; i++)
        printf("%.*s\t%.*s\t%.*s:%u\t%.*s:%u\t%" PRIx64 "+%" PRIx64 "\n", STR_FMT(found[i].name),
               STR_FMT(found[i].linkage), STR_FMT(found[i].file), found[i].line,
               STR_FMT(found[i].function_file), found[i].function_line, found[i].start,
               found[i].size_bytes);
}

int main(int argc, char **argv)
{
    struct image_info info = {.kind = IMAGE_FILE};
    struct symbols_opts opts = {.lines = true};
    bool quiet = false;
    int option;
    while ((option = getopt(argc, argv, "kjvr:c:dqn")) != -1) {
        if (option == 'k')
            info.kind = IMAGE_KERNEL;
        else if (option == 'j')
            info.kind = IMAGE_JIT;
        else if (option == 'v')
            info.kind = IMAGE_VDSO;
        else if (option == 'r')
            opts.root = optarg;
        else if (option == 'c')
            opts.cache_dir = optarg;
        else if (option == 'd')
            opts.debuginfod = true;
        else if (option == 'n')
            opts.lines = false;
        else if (option == 'q')
            quiet = true;
        else
            return 2;
    }
    const char *path = optind < argc ? argv[optind] : "-";
    struct symbols *symbols;
    struct why why;
    uint64_t start_ns = clock_mono_ns();
    info.path = str_from(path);
    AUTO(fd_close) int fd = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (symbols_open(fd, &info, &opts, &symbols, &why) < 0) {
        printf("error: %s\n", why.what);
        return 1;
    }
    uint64_t open_ns = clock_mono_ns();
    char line[64];
    size_t count = 0;
    size_t found = 0;
    while (fgets(line, sizeof(line), stdin)) {
        uint64_t address = strtoull(line, NULL, 16);
        struct symbol symbol[SYMBOLS_INLINE_MAX];
        count++;
        if (quiet)
            found += symbols_at(symbols, address, symbol, SYMBOLS_INLINE_MAX) > 0;
        else
            address_print(symbols, address);
    }
    if (quiet)
        printf("%zu of %zu known; opened in %.1f ms, looked up in %.1f ms\n", found, count,
               (double)(open_ns - start_ns) / 1e6, (double)(clock_mono_ns() - open_ns) / 1e6);
    printf("source: %s\n", symbols_source(symbols));
    for (const char *const *note = symbols_notes(symbols); *note; note++)
        printf("note: %s\n", *note);
    symbols_close(symbols);
    return 0;
}
