/* Reads a file through a mapping, page by page, and says what the kernel itself counted:
 *
 *     io_mapped cold|warm|private|inside|again FILE PAGES
 *
 * cold: nothing of the file is in the page cache; warm: all of it is. The file is read in order
 * after madvise(MADV_RANDOM), so that each page of a cold file is fetched by a fault of its own.
 * `private`: warm, and every page is written to, in a private mapping. `inside`: cold, and all of
 * it is handed to write(), so that its faults are inside that call. Prints one line of JSON.
 * `again`: warm, and mapped anew for as long as there is somebody who reads what it prints, while
 * no fd stands for the file any more. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int fail(const char *what)
{
    fprintf(stderr, "io_mapped: %s: %s\n", what, strerror(errno));
    return 1;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int file_fill(int fd, size_t pages)
{
    char bytes[PAGE];
    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < pages; i++)
        if (pwrite(fd, bytes, PAGE, (off_t)(i * PAGE)) != PAGE)
            return -1;
    return fsync(fd);
}

/* How many pages of it are in memory. */
static size_t resident(void *at, size_t pages)
{
    unsigned char *vector = calloc(pages, 1);
    size_t count = 0;
    if (vector && mincore(at, pages * PAGE, vector) == 0)
        for (size_t i = 0; i < pages; i++)
            count += vector[i] & 1;
    free(vector);
    return count;
}

__attribute__((noinline)) static unsigned long touch_pages(volatile char *at, size_t pages,
                                                           int writes)
{
    unsigned long sum = 0;
    for (size_t i = 0; i < pages; i++) {
        if (writes)
            at[i * PAGE] = 'y';
        sum += (unsigned char)at[i * PAGE];
    }
    return sum;
}

/* write() that reads the mapping; the file it goes to is gone when we are. */
static int hand_over(const char *at, size_t bytes)
{
    FILE *other = tmpfile();
    if (!other || write(fileno(other), at, bytes) != (ssize_t)bytes)
        return -1;
    return fclose(other);
}

static int touch_again(char *at, size_t pages)
{
    struct timespec pause = {.tv_nsec = 50000000};
    for (;;) {
        touch_pages(at, pages, 0);
        if (madvise(at, pages * PAGE, MADV_DONTNEED) < 0 || printf(".\n") < 0 ||
            fflush(stdout) != 0)
            break;
        nanosleep(&pause, NULL);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return fail("io_mapped cold|warm|private|inside|again FILE PAGES");
    size_t pages = strtoul(argv[3], NULL, 10);
    int inside = strcmp(argv[1], "inside") == 0, again = strcmp(argv[1], "again") == 0;
    int cold = strcmp(argv[1], "cold") == 0 || inside, writes = strcmp(argv[1], "private") == 0;
    int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || file_fill(fd, pages) < 0)
        return fail(argv[2]);
    if (cold && (errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) != 0)
        return fail("posix_fadvise");
    char *at = mmap(NULL, pages * PAGE, PROT_READ | (writes ? PROT_WRITE : 0),
                    writes ? MAP_PRIVATE : MAP_SHARED, fd, 0);
    if (at == MAP_FAILED || madvise(at, pages * PAGE, MADV_RANDOM) < 0)
        return fail("mmap");
    close(fd);
    if (again)
        return touch_again(at, pages);
    size_t before = resident(at, pages);
    struct rusage first, last;
    getrusage(RUSAGE_SELF, &first);
    double start_s = now_s();
    unsigned long sum = 0;
    if (!inside)
        sum = touch_pages(at, pages, writes);
    else if (hand_over(at, pages * PAGE) < 0)
        return fail("write");
    double took_s = now_s() - start_s;
    getrusage(RUSAGE_SELF, &last);
    printf("{\"pages\": %zu, \"resident_before\": %zu, \"major\": %ld, \"minor\": %ld, "
           "\"took_s\": %.6f, \"sum\": %lu}\n",
           pages, before, last.ru_majflt - first.ru_majflt, last.ru_minflt - first.ru_minflt,
           took_s, sum);
    return 0;
}
