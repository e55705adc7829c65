/* Runs one fuzz target on files and folders of files, so that what was found once is an
 * ordinary test; then on damaged copies of each: cut off, and bytes changed.
 *
 *     run-corpus TARGET CHANGES FILE-OR-FOLDER… */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* All targets are in this program, each under a name of its own. */
#define TARGET(name) int fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS
#undef TARGET

static const struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define TARGET(name) {#name, fuzz_##name},
    FUZZ_TARGETS
#undef TARGET
};

enum { SIZE_MAX_BYTES = 1 << 20 };

static unsigned changes;
static const struct target *target;

/* A copy of exactly this size, so that the sanitizer sees a read beyond it. */
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    target->run(copy, size);
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
    for (size_t i = 0; argc > 3 && i < sizeof(targets) / sizeof(*targets); i++)
        if (strcmp(argv[1], targets[i].name) == 0)
            target = &targets[i];
    if (!target) {
        fprintf(stderr, "usage: run-corpus TARGET CHANGES FILE-OR-FOLDER…\n");
        return 2;
    }
    changes = (unsigned)strtoul(argv[2], NULL, 10);
    int failed = 0;
    for (int i = 3; i < argc; i++) {
        struct stat st;
        failed |= stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? run_folder(argv[i])
                                                                 : run_file(argv[i]);
    }
    return failed;
}
