/* Source and instructions of this very program, and of files made up to be awkward. */
#include "unit.h"

#include "model/sink_memory.h"
#include "symbolize/embed.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The source is found by the folder in the debug information. A compiler's cache that is told to
 * overlook folders would hand out an object from another one, perhaps gone since, if the text did
 * not differ. */
__attribute__((used)) static const char built_in[] = BUILT_IN;

static volatile int depth_seen;

__attribute__((noinline)) static void callee(int x)
{
    depth_seen += x;
}

/* The line after the brace is the one the test looks for. */
__attribute__((noinline, used)) static int sample_function(int x)
{
    callee(x); /* marker: the call */
    callee(x + 1);
    return depth_seen * 3;
}

static int base_of(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    *(uint64_t *)context = info->dlpi_addr;
    return 1; /* the first is the program itself */
}

struct world {
    int fd;
    struct symbols *symbols;
    struct sink_memory memory;
    uint32_t image;
    struct embed_function function;
};

static void world_begin(struct world *world)
{
    *world = (struct world){.memory = SINK_MEMORY_INIT};
    world->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(world->fd >= 0);
    struct image_info info = {
        .kind = IMAGE_FILE, .path = STR("/proc/self/exe"), .build_id = STR("")};
    struct why why = {0};
    struct symbols_opts opts = {.lines = true};
    assert_int_equal(symbols_open(world->fd, &info, &opts, &world->symbols, &why), 0);
    assert_int_equal(sink_image(&world->memory.sink, &info, &world->image), 0);
    uint64_t base = 0;
    dl_iterate_phdr(base_of, &base);
    struct symbol symbol;
    uint64_t start = (uint64_t)(uintptr_t)&sample_function - base;
    assert_true(symbols_at(world->symbols, start, &symbol, 1) >= 1);
    assert_true(str_is(symbol.name, "sample_function"));
    world->function = (struct embed_function){0, start, symbol.size_bytes, 1};
}

static void world_end(struct world *world)
{
    symbols_close(world->symbols);
    sink_memory_deinit(&world->memory);
    close(world->fd);
}

static bool has_instruction(const struct sink_memory *memory, const char *text)
{
    for (size_t i = 0; i < memory->instructions.len; i++)
        if (str_contains(memory->instructions.data[i].text, text))
            return true;
    return false;
}

static bool has_line(const struct sink_memory *memory, const char *text)
{
    for (size_t i = 0; i < memory->source_lines.len; i++)
        if (str_contains(memory->source_lines.data[i].text, text))
            return true;
    return false;
}

static void a_function_is_embedded_with_its_source_and_named_calls(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct embed_counts counts;
    assert_int_equal(embed_hot(world.symbols, world.fd, world.image, &world.function, 1, NULL,
                               &world.memory.sink, &counts),
                     0);
    assert_int_equal(counts.functions, 1);
    assert_null(counts.code_na);
    assert_int_equal(counts.instructions, world.memory.instructions.len);
    assert_true(counts.instructions > 3);
    assert_true(has_instruction(&world.memory, "<callee>"));
    assert_true(has_instruction(&world.memory, "ret"));
    /* Instructions follow each other without a gap and stay inside. */
    uint64_t at = world.function.start;
    for (size_t i = 0; i < world.memory.instructions.len; i++) {
        assert_int_equal(world.memory.instructions.data[i].address, at);
        at += world.memory.instructions.data[i].size;
    }
    assert_true(at <= world.function.start + world.function.size_bytes);
    assert_true(has_line(&world.memory, "marker: the call"));
    assert_true(has_line(&world.memory, "static int sample_function(int x)"));
    assert_false(has_line(&world.memory, "int main(void)"));
    assert_true(counts.source_lines < 60); /* the function, not the file */
    world_end(&world);
}

static void parts_that_are_not_wanted_are_left_out(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    struct embed_opts opts = {.no_source = true};
    assert_int_equal(embed_hot(world.symbols, world.fd, world.image, &world.function, 1, &opts,
                               &world.memory.sink, NULL),
                     0);
    assert_int_equal(world.memory.source_lines.len, 0);
    assert_true(world.memory.instructions.len > 0);
    size_t before = world.memory.instructions.len;
    opts = (struct embed_opts){.no_code = true};
    assert_int_equal(embed_hot(world.symbols, world.fd, world.image, &world.function, 1, &opts,
                               &world.memory.sink, NULL),
                     0);
    assert_int_equal(world.memory.instructions.len, before);
    assert_true(world.memory.source_lines.len > 0);
    world_end(&world);
}

/* mkdir -p of the folder of `path`. */
static void folders_make(char *file)
{
    for (char *slash = file + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(file, 0700);
        *slash = '/';
    }
}

static struct embed_counts embed_through(struct world *world, const char *root)
{
    struct embed_counts counts;
    struct embed_opts opts = {.root = root, .no_code = true};
    assert_int_equal(embed_hot(world->symbols, world->fd, world->image, &world->function, 1, &opts,
                               &world->memory.sink, &counts),
                     0);
    return counts;
}

static void sources_are_found_through_the_targets_root_and_only_if_they_fit(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    char root[] = "/tmp/whyslow-test-XXXXXX";
    assert_non_null(mkdtemp(root));
    struct embed_counts counts = embed_through(&world, root);
    assert_int_equal(counts.source_lines, 0);
    assert_true(counts.files_missing >= 1);
    struct symbol symbol;
    assert_true(symbols_at(world.symbols, world.function.start, &symbol, 1) >= 1);
    char file[4096];
    snprintf(file, sizeof(file), "%s%.*s", root, STR_FMT(symbol.file));
    folders_make(file);
    /* A pipe in its place must not hold us up. */
    assert_int_equal(mkfifo(file, 0600), 0);
    counts = embed_through(&world, root);
    assert_int_equal(counts.source_lines, 0);
    assert_int_equal(unlink(file), 0);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    for (int i = 0; i < 300; i++)
        fprintf(out, "line %d of another file\n", i + 1);
    fclose(out);
    struct timespec late[2] = {{.tv_sec = 4000000000}, {.tv_sec = 4000000000}};
    assert_int_equal(utimensat(AT_FDCWD, file, late, 0), 0);
    counts = embed_through(&world, root);
    assert_int_equal(counts.source_lines, 0);
    assert_int_equal(counts.files_newer, 1);
    struct timespec old[2] = {{.tv_sec = 700000000}, {.tv_sec = 700000000}};
    assert_int_equal(utimensat(AT_FDCWD, file, old, 0), 0);
    counts = embed_through(&world, root);
    assert_int_equal(counts.files_newer, 0);
    assert_true(counts.source_lines > 0);
    assert_true(has_line(&world.memory, "of another file"));
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
    world_end(&world);
}

static void functions_that_are_not_in_the_file_are_no_harm(void **state)
{
    (void)state;
    struct world world;
    world_begin(&world);
    const struct embed_function odd[] = {
        {0, 0, 16, 1},
        {0, UINT64_MAX - 3, 16, 1},
        {0, UINT64_MAX, UINT64_MAX, 1},
        {0, world.function.start, 0, 1},
        {0, world.function.start, UINT64_MAX, 1}, /* too large: cut */
    };
    struct embed_counts counts;
    assert_int_equal(embed_hot(world.symbols, world.fd, world.image, odd, ARRAY_SIZE(odd), NULL,
                               &world.memory.sink, &counts),
                     0);
    assert_true(counts.instructions <= 2 * 64 * 1024); /* each function at most 64 KiB */
    assert_int_equal(embed_hot(world.symbols, -1, world.image, &world.function, 1, NULL,
                               &world.memory.sink, &counts),
                     0);
    assert_non_null(counts.code_na);
    assert_int_equal(counts.instructions, 0);
    assert_true(counts.source_lines > 0); /* lines are known without the bytes */
    world_end(&world);
}

/* A file of one segment with `code` at 0x1000. */
static int elf_make(uint16_t machine, const void *code, size_t len)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segment;
        uint8_t code[64];
    } file = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                               EV_CURRENT},
                   .e_type = ET_DYN,
                   .e_machine = machine,
                   .e_version = EV_CURRENT,
                   .e_phoff = sizeof(Elf64_Ehdr),
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 1},
        .segment = {.p_type = PT_LOAD,
                    .p_flags = PF_R | PF_X,
                    .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
                    .p_vaddr = 0x1000,
                    .p_filesz = 64,
                    .p_memsz = 64},
    };
    memcpy(file.code, code, len);
    char name[] = "/tmp/whyslow-elf-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
    return fd;
}

static void other_machines_are_disassembled_or_say_why_not(void **state)
{
    (void)state;
    static const uint32_t arm[] = {0xd2800020, 0x94000002, 0xd65f03c0, 0xffffffff};
    static const struct {
        uint16_t machine;
        bool known;
    } cases[] = {{EM_AARCH64, true}, {EM_RISCV, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int fd = elf_make(cases[i].machine, arm, sizeof(arm));
        struct image_info info = {.kind = IMAGE_FILE, .path = STR("/made/up"), .build_id = STR("")};
        struct symbols *symbols = NULL;
        struct why why = {0};
        struct sink_memory memory = SINK_MEMORY_INIT;
        uint32_t image;
        struct symbols_opts opts = {.lines = true};
        assert_int_equal(symbols_open(fd, &info, &opts, &symbols, &why), 0);
        assert_int_equal(sink_image(&memory.sink, &info, &image), 0);
        struct embed_function function = {0, 0x1000, sizeof(arm), 1};
        struct embed_counts counts;
        assert_int_equal(embed_hot(symbols, fd, image, &function, 1, NULL, &memory.sink, &counts),
                         0);
        if (cases[i].known) {
            assert_int_equal(counts.instructions, 4);
            assert_true(has_instruction(&memory, "bl #0x100c"));
            assert_true(has_instruction(&memory, "ret"));
            assert_int_equal(memory.instructions.data[3].size, 4); /* no instruction: data */
        } else {
            assert_int_equal(counts.instructions, 0);
            assert_non_null(strstr(counts.code_na, "machine"));
        }
        symbols_close(symbols);
        sink_memory_deinit(&memory);
        close(fd);
    }
}

static void the_hottest_are_chosen_until_95_percent(void **state)
{
    (void)state;
    struct embed_function functions[] = {
        {1, 0x10, 1, 5}, {2, 0x20, 1, 60}, {1, 0x30, 1, 34}, {1, 0x40, 1, 0}, {1, 0x50, 1, 2},
    };
    assert_int_equal(embed_choose(functions, 5, 100, 50), 3); /* 60 + 34 < 95, + 5 covers it */
    assert_int_equal(functions[0].start, 0x20);
    assert_int_equal(functions[2].start, 0x10);
    assert_int_equal(embed_choose(functions, 5, 100, 2), 2);
    assert_int_equal(embed_choose(functions, 5, 1000, 50), 2); /* 5 of 1000 are too little */
    assert_int_equal(embed_choose(functions, 5, 200, 50), 4);  /* none without weight */
    assert_int_equal(embed_choose(functions, 0, 100, 50), 0);
    assert_int_equal(embed_choose(NULL, 0, 0, 50), 0);
}

int main(void)
{
    sample_function(1); /* so that it stays */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_embedded_with_its_source_and_named_calls),
        cmocka_unit_test(parts_that_are_not_wanted_are_left_out),
        cmocka_unit_test(sources_are_found_through_the_targets_root_and_only_if_they_fit),
        cmocka_unit_test(functions_that_are_not_in_the_file_are_no_harm),
        cmocka_unit_test(other_machines_are_disassembled_or_say_why_not),
        cmocka_unit_test(the_hottest_are_chosen_until_95_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
