/* Everything that reads a recording, asked of one: the commands themselves, so that a new view
 * or exporter is fuzzed from its first day. */
#pragma once

#include "fuzz_files.h"

#include "base/map.h"
#include "cmd/run_interpret.h"
#include "present/exporters.h"

#define FUZZ_RECORDING "it.whyslow"

/* The word "REC" stands for the recording. */
static const char *const fuzz_questions[][FUZZ_ARGUMENTS_MAX] = {
    {"query", "REC"},
    {"query", "REC", "SELECT count(*), sum(weight) FROM sample"},
    {"query", "REC", "SELECT stack_text(id) FROM stack", "--limit", "100", "--json"},
    {"query", "REC", "SELECT frame_text(id) FROM frame", "--limit", "100", "--markdown"},
    {"report", "REC", "--limit", "0", "--json"},
    {"report", "REC", "--limit", "0"},
    {"report", "REC", "--tree", "--min-pct", "0", "--limit", "0", "--markdown"},
    {"report", "REC", "--tree", "--inverted"},
    {"report", "REC", "--callers", "f1"},
    {"report", "REC", "--callees", "f1", "--json"},
    {"report", "REC", "--annotate", "f1"},
    {"report", "REC", "--annotate", "f2", "--json"},
    {"report", "REC", "--threads"},
    {"report", "REC", "--lines", "--limit", "0"},
    {"report", "REC", "--time", "10%..60%", "--filter", "e"},
    {"report", "REC", "--focus", "a", "--json"},
    {"report", "REC", "--diff", "REC", "--json"},
    {"report", "REC", "--series", "offcpu", "--tree"},
    {"waits", "REC", "--limit", "0", "--json"},
    {"waits", "REC", "--threads", "--idle", "--limit", "0"},
    {"waits", "REC", "--stack", "w1", "--markdown"},
    {"locks", "REC", "--limit", "0", "--json"},
    {"locks", "REC", "--lock", "l1"},
    {"report", "REC", "--series", "io", "--json"},
    {"io", "REC", "--limit", "0", "--json"},
    {"io", "REC", "--limit", "0"},
    {"io", "REC", "--requests", "--limit", "0", "--markdown"},
    {"io", "REC", "--files", "--limit", "0"},
};

static inline void fuzz_ask(const char *const *question, const char *path)
{
    const char *words[FUZZ_ARGUMENTS_MAX + 1] = {0};
    for (size_t i = 0; i < FUZZ_ARGUMENTS_MAX && question[i]; i++)
        words[i] = strcmp(question[i], "REC") == 0 ? path : question[i];
    fuzz_command(words);
}

/* All that is said of a run, when every axis is this recording. */
static inline void fuzz_interpret(const char *path)
{
    struct arena arena = ARENA_INIT;
    struct interpretation said;
    struct run_about about = {.command = "it", .run_id = "it", .folder = "."};
    struct evidence_input input = {.command = "it",
                                   .costs = {.runs = 3,
                                             .wall_ns = 1e9,
                                             .wall_min_ns = 0.9e9,
                                             .wall_max_ns = 1.1e9,
                                             .cpu_ns = 0.5e9,
                                             .cpus = 2}};
    for (int i = 0; i < AXES; i++) {
        input.axes[i].recording = path;
        input.axes[i].artifact = FUZZ_RECORDING;
        input.axes[i].wall_ns = 1.1e9;
    }
    struct why why = {0};
    (void)!run_interpret(&arena, &input, &about, &said, &why);
    arena_deinit(&arena);
}

enum { FUZZ_QUESTIONS_EACH = 2 };

/* Of the file FUZZ_RECORDING, which is gone afterwards. To open a recording costs far more than
 * most questions, so only some are asked of each: which ones, the bytes decide. What has failed
 * once fails again, and whoever changes a byte asks others. */
static inline void fuzz_recording_ask(const uint8_t *data, size_t size)
{
    char path[PATH_MAX];
    fuzz_path(FUZZ_RECORDING, path);
    uint64_t hash = hash_bytes(data, size);
    size_t formats = 0;
    while (exporters[formats])
        formats++;
    for (size_t i = 0; i < FUZZ_QUESTIONS_EACH; i++, hash /= 31) {
        size_t which = hash % (ARRAY_SIZE(fuzz_questions) + formats + 2);
        if (which >= ARRAY_SIZE(fuzz_questions) + formats)
            fuzz_interpret(path);
        else if (which < ARRAY_SIZE(fuzz_questions))
            fuzz_ask(fuzz_questions[which], path);
        else
            fuzz_command((const char *[]){"export", path, "--format",
                                          exporters[which - ARRAY_SIZE(fuzz_questions)]->name,
                                          "--output", "/dev/null", NULL});
    }
    fuzz_file_remove(FUZZ_RECORDING);
}
