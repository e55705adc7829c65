/* Promises of collect/bpf_unit.c and, against the real kernel, of collect/bpf_ring.c: what a
 * program says arrives, and every refusal has words and a remedy. */
#include "unit.h"

#include "collect/bpf_ring.h"
#include "collect/bpf_unit.h"
#include "host/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern const unsigned char told_bpf[], refused_bpf[];
extern const size_t told_bpf_bytes, refused_bpf_bytes;

static bool bpf_works(void)
{
    struct probe probe;
    probe_bpf_tracing(&probe);
    if (!probe.ok)
        print_message("no BPF here: %s\n", probe.detail);
    if (told_bpf_bytes == 0)
        print_message("built without clang\n");
    return probe.ok && told_bpf_bytes > 0;
}

static struct bpf_unit *told_open(void)
{
    struct why why = {0};
    struct bpf_unit *unit = NULL;
    struct bpf_blob blob = {"told", told_bpf, told_bpf_bytes};
    uint32_t config[2] = {(uint32_t)getpid(), 0};
    assert_int_equal(bpf_unit_open(&blob, NULL, &unit, &why), 0);
    assert_int_equal(bpf_unit_config(unit, config, sizeof(config), &why), 0);
    assert_int_equal(bpf_unit_map_size(unit, "calls", 65536, &why), 0);
    assert_int_equal(bpf_unit_load(unit, &why), 0);
    return unit;
}

static void what_a_program_tells_arrives(void **state)
{
    (void)state;
    if (!bpf_works())
        skip("no BPF here");
    struct why why = {0};
    struct bpf_unit *unit = told_open();
    struct bpf_ring ring;
    assert_int_equal(bpf_ring_map(bpf_unit_map_fd(unit, "calls"), 65536, &ring, &why), 0);
    assert_int_equal(bpf_unit_attach(unit, &why), 0);
    enum { CALLS = 100 };
    for (int i = 0; i < CALLS; i++)
        syscall(SYS_getppid);
    struct pollfd wake = {.fd = ring.wake_fd, .events = POLLIN};
    assert_int_equal(poll(&wake, 1, 600000), 1);
    size_t bytes;
    uint64_t place, seen = 0, all = 0;
    bpf_ring_begin(&ring);
    for (const void *record; (record = bpf_ring_next(&ring, &bytes, &place)); all++) {
        uint64_t number;
        assert_int_equal(bytes, sizeof(number));
        memcpy(&number, record, sizeof(number));
        seen += number == SYS_getppid;
    }
    assert_int_equal(seen, CALLS);
    bpf_ring_release(&ring, UINT64_MAX);
    assert_int_equal(*ring.consumer, ring.at);
    uint64_t counts[2];
    assert_int_equal(bpf_counts_read(bpf_unit_map_fd(unit, "counts"), counts, 2), 0);
    assert_true(counts[0] >= all);
    assert_int_equal(counts[1], 0); /* there was room for all */
    bpf_ring_deinit(&ring);
    bpf_unit_close(unit);
}

/* A record that is kept must not look like a wake-up. */
static void a_kept_record_does_not_wake_again(void **state)
{
    (void)state;
    if (!bpf_works())
        skip("no BPF here");
    struct why why = {0};
    struct bpf_unit *unit = told_open();
    struct bpf_ring ring;
    assert_int_equal(bpf_ring_map(bpf_unit_map_fd(unit, "calls"), 65536, &ring, &why), 0);
    assert_int_equal(bpf_unit_attach(unit, &why), 0);
    syscall(SYS_getppid);
    bpf_unit_close(unit); /* no more calls are told; the ring is still mapped */
    size_t bytes;
    uint64_t place;
    bpf_ring_begin(&ring);
    assert_non_null(bpf_ring_next(&ring, &bytes, &place));
    assert_int_equal(place, 0);
    struct pollfd wake = {.fd = ring.wake_fd, .events = POLLIN};
    assert_int_equal(poll(&wake, 1, 0), 0);
    bpf_ring_deinit(&ring);
}

static void the_verifier_is_quoted(void **state)
{
    (void)state;
    if (!bpf_works())
        skip("no BPF here");
    struct why why = {0};
    struct bpf_unit *unit = NULL;
    struct bpf_blob blob = {"refused", refused_bpf, refused_bpf_bytes};
    assert_int_equal(bpf_unit_open(&blob, NULL, &unit, &why), 0);
    assert_true(bpf_unit_load(unit, &why) < 0);
    assert_int_equal(why.kind, WHY_DENIED);
    assert_non_null(strstr(why.what, "verifier refuses the BPF program 'refused'"));
    assert_non_null(strstr(why.what, "invalid mem access"));
    assert_true(why.remedy[0]);
    bpf_unit_close(unit);
}

static void what_is_no_program_is_refused(void **state)
{
    (void)state;
    struct why why = {0};
    struct bpf_unit *unit = NULL;
    static const unsigned char garbage[64] = "no ELF at all";
    struct bpf_blob none = {"none", NULL, 0}, bad = {"bad", garbage, sizeof(garbage)};
    assert_int_equal(bpf_unit_open(&none, NULL, &unit, &why), -EOPNOTSUPP);
    assert_int_equal(why.kind, WHY_DENIED);
    assert_non_null(strstr(why.what, "built without"));
    assert_non_null(strstr(why.remedy, "clang"));
    assert_true(bpf_unit_open(&bad, NULL, &unit, &why) < 0);
    assert_non_null(strstr(why.what, "bad"));
    assert_null(unit);
    bpf_unit_close(NULL);
}

static void another_config_or_map_is_refused(void **state)
{
    (void)state;
    if (!bpf_works())
        skip("no BPF here");
    struct why why = {0};
    struct bpf_unit *unit = NULL;
    struct bpf_blob blob = {"told", told_bpf, told_bpf_bytes};
    uint64_t config[2] = {0};
    assert_int_equal(bpf_unit_open(&blob, NULL, &unit, &why), 0);
    assert_true(bpf_unit_config(unit, config, sizeof(config), &why) < 0);
    assert_non_null(strstr(why.what, "constants of 16 bytes"));
    assert_int_equal(bpf_unit_map_size(unit, "nowhere", 1, &why), -ENOENT);
    assert_non_null(strstr(why.what, "nowhere"));
    assert_int_equal(bpf_unit_map_fd(unit, "nowhere"), -ENOENT);
    assert_int_equal(bpf_unit_program_fd(unit, "nowhere"), -ENOENT);
    bpf_unit_close(unit);
}

/* In a child that has given up its privileges. */
static void without_privileges_the_capability_is_named(void **state)
{
    (void)state;
    if (!bpf_works() || geteuid() != 0)
        skip("no BPF here, or not root");
    pid_t pid = fork();
    if (pid == 0) {
        struct why why = {0};
        struct bpf_unit *unit = NULL;
        struct bpf_blob blob = {"told", told_bpf, told_bpf_bytes};
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(2);
        int r = bpf_unit_open(&blob, NULL, &unit, &why);
        if (r == 0)
            r = bpf_unit_load(unit, &why);
        bpf_unit_close(unit);
        bool good = (r == -EPERM || r == -EACCES) && why.kind == WHY_DENIED &&
                    strstr(why.what, "CAP_BPF") && strstr(why.remedy, "root");
        if (!good)
            fprintf(stderr, "%d: %s; %s\n", r, why.what, why.remedy);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_program_tells_arrives),
        cmocka_unit_test(a_kept_record_does_not_wake_again),
        cmocka_unit_test(the_verifier_is_quoted),
        cmocka_unit_test(what_is_no_program_is_refused),
        cmocka_unit_test(another_config_or_map_is_refused),
        cmocka_unit_test(without_privileges_the_capability_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
