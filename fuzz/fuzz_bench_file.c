/* Any bytes as a stored benchmark result: read, compared with itself, kept in a history. */
#include "fuzz_files.h"

#include "host/fingerprint.h"
#include "store/bench_file.h"
#include "store/history.h"

enum { RUNS_MAX = 64 };

static void history_keep(const struct bench_file *file)
{
    struct history *history = NULL;
    struct why why = {0};
    char path[PATH_MAX];
    int r = history_open(fuzz_path("history.db", path), true, &history, &why);
    for (size_t i = 0; r >= 0 && i < MIN(file->results.len, (size_t)4); i++) {
        r = history_add(history, &file->results.data[i], &file->origin, &why);
        if (r < 0 && why.what[0] == '\0')
            abort();
    }
    history_close(history);
    fuzz_file_remove("history.db");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct bench_file file = {0};
    struct value differences;
    unsigned incomparable = 0;
    struct why why = {0};
    char path[PATH_MAX];
    fuzz_file_write("bench.json", data, size);
    fuzz_path("bench.json", path);
    int r = bench_file_read(&arena, path, &file, &why);
    if (r < 0 && why.what[0] == '\0')
        abort();
    if (r == 0 && file.has_fingerprint) {
        int compared = fingerprint_diff(&arena, path, path, &differences, &incomparable, &why);
        if (compared < 0 ? why.what[0] == '\0' : incomparable > 0)
            abort(); /* refused without a word, or not the same as itself */
    }
    if (r == 0)
        history_keep(&file);
    /* Resampling costs time by the number of runs; a few show all there is to see. */
    if (r == 0 && file.results.len == 1 && file.results.data[0].runs.len <= RUNS_MAX)
        fuzz_command(
            (const char *[]){"compare", path, path, "--force", "--json", "--ignore-failure", NULL});
    bench_file_deinit(&file);
    fuzz_file_remove("bench.json");
    return 0;
}
