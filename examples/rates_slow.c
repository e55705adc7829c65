/* Trouble 3, a file read again and again: all of it, for one line. */
#include "ledger.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t order_rate(const char *rates_path, uint32_t currency)
{
    static char text[LEDGER_CURRENCIES * LEDGER_RATE_BYTES];
    int fd = open(rates_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    if (fd >= 0)
        close(fd);
    if (n != (ssize_t)sizeof(text) || currency >= LEDGER_CURRENCIES)
        return 0;
    return (uint32_t)strtoul(text + (size_t)currency * LEDGER_RATE_BYTES, NULL, 10);
}
