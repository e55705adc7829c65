/* Which definition a program would have got without us, found without the loader.
 *
 * The first call of a hook may come from anywhere: from inside newlocale() or dlopen(), from
 * another library's constructor, from a signal handler. dlsym() takes the loader's lock there and
 * allocates; when it finds nothing it leaves an error behind for the program's own dlerror(), and
 * dlerror() asks for a translation, for which it takes the lock of setlocale(): inside newlocale()
 * that lock is the caller's own and is never given back. So the tables of the images are read here:
 * no lock, no allocation, no libc.
 *
 * The list of images is read while other threads may change it. It is asked for the first time by
 * the first allocation or lock of a process, when there is one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct found {
    void *address;     /* NULL: nobody defines it */
    const char *image; /* the file that does, as the loader calls it; empty: the program */
};

/* The first definition in images behind this library's own, in the loader's order:
 * dlsym(RTLD_NEXT). */
struct found find_next(const char *name);
/* The first of all: dlsym(RTLD_DEFAULT). */
struct found find_first(const char *name);
/* In the first image whose file name begins with `image`. */
struct found find_in(const char *image, const char *name);
/* Its file name begins with it. */
int find_is_called(const char *path, const char *name);

/* getenv(), which other libraries may stand before. */
const char *find_environment(const char *name);

#pragma GCC visibility pop
