/* Promises of collect/devices.c and bpf/block.bpf.c, held against a device of the test's own: a
 * file as a loop device, which nobody else asks for anything. */
#include "unit.h"

#include "base/clock.h"
#include "collect/devices.h"
#include "format/block.h"
#include "host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

extern const size_t block_bpf_bytes;

static void buckets_and_sizes_are_those_of_the_model(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < UINT64_MAX / 3; n += n / 16 + 1) {
        assert_int_equal(block_bucket(n), wait_bucket(n));
        assert_int_equal(block_size(n), call_size(n));
    }
    assert_int_equal(block_bucket(0), wait_bucket(0));
    assert_int_equal(block_bucket(UINT64_MAX), wait_bucket(UINT64_MAX));
    assert_int_equal(block_size(0), call_size(0));
    assert_int_equal(block_size(UINT64_MAX), call_size(UINT64_MAX));
}

static void operations_of_the_kernel_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        uint32_t kernel_op;
        uint64_t bytes;
        uint32_t op;
    } rows[] = {
        {0, 4096, BLOCK_READ},   {1, 4096, BLOCK_WRITE},   {1, 0, BLOCK_FLUSH},
        {2, 0, BLOCK_FLUSH},     {3, 4096, BLOCK_DISCARD}, {5, 4096, BLOCK_DISCARD},
        {9, 4096, BLOCK_WRITE},  {13, 0, BLOCK_NO_OP},     {15, 0, BLOCK_NO_OP},
        {10, 4096, BLOCK_NO_OP}, {34, 512, BLOCK_NO_OP},   {35, 512, BLOCK_NO_OP},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(block_op_of(rows[i].kernel_op, rows[i].bytes), rows[i].op);
}

/* ---- against the real kernel ---- */

enum { ROWS_MAX = 256 };

/* Only what devices.c asks of a sink. */
struct catch
{
    struct sink sink;
    struct device_info infos[ROWS_MAX];
    struct device_tally tallies[ROWS_MAX];
    char names[ROWS_MAX][32];
    uint32_t count;
    uint64_t lost, errors;
    int fails; /* every call, with this */
};

static int catch_device(struct sink *sink, const struct device_info *info, uint32_t *ret_id)
{
    struct catch *catch = (void *)sink;
    if (catch->fails)
        return catch->fails;
    assert_true(catch->count < ROWS_MAX && info->name.len < sizeof(catch->names[0]));
    catch->infos[catch->count] = *info;
    memcpy(catch->names[catch->count], info->name.data, info->name.len);
    *ret_id = ++catch->count;
    return 0;
}

static int catch_device_add(struct sink *sink, uint32_t device, const struct device_tally *more)
{
    struct catch *catch = (void *)sink;
    assert_true(device >= 1 && device <= catch->count);
    struct device_tally *tally = &catch->tallies[device - 1];
    if (more->count > 0 && (tally->count == 0 || more->first_ns < tally->first_ns))
        tally->first_ns = more->first_ns;
    tally->count += more->count;
    tally->bytes += more->bytes;
    tally->total_ns += more->total_ns;
    tally->depth_ns += more->depth_ns;
    tally->max_ns = MAX(tally->max_ns, more->max_ns);
    tally->last_ns = MAX(tally->last_ns, more->last_ns);
    tally->depth_max = MAX(tally->depth_max, more->depth_max);
    for (unsigned i = 0; i < WAIT_BUCKETS; i++)
        tally->buckets[i] += more->buckets[i];
    for (unsigned i = 0; i < CALL_SIZES; i++)
        tally->sizes[i] += more->sizes[i];
    return 0;
}

static int catch_counter(struct sink *sink, const char *name, enum unit unit, uint64_t add)
{
    struct catch *catch = (void *)sink;
    (void)unit;
    if (strcmp(name, "io.device_lost") == 0)
        catch->lost += add;
    else if (strcmp(name, "io.device_errors") == 0)
        catch->errors += add;
    else
        fail_msg("counter %s", name);
    return 0;
}

static const struct sink_ops catch_ops = {
    .device = catch_device,
    .device_add = catch_device_add,
    .counter = catch_counter,
};

/* A device without any traffic of this operation has an empty tally. */
static struct device_tally tally_of(const struct catch *catch, uint32_t number, enum device_op op)
{
    for (uint32_t i = 0; i < catch->count; i++)
        if (catch->infos[i].number == number && catch->infos[i].op == op)
            return catch->tallies[i];
    return (struct device_tally){0};
}

enum { LOOP_BYTES = 16 << 20 };

struct watch {
    struct catch catch;
    struct devices *devices;
    char path[64], node[64];
    int fd; /* of the device, O_DIRECT */
    uint32_t number;
    void *buffer;
};

/* Gone by itself when it is closed last: also if this test is killed. */
static int loop_make(struct watch *watch)
{
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return -errno;
    snprintf(watch->path, sizeof(watch->path), "/tmp/whyslow-devices-%d", getpid());
    int file = open(watch->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), r = -EAGAIN;
    assert_true(file >= 0 && ftruncate(file, LOOP_BYTES) == 0);
    /* Another test may take the same number before us. */
    for (int i = 0; i < 16 && r == -EAGAIN; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        snprintf(watch->node, sizeof(watch->node), "/dev/loop%d", number);
        watch->fd = number < 0 ? -1 : open(watch->node, O_RDWR | O_DIRECT | O_CLOEXEC);
        struct loop_config config = {
            .fd = (uint32_t)file,
            .info.lo_flags = LO_FLAGS_AUTOCLEAR,
        };
        r = watch->fd < 0 ? -errno : 0;
        if (r == 0 && ioctl(watch->fd, LOOP_CONFIGURE, &config) < 0) {
            r = errno == EBUSY ? -EAGAIN : -errno;
            close(watch->fd);
            watch->fd = -1;
        }
    }
    close(file);
    close(control);
    return r;
}

static int watch_start(void **state)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    struct why why = {0};
    struct probe probe;
    struct stat status;
    *state = watch;
    watch->fd = -1;
    watch->catch.sink.ops = &catch_ops;
    probe_bpf_tracing(&probe);
    if (!probe.ok || block_bpf_bytes == 0) {
        print_message("no BPF here: %s\n", probe.ok ? "built without clang" : probe.detail);
        return 0;
    }
    int r = loop_make(watch);
    if (r < 0) {
        print_message("no loop device to be had here: %s\n", strerror(-r));
        return 0;
    }
    assert_int_equal(fstat(watch->fd, &status), 0);
    watch->number = major(status.st_rdev) << 20 | minor(status.st_rdev);
    assert_int_equal(posix_memalign(&watch->buffer, 4096, 1 << 20), 0);
    memset(watch->buffer, 'x', 1 << 20);
    if (devices_open(NULL, &watch->catch.sink, &watch->devices, &why) < 0 ||
        devices_begin(watch->devices, clock_mono_ns(), &why) < 0)
        fail_msg("%s", why.what);
    return 0;
}

static int watch_end(void **state)
{
    struct watch *watch = *state;
    devices_close(watch->devices);
    if (watch->fd >= 0)
        close(watch->fd);
    if (watch->path[0])
        unlink(watch->path);
    free(watch->buffer);
    free(watch);
    return 0;
}

static void tally_is_in_itself_right(const struct device_tally *tally)
{
    uint64_t in_buckets = 0, in_sizes = 0;
    for (unsigned i = 0; i < WAIT_BUCKETS; i++)
        in_buckets += tally->buckets[i];
    for (unsigned i = 0; i < CALL_SIZES; i++)
        in_sizes += tally->sizes[i];
    assert_int_equal(in_buckets, tally->count);
    assert_int_equal(in_sizes, tally->count);
    assert_true(tally->max_ns <= tally->total_ns);
    assert_true(tally->count == 0 || (tally->first_ns < tally->last_ns &&
                                      tally->max_ns * tally->count >= tally->total_ns));
}

/* A program that loses the CPU while another request comes to it there is not run a second time.
 * The kernel counts that, and we say so, for all devices together. */
static void counted_or_lost(const struct catch *catch, uint64_t count, uint64_t truth)
{
    uint64_t lost = catch->lost;
    if (lost > 0)
        print_message("# %llu of %llu, lost at most %llu\n", (unsigned long long)count,
                      (unsigned long long)truth, (unsigned long long)lost);
    assert_true(count <= truth);
    assert_true(count + lost >= truth);
}

static void every_write_counts_with_its_bytes(void **state)
{
    struct watch *watch = *state;
    if (!watch->devices)
        skip("no BPF here, or no block devices");
    enum { WRITES = 100, BYTES = 64 << 10 };
    uint64_t before_ns = clock_mono_ns();
    for (int i = 0; i < WRITES; i++) {
        assert_int_equal(pwrite(watch->fd, watch->buffer, BYTES, (off_t)i * BYTES), BYTES);
        if (i == WRITES / 2)
            assert_int_equal(devices_drain(watch->devices), 0);
    }
    uint64_t elapsed_ns = clock_mono_ns() - before_ns;
    assert_int_equal(devices_finish(watch->devices), 0);
    struct device_tally writes = tally_of(&watch->catch, watch->number, DEVICE_WRITE);
    struct device_tally all = tally_of(&watch->catch, watch->number, DEVICE_READ);
    tally_is_in_itself_right(&writes);
    counted_or_lost(&watch->catch, writes.count, WRITES);
    assert_int_equal(writes.bytes, writes.count * BYTES);
    assert_int_equal(writes.sizes[call_size(BYTES)], writes.count);
    /* One after the other: together no longer than it took, and never two at a time. */
    assert_true(writes.total_ns <= elapsed_ns);
    assert_true(writes.first_ns >= before_ns && writes.last_ns <= before_ns + elapsed_ns);
    /* One whose end was missed is in the device until its memory serves the next. */
    assert_in_range(writes.depth_max, 1, 1 + watch->catch.lost);
    assert_true(writes.depth_ns == writes.total_ns ||
                (watch->catch.lost > 0 && writes.depth_ns > writes.total_ns));
    assert_true(all.depth_ns >= writes.depth_ns);
    assert_int_equal(tally_of(&watch->catch, watch->number, DEVICE_DISCARD).count, 0);
    for (uint32_t i = 0; i < watch->catch.count; i++)
        if (watch->catch.infos[i].number == watch->number)
            assert_string_equal(watch->catch.names[i], watch->node + strlen("/dev/"));
}

static void flushes_and_discards_are_operations_of_their_own(void **state)
{
    struct watch *watch = *state;
    if (!watch->devices)
        skip("no BPF here, or no block devices");
    enum { FLUSHES = 10, DISCARDS = 3 };
    for (int i = 0; i < FLUSHES; i++) {
        assert_int_equal(pwrite(watch->fd, watch->buffer, 4096, 0), 4096);
        assert_int_equal(fsync(watch->fd), 0);
    }
    uint64_t discarded = 0;
    for (int i = 0; i < DISCARDS; i++) {
        uint64_t range[2] = {(uint64_t)i << 20, 1 << 20};
        discarded += ioctl(watch->fd, BLKDISCARD, range) == 0;
    }
    assert_int_equal(devices_finish(watch->devices), 0);
    struct device_tally flushes = tally_of(&watch->catch, watch->number, DEVICE_FLUSH);
    struct device_tally discards = tally_of(&watch->catch, watch->number, DEVICE_DISCARD);
    tally_is_in_itself_right(&flushes);
    tally_is_in_itself_right(&discards);
    counted_or_lost(&watch->catch, flushes.count, FLUSHES);
    assert_int_equal(flushes.bytes, 0);
    assert_int_equal(flushes.sizes[0], flushes.count);
    counted_or_lost(&watch->catch, tally_of(&watch->catch, watch->number, DEVICE_WRITE).count,
                    FLUSHES);
    counted_or_lost(&watch->catch, discards.count, discarded);
    assert_int_equal(discards.bytes, discards.count << 20);
}

/* Places that do not touch each other, or the kernel would make one request of them. */
static void batch_read(struct watch *watch, aio_context_t context, int count, int bytes)
{
    struct iocb blocks[16], *list[16];
    struct io_event events[16];
    memset(blocks, 0, sizeof(blocks));
    for (int i = 0; i < count; i++) {
        blocks[i].aio_lio_opcode = IOCB_CMD_PREAD;
        blocks[i].aio_fildes = (uint32_t)watch->fd;
        blocks[i].aio_buf = (uint64_t)watch->buffer + (uint64_t)i * (uint64_t)bytes;
        blocks[i].aio_nbytes = (uint64_t)bytes;
        blocks[i].aio_offset = (int64_t)i * 4 * bytes;
        list[i] = &blocks[i];
    }
    assert_int_equal(syscall(SYS_io_submit, context, count, list), count);
    assert_int_equal(syscall(SYS_io_getevents, context, count, count, events, NULL), count);
    for (int i = 0; i < count; i++)
        assert_int_equal(events[i].res, bytes);
}

static void requests_at_the_same_time_are_the_depth(void **state)
{
    struct watch *watch = *state;
    if (!watch->devices)
        skip("no BPF here, or no block devices");
    enum { AT_ONCE = 16, ROUNDS = 50, BYTES = 16 << 10 };
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, AT_ONCE, &context) < 0)
        skip("no asynchronous I/O here");
    uint64_t before_ns = clock_mono_ns();
    for (int i = 0; i < ROUNDS; i++)
        batch_read(watch, context, AT_ONCE, BYTES);
    uint64_t elapsed_ns = clock_mono_ns() - before_ns;
    syscall(SYS_io_destroy, context);
    assert_int_equal(devices_finish(watch->devices), 0);
    struct device_tally reads = tally_of(&watch->catch, watch->number, DEVICE_READ);
    tally_is_in_itself_right(&reads);
    /* Whoever looks for file systems on new devices (udev) reads as well. */
    uint64_t lost = watch->catch.lost;
    print_message("# %llu reads of %d, %llu of the size, lost at most %llu\n",
                  (unsigned long long)reads.count, AT_ONCE * ROUNDS,
                  (unsigned long long)reads.sizes[call_size(BYTES)], (unsigned long long)lost);
    assert_true(reads.count + lost >= AT_ONCE * ROUNDS);
    assert_true(reads.sizes[call_size(BYTES)] + lost >= AT_ONCE * ROUNDS);
    assert_true(reads.depth_max >= 2);
    assert_true(reads.depth_max <= AT_ONCE + 4 + lost);
    assert_true(reads.depth_ns >= reads.total_ns);
    assert_true(reads.total_ns <= elapsed_ns * (AT_ONCE + 4));
}

static void after_the_end_nothing_is_added(void **state)
{
    struct watch *watch = *state;
    if (!watch->devices)
        skip("no BPF here, or no block devices");
    assert_int_equal(pwrite(watch->fd, watch->buffer, 4096, 0), 4096);
    assert_int_equal(devices_finish(watch->devices), 0);
    assert_int_equal(pwrite(watch->fd, watch->buffer, 4096, 0), 4096);
    assert_int_equal(devices_drain(watch->devices), 0);
    assert_int_equal(devices_finish(watch->devices), 0);
    counted_or_lost(&watch->catch, tally_of(&watch->catch, watch->number, DEVICE_WRITE).count, 1);
}

static void a_sink_that_fails_is_heard(void **state)
{
    struct watch *watch = *state;
    if (!watch->devices)
        skip("no BPF here, or no block devices");
    watch->catch.fails = -ENOSPC;
    assert_int_equal(pwrite(watch->fd, watch->buffer, 4096, 0), 4096);
    assert_int_equal(devices_drain(watch->devices), -ENOSPC);
}

static void whoever_may_not_is_told_why(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip("needs root");
    pid_t child = fork();
    if (child == 0) {
        struct catch catch = {.sink.ops = &catch_ops};
        struct devices *devices = NULL;
        struct why why = {0};
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(2);
        int r = devices_open(NULL, &catch.sink, &devices, &why);
        _exit(r < 0 && !devices && why.what[0] && why.remedy[0] ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- a device without requests ---- */

static int zram_add(char name[32])
{
    FILE *file = fopen("/sys/class/zram-control/hot_add", "re");
    int number = -1;
    if (!file || fscanf(file, "%d", &number) != 1)
        number = -1;
    if (file)
        fclose(file);
    snprintf(name, 32, "zram%d", number);
    return number;
}

static bool text_put(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool good = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && good;
}

static void a_device_that_takes_bios_is_seen_as_well(void **state)
{
    (void)state;
    struct catch catch = {.sink.ops = &catch_ops};
    char name[32], path[128], number_text[16];
    struct devices *devices = NULL;
    struct why why = {0};
    struct probe probe;
    struct stat status = {0};
    void *buffer;
    probe_bpf_tracing(&probe);
    int number = probe.ok && block_bpf_bytes > 0 ? zram_add(name) : -1;
    if (number < 0)
        skip("no BPF, or no zram device to be had here");
    snprintf(path, sizeof(path), "/sys/block/%s/disksize", name);
    bool sized = text_put(path, "16M");
    snprintf(path, sizeof(path), "/dev/%s", name);
    int fd = sized ? open(path, O_RDWR | O_DIRECT | O_CLOEXEC) : -1;
    enum { WRITES = 20 };
    uint64_t written = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && posix_memalign(&buffer, 4096, 65536) == 0) {
        memset(buffer, 'x', 65536);
        int r = devices_open(NULL, &catch.sink, &devices, &why);
        if (r == 0)
            r = devices_begin(devices, clock_mono_ns(), &why);
        for (int i = 0; i < WRITES && r == 0; i++)
            written += pwrite(fd, buffer, 65536, (off_t)i * 65536) == 65536;
        if (r == 0)
            r = devices_finish(devices);
        assert_int_equal(r, 0);
        assert_null(devices_missing(devices));
        devices_close(devices);
        free(buffer);
    }
    if (fd >= 0)
        close(fd);
    /* Before anything is asserted: a device left behind is in everybody's way. */
    snprintf(path, sizeof(path), "/sys/block/%s/reset", name);
    bool reset = text_put(path, "1");
    snprintf(number_text, sizeof(number_text), "%d", number);
    bool removed = text_put("/sys/class/zram-control/hot_remove", number_text);
    assert_true(sized && fd >= 0 && reset && removed);
    uint32_t device = major(status.st_rdev) << 20 | minor(status.st_rdev);
    struct device_tally writes = tally_of(&catch, device, DEVICE_WRITE);
    tally_is_in_itself_right(&writes);
    assert_int_equal(written, WRITES);
    counted_or_lost(&catch, writes.count, WRITES);
    assert_int_equal(writes.bytes, writes.count * 65536);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_and_sizes_are_those_of_the_model),
        cmocka_unit_test(operations_of_the_kernel_are_told_apart),
        cmocka_unit_test_setup_teardown(every_write_counts_with_its_bytes, watch_start, watch_end),
        cmocka_unit_test_setup_teardown(flushes_and_discards_are_operations_of_their_own,
                                        watch_start, watch_end),
        cmocka_unit_test_setup_teardown(requests_at_the_same_time_are_the_depth, watch_start,
                                        watch_end),
        cmocka_unit_test_setup_teardown(after_the_end_nothing_is_added, watch_start, watch_end),
        cmocka_unit_test_setup_teardown(a_sink_that_fails_is_heard, watch_start, watch_end),
        cmocka_unit_test(whoever_may_not_is_told_why),
        cmocka_unit_test(a_device_that_takes_bios_is_seen_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
