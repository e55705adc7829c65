/* Promises of collect/uprobe_places.c, symbolize/function_exits.c and unwind_image_bare_at(), with
 * functions that leave in every way there is. They are only looked at, never run. */
#include "unit.h"

#include "base/fd.h"
#include "collect/uprobe_places.h"
#include "symbolize/function_exits.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#if defined(__x86_64__)

#define FUNCTION(name, body)                                                                       \
    __asm__(".text\n.type " #name ", @function\n.globl " #name "\n" #name                          \
            ":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ", . - " #name "\n")

FUNCTION(exits_twice, "test %edi, %edi\n je 1f\n xor %eax, %eax\n ret\n1: mov $1, %eax\n ret");
FUNCTION(exits_by_a_call, "push %rbx\n.cfi_adjust_cfa_offset 8\n call exits_twice\n"
                          "pop %rbx\n.cfi_adjust_cfa_offset -8\n jmp exits_twice\n ret");
FUNCTION(exits_by_a_pointer, "mov 8(%rdi), %rax\n jmp *%rax\n ret");
FUNCTION(exits_after_a_switch, "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n jmp *(%rdi)\n"
                               "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n ret");
FUNCTION(exits_elsewhere, "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n test %edi, %edi\n"
                          "je exits_twice\n add $24, %rsp\n.cfi_adjust_cfa_offset -24\n ret");
FUNCTION(exits_never, "1: jmp 1b");
FUNCTION(exits_in_no_code, "ret\n .byte 0x06, 0x06, 0x06, 0x06");

static struct elf_file file = ELF_FILE_NONE;

static int group_setup(void **state)
{
    (void)state;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    return elf_file_open(fd, "the test", &file, NULL);
}

static int group_teardown(void **state)
{
    (void)state;
    elf_file_close(&file);
    return 0;
}

enum { ENTER = 3, LEAVE = 4 }; /* fds of programs */

static void places_of(const char *name, struct uprobe_places *ret)
{
    const struct uprobe_function functions[] = {{name, ENTER, false}, {name, LEAVE, true}};
    *ret = (struct uprobe_places){0};
    uprobe_places_find(&file, functions, 2, true, ret);
    assert_true(ret->count >= 1);
    assert_int_equal(ret->at[0].program_fd, ENTER);
    assert_false(ret->at[0].at_return);
    for (size_t i = 1; i < ret->count; i++)
        assert_int_equal(ret->at[i].program_fd, LEAVE);
}

/* The byte that stands where a program is to go. */
static uint8_t byte_at(uint64_t offset)
{
    uint8_t byte = 0;
    assert_int_equal(pread(file.fd, &byte, 1, (off_t)offset), 1);
    return byte;
}

enum { RET = 0xc3 };

static void test_every_return_has_the_program(void **state)
{
    (void)state;
    struct uprobe_places places;
    places_of("exits_twice", &places);
    assert_int_equal(places.count, 3);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(byte_at(places.at[i].offset), RET);
        assert_false(places.at[i].at_return);
    }
    assert_int_equal(places.trampolines, 0);
}

static void test_a_function_that_is_jumped_to_is_waited_for(void **state)
{
    (void)state;
    static const char *const names[] = {"exits_by_a_call", "exits_by_a_pointer"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct uprobe_places places;
        places_of(names[i], &places);
        assert_int_equal(places.count, 3);
        assert_true(places.at[1].at_return);
        assert_int_not_equal(byte_at(places.at[1].offset), RET);
        assert_false(places.at[2].at_return);
        assert_int_equal(byte_at(places.at[2].offset), RET);
        assert_int_equal(places.trampolines, 0);
    }
}

static void test_a_switch_is_no_way_out(void **state)
{
    (void)state;
    struct uprobe_places places;
    places_of("exits_after_a_switch", &places);
    assert_int_equal(places.count, 2);
    assert_false(places.at[1].at_return);
    assert_int_equal(byte_at(places.at[1].offset), RET);
}

static void test_where_not_all_is_known_the_kernel_is_asked_from_the_beginning(void **state)
{
    (void)state;
    static const char *const names[] = {"exits_elsewhere", "exits_never", "exits_in_no_code"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct uprobe_places places;
        places_of(names[i], &places);
        assert_int_equal(places.count, 2);
        assert_true(places.at[1].at_return);
        assert_int_equal(places.at[1].offset, places.at[0].offset);
        assert_int_equal(places.trampolines, 1);
    }
}

static void test_what_is_not_there_has_no_places(void **state)
{
    (void)state;
    struct uprobe_places places = {0};
    const struct uprobe_function functions[] = {{"no_such_function", ENTER, false},
                                                {"exits_twice", LEAVE, true}};
    uprobe_places_find(&file, functions, 2, true, &places);
    assert_int_equal(places.count, 0);
}

static void test_ways_out_of_nothing_are_refused(void **state)
{
    (void)state;
    struct function_exit exits[FUNCTION_EXITS_MAX];
    size_t count = 77;
    assert_int_equal(function_exits(&file, 0x1000, 0, exits, &count), -ENOTSUP);
    assert_int_equal(function_exits(&file, UINT64_MAX - 8, 64, exits, &count), -ENOTSUP);
    assert_int_equal(function_exits(&file, 0x1000, FUNCTION_EXITS_BYTES_MAX + 1, exits, &count),
                     -ENOTSUP);
    assert_int_equal(count, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_return_has_the_program),
        cmocka_unit_test(test_a_function_that_is_jumped_to_is_waited_for),
        cmocka_unit_test(test_a_switch_is_no_way_out),
        cmocka_unit_test(test_where_not_all_is_known_the_kernel_is_asked_from_the_beginning),
        cmocka_unit_test(test_what_is_not_there_has_no_places),
        cmocka_unit_test(test_ways_out_of_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

#else

int main(void)
{
    puts("1..0 # SKIP: written for x86_64");
    return 0;
}

#endif
