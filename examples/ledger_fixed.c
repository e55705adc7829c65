/* The same five steps, done as they should be; the output is the same. */
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Eight bytes at a time, from tables made once. */
uint32_t decode_payload(const char *data, size_t len)
{
    static uint32_t tables[8][256];
    if (tables[0][1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t crc = i;
            for (int bit = 0; bit < 8; bit++)
                crc = crc & 1 ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
            tables[0][i] = crc;
        }
        for (int t = 1; t < 8; t++)
            for (uint32_t i = 0; i < 256; i++)
                tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
    }
    uint32_t crc = 0xffffffffu;
    for (; len >= 8; len -= 8, data += 8) {
        uint32_t low, high;
        memcpy(&low, data, 4);
        memcpy(&high, data + 4, 4);
        low ^= crc;
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (size_t i = 0; i < len; i++)
        crc = (crc >> 8) ^ tables[0][(crc ^ (unsigned char)data[i]) & 0xff];
    return ~crc;
}

/* Where the words stand; no copies. */
uint32_t note_words(const char *note, size_t len)
{
    uint32_t count = 0;
    for (size_t i = 0; i < len; i++)
        count += note[i] != ' ' && (i == 0 || note[i - 1] == ' ') && note[i] != 'g';
    return count;
}

/* The file once, then from memory. */
uint32_t order_rate(const char *rates_path, uint32_t currency)
{
    static uint32_t rates[LEDGER_CURRENCIES];
    static int loaded;
    if (!loaded) {
        char line[256];
        FILE *in = fopen(rates_path, "r");
        while (in && fgets(line, sizeof(line), in)) {
            char *end;
            uint32_t number = (uint32_t)strtoul(line, &end, 10);
            if (number < LEDGER_CURRENCIES)
                rates[number] = (uint32_t)strtoul(end, NULL, 10);
        }
        if (in)
            fclose(in);
        loaded = 1;
    }
    return currency < LEDGER_CURRENCIES ? rates[currency] : 0;
}

/* Every worker has its own sums, a cache line apart; nobody waits. */
static struct {
    uint64_t totals[LEDGER_ACCOUNTS];
    char apart[64];
} workers[LEDGER_THREADS];

void totals_add(unsigned worker, const struct order *order)
{
    char text[256];
    workers[worker].totals[order->account] += statement_line(order, text, sizeof(text));
}

void totals_collect(uint64_t totals[LEDGER_ACCOUNTS])
{
    for (unsigned i = 0; i < LEDGER_THREADS; i++)
        for (unsigned j = 0; j < LEDGER_ACCOUNTS; j++)
            totals[j] += workers[i].totals[j];
}

/* Written now, durable at the end: the import is all or nothing anyway. */
int journal_append(int fd, const struct order *order, uint64_t number)
{
    char text[256];
    statement_line(order, text, sizeof(text));
    return dprintf(fd, "%llu %s\n", (unsigned long long)number, text) < 0 ? -1 : 0;
}

int journal_close(int fd)
{
    int failed = fsync(fd);
    return close(fd) != 0 || failed != 0 ? -1 : 0;
}
