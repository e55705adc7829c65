/* Questions that are answered from a table in a file.
 *
 *     io-reread make            makes the table, 1 MiB
 *     io-reread planted N       opens and reads all of it for each question
 *     io-reread mended N        reads it once
 *     io-reread near N          reads it twice: once to check it, once to use it
 *     io-reread changing N      reads it again and again, since it is written meanwhile
 *     io-reread clean N         reads it once, with more to do beside it */
#include "io_world.h"

enum { TABLE_BYTES = 1 << 20, BLOCK_BYTES = 64 << 10 };

static unsigned char table[TABLE_BYTES];

static NOINLINE void table_read(void)
{
    int fd = open("table", O_RDONLY | O_CLOEXEC);
    must(fd >= 0, "table");
    size_t have = 0;
    ssize_t got;
    while (have < TABLE_BYTES && (got = read(fd, table + have, BLOCK_BYTES)) > 0)
        have += (size_t)got;
    must(have == TABLE_BYTES, "read");
    close(fd);
}

static NOINLINE void table_touch(long i)
{
    int fd = open("table", O_WRONLY | O_CLOEXEC);
    must(fd >= 0 && pwrite(fd, &i, sizeof(i), 0) == sizeof(i), "pwrite");
    close(fd);
}

static void table_make(void)
{
    int fd = open("table", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0, "table");
    memset(table, 7, sizeof(table));
    must(write(fd, table, sizeof(table)) == TABLE_BYTES, "write");
    close(fd);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "clean";
    long count = argc > 2 ? atol(argv[2]) : 1000;
    uint64_t sum = 0;
    if (strcmp(mode, "make") == 0) {
        table_make();
        return 0;
    }
    int changing = strcmp(mode, "changing") == 0;
    int every = strcmp(mode, "planted") == 0 || changing;
    int times = strcmp(mode, "near") == 0 ? 2 : every ? 0 : 1;
    for (int i = 0; i < times; i++)
        table_read();
    for (long i = 0; i < count; i++) {
        if (changing)
            table_touch(i);
        if (every)
            table_read();
        sum += table[i * 4099 % TABLE_BYTES];
    }
    return answer(sum + work(every || strcmp(mode, "mended") == 0 ? 150 : 350));
}
