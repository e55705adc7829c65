/* The five steps of the importer, each done the slow way on purpose. */
#include "ledger.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One bit at a time. */
uint32_t decode_payload(const char *data, size_t len)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

/* A copy of the note, and three of every word, to look at one letter. */
uint32_t note_words(const char *note, size_t len)
{
    uint32_t count = 0;
    char *copy = strndup(note, len);
    char *state = NULL;
    for (char *word = copy ? strtok_r(copy, " ", &state) : NULL; word;
         word = strtok_r(NULL, " ", &state)) {
        char *lower = strdup(word);
        char *trimmed = lower ? strdup(lower) : NULL;
        char *key = trimmed ? strdup(trimmed) : NULL;
        count += key && key[0] != 'g';
        free(key);
        free(trimmed);
        free(lower);
    }
    free(copy);
    return count;
}

/* The whole file, for one line of it. */
uint32_t order_rate(const char *rates_path, uint32_t currency)
{
    uint32_t rate = 0;
    char line[256];
    FILE *in = fopen(rates_path, "r");
    while (in && fgets(line, sizeof(line), in)) {
        char *end;
        uint32_t number = (uint32_t)strtoul(line, &end, 10);
        if (number == currency)
            rate = (uint32_t)strtoul(end, NULL, 10);
    }
    if (in)
        fclose(in);
    return rate;
}

static pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t totals_all[LEDGER_ACCOUNTS];

/* Everybody waits while one writes a statement nobody reads. */
void totals_add(unsigned worker, const struct order *order)
{
    (void)worker;
    char text[256];
    uint64_t cents = 0;
    pthread_mutex_lock(&totals_lock);
    for (int copy = 0; copy < 45; copy++)
        cents = statement_line(order, text, sizeof(text));
    totals_all[order->account] += cents;
    pthread_mutex_unlock(&totals_lock);
}

void totals_collect(uint64_t totals[LEDGER_ACCOUNTS])
{
    memcpy(totals, totals_all, sizeof(totals_all));
}

/* Durable after every single record. */
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
