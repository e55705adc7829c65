/* Which commands check the effect of a change, in words that can be typed as they are. */
#include "present/run_parts.h"

#include "analyze/places.h"
#include "base/words.h"
#include "target/command.h"

#include <string.h>

/* The user's own program, which can be kept as it is by copying it: "./app", not "python3". */
static bool can_be_kept(const struct interpretation *run, const struct words *words)
{
    static const char *const folders[] = {"/usr/", "/bin/", "/sbin/", "/lib",
                                          "/opt/", "/nix/", "/snap/"};
    const char *program = words->argv[0];
    if (!strchr(program, '/') || !run->evidence->binary || run->evidence->binary->script ||
        place_interpreted(str_from(program)))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        if (strncmp(program, folders[i], strlen(folders[i])) == 0)
            return false;
    return true;
}

/* A command word by word; those that are NULL are left out. */
enum { WORDS_ROOM = 16 };
static const char *typed(struct arena *arena, const char *const *words, size_t count)
{
    char *argv[WORDS_ROOM + 1];
    size_t len = 0;
    for (size_t i = 0; i < count && len < WORDS_ROOM; i++)
        if (words[i])
            argv[len++] = (char *)words[i];
    argv[len] = NULL;
    return command_quote(arena, argv);
}
#define TYPED(arena, ...)                                                                          \
    typed((arena), (const char *const[]){__VA_ARGS__},                                             \
          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Both side by side: whatever the machine does falls on both. */
static struct run_validation by_copy(struct arena *arena, const struct interpretation *run,
                                     const struct words *words)
{
    const char *input = run->about.input, *option = input ? "--input" : NULL;
    const char *now = run->about.command;
    char *program = words->argv[0];
    char *kept = (char *)arena_printf(arena, "%s.before", program);
    words->argv[0] = kept;
    const char *before = command_quote(arena, words->argv);
    words->argv[0] = program;
    return (struct run_validation){
        .before = TYPED(arena, "cp", "-p", "--", program, kept),
        .compare = TYPED(arena, "whyslow", "compare", "--metric", "wall", option, input, before,
                         now),
        .gate = TYPED(arena, "whyslow", "gate", "--max-regression", "5%", option, input,
                      "--baseline", before, "--candidate", now),
    };
}

/* A result is kept: weaker, since the two are measured at different times. */
static struct run_validation by_result(struct arena *arena, const struct interpretation *run)
{
    const char *input = run->about.input, *option = input ? "--input" : NULL;
    const char *command = run->about.command;
    const char *before = arena_printf(arena, "%s/before.json", run->about.folder);
    const char *after = arena_printf(arena, "%s/after.json", run->about.folder);
    return (struct run_validation){
        .before = TYPED(arena, "whyslow", "bench", option, input, "--export-json", before, command),
        .compare = arena_printf(
            arena, "%s && %s",
            TYPED(arena, "whyslow", "bench", option, input, "--export-json", after, command),
            TYPED(arena, "whyslow", "compare", "--metric", "wall", before, after)),
        .gate = TYPED(arena, "whyslow", "gate", "--max-regression", "5%", option, input,
                      "--baseline", before, "--candidate", command),
    };
}

/* A command with secrets cannot be typed as it is shown: its scenario has them. */
static struct run_validation by_scenario(struct arena *arena, const struct interpretation *run)
{
    const char *scenario = arena_printf(arena, "%s/scenario.toml", run->about.folder);
    const char *before = arena_printf(arena, "%s/before.json", run->about.folder);
    const char *after = arena_printf(arena, "%s/after.json", run->about.folder);
    const char *again = TYPED(arena, "whyslow", "bench", "--scenario", scenario, "--export-json",
                              after);
    return (struct run_validation){
        .before = TYPED(arena, "whyslow", "bench", "--scenario", scenario, "--export-json", before),
        .compare = arena_printf(
            arena, "%s && %s", again,
            TYPED(arena, "whyslow", "compare", "--metric", "wall", before, after)),
        .gate = arena_printf(arena, "%s && %s", again,
                             TYPED(arena, "whyslow", "gate", "--max-regression", "5%", "--baseline",
                                   before, "--candidate", after)),
    };
}

struct run_validation run_validate(struct arena *arena, const struct interpretation *run)
{
    struct words words = {0};
    struct why why = {0};
    if (run->about.secrets > 0)
        return by_scenario(arena, run);
    if (words_split(arena, run->about.command, &words, &why) == 0 && words.count > 0 &&
        can_be_kept(run, &words))
        return by_copy(arena, run, &words);
    return by_result(arena, run);
}
