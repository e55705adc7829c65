/* Any bytes as /proc/PID/maps: every line is taken off, and a path lies within the text. */
#include "target/maps.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct map_entry entry;
    unsigned sum = 0;
    for (;;) {
        size_t left = text.len;
        int r = maps_next(&text, &entry);
        if (r == 0)
            break;
        if (text.len >= left)
            abort(); /* this would never end */
        if (r > 0 && (entry.end <= entry.start || entry.path.len > size))
            abort();
        for (size_t i = 0; r > 0 && i < entry.path.len; i++)
            sum += (unsigned char)entry.path.data[i]; /* every byte is ours to read */
    }
    return (int)(sum & 0);
}
