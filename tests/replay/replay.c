/* A run interpreted again from what it left: evidence.json and recordings in, the files of
 * present/run_files.c out. Nothing is run and nothing measured: the same in, the same out. */
#include "analyze/evidence_file.h"
#include "cmd/run_artifacts.h"
#include "cmd/run_interpret.h"

#include <stdio.h>

static int replay(struct arena *arena, const char *from, const char *to, struct why *why)
{
    static const char *const none[] = {NULL};
    struct evidence_input input;
    struct interpretation *said = ARENA_NEW(arena, struct interpretation);
    int r = said ? evidence_input_read(arena, from, &input, why) : why_nomem(why);
    if (r < 0)
        return r;
    struct run_about about = {
        .command = input.command,
        .run_id = "20000101-000000-0000",
        .folder = ".",
        .scenario = "command line",
        .stability = "not known",
        .marks = none,
        .missing = none,
        .notes = none,
    };
    r = run_interpret(arena, &input, &about, said, why);
    return r < 0 ? r : artifacts_said(arena, to, said, why);
}

int main(int argc, char **argv)
{
    struct arena arena = ARENA_INIT;
    struct why why = {0};
    if (argc != 3) {
        fputs("usage: replay FOLDER-OF-A-RUN FOLDER-FOR-WHAT-IS-SAID\n", stderr);
        return 2;
    }
    int r = replay(&arena, argv[1], argv[2], &why);
    if (r < 0)
        fprintf(stderr, "replay: %s\n", why.what);
    arena_deinit(&arena);
    return r < 0;
}
