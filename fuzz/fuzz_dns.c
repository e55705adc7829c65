/* Any pieces as a conversation of DNS. */
#include "fuzz_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protocol(&protocol_dns, 53, data, size);
    return 0;
}
