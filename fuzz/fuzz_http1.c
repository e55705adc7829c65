/* Any pieces as a conversation of HTTP/1. */
#include "fuzz_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protocol(&protocol_http1, 80, data, size);
    return 0;
}
