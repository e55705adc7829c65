/* Any bytes as an image, then any bytes as registers and stack in it.
 *
 * The last 512 bytes of the input are the stack; what is before them is the file. */
#include "fuzz_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct unwind_image *image = NULL;
    size_t stack_len = size < 2 * STACK_BYTES ? size / 2 : STACK_BYTES;
    struct why why = {0};
    if (unwind_image_load_memory(data, size - stack_len, &image, &why) < 0) {
        if (why.what[0] == 0)
            abort(); /* refused without a word */
        return 0;
    }
    fuzz_walk(image, UNWIND_X86_64, data + size - stack_len, stack_len);
    unwind_image_free(image);
    return 0;
}
