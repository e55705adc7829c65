/* Mended: the same copies, in one buffer that is used again for every note. */
#include "ledger.h"

#include <string.h>

static char buffer[1 << 16];
static size_t used;

static char *keep(const char *text)
{
    size_t size = strlen(text) + 1;
    if (used + size > sizeof(buffer))
        return NULL;
    char *copy = memcpy(buffer + used, text, size);
    used += size;
    return copy;
}

uint32_t note_words(const char *note, size_t len)
{
    uint32_t count = 0;
    if (len >= sizeof(buffer) / 2)
        return 0;
    memcpy(buffer, note, len);
    buffer[len] = '\0';
    char *state = NULL;
    for (char *word = strtok_r(buffer, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
        used = len + 1;
        char *lower = keep(word);
        char *trimmed = lower ? keep(lower) : NULL;
        char *key = trimmed ? keep(trimmed) : NULL;
        count += key && key[0] != 'g';
    }
    return count;
}
