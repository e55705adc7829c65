/* The table of commands. A new one is a file in cmd/ that defines `cmd_NAME`, and a row here;
 * the order is that of the overview in `whyslow --help`. */
#include "cmd/cmd.h"

#include <string.h>

#define COMMANDS(ROW)                                                                              \
    ROW(run)                                                                                       \
    ROW(bench)                                                                                     \
    ROW(compare)                                                                                   \
    ROW(gate)                                                                                      \
    ROW(scale)                                                                                     \
    ROW(history)                                                                                   \
    ROW(record)                                                                                    \
    ROW(waits)                                                                                     \
    ROW(locks)                                                                                     \
    ROW(io)                                                                                        \
    ROW(heap)                                                                                      \
    ROW(report)                                                                                    \
    ROW(query)                                                                                     \
    ROW(import)                                                                                    \
    ROW(export)                                                                                    \
    ROW(doctor)                                                                                    \
    ROW(tune)                                                                                      \
    ROW(help)

#define DECLARE(name) extern const struct command cmd_##name;
#define POINT(name)   &cmd_##name,

COMMANDS(DECLARE)

const struct command *const commands[] = {COMMANDS(POINT) NULL};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}
