/* argv to one row of the command table; errors to words and a status. */
#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "target/command.h"
#include "version.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool quiet;

static void show_message(enum log_level level, const char *text)
{
    if (level == LOG_DEBUG && !getenv("WHYSLOW_DEBUG"))
        return;
    if (level == LOG_INFO && quiet)
        return;
    fputs(level == LOG_WARNING ? "whyslow: warning: " : "whyslow: ", stderr);
    text_print(stderr, str_from(text));
    fputc('\n', stderr);
}

static int usage_error(const struct command *command, struct why *why)
{
    cmd_print_error(stderr, why);
    if (command)
        fprintf(stderr, "  see: whyslow help %s\n", command->name);
    return EXIT_USAGE;
}

static int check_operands(const struct command *command, int operands, struct why *why)
{
    if (operands < command->operands_min)
        return why_set(why, WHY_USAGE, EINVAL, NULL, "'whyslow %s' needs %s", command->name,
                       command->operands);
    if (command->operands_max >= 0 && operands > command->operands_max)
        return why_set(why, WHY_USAGE, EINVAL, NULL, "'whyslow %s' takes %s, not %d operands",
                       command->name, *command->operands ? command->operands : "no operands",
                       operands);
    return 0;
}

static bool asks_for_help(const struct command *command, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
        if (strcmp(argv[i], "--") == 0 || (command->stop == OPT_FIRST_OPERAND && argv[i][0] != '-'))
            return false;
    }
    return false;
}

/* Was --quiet given? Not every command has it. */
static bool is_quiet(const struct command *command, const void *opts)
{
    for (const struct opt *opt = command->options; opt && opt->name; opt++)
        if (strcmp(opt->name, "quiet") == 0)
            return *(const bool *)((const char *)opts + opt->offset);
    return false;
}

/* Where progress goes. Without a way to be quiet it is better to be loud. */
static FILE *notes_open(bool wanted_quiet)
{
    FILE *nowhere = wanted_quiet ? fopen("/dev/null", "we") : NULL;
    return nowhere ? nowhere : stderr;
}

static void notes_close(FILE *notes)
{
    if (notes != stderr)
        fclose(notes);
}

/* Before anything of a command line is stored or printed. */
static void arguments_judge(const struct command *command, const void *opts)
{
    for (const struct opt *opt = command->options; opt && opt->name; opt++)
        if (strcmp(opt->name, KEEP_ARGUMENTS) == 0)
            command_keep_arguments(*(const bool *)((const char *)opts + opt->offset));
}

/* `argv[0]` is the command's name, what follows are its own arguments. */
static int dispatch(const struct command *command, int argc, char **argv)
{
    if (asks_for_help(command, argc, argv)) {
        help_command(command, stdout);
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_OWN_FAILURE;
    }
    struct why why = {0};
    void *opts = calloc(1, command->options_size ? command->options_size : 1);
    if (!opts) {
        why_nomem(&why);
        cmd_print_error(stderr, &why);
        return EXIT_OWN_FAILURE;
    }
    int operands = opt_parse(command->options, command->stop, argc, argv, opts, &why);
    int status = operands < 0 ? operands : check_operands(command, operands, &why);
    if (status < 0) {
        free(opts);
        return usage_error(command, &why);
    }
    arguments_judge(command, opts);
    quiet = is_quiet(command, opts);
    struct cmd_call call = {.opts = opts,
                            .argc = operands,
                            .argv = argv,
                            .out = stdout,
                            .err = stderr,
                            .notes = notes_open(quiet)};
    status = command->run(&call, &why);
    notes_close(call.notes);
    free(opts);
    if (status >= 0)
        return status;
    if (why.error == 0)
        why_errno(&why, -status, NULL, "%s failed", command->name);
    /* Nobody reads the result. Where signals are watched that is an error (interrupt.h); here it
     * ends as quietly as everywhere. */
    if (why.error == EPIPE && ferror(stdout))
        raise(SIGPIPE);
    cmd_print_error(stderr, &why);
    return cmd_exit_status(&why);
}

static bool on_path(const char *name)
{
    const char *path = getenv("PATH");
    struct str rest = str_from(path ? path : "/usr/local/bin:/usr/bin:/bin");
    while (rest.len > 0) {
        struct str folder = str_cut(&rest, ':');
        char candidate[4096];
        snprintf(candidate, sizeof(candidate), "%.*s/%s", STR_FMT(folder), name);
        if (access(candidate, X_OK) == 0)
            return true;
    }
    return false;
}

/* `whyslow PROGRAM …` means `whyslow run PROGRAM …`. */
static int implied_run(int argc, char **argv)
{
    const char *name = argv[1];
    if (strchr(name, '/') || on_path(name))
        return dispatch(command_find("run"), argc, argv);
    struct why why = {0};
    const char *names[64];
    size_t count = 0;
    for (; commands[count] && count < ARRAY_SIZE(names); count++)
        names[count] = commands[count]->name;
    const char *nearest = opt_nearest(name, names, count);
    why_set(&why, WHY_USAGE, EINVAL, "'whyslow --help' lists the commands",
            "'%s' is neither a command of whyslow nor a program on PATH", name);
    if (nearest)
        why_set_remedy(&why, "did you mean 'whyslow %s'?", nearest);
    return usage_error(NULL, &why);
}

int main(int argc, char **argv)
{
    log_set_handler(show_message);
    if (argc < 2) {
        help_overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_overview(stdout);
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_OWN_FAILURE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("whyslow %s\n", WHYSLOW_VERSION);
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_OWN_FAILURE;
    }
    const struct command *command = command_find(argv[1]);
    if (command)
        return dispatch(command, argc - 1, argv + 1);
    if (argv[1][0] == '-') {
        struct why why = {0};
        why_set(&why, WHY_USAGE, EINVAL,
                "'whyslow --help'; options of a command stand after its name",
                "unknown option '%s'", argv[1]);
        return usage_error(NULL, &why);
    }
    return implied_run(argc, argv);
}
