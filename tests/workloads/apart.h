/* Functions of the same code must stay several: their names are what is tested. */
#pragma once

#if defined(__has_attribute) && __has_attribute(no_icf)
#define APART __attribute__((noinline, no_icf))
#else
#define APART __attribute__((noinline))
#endif
