/* Records of 64 bytes in a file.
 *
 *     io-small planted N   each with a write(2) of its own
 *     io-small mended N    through a buffer
 *     io-small near N      read one by one, as many, but at random places: no buffer would help
 *     io-small clean N     through a buffer, with more to do beside it */
#include "io_world.h"

enum { RECORD_BYTES = 64, BUFFER_BYTES = 64 << 10, TABLE_BYTES = 32 << 20 };

static NOINLINE void records_write_each(int fd, long count)
{
    char record[RECORD_BYTES];
    memset(record, 'r', sizeof(record));
    for (long i = 0; i < count; i++) {
        memcpy(record, &i, sizeof(i));
        must(write(fd, record, sizeof(record)) == sizeof(record), "write");
    }
}

static NOINLINE void records_write_joined(int fd, long count)
{
    static char buffer[BUFFER_BYTES];
    char record[RECORD_BYTES];
    memset(record, 'r', sizeof(record));
    size_t used = 0;
    for (long i = 0; i < count; i++) {
        memcpy(record, &i, sizeof(i));
        memcpy(buffer + used, record, sizeof(record));
        used += sizeof(record);
        if (used == sizeof(buffer) || i + 1 == count) {
            must(write(fd, buffer, used) == (ssize_t)used, "write");
            used = 0;
        }
    }
}

static NOINLINE uint64_t records_pick(int fd, long count)
{
    uint64_t sum = 0, at = 88172645463325252u;
    for (long i = 0; i < count; i++) {
        char record[RECORD_BYTES];
        at ^= at << 13, at ^= at >> 7, at ^= at << 17;
        off_t place = (off_t)(at % (TABLE_BYTES / RECORD_BYTES)) * RECORD_BYTES;
        must(pread(fd, record, sizeof(record), place) == sizeof(record), "pread");
        sum += (unsigned char)record[i % RECORD_BYTES];
    }
    return sum;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "clean";
    long count = argc > 2 ? atol(argv[2]) : 100000;
    int fd = open("records", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0, "records");
    uint64_t value = 0;
    if (strcmp(mode, "planted") == 0) {
        records_write_each(fd, count);
    } else if (strcmp(mode, "near") == 0) {
        must(ftruncate(fd, TABLE_BYTES) == 0, "ftruncate");
        value = records_pick(fd, count) + work(300);
    } else {
        records_write_joined(fd, count);
        value = strcmp(mode, "clean") == 0 ? work(200) : 0;
    }
    return answer(value + work(150));
}
