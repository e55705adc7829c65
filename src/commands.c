/* The table of commands. A new one is a file in cmd/ and a row here. */
#include "cmd/cmd.h"
#include "cmd/doctor.h"
#include "cmd/help.h"
#include "cmd/query.h"
#include "cmd/run.h"
#include "cmd/tune.h"

#include <string.h>

const struct command *const commands[] = {
    &cmd_run, &cmd_query, &cmd_doctor, &cmd_tune, &cmd_help, NULL,
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}
