/* Results of 16 KiB that are put away and fetched again.
 *
 *     io-temporary planted N   in a temporary file each
 *     io-temporary mended N    in memory
 *     io-temporary near N      in temporary files, but few of them
 *     io-temporary clean N     in memory, with more to do beside it */
#include "io_world.h"

enum { RESULT_BYTES = 16 << 10 };

static NOINLINE unsigned result_by_file(long i)
{
    char path[] = "result-XXXXXX", result[RESULT_BYTES];
    memset(result, (int)(i & 63), sizeof(result));
    int fd = mkstemp(path);
    must(fd >= 0, "mkstemp");
    must(write(fd, result, sizeof(result)) == sizeof(result), "write");
    must(pread(fd, result, sizeof(result), 0) == sizeof(result), "pread");
    close(fd);
    unlink(path);
    return (unsigned char)result[i % RESULT_BYTES];
}

static NOINLINE unsigned result_by_memory(long i)
{
    static char kept[RESULT_BYTES];
    char result[RESULT_BYTES];
    memset(result, (int)(i & 63), sizeof(result));
    memcpy(kept, result, sizeof(kept));
    return (unsigned char)kept[i % RESULT_BYTES];
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "clean";
    long count = argc > 2 ? atol(argv[2]) : 1000;
    int files = strcmp(mode, "planted") == 0 || strcmp(mode, "near") == 0;
    uint64_t sum = 0;
    for (long i = 0; i < count; i++)
        sum += files ? result_by_file(i) : result_by_memory(i);
    int much = strcmp(mode, "near") == 0 || strcmp(mode, "clean") == 0;
    return answer(sum + work(much ? 350 : 150));
}
