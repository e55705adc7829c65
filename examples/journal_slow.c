/* Trouble 5, an fsync for every record: durable after every single one. */
#include "ledger.h"

#include <stdio.h>
#include <unistd.h>

int journal_append(int fd, const struct order *order, uint64_t number)
{
    char text[256];
    statement_line(order, text, sizeof(text));
    if (dprintf(fd, "%llu %s\n", (unsigned long long)number, text) < 0)
        return -1;
    return fsync(fd);
}

int journal_close(int fd)
{
    return close(fd);
}
