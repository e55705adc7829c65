/* Help as text, man page or shell completion, all from the command table. */
#include "cmd/help.h"

#include "cmd/help_completion.h"
#include "cmd/help_man.h"
#include "version.h"

#include <errno.h>
#include <string.h>

enum { OPTION_COLUMN = 30, TEXT_COLUMNS = 80 };

struct help_opts {
    bool man;
    bool list;
    const char *completion;
};

static const struct opt help_options[] = {
    {"man", 0, OPT_FLAG, offsetof(struct help_opts, man), NULL,
     "print the man page of the command, or of whyslow itself", NULL, NULL, false},
    {"list", 0, OPT_FLAG, offsetof(struct help_opts, list), NULL,
     "print the names of all commands, one a line", NULL, NULL, false},
    {"completion", 0, OPT_CHOICE, offsetof(struct help_opts, completion), "SHELL",
     "print the completion script for bash, zsh or fish", NULL, "bash|zsh|fish", false},
    {0},
};

/* Fills paragraphs to the line width, starting at `column`, every line indented to it. */
static void fill(FILE *out, const char *text, int column, int at)
{
    struct str rest = str_from(text);
    while (rest.len > 0) {
        struct str word = str_word(&rest);
        if (word.len == 0)
            break;
        if (at > column && at + 1 + (int)word.len > TEXT_COLUMNS) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        } else if (at > column) {
            fputc(' ', out);
            at++;
        } else if (at < column) {
            fprintf(out, "%*s", column - at, "");
            at = column;
        }
        fwrite(word.data, 1, word.len, out);
        at += (int)word.len;
    }
    fputc('\n', out);
}

static void fill_paragraphs(FILE *out, const char *text)
{
    struct str rest = str_from(text);
    while (rest.len > 0) {
        const char *end = memmem(rest.data, rest.len, "\n\n", 2);
        size_t len = end ? (size_t)(end - rest.data) : rest.len;
        char paragraph[2048];
        snprintf(paragraph, sizeof(paragraph), "%.*s", (int)len, rest.data);
        fputc('\n', out);
        fill(out, paragraph, 0, 0);
        size_t skip = end ? len + 2 : len;
        rest.data += skip;
        rest.len -= skip;
    }
}

static void option_line(const struct opt *opt, FILE *out)
{
    char label[64];
    int at;
    if (opt->letter)
        at = snprintf(label, sizeof(label), "  -%c, --%s%s%s", opt->letter, opt->name,
                      opt->argument ? " " : "", opt->argument ? opt->argument : "");
    else
        at = snprintf(label, sizeof(label), "      --%s%s%s", opt->name, opt->argument ? " " : "",
                      opt->argument ? opt->argument : "");
    fputs(label, out);
    if (at >= OPTION_COLUMN - 1) {
        fputc('\n', out);
        at = 0;
    }
    char text[600];
    snprintf(text, sizeof(text), "%s%s%s%s%s%s%s", opt->help, opt->choices ? " (one of " : "",
             opt->choices ? opt->choices : "", opt->choices ? ")" : "",
             opt->fallback ? " (default " : "", opt->fallback ? opt->fallback : "",
             opt->fallback ? ")" : "");
    fill(out, text, OPTION_COLUMN, at);
}

void help_command(const struct command *command, FILE *out)
{
    bool options = command->options && command->options[0].name;
    fprintf(out, "whyslow %s: %s\n\nUsage: whyslow %s%s%s%s\n", command->name, command->summary,
            command->name, options ? " [options]" : "", *command->operands ? " " : "",
            command->operands);
    fill_paragraphs(out, command->about);
    fputs("\nOptions:\n", out);
    for (const struct opt *opt = command->options; opt && opt->name; opt++)
        if (!opt->hidden)
            option_line(opt, out);
    fputs("  -h, --help                  print this help\n", out);
    const struct cmd_example *example = command->examples;
    if (example && example->command)
        fputs("\nExamples:\n", out);
    for (; example && example->command; example++)
        fprintf(out, "  %s\n      %s\n", example->command, example->meaning);
}

void help_overview(FILE *out)
{
    fputs("whyslow: why is this program slow?\n\n"
          "Usage: whyslow PROGRAM [ARGS…]      the whole loop on a program\n"
          "       whyslow COMMAND [options] …  one step of it\n",
          out);
    const char *group = NULL;
    for (size_t i = 0; commands[i]; i++) {
        if (!group || strcmp(group, commands[i]->group) != 0)
            fprintf(out, "\n%s:\n", commands[i]->group);
        group = commands[i]->group;
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    fputs("\n'whyslow help COMMAND' tells more; 'whyslow --version' prints the version.\n"
          "Exit status: 0 done, 1 regression or failed check, 2 usage, 3 inconclusive,\n"
          "4 not permitted or not possible here, 5 whyslow's own failure.\n",
          out);
}

static int help_run(const struct cmd_call *call, struct why *why)
{
    const struct help_opts *opts = call->opts;
    const struct command *command = NULL;
    if (call->argc > 0) {
        command = command_find(call->argv[0]);
        if (!command)
            return why_set(why, WHY_USAGE, EINVAL, "'whyslow --help' lists the commands",
                           "no command '%s'", call->argv[0]);
    }
    if (opts->list)
        for (size_t i = 0; commands[i]; i++)
            fprintf(call->out, "%s\n", commands[i]->name);
    else if (opts->completion)
        completion_print(opts->completion, call->out);
    else if (opts->man)
        man_print(command, WHYSLOW_VERSION, call->out);
    else if (command)
        help_command(command, call->out);
    else
        help_overview(call->out);
    if (fflush(call->out) != 0)
        return why_errno(why, errno, NULL, "cannot write the help");
    return EXIT_DONE;
}

static const struct cmd_example help_examples[] = {
    {"whyslow help doctor", "what doctor does, and its options"},
    {"whyslow help --man run | man -l -", "the man page of run, without installing it"},
    {"source <(whyslow help --completion bash)", "completion in this shell"},
    {0},
};

const struct command cmd_help = {
    .name = "help",
    .group = "About",
    .operands = "[COMMAND]",
    .summary = "explain a command, print its man page or shell completion",
    .about = "Without a command, lists them all. Man pages and completions are printed from the "
             "same table that parses the options, so they cannot be out of date.",
    .options = help_options,
    .options_size = sizeof(struct help_opts),
    .stop = OPT_MIXED,
    .operands_max = 1,
    .examples = help_examples,
    .run = help_run,
};
