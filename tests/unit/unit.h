/* What every unit test includes first: cmocka and the headers it wants before it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A test is skipped for a reason only, and tools/run_tests asks whether it is a limit of the
 * machine. */
#undef skip
#define skip(reason) (print_message("# SKIP: %s\n", reason), _skip(__FILE__, __LINE__))

/* About times: they belong to the machine. `make test` prints them, and suite truth judges the same
 * program, with the exit status that tests/truth/judged.py has for them. */
static inline void unit_time(const char *what, bool good, const char *file, int line)
{
    const char *times = getenv("TIMES");
    bool judged = !times || strcmp(times, "judged") == 0;
    print_message("# time%s: %s: %s\n", judged ? "" : ", not judged here", what,
                  good ? "good" : "WRONG");
    if (good || !judged)
        return;
    printf("WRONG: %s (%s:%d)\n", what, file, line);
    fflush(NULL);
    _exit(75);
}
#define assert_time(good) unit_time(#good, good, __FILE__, __LINE__)

/* Files of one layer are one program (unit_main.c); there each file's main() is called by its name.
 */
#ifdef UNIT_MAIN
int UNIT_MAIN(void);
#define main UNIT_MAIN
#endif
