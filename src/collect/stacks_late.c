/* Stacks longer than the largest slice: the part beyond it, read from the target afterwards.
 *
 * The kernel copies at most 64 KiB with a sample. What lies beyond are the oldest frames, which
 * change least, but between the sample and now they may have. So the end of the slice is
 * read once more, before and after the part beyond it: as long as the frames there are byte
 * for byte what the sample saw, the calls above them have not returned. */
#include "collect/stacks_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
    LATE_PAGE_BYTES = 4096,
    LATE_TAIL_BYTES = 8192,  /* what must be unchanged: several frames of any program */
    LATE_STEP_BYTES = 65536, /* at a time: most need little more than the slice */
    LATE_BYTES_MAX = 1 << 20,
};

/* Up to `len` bytes, page by page: the end of the stack is not known. Returns how many. */
static size_t memory_read(int pid, uint64_t address, uint8_t *to, size_t len)
{
    struct iovec pages[LATE_STEP_BYTES / LATE_PAGE_BYTES + 2];
    size_t count = 0;
    for (size_t at = 0; at < len && count < ARRAY_SIZE(pages);) {
        size_t page_left = LATE_PAGE_BYTES - (address + at) % LATE_PAGE_BYTES;
        size_t part = MIN(page_left, len - at);
        pages[count++] = (struct iovec){(void *)(uintptr_t)(address + at), part};
        at += part;
    }
    struct iovec local = {to, len};
    ssize_t got = process_vm_readv(pid, &local, 1, pages, count, 0);
    return got > 0 ? (size_t)got : 0;
}

static bool tail_is_same(int pid, const struct unwind_slice *slice, size_t tail)
{
    uint8_t now[LATE_TAIL_BYTES];
    return memory_read(pid, slice->address + slice->len - tail, now, tail) == tail &&
           memcmp(now, slice->bytes + slice->len - tail, tail) == 0;
}

bool late_extend(struct stacks *st, int pid, const struct unwind_slice *sampled,
                 struct unwind_slice *slice)
{
    size_t tail = MIN(sampled->len, (size_t)LATE_TAIL_BYTES);
    if (!st->opts.live || tail == 0 || slice->len > LATE_BYTES_MAX - LATE_STEP_BYTES)
        return false;
    if (!st->late)
        st->late = malloc(LATE_BYTES_MAX);
    if (!st->late || !tail_is_same(pid, sampled, tail))
        return false;
    if (slice->bytes != st->late)
        memcpy(st->late, slice->bytes, slice->len);
    size_t got = memory_read(pid, slice->address + slice->len, st->late + slice->len,
                             LATE_STEP_BYTES);
    if (got == 0 || !tail_is_same(pid, sampled, tail))
        return false;
    *slice = (struct unwind_slice){slice->address, st->late, slice->len + got};
    return true;
}
