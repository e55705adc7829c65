/* A hash is compared; a check command gets the output as its stdin. */
#include "cmd/run_golden.h"

#include "base/clock.h"
#include "base/temporary.h"
#include "cmd/baseline.h"
#include "target/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHECK_TIMEOUT_S = 60 };

int run_golden_open(struct run_golden *golden, struct arena *arena, const struct golden *given,
                    struct why *why)
{
    *golden = (struct run_golden){.golden = given, .arena = arena};
    if (given->kind != GOLDEN_CHECK)
        return 0;
    int r = temporary_file(golden->path);
    if (r < 0)
        return why_errno(why, -r, "set TMPDIR to a folder you may write to",
                         "cannot create a file for the output in '%s'", golden->path);
    golden->output_path = golden->path;
    return 0;
}

void run_golden_close(struct run_golden *golden)
{
    if (golden->output_path)
        temporary_remove(golden->output_path);
    golden->output_path = NULL;
}

static int check_run(const struct run_golden *golden, char *how, size_t size)
{
    struct command_line line;
    struct spawn_result result;
    struct why why = {0};
    if (command_line_parse(golden->arena, golden->golden->given, "sh", &line, &why) < 0) {
        snprintf(how, size, "cannot be checked: %.200s", why.what);
        return 1;
    }
    struct spawn_opts opts = {
        .argv = line.argv,
        .path = line.path,
        .input = SPAWN_FILE,
        .input_path = golden->output_path,
        .output = SPAWN_CAPTURE,
        .error = SPAWN_CAPTURE,
        .timeout_ns = CHECK_TIMEOUT_S * NS_PER_SEC,
    };
    if (spawn_run(&opts, &result, &why) < 0) {
        snprintf(how, size, "cannot be checked: %.200s", why.what);
        return 1;
    }
    if (status_is_good(&result))
        return 0;
    snprintf(how, size, "printed what the check command refuses (%.150s)",
             command_text_shown(golden->arena, golden->golden->given));
    return 1;
}

int run_golden_judge(const struct run_golden *golden, const struct spawn_result *result, char *how,
                     size_t size)
{
    switch (golden->golden->kind) {
    case GOLDEN_NONE:
        return 0;
    case GOLDEN_CHECK:
        return check_run(golden, how, size);
    case GOLDEN_HASH:
        break;
    }
    if (strcmp(result->output.sha256, golden->golden->sha256) == 0)
        return 0;
    snprintf(how, size,
             "printed something else than the golden output (sha256 %.16s..., wanted %.16s...)",
             result->output.sha256, golden->golden->sha256);
    return 1;
}
