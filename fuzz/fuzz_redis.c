/* Any pieces as a conversation of Redis. */
#include "fuzz_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protocol(&protocol_redis, 6379, data, size);
    return 0;
}
