/* Promises of target/maps.c and target/build_id.c: what the kernel writes is understood, what
 * it never would is refused. */
#include "unit.h"

#include "base/fd.h"
#include "target/build_id.h"
#include "target/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

static int parse(const char *text, struct map_entry *ret)
{
    struct str rest = str_from(text);
    return maps_next(&rest, ret);
}

static void test_a_line_is_taken_apart(void **state)
{
    (void)state;
    struct map_entry e;
    assert_int_equal(parse("7f12a0000000-7f12a0021000 r-xp 00028000 fe:01 131099   "
                           "          /usr/lib/libc.so.6\n",
                           &e),
                     1);
    assert_true(e.start == 0x7f12a0000000 && e.end == 0x7f12a0021000 && e.offset == 0x28000);
    assert_true(e.executable);
    assert_true(e.device_major == 0xfe && e.device_minor == 1 && e.inode == 131099);
    assert_true(str_is(e.path, "/usr/lib/libc.so.6"));
}

static void test_lines_without_a_path_and_with_strange_ones(void **state)
{
    (void)state;
    struct map_entry e;
    assert_int_equal(parse("1000-2000 rw-p 00000000 00:00 0 ", &e), 1);
    assert_false(e.executable);
    assert_int_equal(e.path.len, 0);
    assert_int_equal(parse("1000-2000 r-xp 00000000 00:00 0                  [vdso]", &e), 1);
    assert_true(str_is(e.path, "[vdso]"));
    assert_int_equal(parse("1000-2000 r-xp 00000000 00:1f 5    /tmp/a b/c (deleted)", &e), 1);
    assert_true(str_is(e.path, "/tmp/a b/c (deleted)"));
    assert_int_equal(
        parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &e), 1);
    assert_true(e.start == 0xffffffffff600000);
}

static void test_hostile_lines_are_refused_and_the_loop_ends(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "x",
        "1000 r-xp 0 0:0 0",
        "1000-zz r-xp 0 0:0 0",
        "2000-1000 r-xp 0 0:0 0",
        "1000-1000 r-xp 0 0:0 0",
        "1000-2000 r-x 0 0:0 0",
        "1000-2000 r-xp 0 0 0",
        "1000-2000 r-xp 0 0:0",
        "1000-2000 r-xp 0 0:0 -1",
        "1000-2000 r-xp 0 100000000:0 1",
        "11111111111111111-2 r-xp 0 0:0 0",
        " ",
        "-",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct map_entry e = {.start = 77};
        assert_int_equal(parse(bad[i], &e), -EBADMSG);
        assert_true(e.start == 77); /* untouched */
    }
    struct str text = STR("x\n\n1000-2000 r-xp 0 0:0 0\n\n");
    struct map_entry e;
    assert_int_equal(maps_next(&text, &e), -EBADMSG);
    assert_int_equal(maps_next(&text, &e), -EBADMSG);
    assert_int_equal(maps_next(&text, &e), 1);
    assert_int_equal(maps_next(&text, &e), -EBADMSG);
    assert_int_equal(maps_next(&text, &e), 0);
}

static void test_our_own_maps_hold_this_code(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text;
    assert_int_equal(maps_read(&arena, (int)getpid(), &text, NULL), 0);
    uint64_t here = (uint64_t)(uintptr_t)&parse;
    struct map_entry e;
    int found = 0, r;
    while ((r = maps_next(&text, &e)) != 0) {
        assert_int_equal(r, 1);
        if (e.start <= here && here < e.end)
            found += e.executable && str_contains(e.path, "/unit-");
    }
    assert_int_equal(found, 1);
    assert_true(maps_read(&arena, 0x7ffffffe, &text, NULL) < 0);
}

static int memory_file(const void *bytes, size_t len)
{
    int fd = memfd_create("elf", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, len), 0);
    return fd;
}

static void test_a_build_id_is_found_and_damage_is_named(void **state)
{
    (void)state;
    AUTO(fd_close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    uint8_t id[BUILD_ID_BYTES_MAX];
    int len = build_id_read(fd, id);
    assert_true(len == 20 || len == 0); /* a linker may be told to leave it out */
    char text[2 * BUILD_ID_BYTES_MAX + 1];
    build_id_format((const uint8_t *)"\x00\xff\x10", 3, text);
    assert_string_equal(text, "00ff10");

    /* Every prefix of a real file ends in an answer, never in a crash. */
    static uint8_t bytes[8192];
    ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
    assert_true(n > 1024);
    for (size_t cut = 0; cut < (size_t)n; cut += 37) {
        AUTO(fd_close) int part = memory_file(bytes, cut);
        int r = build_id_read(part, id);
        assert_true(r == -EBADMSG || (r >= 0 && r <= BUILD_ID_BYTES_MAX));
    }
    AUTO(fd_close) int text_fd = memory_file("#!/bin/sh\n", 10);
    assert_int_equal(build_id_read(text_fd, id), -EBADMSG);
    /* Sizes in headers that point anywhere. */
    for (size_t at = 16; at < 400; at++) {
        uint8_t copy[4096];
        memcpy(copy, bytes, sizeof(copy));
        copy[at] = 0xff;
        AUTO(fd_close) int damaged = memory_file(copy, sizeof(copy));
        int r = build_id_read(damaged, id);
        assert_true(r == -EBADMSG || (r >= 0 && r <= BUILD_ID_BYTES_MAX));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_taken_apart),
        cmocka_unit_test(test_lines_without_a_path_and_with_strange_ones),
        cmocka_unit_test(test_hostile_lines_are_refused_and_the_loop_ends),
        cmocka_unit_test(test_our_own_maps_hold_this_code),
        cmocka_unit_test(test_a_build_id_is_found_and_damage_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
