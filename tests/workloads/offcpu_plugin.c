/* Two libraries are made of this, alike in every byte of code but for the name. */
#include "apart.h"

void PLUGIN_NAME(void (*call)(void));
void plugin_entry(void (*call)(void));

APART void PLUGIN_NAME(void (*call)(void))
{
    call();
    __asm__ volatile("" ::: "memory"); /* no jump instead of the call */
}

void plugin_entry(void (*call)(void))
{
    PLUGIN_NAME(call);
    __asm__ volatile("" ::: "memory");
}
