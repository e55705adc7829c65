/* Promises of symbolize/function_paths.c, with functions that leave in every way there is. They
 * are only looked at, never run. */
#include "unit.h"

#include "symbolize/function_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#if defined(__x86_64__)

#define FUNCTION(name, body)                                                                       \
    __asm__(".text\n.type " #name ", @function\n.globl " #name "\n" #name ":\n" body               \
            "\n.size " #name ", . - " #name "\n")

FUNCTION(paths_two, "test %rdi, %rdi\n je 1f\n xor %eax, %eax\n ret\n1: mov $1, %eax\n ret");
FUNCTION(paths_jumps_on, "push %rbx\n pop %rbx\n jmp paths_two");
FUNCTION(paths_calls, "mov %rdi, %rcx\n call paths_two\n ret");
FUNCTION(paths_by_pointer, "lea 8(%rdi), %rsi\n push %rax\n pop %rax\n jmp *%rax");
FUNCTION(paths_for_ever, "1: jmp 1b");
FUNCTION(paths_in_no_code, ".byte 0x06, 0x06, 0x06");
FUNCTION(paths_comes_back, "cmp $1, %rdi\n1: jne 2f\n inc %rdi\n jmp 1b\n2: ret");

static struct elf_file file = ELF_FILE_NONE;

static uint64_t address_of(const char *wanted)
{
    GElf_Shdr header;
    Elf_Scn *scn = elf_file_section(&file, ".symtab", &header);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
    GElf_Sym symbol;
    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
        const char *name = elf_strptr(file.elf, header.sh_link, symbol.st_name);
        if (name && strcmp(name, wanted) == 0)
            return symbol.st_value;
    }
    fail_msg("the test has lost %s", wanted);
    return 0;
}

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

static struct function_paths paths_of(const char *name, const char *known)
{
    struct function_paths paths;
    uint64_t address = known ? address_of(known) : 0;
    assert_int_equal(function_paths(&file, address_of(name), &address, known ? 1 : 0, &paths), 0);
    return paths;
}

static void test_every_return_is_found_also_behind_a_jump(void **state)
{
    (void)state;
    struct function_paths own = paths_of("paths_two", NULL);
    struct function_paths behind = paths_of("paths_jumps_on", NULL);
    assert_int_equal(own.return_count, 2);
    assert_int_equal(behind.return_count, 2);
    assert_int_equal(behind.jump_count, 0);
    assert_false(own.blind || behind.blind);
}

static void test_what_is_known_is_not_followed(void **state)
{
    (void)state;
    struct function_paths paths = paths_of("paths_jumps_on", "paths_two");
    assert_int_equal(paths.return_count, 0);
    assert_int_equal(paths.jump_count, 1);
    assert_false(paths.calls_known);
    paths = paths_of("paths_calls", "paths_two");
    assert_true(paths.calls_known);
    assert_int_equal(paths.return_count, 1);
    assert_false(paths_of("paths_calls", "paths_for_ever").calls_known);
}

static void test_what_cannot_be_read_is_said(void **state)
{
    (void)state;
    assert_int_equal(paths_of("paths_by_pointer", NULL).jump_count, 1);
    assert_int_equal(paths_of("paths_for_ever", NULL).return_count, 0);
    assert_true(paths_of("paths_in_no_code", NULL).blind);
    struct function_paths paths;
    assert_int_equal(function_paths(&file, UINT64_MAX - 3, NULL, 0, &paths), 0);
    assert_true(paths.blind);
}

static void test_a_probe_goes_where_the_kernel_need_not_step(void **state)
{
    (void)state;
    uint64_t two = address_of("paths_two"), calls = address_of("paths_calls");
    assert_int_equal(function_probe_at(&file, two), two + 3); /* je */
    assert_int_equal(function_probe_at(&file, calls), calls + 3);
    uint64_t jumps_on = address_of("paths_jumps_on");
    assert_int_equal(function_probe_at(&file, jumps_on), jumps_on);
}

static void test_a_probe_sees_arguments_as_they_came_and_once(void **state)
{
    (void)state;
    uint64_t pointer = address_of("paths_by_pointer"), back = address_of("paths_comes_back");
    assert_int_equal(function_probe_at(&file, pointer), pointer); /* %rsi is another by then */
    assert_int_equal(function_probe_at(&file, back), back);
    assert_int_equal(function_probe_at(&file, UINT64_MAX - 3), UINT64_MAX - 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_return_is_found_also_behind_a_jump),
        cmocka_unit_test(test_what_is_known_is_not_followed),
        cmocka_unit_test(test_what_cannot_be_read_is_said),
        cmocka_unit_test(test_a_probe_goes_where_the_kernel_need_not_step),
        cmocka_unit_test(test_a_probe_sees_arguments_as_they_came_and_once),
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
