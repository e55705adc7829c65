/* Any pieces as a conversation of MySQL and MariaDB. */
#include "fuzz_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_protocol(&protocol_mysql, 3306, data, size);
    return 0;
}
