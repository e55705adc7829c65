/* Any bytes as a history of benchmarks: listed, read by name, and drawn. */
#include "fuzz_files.h"

#include "store/history.h"

#define FILE_NAME "history.db"

enum { NAMES_MAX = 8, ENTRIES_MAX = 400 };

static void history_walk(const char *path)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct history *history = NULL;
    struct history_names names = {0};
    struct why why = {0};
    int r = history_open(path, false, &history, &why);
    if (r == 0)
        r = history_list(history, BENCH_WALL, &arena, &names, &why);
    for (size_t i = 0; r == 0 && i < MIN(names.len, (size_t)NAMES_MAX); i++) {
        struct history_entries entries = {0};
        r = history_read(history, names.data[i].name, names.data[i].machine, BENCH_WALL,
                         ENTRIES_MAX, &arena, &entries, &why);
        if (r == 0 && entries.len > ENTRIES_MAX)
            abort();
        VEC_FREE(&entries);
        fuzz_command((const char *[]){"history", "--store", path, "--", names.data[i].name, NULL});
    }
    if (r < 0 && why.what[0] == '\0')
        abort();
    if (r == 0)
        fuzz_command((const char *[]){"history", "--store", path, "--json", NULL});
    VEC_FREE(&names);
    history_close(history);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[PATH_MAX];
    fuzz_file_write(FILE_NAME, data, size);
    history_walk(fuzz_path(FILE_NAME, path));
    fuzz_file_remove(FILE_NAME);
    return 0;
}
