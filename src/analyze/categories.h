/* What kind of work a function does, where its name leaves no doubt. */
#pragma once

#include "model/profile.h"

/* "alloc", "copy", "kernel", "lock", …; NULL when it is just the program's own work. */
const char *category_of(const struct profile_function *function);
