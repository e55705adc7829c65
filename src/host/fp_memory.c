/* memory.* and cache.*: how much there is, and how much of the target is in it already. */
#include "host/fp.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* "16384 kB" or "0" to a number; false when the line is missing. */
static bool meminfo_get(const struct fp *fp, const char *key, uint64_t *ret)
{
    struct str text = str_field(fp->meminfo, key);
    struct str number = str_word(&text);
    if (str_to_u64(number, 10, ret) < 0)
        return false;
    return !str_is(str_word(&text), "kB") || !__builtin_mul_overflow(*ret, (uint64_t)1024, ret);
}

/* arg: key of /proc/meminfo. */
struct value fp_read_meminfo(const struct fp *fp, const struct fp_field *field)
{
    uint64_t number;
    if (fp->meminfo.len == 0)
        return value_na("/proc/meminfo cannot be read");
    if (!meminfo_get(fp, field->arg, &number))
        return value_na_printf(fp->arena, "/proc/meminfo has no %s", field->arg);
    return value_uint(number,
                      str_starts(str_from(field->arg), "HugePages_") ? UNIT_COUNT : UNIT_BYTES);
}

struct value fp_memory_swap_used(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    uint64_t total, unused;
    if (!meminfo_get(fp, "SwapTotal", &total) || !meminfo_get(fp, "SwapFree", &unused))
        return value_na("/proc/meminfo has no SwapTotal and SwapFree");
    return value_uint(total > unused ? total - unused : 0, UNIT_BYTES);
}

/* "always [madvise] never" to "madvise". */
struct value fp_memory_thp(const struct fp *fp, const struct fp_field *field)
{
    struct str text;
    if (host_read(fp->host, field->arg, &text, NULL) < 0)
        return value_na("the kernel has no transparent huge pages");
    str_cut(&text, '[');
    struct str mode = str_cut(&text, ']');
    return mode.len > 0 ? value_str(mode)
                        : value_na_printf(fp->arena, "%s names no mode", field->arg);
}

struct value fp_memory_page_size(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (!host_is_live(fp->host))
        return fp_not_live();
    return value_uint((uint64_t)sysconf(_SC_PAGESIZE), UNIT_BYTES);
}

static void unmap(unsigned char *map, size_t len, unsigned char *pages)
{
    munmap(map, len);
    free(pages);
}

static int count_resident(int fd, size_t len, double *ret_share, const char **ret_na)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = (len + page - 1) / page, resident = 0;
    unsigned char *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        *ret_na = "the binary cannot be mapped";
        return -errno;
    }
    unsigned char *pages = malloc(count);
    if (!pages || mincore(map, len, pages) < 0) {
        int error = pages ? errno : ENOMEM;
        *ret_na = "mincore() was refused";
        unmap(map, len, pages);
        return -error;
    }
    for (size_t i = 0; i < count; i++)
        resident += pages[i] & 1;
    unmap(map, len, pages);
    *ret_share = (double)resident / (double)count;
    return 0;
}

int fp_resident_share(const char *path, double *ret_share, const char **ret_na)
{
    AUTO(fd_close) int fd = file_open_regular(path);
    struct stat st;
    bool is_file = fd != -EINVAL && fd != -EISDIR;
    if (is_file && (fd < 0 || fstat(fd, &st) < 0)) {
        *ret_na = "the binary cannot be opened";
        return fd < 0 ? fd : -errno;
    }
    if (!is_file || st.st_size <= 0) {
        *ret_na = "the target is no regular file with content";
        return -EINVAL;
    }
    /* Linux 5.2 and later tell strangers that every page is resident (a side channel was
     * closed), so ask only where the answer is true. */
    if (st.st_uid != geteuid() && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0) {
        *ret_na = "the kernel tells only the owner of a file, or who may write it";
        return -EPERM;
    }
    return count_resident(fd, (size_t)st.st_size, ret_share, ret_na);
}

struct value fp_cache_share(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (isnan(fp->resident_share))
        return value_na(fp->resident_na);
    return value_real(fp->resident_share * 100, UNIT_PERCENT);
}

/* A few pages are always read by a look at the header: cold is "nearly nothing". */
struct value fp_cache_state(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (isnan(fp->resident_share))
        return value_na(fp->resident_na);
    return value_text(fp->resident_share >= 0.95   ? "warm"
                      : fp->resident_share <= 0.05 ? "cold"
                                                   : "partly");
}
