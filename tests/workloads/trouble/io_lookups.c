/* Names that are looked for in a list of folders, of which only the last has them.
 *
 *     io-lookups make         makes the last folder
 *     io-lookups planted N    asks every folder, every time
 *     io-lookups mended N     asks the one that had it
 *     io-lookups near N       asks every folder, but seldom
 *     io-lookups clean N      as mended, with more to do beside it */
#include "io_world.h"

#include <sys/stat.h>

enum { FOLDERS = 6, NAMES = 32 };

static char paths[FOLDERS][NAMES][32]; /* made once: what is saved are the calls */

static void paths_make(void)
{
    for (int folder = 0; folder < FOLDERS; folder++)
        for (int name = 0; name < NAMES; name++)
            snprintf(paths[folder][name], sizeof(paths[0][0]), "include%d/header%d.h", folder,
                     name);
}

/* 1: it is there. */
static NOINLINE int header_find(int folder, long name)
{
    struct stat status;
    return stat(paths[folder][name % NAMES], &status) == 0;
}

static NOINLINE int header_search(long name)
{
    int folder = 0;
    while (folder < FOLDERS && !header_find(folder, name))
        folder++;
    must(folder < FOLDERS, "no such header");
    return folder;
}

static void headers_make(void)
{
    char folder[32];
    snprintf(folder, sizeof(folder), "include%d", FOLDERS - 1);
    must(mkdir(folder, 0700) == 0 || errno == EEXIST, folder);
    for (int i = 0; i < NAMES; i++) {
        int fd = open(paths[FOLDERS - 1][i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        must(fd >= 0, "header");
        close(fd);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "clean";
    long count = argc > 2 ? atol(argv[2]) : 10000;
    uint64_t found = 0;
    paths_make();
    if (strcmp(mode, "make") == 0) {
        headers_make();
        return 0;
    }
    if (strcmp(mode, "planted") == 0 || strcmp(mode, "near") == 0)
        for (long i = 0; i < count; i++)
            found += (uint64_t)header_search(i);
    else
        for (long i = 0; i < count; i++)
            found += (uint64_t)header_find(FOLDERS - 1, i);
    int much = strcmp(mode, "near") == 0 || strcmp(mode, "clean") == 0;
    return answer(found + work(much ? 350 : 150));
}
