/* Trouble 2, allocation churn: a copy of the note, and three of every word, each thrown away at
 * once. */
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

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
