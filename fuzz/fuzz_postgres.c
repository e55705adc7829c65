/* Any pieces as a conversation of PostgreSQL. */
#include "fuzz_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protocol(&protocol_postgres, 5432, data, size);
    return 0;
}
