/* Messages of 100 bytes in a journal.
 *
 *     io-fsync planted N   each made durable by fdatasync(2)
 *     io-fsync dsync N     the same by O_DSYNC
 *     io-fsync mended N    all of them once, at the end
 *     io-fsync near N      in batches of 20
 *     io-fsync clean N     never: the system writes them when it likes */
#include "io_world.h"

enum { BATCH = 20 };

static NOINLINE void message_write(int fd, long i)
{
    char message[100];
    memset(message, 'm', sizeof(message));
    memcpy(message, &i, sizeof(i));
    must(write(fd, message, sizeof(message)) == sizeof(message), "write");
}

static NOINLINE void journal_commit(int fd)
{
    must(fdatasync(fd) == 0, "fdatasync");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "clean";
    long count = argc > 2 ? atol(argv[2]) : 1000;
    int dsync = strcmp(mode, "dsync") == 0 ? O_DSYNC : 0;
    long every = strcmp(mode, "planted") == 0  ? 1
                 : strcmp(mode, "near") == 0   ? BATCH
                 : strcmp(mode, "mended") == 0 ? count
                                               : 0;
    int fd = open("journal", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | dsync, 0600);
    must(fd >= 0, "journal");
    for (long i = 0; i < count; i++) {
        message_write(fd, i);
        if (every > 0 && (i + 1) % every == 0)
            journal_commit(fd);
    }
    return answer(work(strcmp(mode, "near") == 0 || strcmp(mode, "clean") == 0 ? 500 : 120));
}
