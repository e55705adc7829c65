/* Any bytes as a recording: pages of SQLite that are damaged or point in circles. */
#include "fuzz_recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file_write(FUZZ_RECORDING, data, size);
    fuzz_recording_ask(data, size);
    return 0;
}
