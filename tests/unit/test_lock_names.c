/* Locks are called by the variable that stands at their address, wherever the image was loaded;
 * what is no variable stays without a name. */
#include "unit.h"

#include "base/clock.h"
#include "collect/lock_names.h"
#include "model/sink_memory.h"
#include "symbolize/variables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACES_MAX = 16 };

struct program {
    pid_t pid;
    int hold;
    FILE *out;
};

static struct program program_start(const char *name)
{
    int in[2], out[2];
    char path[4096];
    const char *root = getenv("BUILD_ROOT");
    snprintf(path, sizeof(path), "%s/tests/workloads/%s", root ? root : "build", name);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    return (struct program){pid, in[1], fdopen(out[0], "r")};
}

static void program_end(struct program *program)
{
    int status;
    close(program->hold);
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    assert_int_equal(status, 0);
    fclose(program->out);
}

struct place {
    char name[64];
    uint64_t address;
    uint32_t object;
};

static size_t places_read(struct program *program, struct sink *sink, struct place *places)
{
    size_t count = 0;
    char line[256];
    while (count < 8 && fgets(line, sizeof(line), program->out)) {
        struct place *place = &places[count++];
        unsigned long long address;
        assert_int_equal(sscanf(line, "%63s 0x%llx", place->name, &address), 2);
        struct object_info info = {.kind = OBJECT_FUTEX, .key = address};
        place->address = address;
        assert_int_equal(sink_object(sink, &info, &place->object), 0);
    }
    return count;
}

/* The process is gone when names are put: what was mapped must have been kept. */
static void names_of(const char *name)
{
    struct sink_memory memory = SINK_MEMORY_INIT;
    struct stacks_opts opts = {.live = true, .machine = unwind_machine_here()};
    struct stacks *stacks;
    struct lock_names *names;
    struct place places[PLACES_MAX];
    struct program program = program_start(name);
    assert_int_equal(stacks_open(&opts, &memory.sink, &stacks, NULL), 0);
    assert_int_equal(lock_names_open(&names), 0);
    size_t count = places_read(&program, &memory.sink, places);
    assert_int_equal(count, 8);
    assert_int_equal(stacks_attach(stacks, program.pid, clock_mono_ns(), NULL), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(
            lock_names_see(names, stacks, program.pid, places[i].address, places[i].object), 0);
    program_end(&program);
    assert_int_equal(stacks_exit(stacks, clock_mono_ns(), program.pid, program.pid), 0);
    assert_int_equal(lock_names_put(names, stacks, &memory.sink), 0);
    for (size_t i = 0; i < count; i++) {
        struct str found = memory.book.objects.data[places[i].object - 1].info.name;
        if (!str_is(found, places[i].name[0] == '-' ? "" : places[i].name))
            fail_msg("%s is called '%.*s'", places[i].name, STR_FMT(found));
    }
    lock_names_close(names);
    stacks_close(stacks);
    sink_memory_deinit(&memory);
}

static void locks_of_a_program_loaded_anywhere_have_their_names(void **state)
{
    (void)state;
    names_of("lock-places");
}

static void locks_of_a_program_at_a_fixed_address_have_their_names(void **state)
{
    (void)state;
    names_of("lock-places-fixed");
}

static void what_nobody_knows_of_stays_unnamed(void **state)
{
    (void)state;
    struct sink_memory memory = SINK_MEMORY_INIT;
    struct stacks_opts opts = {.live = false, .machine = unwind_machine_here()};
    struct stacks *stacks;
    struct lock_names *names;
    struct object_info info = {.kind = OBJECT_FUTEX, .key = 0x4040};
    uint32_t object;
    assert_int_equal(stacks_open(&opts, &memory.sink, &stacks, NULL), 0);
    assert_int_equal(lock_names_open(&names), 0);
    assert_int_equal(sink_object(&memory.sink, &info, &object), 0);
    /* A process that was never announced; one whose image is no ELF file, or cannot be opened. */
    assert_int_equal(lock_names_see(names, stacks, 77, 0x4040, object), 0);
    assert_int_equal(stacks_comm(stacks, 1, 10, 10, STR("app"), true), 0);
    static const char *const paths[] = {"/etc/passwd", "/nowhere/at/all"};
    for (uint64_t i = 0; i < 2; i++) {
        struct stacks_mmap mmap = {
            .time_ns = 2,
            .pid = 10,
            .address = 0x4000 + i * 0x10000,
            .size_bytes = 0x1000,
            .executable = true,
            .path = str_from(paths[i]),
        };
        assert_int_equal(stacks_mmap(stacks, &mmap), 0);
        assert_int_equal(lock_names_see(names, stacks, 10, mmap.address + 0x40, object), 0);
    }
    assert_int_equal(lock_names_put(names, stacks, &memory.sink), 0);
    assert_int_equal(memory.book.objects.data[object - 1].info.name.len, 0);
    lock_names_close(names);
    lock_names_close(NULL);
    stacks_close(stacks);
    sink_memory_deinit(&memory);
}

static void data_lie_where_the_code_says(void **state)
{
    (void)state;
    /* Code from the middle of a page, data elsewhere, as linkers lay them out. */
    struct variables_layout layout = {
        .segments =
            {{.vaddr = 0, .size_bytes = 0x600, .file_bytes = 0x600},
             {.vaddr = 0x1700,
              .size_bytes = 0x900,
              .file_offset = 0x700,
              .file_bytes = 0x900,
              .executable = true},
             {.vaddr = 0x3e00, .size_bytes = 0x800, .file_offset = 0x1e00, .file_bytes = 0x200}},
        .count = 3,
    };
    uint64_t vaddr = 0;
    assert_true(variables_layout_vaddr(&layout, 0x555000001000, 0, 0x555000003f00, &vaddr));
    assert_int_equal(vaddr, 0x3f00);
    assert_true(variables_layout_vaddr(&layout, 0x555000001000, 0, 0x5550000045ff, &vaddr));
    assert_false(variables_layout_vaddr(&layout, 0x555000001000, 0, 0x555000004600, &vaddr));
    assert_false(variables_layout_vaddr(&layout, 0x555000001000, 0, 0x554fffffffff, &vaddr));
    /* A mapping that no code of the file can be. */
    assert_false(variables_layout_vaddr(&layout, 0x555000001000, 0x9000, 0x555000003f00, &vaddr));
    /* Segments that claim all of memory name nothing outside of it, and nothing wraps. */
    layout.segments[1].file_offset = UINT64_MAX - 5;
    assert_false(variables_layout_vaddr(&layout, 0x555000001000, 0, 0x555000003f00, &vaddr));
}

static void a_file_that_is_no_image_has_no_variables(void **state)
{
    (void)state;
    struct variables_layout layout = {.count = 7};
    struct variables *variables = NULL;
    struct image_info info = {.path = STR("/etc/passwd"), .build_id = STR("")};
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(variables_layout_read(fd, &layout) < 0);
    assert_int_equal(layout.count, 7);
    assert_true(variables_open(fd, &info, NULL, &variables) < 0);
    assert_null(variables);
    close(fd);
    assert_int_equal(variables_layout_read(fd, &layout), -EBADF);
    variables_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_of_a_program_loaded_anywhere_have_their_names),
        cmocka_unit_test(locks_of_a_program_at_a_fixed_address_have_their_names),
        cmocka_unit_test(what_nobody_knows_of_stays_unnamed),
        cmocka_unit_test(data_lie_where_the_code_says),
        cmocka_unit_test(a_file_that_is_no_image_has_no_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
