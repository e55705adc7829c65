/* Any bytes as a statement: the first says in which dialect, and whether there is little room. */
#include "base/text.h"
#include "protocol/protocol.h"
#include "protocol/sql_text.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t room = data[0] & 4 ? data[0] >> 3 : PROTOCOL_TEXT_BYTES;
    char *text = malloc(room ? room : 1);
    uint64_t hash;
    if (!text)
        return 0;
    struct str sql = {(const char *)data + 1, size - 1};
    size_t len = sql_normalise((enum sql_dialect)(data[0] % 4 % 3), sql, text, room, &hash);
    if (len > room)
        abort();
    /* What comes out is text without control characters. */
    for (struct str rest = {text, len}; rest.len > 0;) {
        int32_t code;
        size_t bytes = utf8_decode(rest, &code);
        if (code < ' ')
            abort();
        rest.data += bytes;
        rest.len -= bytes;
    }
    free(text);
    return 0;
}
