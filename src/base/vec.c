/* Growth for VEC(): doubling, overflow-checked. */
#include "base/vec.h"

#include <errno.h>
#include <stdint.h>

int vec_reserve(void **data, size_t *cap, size_t need, size_t element_size)
{
    if (need <= *cap)
        return 0;
    size_t wanted = *cap < 8 ? 8 : *cap;
    while (wanted < need) {
        if (wanted > SIZE_MAX / 2)
            return -ENOMEM;
        wanted *= 2;
    }
    if (wanted > SIZE_MAX / element_size)
        return -ENOMEM;
    void *grown = realloc(*data, wanted * element_size);
    if (!grown)
        return -ENOMEM;
    *data = grown;
    *cap = wanted;
    return 0;
}
