/* Writes roff with the man macros; every text is escaped, none is trusted. */
#include "cmd/help_man.h"

#include <string.h>

static void put(FILE *out, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (strncmp(text, "…", strlen("…")) == 0) {
            fputs("...", out);
            text += strlen("…") - 1;
        } else
            fputc(*text, out);
        line_start = *text == '\n';
    }
}

static void paragraphs(FILE *out, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t len = end ? (size_t)(end - text) : strlen(text);
        char paragraph[2048];
        snprintf(paragraph, sizeof(paragraph), "%.*s", (int)len, text);
        put(out, paragraph);
        fputs(end ? "\n.PP\n" : "\n", out);
        text += end ? len + 2 : len;
    }
}

static void options(const struct opt *table, FILE *out)
{
    for (const struct opt *opt = table; opt && opt->name; opt++) {
        if (opt->hidden)
            continue;
        fputs(".TP\n", out);
        if (opt->letter)
            fprintf(out, "\\fB\\-%c\\fR, ", opt->letter);
        fputs("\\fB\\-\\-", out);
        put(out, opt->name);
        fputs("\\fR", out);
        if (opt->argument) {
            fputs(" \\fI", out);
            put(out, opt->argument);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        put(out, opt->help);
        if (opt->choices) {
            fputs(" (one of ", out);
            put(out, opt->choices);
            fputc(')', out);
        }
        if (opt->fallback) {
            fputs(" (default ", out);
            put(out, opt->fallback);
            fputc(')', out);
        }
        fputc('\n', out);
    }
}

static void exit_statuses(FILE *out)
{
    static const char *const meanings[] = {
        "done",
        "regression, or a failed check with \\-\\-strict",
        "usage: what was typed cannot be meant",
        "inconclusive",
        "not permitted, or not possible on this machine",
        "whyslow's own failure",
    };
    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
        fprintf(out, ".TP\n%zu\n%s\n", i, meanings[i]);
}

static void overview(const char *version, FILE *out)
{
    fprintf(out,
            ".TH WHYSLOW 1 \"\" \"whyslow %s\" \"User Commands\"\n"
            ".SH NAME\nwhyslow \\- why is this program slow?\n"
            ".SH SYNOPSIS\n.B whyslow\n.I PROGRAM\n[\\fIARGS\\fR...]\n.br\n"
            ".B whyslow\n.I COMMAND\n[\\fIoptions\\fR] ...\n"
            ".SH DESCRIPTION\nMeasures a program and ranks where its time, memory, I/O and "
            "waiting go, with the evidence behind every number.\n.SH COMMANDS\n",
            version);
    for (size_t i = 0; commands[i]; i++) {
        fprintf(out, ".TP\n\\fBwhyslow\\-%s\\fR(1)\n", commands[i]->name);
        put(out, commands[i]->summary);
        fputc('\n', out);
    }
    exit_statuses(out);
}

void man_print(const struct command *command, const char *version, FILE *out)
{
    if (!command) {
        overview(version, out);
        return;
    }
    fprintf(out, ".TH WHYSLOW\\-%s 1 \"\" \"whyslow %s\" \"User Commands\"\n.SH NAME\n",
            command->name, version);
    fprintf(out, "whyslow\\-%s \\- ", command->name);
    put(out, command->summary);
    fprintf(out, "\n.SH SYNOPSIS\n.B whyslow %s\n[\\fIoptions\\fR] ", command->name);
    put(out, command->operands);
    fputs("\n.SH DESCRIPTION\n", out);
    paragraphs(out, command->about);
    fputs(".SH OPTIONS\n", out);
    options(command->options, out);
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint a short help\n", out);
    if (command->examples && command->examples->command)
        fputs(".SH EXAMPLES\n", out);
    for (const struct cmd_example *example = command->examples; example && example->command;
         example++) {
        fputs(".TP\n\\fB", out);
        put(out, example->command);
        fputs("\\fR\n", out);
        put(out, example->meaning);
        fputc('\n', out);
    }
    exit_statuses(out);
    fputs(".SH SEE ALSO\n\\fBwhyslow\\fR(1)\n", out);
}
