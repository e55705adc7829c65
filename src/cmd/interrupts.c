/* Words put together without libc's formatting: they are said in a signal handler. */
#include "cmd/interrupts.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

struct line {
    char text[512];
    size_t len;
};

static void add(struct line *line, const char *text)
{
    while (*text && line->len < sizeof(line->text))
        line->text[line->len++] = *text++;
}

static void add_pid(struct line *line, int pid)
{
    char digits[16];
    size_t at = sizeof(digits);
    digits[--at] = '\0';
    for (uint32_t rest = (uint32_t)pid; at > 0 && (rest > 0 || !digits[at]); rest /= 10)
        digits[--at] = (char)('0' + rest % 10);
    add(line, digits + at);
}

/* One that is just being started has no pid yet. */
static void add_program(struct line *line, const struct interrupt_note *note)
{
    add(line, note->running > 1 ? "the programs" : "the program");
    unsigned known = 0;
    for (unsigned i = 0; i < note->running; i++) {
        if (note->pids[i] == 0)
            continue;
        add(line, known++ == 0 ? " (pid " : ", ");
        add_pid(line, note->pids[i]);
    }
    add(line, known > 0 ? ")" : "");
}

static void add_first(struct line *line, const struct interrupt_note *note)
{
    switch (note->target) {
    case INTERRUPT_OWN:
    case INTERRUPT_APART:
        add(line, note->reached ? "" : "handed to ");
        add_program(line, note);
        add(line, note->reached ? " has got it, too; " : "; ");
        add(line, note->target == INTERRUPT_OWN
                      ? "the recording ends when it does, in 5 s at the latest, and is reported"
                  : note->running > 1
                      ? "they are killed in 5 s; what was finished by now is reported"
                      : "it is killed in 5 s; what was finished by now is reported");
        add(line, note->running > 1 ? ". A second signal kills them with all they started"
                                    : ". A second signal kills it with all it started");
        add(line, ", a third ends whyslow at once\n");
        return;
    case INTERRUPT_OTHERS:
        add(line,
            "the recording ends here and is reported. A second signal ends whyslow at once\n");
        return;
    case INTERRUPT_NONE:
        add(line, "whyslow ends after this step. A second signal ends it at once\n");
        return;
    }
}

/* Into a full pipe that nobody empties a write would never end, and the signal would do nothing. */
static void say(const struct line *line)
{
    struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&err, 1, 0) == 1 && err.revents & POLLOUT)
        (void)!write(STDERR_FILENO, line->text, line->len);
}

void interrupts_tell(const struct interrupt_note *note)
{
    struct line line = {.len = 0};
    add(&line, note->terminal ? "\nwhyslow: " : "whyslow: ");
    add(&line, note->signal == SIGINT    ? "SIGINT: "
               : note->signal == SIGTERM ? "SIGTERM: "
                                         : "SIGHUP: ");
    if (note->leaves) {
        add(&line, "whyslow ends at once; what it had is not reported\n");
    } else if (note->count > 1) {
        add_program(&line, note);
        add(&line, note->running > 1 ? " are killed with all they started"
                                     : " is killed with all it started");
        add(&line, ". The next signal ends whyslow at once\n");
    } else {
        add_first(&line, note);
    }
    say(&line);
}
