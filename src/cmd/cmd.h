/* A command: one file in cmd/ and one row in commands.c.
 *
 * A command reads as its pipeline and returns an exit status (0 or more) or
 * -errno with `why` filled; main.c prints the error and turns it into a status. */
#pragma once

#include "base/opt.h"
#include "base/why.h"
#include "present/renderers.h"

#include <stdio.h>

/* The exit statuses of whyslow, the same for every command. */
enum exit_status {
    EXIT_DONE = 0,
    EXIT_REGRESSION = 1, /* regression, or a failed check with --strict */
    EXIT_USAGE = 2,
    EXIT_INCONCLUSIVE = 3,
    EXIT_DENIED = 4, /* not permitted, or not possible here */
    EXIT_OWN_FAILURE = 5,
};

struct cmd_call {
    const void *opts; /* the command's option struct, filled */
    int argc;         /* operands only */
    char **argv;
    FILE *out;   /* results */
    FILE *err;   /* warnings and errors */
    FILE *notes; /* progress and what else is good to know: nowhere with --quiet */
};

struct cmd_example {
    const char *command;
    const char *meaning;
};

struct command {
    const char *name;
    const char *group;    /* heading in the overview */
    const char *operands; /* "REC SQL", for the usage line; "" for none */
    const char *summary;  /* one line, lower case, no full stop */
    const char *about;    /* paragraphs for help and man page, separated by blank lines */
    const struct opt *options;
    size_t options_size; /* sizeof the option struct */
    enum opt_stop stop;
    int operands_min;
    int operands_max;                   /* -1: any number */
    const struct cmd_example *examples; /* ends with a NULL command; may be NULL */
    int (*run)(const struct cmd_call *call, struct why *why);
};

extern const struct command *const commands[]; /* ends with NULL; in commands.c */

/* NULL when there is no such command. */
const struct command *command_find(const char *name);

/* Options every reporting command has; put `struct output_opts output` into the
 * option struct and OUTPUT_OPTIONS(struct, member) into its table. */
struct output_opts {
    bool json;
    bool markdown;
    bool quiet;
};

/* The row by this name is what main.c looks for. */
#define QUIET_OPTION(at)                                                                           \
    {                                                                                              \
        "quiet", 'q', OPT_FLAG, (at), NULL, "no progress and no notes on stderr", NULL, NULL,      \
            false                                                                                  \
    }

#define OUTPUT_OPTIONS(type, member)                                                               \
    {"json",   0,                                                                                  \
     OPT_FLAG, offsetof(type, member) + offsetof(struct output_opts, json),                        \
     NULL,     "print JSON for programs",                                                          \
     NULL,     NULL,                                                                               \
     false},                                                                                       \
        QUIET_OPTION(offsetof(type, member) + offsetof(struct output_opts, quiet)),                \
    {                                                                                              \
        "markdown", 0, OPT_FLAG, offsetof(type, member) + offsetof(struct output_opts, markdown),  \
            NULL, "print Markdown for issues and CI summaries", NULL, NULL, false                  \
    }

/* Commands that store or print command lines; main.c hears of it before the command runs. */
#define KEEP_ARGUMENTS "keep-arguments"
#define KEEP_ARGUMENTS_OPTION(at)                                                                  \
    {                                                                                              \
        KEEP_ARGUMENTS, 0, OPT_FLAG, (at), NULL,                                                   \
            "keep command lines as they are, with their passwords and keys", NULL, NULL, false, 0  \
    }

/* How `out` is to be drawn on: colour and line width only on a terminal. */
struct render_opts cmd_render_opts(FILE *out);

/* Draws the report as asked for: colour and line width only on a terminal. */
MUST_USE int cmd_render(const struct cmd_call *call, const struct output_opts *output,
                        const struct report *report, struct why *why);

/* "error: what" and "  try: remedy", on `err`. */
void cmd_print_error(FILE *err, const struct why *why);
int cmd_exit_status(const struct why *why);
