/* Promises of the row builder: directives written by hand become the rules they say,
 * in every dialect of the tables, and on real libraries the rules agree with libdw's. */
#include "unit.h"

#include "unwind_build.h"

#include "unwind/image.h"

#include <elf.h>
#include <errno.h>

enum { RBX = 3, RBP = 6, RSP = 7, R10 = 10, R12 = 12, RA = 16 };

static const struct unwind_rules *rules_at(const struct unwind_image *image, uint64_t vaddr)
{
    return &image->rows.rules[unwind_rows_find(&image->rows, vaddr)];
}

static const struct unwind_save *save_of(const struct unwind_image *image, uint64_t vaddr,
                                         unsigned target)
{
    const struct unwind_rules *rules = rules_at(image, vaddr);
    for (unsigned i = 0; i < rules->saves_count; i++)
        if (image->rows.saves[rules->saves_first + i].target == target)
            return &image->rows.saves[rules->saves_first + i];
    return NULL;
}

#define assert_cfa(image, vaddr, kind, base, offset, offset2)                                      \
    do {                                                                                           \
        const struct unwind_rules *rules_ = rules_at(image, vaddr);                                \
        assert_int_equal(rules_->cfa, kind);                                                       \
        assert_int_equal(rules_->cfa_base, base);                                                  \
        assert_int_equal(rules_->cfa_offset, offset);                                              \
        assert_int_equal(rules_->cfa_offset2, offset2);                                            \
    } while (0)

#define assert_save(image, vaddr, target, expected, from, at)                                      \
    do {                                                                                           \
        const struct unwind_save *save_ = save_of(image, vaddr, target);                           \
        assert_non_null(save_);                                                                    \
        assert_int_equal(save_->place, expected);                                                  \
        assert_int_equal(save_->base, from);                                                       \
        assert_int_equal(save_->offset, at);                                                       \
    } while (0)

static struct unwind_image *image_of(const char *name, const char *assembly)
{
    struct unwind_image *image = NULL;
    struct why why = {0};
    char file[32];
    if (!build_image(name, assembly))
        fail_msg("the compiler did not make %s", name);
    snprintf(file, sizeof(file), "%s.so", name);
    if (build_load(file, NULL, &image, &why) < 0)
        fail_msg("%s: %s", file, why.what);
    return image;
}

/* One instruction of one byte between any two directives. */
static void plain_directives_become_rows(void **state)
{
    (void)state;
    struct unwind_image *image = image_of("plain", ".text\n f: .cfi_startproc\n nop\n"
                                                   ".cfi_adjust_cfa_offset 8\n"
                                                   ".cfi_rel_offset rbp, 0\n nop\n"
                                                   ".cfi_def_cfa_register rbp\n nop\n"
                                                   ".cfi_offset rbx, -24\n nop\n"
                                                   ".cfi_remember_state\n"
                                                   ".cfi_def_cfa rsp, 8\n .cfi_restore rbp\n nop\n"
                                                   ".cfi_restore_state\n nop\n"
                                                   ".cfi_undefined rip\n nop\n"
                                                   ".cfi_endproc\n"
                                                   ".skip 64, 0xcc\n"
                                                   "g: .cfi_startproc\n nop\n .cfi_endproc\n");
    assert_int_equal(unwind_image_rows(image), 10); /* seven, the gap, g, the end */
    assert_cfa(image, CODE, UNWIND_CFA_REGISTER, RSP, 8, 0);
    assert_int_equal(rules_at(image, CODE)->ra, UNWIND_AT_CFA);
    assert_int_equal(rules_at(image, CODE)->ra_offset, -8);
    assert_null(save_of(image, CODE, RBP));
    assert_cfa(image, CODE + 1, UNWIND_CFA_REGISTER, RSP, 16, 0);
    assert_save(image, CODE + 1, RBP, UNWIND_AT_CFA, 0, -16);
    assert_cfa(image, CODE + 2, UNWIND_CFA_REGISTER, RBP, 16, 0);
    assert_save(image, CODE + 3, RBX, UNWIND_AT_CFA, 0, -24);
    assert_cfa(image, CODE + 4, UNWIND_CFA_REGISTER, RSP, 8, 0);
    assert_null(save_of(image, CODE + 4, RBP));
    assert_cfa(image, CODE + 5, UNWIND_CFA_REGISTER, RBP, 16, 0);
    assert_save(image, CODE + 5, RBP, UNWIND_AT_CFA, 0, -16);
    assert_int_equal(rules_at(image, CODE + 6)->ra, UNWIND_UNDEFINED);
    assert_int_equal(rules_at(image, CODE + 7)->cfa, UNWIND_CFA_NONE); /* the gap */
    assert_int_equal(rules_at(image, CODE + 7 + 63)->cfa, UNWIND_CFA_NONE);
    assert_cfa(image, CODE + 7 + 64, UNWIND_CFA_REGISTER, RSP, 8, 0);
    assert_int_equal(rules_at(image, CODE + 7 + 65)->cfa, UNWIND_CFA_NONE);
    assert_int_equal(rules_at(image, CODE - 1)->cfa, UNWIND_CFA_NONE);
    unwind_image_free(image);
}

static void rare_directives_become_rules(void **state)
{
    (void)state;
    struct unwind_image *image = image_of(
        "rare", ".text\n f: .cfi_startproc\n nop\n"
                ".cfi_val_offset rbx, -32\n nop\n"
                ".cfi_register r12, rax\n nop\n"
                ".cfi_same_value rbx\n nop\n"
                ".cfi_undefined r13\n nop\n"
                /* def_cfa_expression: breg6 -24, deref */
                ".cfi_escape 0x0f, 3, 0x76, 0x68, 0x06\n nop\n"
                /* def_cfa_expression: breg10 8, deref, plus_uconst 16 */
                ".cfi_escape 0x0f, 5, 0x7a, 8, 0x06, 0x23, 16\n nop\n"
                /* expression rbp: breg6 0 */
                ".cfi_escape 0x10, 6, 2, 0x76, 0\n nop\n"
                /* the linker's call stubs */
                ".cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22\n"
                "nop\n"
                /* val_expression rbx: lit5; GNU_args_size 300; a vector register at cfa-64 */
                ".cfi_escape 0x16, 3, 1, 0x35\n .cfi_escape 0x2e, 0xac, 2\n .cfi_offset xmm3, -64\n"
                "nop\n"
                /* GNU_negative_offset_extended r14, 2; back to a register */
                ".cfi_escape 0x2f, 14, 2\n .cfi_def_cfa r10, 4000\n nop\n"
                /* a general expression: breg7 0, lit8, plus, lit3, or */
                ".cfi_escape 0x0f, 6, 0x77, 0, 0x38, 0x22, 0x33, 0x21\n nop\n"
                ".cfi_endproc\n");
    assert_save(image, CODE + 1, RBX, UNWIND_CFA_PLUS, 0, -32);
    assert_save(image, CODE + 2, R12, UNWIND_IN_REGISTER, 0, 0);
    assert_null(save_of(image, CODE + 3, RBX)); /* the default again */
    assert_save(image, CODE + 4, 13, UNWIND_UNDEFINED, 0, 0);
    assert_cfa(image, CODE + 5, UNWIND_CFA_DEREF, RBP, -24, 0);
    assert_cfa(image, CODE + 6, UNWIND_CFA_DEREF, R10, 8, 16);
    assert_save(image, CODE + 7, RBP, UNWIND_AT_REGISTER, RBP, 0);
    assert_cfa(image, CODE + 8, UNWIND_CFA_PLT, RSP, 8, 11);
    assert_int_equal(save_of(image, CODE + 9, RBX)->place, UNWIND_VAL_EXPRESSION);
    assert_save(image, CODE + 10, 14, UNWIND_AT_CFA, 0, 16);
    assert_cfa(image, CODE + 10, UNWIND_CFA_REGISTER, R10, 4000, 0);
    assert_int_equal(rules_at(image, CODE + 11)->cfa, UNWIND_CFA_EXPRESSION);
    /* Only rules that look at no other register may be followed in place. */
    assert_true(rules_at(image, CODE + 1)->flags & UNWIND_RULES_SIMPLE);
    assert_false(rules_at(image, CODE + 2)->flags & UNWIND_RULES_SIMPLE);
    unwind_image_free(image);
}

static void augmentations_are_read(void **state)
{
    (void)state;
    struct unwind_image *image = image_of(
        "augmented", ".text\n p: ret\n.p2align 3\n"
                     "f: .cfi_startproc\n .cfi_personality 0x1b, p\n .cfi_lsda 0x1b, p\n"
                     "nop\n .cfi_adjust_cfa_offset 8\n nop\n .cfi_endproc\n"
                     "g: .cfi_startproc\n .cfi_signal_frame\n nop\n .cfi_endproc\n");
    assert_cfa(image, CODE + 9, UNWIND_CFA_REGISTER, RSP, 16, 0);
    assert_false(rules_at(image, CODE + 9)->flags & UNWIND_RULES_SIGNAL);
    assert_true(rules_at(image, CODE + 10)->flags & UNWIND_RULES_SIGNAL);
    unwind_image_free(image);
}

#define DEBUG_FRAME_ONLY                                                                           \
    ".cfi_sections .debug_frame\n.text\n f: .cfi_startproc\n nop\n"                                \
    ".cfi_adjust_cfa_offset 8\n nop\n .cfi_endproc\n .skip 4096, 0x90\n"                           \
    "g: .cfi_startproc\n nop\n .cfi_endproc\n"

static void debug_frame_is_read_also_compressed(void **state)
{
    (void)state;
    static const char *const ways[] = {"none", "zlib-gabi", "zlib-gnu", "zstd"};
    struct unwind_image *image = image_of("debug", DEBUG_FRAME_ONLY);
    assert_cfa(image, CODE + 1, UNWIND_CFA_REGISTER, RSP, 16, 0);
    unwind_image_free(image);
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        /* Small sections are left as they are when packing gains nothing: make it large. */
        image = image_of("packed", DEBUG_FRAME_ONLY
                         ".rept 200\n .cfi_startproc\n nop\n .cfi_endproc\n .endr\n");
        size_t rows = unwind_image_rows(image);
        unwind_image_free(image);
        assert_int_equal(
            build_run("objcopy --compress-debug-sections=%s packed.so out.so", ways[i]), 0);
        assert_int_equal(build_load("out.so", NULL, &image, NULL), 0);
        assert_int_equal(unwind_image_rows(image), rows);
        assert_cfa(image, CODE + 1, UNWIND_CFA_REGISTER, RSP, 16, 0);
        unwind_image_free(image);
    }
}

static void a_separate_debug_file_helps(void **state)
{
    (void)state;
    struct unwind_image *image = image_of("whole", DEBUG_FRAME_ONLY);
    unwind_image_free(image);
    assert_int_equal(build_run("objcopy --only-keep-debug whole.so whole.debug && "
                               "strip -o stripped.so whole.so"),
                     0);
    assert_int_equal(build_load("stripped.so", NULL, &image, NULL), 0);
    assert_int_equal(unwind_image_rows(image), 0);
    unwind_image_free(image);
    struct unwind_image_opts opts = {.debug_path = build_path("whole.debug")};
    assert_int_equal(build_load("stripped.so", &opts, &image, NULL), 0);
    assert_cfa(image, CODE + 1, UNWIND_CFA_REGISTER, RSP, 16, 0);
    unwind_image_free(image);
    /* One of another build, or none at all, is no help and no harm. */
    unwind_image_free(image_of("other", ".text\n nop\n"));
    const char *const useless[] = {"other.so", "missing", "whole.s"};
    for (size_t i = 0; i < ARRAY_SIZE(useless); i++) {
        opts.debug_path = build_path(useless[i]);
        assert_int_equal(build_load("stripped.so", &opts, &image, NULL), 0);
        assert_int_equal(unwind_image_rows(image), 0);
        unwind_image_free(image);
    }
}

/* Written by hand: no assembler makes all of these. */
static void every_version_and_width_is_read(void **state)
{
    (void)state;
#define CIE_BODY " .uleb128 1\n .sleb128 -8\n"
#define CIE_CODE " .byte 0x0c, 7, 8, 0x90, 1\n"
    struct unwind_image *image = image_of(
        "versions",
        ".text\n .skip 64, 0x90\n"
        ".section .debug_frame\n"
        /* Version 1, 32 bits; its FDE comes before it. */
        "fde1: .long fde1_end - 0f\n 0: .long cie1 - fde1\n .quad 0x10000, 8\n"
        " .byte 0x41, 0x0e, 16\n fde1_end:\n"
        "cie1: .long 1f - 0f\n 0: .long 0xffffffff\n .byte 1, 0\n" CIE_BODY " .byte 16\n" CIE_CODE
        " 1:\n"
        /* Version 3, 64 bits. */
        "cie3: .long 0xffffffff\n .quad 1f - 0f\n 0: .quad -1\n .byte 3, 0\n" CIE_BODY
        " .uleb128 16\n" CIE_CODE " 1:\n"
        "fde3: .long 0xffffffff\n .quad 1f - 0f\n 0: .quad cie3 - fde1\n .quad 0x10010, 8\n"
        " .byte 0x41, 0x0e, 24\n 1:\n"
        /* Version 4 with its address size. */
        "cie4: .long 1f - 0f\n 0: .long 0xffffffff\n .byte 4, 0, 8, 0\n" CIE_BODY
        " .uleb128 16\n" CIE_CODE " 1:\n"
        "fde4: .long 1f - 0f\n 0: .long cie4 - fde1\n .quad 0x10020, 8\n"
        " .byte 0x02, 1, 0x0e, 32, 0x03, 1, 0, 0x0e, 40, 0x04, 1, 0, 0, 0, 0x0e, 48\n 1:\n"
        /* A version that does not exist: only its functions are lost. */
        "cie9: .long 1f - 0f\n 0: .long 0xffffffff\n .byte 9, 0\n" CIE_BODY
        " .uleb128 16\n" CIE_CODE " 1:\n"
        "fde9: .long 1f - 0f\n 0: .long cie9 - fde1\n .quad 0x10030, 8\n 1:\n");
    assert_cfa(image, CODE + 0x01, UNWIND_CFA_REGISTER, RSP, 16, 0);
    assert_cfa(image, CODE + 0x10, UNWIND_CFA_REGISTER, RSP, 8, 0);
    assert_cfa(image, CODE + 0x11, UNWIND_CFA_REGISTER, RSP, 24, 0);
    assert_cfa(image, CODE + 0x21, UNWIND_CFA_REGISTER, RSP, 32, 0);
    assert_cfa(image, CODE + 0x22, UNWIND_CFA_REGISTER, RSP, 40, 0);
    assert_cfa(image, CODE + 0x27, UNWIND_CFA_REGISTER, RSP, 48, 0);
    assert_int_equal(rules_at(image, CODE + 0x30)->cfa, UNWIND_CFA_NONE);
    assert_int_equal(image->skipped, 1);
    unwind_image_free(image);
}

static void nonsense_in_one_function_costs_only_its_rows(void **state)
{
    (void)state;
    struct unwind_image *image = image_of(
        "nonsense",
        ".text\n f: .cfi_startproc\n nop\n .cfi_adjust_cfa_offset 8\n nop\n"
        ".cfi_escape 0x3f\n nop\n .cfi_endproc\n" /* no such instruction */
        "g: .cfi_startproc\n nop\n .cfi_endproc\n"
        "h: .cfi_startproc\n nop\n .cfi_escape 0x0b\n nop\n .cfi_endproc\n" /* restore */
        "i: .cfi_startproc\n nop\n .cfi_escape 0x0c, 99, 8\n nop\n .cfi_endproc\n");
    assert_cfa(image, CODE, UNWIND_CFA_REGISTER, RSP, 8, 0);
    assert_int_equal(rules_at(image, CODE + 2)->cfa, UNWIND_CFA_NONE);
    assert_cfa(image, CODE + 3, UNWIND_CFA_REGISTER, RSP, 8, 0);
    assert_int_equal(rules_at(image, CODE + 5)->cfa, UNWIND_CFA_NONE);
    assert_int_equal(rules_at(image, CODE + 7)->cfa, UNWIND_CFA_NONE);
    assert_int_equal(image->skipped, 3);
    unwind_image_free(image);
}

/* musl's and Go's have no table. */
static void a_restorer_is_found_by_its_bytes(void **state)
{
    (void)state;
    struct unwind_image *image = image_of(
        "restorer", ".text\n f: .cfi_startproc\n nop\n .cfi_endproc\n"
                    ".skip 63, 0x90\n"
                    "mov $15, %rax\n syscall\n .skip 40, 0x90\n"
                    "g: .cfi_startproc\n mov $15, %eax\n syscall\n nop\n .cfi_endproc\n");
    for (unsigned i = 0; i <= 9; i++) /* from one byte before: return addresses minus one */
        assert_true(rules_at(image, CODE + 63 + i)->flags & UNWIND_RULES_SIGNAL);
    assert_int_equal(rules_at(image, CODE + 62)->cfa, UNWIND_CFA_NONE);
    assert_int_equal(rules_at(image, CODE + 64 + 9)->cfa, UNWIND_CFA_NONE);
    assert_cfa(image, CODE + 64, UNWIND_CFA_DEREF, RSP, 160, 0);
    assert_int_equal(rules_at(image, CODE + 64)->ra, UNWIND_AT_REGISTER);
    assert_int_equal(rules_at(image, CODE + 64)->ra_offset, 168);
    assert_save(image, CODE + 64, RBP, UNWIND_AT_REGISTER, RSP, 120);
    assert_save(image, CODE + 64, 0, UNWIND_AT_REGISTER, RSP, 144);
    /* Where a table says what it is, the table counts. */
    assert_false(rules_at(image, CODE + 64 + 9 + 40 + 2)->flags & UNWIND_RULES_SIGNAL);
    unwind_image_free(image);
}

/* arm64's vDSO has had a table for its restorer that leads to the link register of the
 * interrupted function instead of its pc. */
static void the_kernels_own_restorer_is_told_by_its_bytes(void **state)
{
    (void)state;
    FILE *file = fopen(build_path("vdso.s"), "we");
    fputs(".text\n f: .cfi_startproc\n .cfi_signal_frame\n .cfi_def_cfa x29, 0\n nop\n"
          "mov x8, #139\n svc #0\n .cfi_endproc\n",
          file);
    fclose(file);
    if (build_run("command -v aarch64-linux-gnu-gcc") != 0)
        skip("no compiler for aarch64 (package gcc-aarch64-linux-gnu)");
    assert_int_equal(build_run("aarch64-linux-gnu-gcc -shared -nostdlib -Wl,-Ttext=0x%x "
                               "-Wl,-z,max-page-size=4096 -o vdso.so vdso.s",
                               CODE),
                     0);
    AUTO(fd_close) int fd = open(build_path("vdso.so"), O_RDONLY | O_CLOEXEC);
    static uint8_t bytes[256 << 10];
    ssize_t len = read(fd, bytes, sizeof(bytes));
    struct unwind_image *image = NULL;
    assert_int_equal(unwind_image_load_memory(bytes, (size_t)len, &image, NULL), 0);
    assert_int_equal(image->machine, UNWIND_AARCH64);
    /* From the nop on: a handler's return address minus one. */
    assert_cfa(image, CODE + 3, UNWIND_CFA_DEREF, 31, 560, 0);
    assert_int_equal(rules_at(image, CODE + 4)->ra_offset, 568);
    assert_true(rules_at(image, CODE + 8)->flags & UNWIND_RULES_SIGNAL);
    assert_save(image, CODE + 8, 30, UNWIND_AT_REGISTER, 31, 552);
    unwind_image_free(image);
}

static void call_stubs_without_a_table_have_rows(void **state)
{
    (void)state;
    struct unwind_image *image = image_of(
        "stubs", ".text\n f: .cfi_startproc\n nop\n .cfi_endproc\n"
                 ".section .plt.sec, \"ax\"\n .p2align 4\n .skip 32, 0xcc\n");
    size_t found = 0;
    for (uint64_t vaddr = 0; vaddr < CODE + 0x4000; vaddr++)
        if (rules_at(image, vaddr)->cfa == UNWIND_CFA_PLT) {
            found++;
            assert_int_equal(rules_at(image, vaddr)->ra_offset, -8);
        }
    assert_int_equal(found, 32);
    unwind_image_free(image);
}

static void a_file_without_section_headers_has_the_same_rows(void **state)
{
    (void)state;
    struct unwind_image *with = NULL, *without = NULL;
    assert_int_equal(build_run("cp -L /proc/self/exe program"), 0);
    assert_int_equal(build_load("program", NULL, &with, NULL), 0);
    int fd = open(build_path("program"), O_RDWR | O_CLOEXEC);
    Elf64_Ehdr header;
    assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
    header.e_shoff = 0;
    header.e_shnum = header.e_shstrndx = 0;
    assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    close(fd);
    assert_int_equal(build_load("program", NULL, &without, NULL), 0);
    assert_true(unwind_image_rows(with) > 100);
    /* Call stubs are known by their section's name only. */
    assert_in_range(unwind_image_rows(without), unwind_image_rows(with) - 8,
                    unwind_image_rows(with));
    unwind_image_free(with);
    unwind_image_free(without);
}

static void what_is_no_image_is_refused_by_name(void **state)
{
    (void)state;
    struct unwind_image *image = NULL;
    struct why why = {0};
    Elf64_Ehdr header = {.e_ident = ELFMAG};
    assert_int_equal(unwind_image_load_memory("", 0, &image, &why), -EBADMSG);
    assert_int_equal(unwind_image_load_memory("hello, world", 12, &image, &why), -EBADMSG);
    header.e_ident[EI_CLASS] = ELFCLASS32;
    assert_int_equal(unwind_image_load_memory(&header, sizeof(header), &image, &why), -ENOTSUP);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    assert_int_equal(unwind_image_load_memory(&header, sizeof(header), &image, &why), -EBADMSG);
    assert_non_null(strstr(why.what, "program headers"));
    assert_int_equal(build_load(".", NULL, &image, &why), -EBADMSG); /* a folder */
    unwind_image_free(image_of("machine", ".text\n nop\n"));
    assert_int_equal(build_run("printf '\\363' | dd of=machine.so bs=1 seek=18 conv=notrunc"), 0);
    assert_int_equal(build_load("machine.so", NULL, &image, &why), -ENOTSUP);
    assert_null(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_directives_become_rows),
        cmocka_unit_test(rare_directives_become_rules),
        cmocka_unit_test(augmentations_are_read),
        cmocka_unit_test(debug_frame_is_read_also_compressed),
        cmocka_unit_test(a_separate_debug_file_helps),
        cmocka_unit_test(every_version_and_width_is_read),
        cmocka_unit_test(nonsense_in_one_function_costs_only_its_rows),
        cmocka_unit_test(a_restorer_is_found_by_its_bytes),
        cmocka_unit_test(the_kernels_own_restorer_is_told_by_its_bytes),
        cmocka_unit_test(call_stubs_without_a_table_have_rows),
        cmocka_unit_test(a_file_without_section_headers_has_the_same_rows),
        cmocka_unit_test(what_is_no_image_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, build_group_setup, build_group_teardown);
}
