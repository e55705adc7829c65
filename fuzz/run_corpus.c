/* Runs a fuzz target on files and folders of files, so that what was found once is an
 * ordinary test; then on damaged copies of each: cut off, and bytes changed.
 *
 *     run_corpus CHANGES FILE-OR-FOLDER… */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE_MAX_BYTES = 1 << 20 };

static unsigned changes;

/* A copy of exactly this size, so that the sanitizer sees a read beyond it. */
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int run_file(const char *path)
{
    static uint8_t data[SIZE_MAX_BYTES];
    FILE *file = fopen(path, "rbe");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof(data), file);
    fclose(file);
    run_copy(data, size);
    uint32_t seed = 1;
    for (unsigned i = 0; i < changes && size > 0; i++) {
        seed = seed * 1664525 + 1013904223;
        run_copy(data, seed % size);
        /* One byte at a time, and they add up over sixteen. */
        uint8_t *byte = &data[(seed >> 4) % size];
        uint8_t old = *byte;
        *byte = (uint8_t)(i % 3 == 0 ? 0xff : seed >> 24);
        run_copy(data, size);
        if (i % 16 != 0)
            *byte = old;
    }
    return 0;
}

static int run_folder(const char *path)
{
    int failed = 0;
    unsigned count = 0;
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        failed |= run_file(name);
        count++;
    }
    closedir(folder);
    printf("%s: %u files\n", path, count);
    return failed || count == 0;
}

int main(int argc, char **argv)
{
    int failed = argc < 3;
    changes = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    for (int i = 2; i < argc; i++) {
        struct stat st;
        failed |= stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? run_folder(argv[i])
                                                                 : run_file(argv[i]);
    }
    return failed;
}
