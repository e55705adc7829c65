/* What all commands share: drawing a report and reporting an error. */
#include "cmd/cmd.h"

#include "base/text.h"
#include "target/command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct render_opts cmd_render_opts(FILE *out)
{
    struct render_opts opts = {0};
    /* In a pipe nothing wraps, unless somebody says how wide the reader is. */
    const char *columns = getenv("COLUMNS");
    uint64_t width = 0;
    if (columns && str_to_u64(str_from(columns), 10, &width) == 0 && width <= 1000)
        opts.width = (unsigned)width;
    if (!isatty(fileno(out)))
        return opts;
    struct winsize size = {0};
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        opts.width = size.ws_col;
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    opts.color = !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    return opts;
}

int cmd_render(const struct cmd_call *call, const struct output_opts *output,
               const struct report *report, struct why *why)
{
    const char *name = output->json ? "json" : output->markdown ? "markdown" : "text";
    struct render_opts opts = cmd_render_opts(call->out);
    return render(renderer_find(name), report, &opts, call->out, why);
}

/* An error may quote the command, or a part of it: here it is told, wherever it was made. */
static void words_print(FILE *err, const char *lead, const char *text)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    fputs(lead, err);
    text_print(err, str_from(command_text_shown(&arena, text)));
    fputc('\n', err);
}

void cmd_print_error(FILE *err, const struct why *why)
{
    words_print(err, "whyslow: ", why->what[0] ? why->what : strerror(why->error));
    if (why->remedy[0])
        words_print(err, "  try: ", why->remedy);
}

int cmd_exit_status(const struct why *why)
{
    switch (why->kind) {
    case WHY_USAGE:
        return EXIT_USAGE;
    case WHY_DENIED:
        return EXIT_DENIED;
    case WHY_NOTHING:
        return EXIT_INCONCLUSIVE;
    default:
        return EXIT_OWN_FAILURE;
    }
}
