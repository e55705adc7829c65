/* Why a walk ended, in words. */
#include "unwind/unwind.h"

const char *unwind_end_text(unsigned end)
{
    static const char *const texts[UNWIND_ENDS] = {
        [UNWIND_ROOT] = "complete",
        [UNWIND_TRUNCATED] = "stack slice ended",
        [UNWIND_NO_MAPPING] = "code in no known mapping",
        [UNWIND_NO_ROW] = "no unwind table and no frame pointer",
        [UNWIND_BAD_CFA] = "the stack would not grow",
        [UNWIND_UNREADABLE] = "a slot that was not copied",
        [UNWIND_EXPRESSION] = "an unwind expression",
        [UNWIND_TOO_DEEP] = "too deep",
        [UNWIND_NO_STACK] = "no registers or no stack",
        [UNWIND_NOT_EXECUTABLE] = "return address is not code",
    };
    return end < UNWIND_ENDS ? texts[end] : "for a reason this whyslow does not know";
}
