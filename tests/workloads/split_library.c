/* The four functions in a shared library; built twice, for a PLT and for dlopen(). */
#include "apart.h"
#include "split.h"

#define NAMED(kind)  SPLIT(kind, APART)
#define CALLED(kind) SPLIT_CALL(kind)

void SPLIT_ENTRY(void);
#ifdef SPLIT_DLOPEN
void dlopen_50(void), dlopen_30(void), dlopen_15(void), dlopen_5(void);
NAMED(dlopen)
void SPLIT_ENTRY(void)
{
    CALLED(dlopen);
}
#else
void plt_50(void), plt_30(void), plt_15(void), plt_5(void);
NAMED(plt)
void SPLIT_ENTRY(void)
{
    CALLED(plt);
}
#endif
