/* Promises of collect/stacks.c: announcements and samples in, stacks that name the right
 * process, image and time out. Processes are made up, except where our own is asked. */
#include "unit.h"

#include "base/clock.h"
#include "collect/stacks.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct sink_memory memory;
    struct stacks *stacks;
    char exe[4096]; /* a real ELF file: this test */
};

static int setup_with(void **state, bool live)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->memory = SINK_MEMORY_INIT;
    ssize_t n = readlink("/proc/self/exe", f->exe, sizeof(f->exe) - 1);
    struct stacks_opts opts = {.live = live, .machine = unwind_machine_here()};
    *state = f;
    return n > 0 ? stacks_open(&opts, &f->memory.sink, &f->stacks, NULL) : -1;
}

static int setup(void **state)
{
    return setup_with(state, false);
}

static int setup_live(void **state)
{
    return setup_with(state, true);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    stacks_close(f->stacks);
    sink_memory_deinit(&f->memory);
    free(f);
    return 0;
}

static void map_file(struct fixture *f, uint64_t time_ns, int pid, uint64_t address,
                     const char *path)
{
    struct stacks_mmap mmap = {
        .time_ns = time_ns,
        .pid = pid,
        .address = address,
        .size_bytes = 0x10000,
        .executable = true,
        .path = str_from(path),
    };
    assert_int_equal(stacks_mmap(f->stacks, &mmap), 0);
}

static struct stacks_found sample_chain(struct fixture *f, uint64_t time_ns, int pid, int tid,
                                        const uint64_t *user, size_t count)
{
    struct stacks_sample sample = {
        .time_ns = time_ns, .pid = pid, .tid = tid, .user = user, .user_count = count};
    struct stacks_found found = {0};
    assert_int_equal(stacks_sample(f->stacks, &sample, &found), 0);
    assert_true(found.thread > 0);
    return found;
}

static struct stacks_found sample_at(struct fixture *f, uint64_t time_ns, int pid, int tid,
                                     uint64_t pc)
{
    return sample_chain(f, time_ns, pid, tid, &pc, 1);
}

static struct frame_info leaf_of(const struct fixture *f, uint32_t stack)
{
    assert_true(stack > 0);
    uint32_t frame = f->memory.interned.stacks.data[stack - 1].frame;
    return interned_frame_get(&f->memory.interned, frame);
}

static struct str image_of(const struct fixture *f, struct stacks_found found)
{
    struct frame_info leaf = leaf_of(f, found.stack);
    return leaf.image ? f->memory.images.data[leaf.image - 1].path : STR("");
}

static const struct memory_process *process_of(const struct fixture *f, struct stacks_found found)
{
    uint32_t process = f->memory.threads.data[found.thread - 1].info.process;
    return &f->memory.processes.data[process - 1];
}

static void test_a_fork_has_the_mappings_of_its_parent(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("sh"), true), 0);
    map_file(f, 2, 10, 0x100000, "/nowhere/sh");
    assert_int_equal(stacks_fork(f->stacks, 3, 10, 11, 11), 0);
    struct stacks_found found = sample_at(f, 4, 11, 11, 0x100500);
    assert_true(str_is(image_of(f, found), "/nowhere/sh"));
    const struct memory_process *child = process_of(f, found);
    assert_int_equal(child->info.pid, 11);
    assert_true(child->info.start_ns == 3);
    assert_int_equal(f->memory.processes.data[child->info.parent - 1].info.pid, 10);
}

static void test_exec_clears_what_was_there(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("old"), true), 0);
    map_file(f, 2, 10, 0x100000, "/nowhere/old");
    struct stacks_found before = sample_at(f, 3, 10, 10, 0x100500);
    assert_int_equal(stacks_comm(f->stacks, 4, 10, 10, STR("new"), true), 0);
    struct stacks_found between = sample_at(f, 5, 10, 10, 0x100500);
    map_file(f, 6, 10, 0x100000, "/nowhere/new");
    struct stacks_found after = sample_at(f, 7, 10, 10, 0x100500);
    assert_true(str_is(image_of(f, before), "/nowhere/old"));
    assert_int_equal(leaf_of(f, between.stack).kind, FRAME_UNKNOWN);
    assert_true(str_is(image_of(f, after), "/nowhere/new"));
    /* Another program is another process, and its thread another thread. */
    assert_true(before.thread != after.thread);
    assert_true(process_of(f, before)->end_ns == 4);
    assert_true(str_is(process_of(f, after)->info.command, "new"));
    /* The sample inside exec() told of the process before its file was mapped. */
    assert_true(process_of(f, between) == process_of(f, after));
    assert_true(str_is(process_of(f, after)->info.exe, "/nowhere/new"));
    assert_true(f->memory.mappings.data[0].end_ns == 4);
    assert_true(f->memory.mappings.data[1].end_ns == 0);
}

static void test_a_fork_that_only_execs_is_one_process(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("sh"), true), 0);
    assert_int_equal(stacks_fork(f->stacks, 3, 10, 11, 11), 0);
    assert_int_equal(stacks_comm(f->stacks, 4, 11, 11, STR("true"), true), 0);
    map_file(f, 5, 11, 0x100000, "/bin/no-such-true");
    assert_int_equal(stacks_exit(f->stacks, 6, 11, 11), 0);
    assert_int_equal(f->memory.processes.len, 2);
    const struct memory_process *child = &f->memory.processes.data[1];
    assert_true(child->info.start_ns == 3 && child->end_ns == 6);
    assert_true(str_is(child->info.exe, "/bin/no-such-true"));
    assert_int_equal(f->memory.threads.len, 1); /* the shell was never sampled and lives on */
}

static void test_a_pid_that_comes_back_is_a_new_process(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 1, 1, STR("init"), true), 0);
    uint32_t threads[3];
    for (unsigned i = 0; i < 3; i++) {
        uint64_t t = 10 + 10 * i;
        assert_int_equal(stacks_fork(f->stacks, t, 1, 50, 50), 0);
        assert_int_equal(stacks_comm(f->stacks, t + 1, 50, 50, STR("job"), true), 0);
        map_file(f, t + 2, 50, 0x100000, i == 1 ? "/nowhere/b" : "/nowhere/a");
        struct stacks_found found = sample_at(f, t + 3, 50, 50, 0x100100);
        threads[i] = found.thread;
        assert_true(str_is(image_of(f, found), i == 1 ? "/nowhere/b" : "/nowhere/a"));
        if (i == 0) /* the end of the second one was lost */
            assert_int_equal(stacks_exit(f->stacks, t + 4, 50, 50), 0);
    }
    assert_true(threads[0] != threads[1] && threads[1] != threads[2]);
    assert_int_equal(f->memory.processes.len, 4);
    assert_true(f->memory.processes.data[1].end_ns == 14);
    assert_true(f->memory.processes.data[2].end_ns == 30); /* when the third one began */
}

static void test_a_tid_that_comes_back_is_a_new_thread(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("app"), true), 0);
    assert_int_equal(stacks_fork(f->stacks, 2, 10, 10, 11), 0);
    assert_int_equal(stacks_comm(f->stacks, 3, 10, 11, STR("first"), false), 0);
    uint32_t first = sample_at(f, 4, 10, 11, 1).thread;
    assert_int_equal(stacks_exit(f->stacks, 5, 10, 11), 0);
    assert_int_equal(stacks_fork(f->stacks, 6, 10, 10, 11), 0);
    assert_int_equal(stacks_comm(f->stacks, 7, 10, 11, STR("second"), false), 0);
    uint32_t second = sample_at(f, 8, 10, 11, 1).thread;
    assert_true(first != second);
    assert_true(str_is(f->memory.threads.data[first - 1].info.name, "first"));
    assert_true(str_is(f->memory.threads.data[second - 1].info.name, "second"));
    assert_int_equal(f->memory.processes.len, 1);
}

static void test_a_thread_keeps_the_name_it_was_sampled_under(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("app"), true), 0);
    uint32_t before = sample_at(f, 2, 10, 10, 1).thread;
    assert_int_equal(stacks_comm(f->stacks, 3, 10, 10, STR("worker"), false), 0);
    uint32_t after = sample_at(f, 4, 10, 10, 1).thread;
    assert_true(str_is(f->memory.threads.data[before - 1].info.name, "app"));
    assert_true(str_is(f->memory.threads.data[after - 1].info.name, "worker"));
    assert_true(f->memory.threads.data[before - 1].end_ns == 3);
    assert_int_equal(stacks_comm(f->stacks, 5, 10, 10, STR("worker"), false), 0);
    assert_true(sample_at(f, 6, 10, 10, 1).thread == after); /* the same name is no change */
    /* The process lives until its one thread ends, under whatever name. */
    assert_int_equal(stacks_exit(f->stacks, 7, 10, 10), 0);
    assert_true(f->memory.processes.data[0].end_ns == 7);
}

static void test_a_process_lives_until_its_last_thread_ends(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("app"), true), 0);
    assert_int_equal(stacks_fork(f->stacks, 2, 10, 10, 11), 0);
    map_file(f, 3, 10, 0x100000, "/nowhere/app");
    assert_int_equal(stacks_exit(f->stacks, 4, 10, 10), 0); /* the main thread first */
    assert_true(str_is(image_of(f, sample_at(f, 5, 10, 11, 0x100010)), "/nowhere/app"));
    assert_true(f->memory.processes.data[0].end_ns == 0);
    assert_int_equal(stacks_exit(f->stacks, 6, 10, 11), 0);
    assert_true(f->memory.processes.data[0].end_ns == 6);
}

static void test_a_mapping_takes_the_place_of_what_it_covers(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("app"), true), 0);
    map_file(f, 2, 10, 0x100000, "/nowhere/a.so"); /* dlopen */
    assert_true(str_is(image_of(f, sample_at(f, 3, 10, 10, 0x108000)), "/nowhere/a.so"));
    map_file(f, 4, 10, 0x108000, "/nowhere/b.so"); /* dlclose, and another over its half */
    assert_true(str_is(image_of(f, sample_at(f, 5, 10, 10, 0x108000)), "/nowhere/b.so"));
    assert_true(str_is(image_of(f, sample_at(f, 5, 10, 10, 0x107fff)), "/nowhere/a.so"));
    assert_true(f->memory.mappings.data[0].end_ns == 4);
    size_t open = 0;
    for (size_t i = 0; i < f->memory.mappings.len; i++)
        open += f->memory.mappings.data[i].end_ns == 0;
    assert_int_equal(open, 2); /* what is left of the first, and the second */
    /* Data over code is no code. */
    struct stacks_mmap data = {.time_ns = 6, .pid = 10, .address = 0x100000, .size_bytes = 0x8000};
    assert_int_equal(stacks_mmap(f->stacks, &data), 0);
    assert_int_equal(leaf_of(f, sample_at(f, 7, 10, 10, 0x107fff).stack).kind, FRAME_UNKNOWN);
    /* The same announcement twice is one mapping. */
    size_t len = f->memory.mappings.len;
    map_file(f, 8, 10, 0x108000, "/nowhere/b.so");
    assert_int_equal(f->memory.mappings.len, len);
}

static void test_mappings_that_cannot_be_are_left_out(void **state)
{
    struct fixture *f = *state;
    struct stacks_mmap mmap = {.pid = 10,
                               .address = UINT64_MAX - 10,
                               .size_bytes = 4096,
                               .executable = true,
                               .path = STR("/x")};
    assert_int_equal(stacks_mmap(f->stacks, &mmap), 0);
    mmap.address = 0x1000;
    mmap.size_bytes = 0;
    assert_int_equal(stacks_mmap(f->stacks, &mmap), 0);
    assert_int_equal(leaf_of(f, sample_at(f, 2, 10, 10, 0x1000).stack).kind, FRAME_UNKNOWN);
    char path[8192];
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    mmap.size_bytes = 4096;
    mmap.path = (struct str){path, sizeof(path)};
    assert_int_equal(stacks_mmap(f->stacks, &mmap), 0);
}

static void test_a_chain_becomes_frames_with_callers_at_their_calls(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("app"), true), 0);
    map_file(f, 2, 10, 0x100000, "/nowhere/app");
    uint64_t user[] = {0x100010, 0x100020, 0x100030}, kernel[] = {0xff10, 0xff20};
    struct stacks_sample sample = {.time_ns = 3,
                                   .pid = 10,
                                   .tid = 10,
                                   .user = user,
                                   .user_count = 3,
                                   .kernel = kernel,
                                   .kernel_count = 2};
    struct stacks_found found;
    assert_int_equal(stacks_sample(f->stacks, &sample, &found), 0);
    /* From the leaf: kernel innermost, kernel caller, then the program, root last. */
    const uint64_t expected[] = {0xff10, 0xff20 - 1, 0x10, 0x20 - 1, 0x30 - 1};
    uint32_t stack = found.stack;
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        struct frame_info frame = leaf_of(f, stack);
        assert_int_equal(frame.kind, i < 2 ? FRAME_KERNEL : FRAME_USER);
        assert_true(frame.address == expected[i]);
        stack = f->memory.interned.stacks.data[stack - 1].parent;
    }
    assert_int_equal(stack, 0);
    /* The same sample again is the same stack; one that shares its root shares it. */
    struct stacks_found again;
    assert_int_equal(stacks_sample(f->stacks, &sample, &again), 0);
    assert_true(again.stack == found.stack);
    size_t stacks = f->memory.interned.stacks.len;
    kernel[0] = 0xff11;
    assert_int_equal(stacks_sample(f->stacks, &sample, &again), 0);
    assert_true(f->memory.interned.stacks.len == stacks + 1);
}

static void test_no_sample_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct stacks_found found;
    uint64_t kernel[] = {0xff10};
    /* A thread of the kernel: all of its stack is there. */
    struct stacks_sample sample = {
        .time_ns = 1, .pid = 2, .tid = 2, .kernel = kernel, .kernel_count = 1};
    assert_int_equal(stacks_sample(f->stacks, &sample, &found), 0);
    assert_int_equal(found.end, UNWIND_ROOT);
    assert_int_equal(leaf_of(f, found.stack).kind, FRAME_KERNEL);
    /* Nothing at all is known of it. */
    sample = (struct stacks_sample){.time_ns = 2, .pid = 3, .tid = 4};
    assert_int_equal(stacks_sample(f->stacks, &sample, &found), 0);
    assert_int_equal(found.end, UNWIND_NO_STACK);
    assert_int_equal(leaf_of(f, found.stack).reason, UNWIND_NO_STACK);
    /* Registers, but no stack could be copied: it is dying. */
    struct unwind_registers registers = {.pc = 0x1234, .known = 1u << 7};
    sample = (struct stacks_sample){.time_ns = 3, .pid = 3, .tid = 4, .registers = &registers};
    assert_int_equal(stacks_sample(f->stacks, &sample, &found), 0);
    assert_int_equal(found.end, UNWIND_NO_STACK);
    /* A pc in no mapping. */
    uint64_t bytes[64] = {0};
    sample.slice = (struct unwind_slice){0x7000, (const uint8_t *)bytes, sizeof(bytes)};
    registers.reg[7] = 0x7000;
    assert_int_equal(stacks_sample(f->stacks, &sample, &found), 0);
    assert_int_equal(found.end, UNWIND_NO_MAPPING);
    assert_int_equal(leaf_of(f, found.stack).reason, UNWIND_NO_MAPPING);
    assert_int_equal(f->memory.interned.stacks.data[found.stack - 1].parent, 0);
}

static void test_one_file_is_one_image_in_many_processes(void **state)
{
    struct fixture *f = *state;
    for (int pid = 10; pid < 20; pid++) {
        assert_int_equal(stacks_comm(f->stacks, 1, pid, pid, STR("app"), true), 0);
        map_file(f, 2, pid, 0x100000 * (uint64_t)pid, f->exe);
        sample_at(f, 3, pid, pid, 0x100000 * (uint64_t)pid + 0x10);
    }
    size_t files = 0;
    for (size_t i = 0; i < f->memory.images.len; i++)
        files += f->memory.images.data[i].kind == IMAGE_FILE;
    assert_int_equal(files, 1);
    assert_int_equal(f->memory.mappings.len, 10);
}

static void test_another_file_of_that_name_is_not_believed(void **state)
{
    struct fixture *f = *state;
    struct stat stat_of;
    assert_int_equal(stat(f->exe, &stat_of), 0);
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("app"), true), 0);
    struct stacks_mmap mmap = {.time_ns = 2,
                               .pid = 10,
                               .address = 0x100000,
                               .size_bytes = 0x10000,
                               .executable = true,
                               .path = str_from(f->exe),
                               .inode = stat_of.st_ino + 1};
    assert_int_equal(stacks_mmap(f->stacks, &mmap), 0);
    struct stacks_found found = sample_at(f, 3, 10, 10, 0x100010);
    struct frame_info leaf = leaf_of(f, found.stack);
    assert_int_equal(f->memory.images.data[leaf.image - 1].build_id.len, 0);
    assert_true(leaf.address == 0x10); /* by offset: its own addresses are not known */
    const uint8_t wrong[20] = {1, 2, 3};
    mmap.address = 0x200000;
    mmap.inode = 0;
    mmap.build_id = wrong;
    mmap.build_id_len = sizeof(wrong);
    assert_int_equal(stacks_mmap(f->stacks, &mmap), 0);
    found = sample_at(f, 4, 10, 10, 0x200010);
    assert_int_equal(f->memory.images.data[leaf_of(f, found.stack).image - 1].size_bytes, 0);
    assert_int_equal(stacks_finish(f->stacks, NULL), 0);
    assert_int_equal(f->memory.documents.len, 1);
    assert_true(str_contains(f->memory.documents.data[0].json, "no longer the one"));
}

static void test_code_without_a_file_goes_to_the_map_of_its_process(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"//anon", "", "/memfd:jit (deleted)", "[heap]"};
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("java"), true), 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        map_file(f, 2, 10, 0x100000 * (i + 1), names[i]);
        struct stacks_found found = sample_at(f, 3, 10, 10, 0x100000 * (i + 1) + 5);
        struct frame_info leaf = leaf_of(f, found.stack);
        assert_int_equal(f->memory.images.data[leaf.image - 1].kind, IMAGE_JIT);
        assert_true(str_is(image_of(f, found), "/tmp/perf-10.map"));
        assert_true(leaf.address == 0x100000 * (i + 1) + 5);
    }
}

__attribute__((noinline)) static uint64_t named_by_its_symbol(void)
{
    __asm__ volatile("");
    return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

static void test_our_own_functions_get_their_names(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_attach(f->stacks, (int)getpid(), clock_mono_ns(), NULL), 0);
    uint64_t user[] = {(uint64_t)(uintptr_t)&named_by_its_symbol + 1, named_by_its_symbol()};
    struct stacks_found found = sample_chain(f, clock_mono_ns(), (int)getpid(), (int)gettid(), user,
                                             2);
    assert_true(str_is(image_of(f, found), f->exe));
    assert_int_equal(stacks_finish(f->stacks, NULL), 0);
    bool seen[2] = {false, false};
    for (size_t i = 0; i < f->memory.functions.len; i++) {
        uint32_t name = f->memory.functions.data[i].name;
        struct str text = intern_get(&f->memory.interned.texts, name);
        seen[0] |= str_is(text, "named_by_its_symbol");
        seen[1] |= str_is(text, "test_our_own_functions_get_their_names");
    }
    assert_true(seen[0] && seen[1]);
    assert_int_equal(stacks_attach(f->stacks, 0x7ffffffe, 1, NULL), -ENOENT);
}

static void test_live_threads_are_those_that_have_not_ended(void **state)
{
    struct fixture *f = *state;
    int tids[8];
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("app"), true), 0);
    for (int tid = 11; tid < 16; tid++)
        assert_int_equal(stacks_fork(f->stacks, 2, 10, 10, tid), 0);
    assert_int_equal(stacks_exit(f->stacks, 3, 10, 12), 0);
    assert_int_equal(stacks_live_tids(f->stacks, tids, 8), 5);
    assert_int_equal(stacks_live_tids(f->stacks, tids, 2), 2);
}

static void test_a_sink_that_fails_is_heard(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(stacks_comm(f->stacks, 1, 10, 10, STR("app"), true), 0);
    f->memory.error = -ENOSPC;
    struct stacks_sample sample = {.time_ns = 2, .pid = 10, .tid = 10};
    struct stacks_found found;
    assert_int_equal(stacks_sample(f->stacks, &sample, &found), -ENOSPC);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void test_a_file_of_several_names_is_called_as_it_was_started(void **state)
{
    struct fixture *f = *state;
    const struct {
        const char *file, *link, *started, *called;
    } cases[] = {
        {"checker", "server", "server", "server"},
        {"python3.11", "python3", "python3", "python3.11"}, /* it only says more */
        {"checker", "server", "renamed", "checker"},        /* no such file */
        {"checker", "other/server", "server", "checker"},   /* another file of that name */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char folder[] = "/tmp/whyslow-stacks-XXXXXX", file[128], link[128], called[128];
        int pid = 1 << 29 | (int)i; /* nobody's */
        assert_non_null(mkdtemp(folder));
        snprintf(file, sizeof(file), "%s/%s", folder, cases[i].file);
        snprintf(link, sizeof(link), "%s/%s", folder, cases[i].link);
        snprintf(called, sizeof(called), "%s/%s", folder, cases[i].called);
        FILE *made = fopen(file, "w");
        assert_non_null(made);
        fprintf(made, "%zu", i); /* each is another image */
        fclose(made);
        bool linked = symlink(file, link) == 0;
        assert_int_equal(stacks_comm(f->stacks, 1, pid, pid, str_from(cases[i].started), true), 0);
        map_file(f, 2, pid, 0x100000, file);
        map_file(f, 2, pid, 0x200000, file); /* its second piece of code */
        struct stacks_found first = sample_at(f, 3, pid, pid, 0x100500);
        struct stacks_found second = sample_at(f, 3, pid, pid, 0x200500);
        assert_true(str_is(image_of(f, first), called));
        assert_true(str_is(image_of(f, second), called));
        assert_true(str_is(process_of(f, first)->info.exe, called));
        unlink(file);
        if (linked)
            unlink(link);
        rmdir(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_fork_has_the_mappings_of_its_parent),
        TEST(test_exec_clears_what_was_there),
        TEST(test_a_fork_that_only_execs_is_one_process),
        TEST(test_a_pid_that_comes_back_is_a_new_process),
        TEST(test_a_tid_that_comes_back_is_a_new_thread),
        TEST(test_a_thread_keeps_the_name_it_was_sampled_under),
        TEST(test_a_process_lives_until_its_last_thread_ends),
        TEST(test_a_mapping_takes_the_place_of_what_it_covers),
        TEST(test_mappings_that_cannot_be_are_left_out),
        TEST(test_a_chain_becomes_frames_with_callers_at_their_calls),
        TEST(test_no_sample_is_dropped),
        TEST(test_one_file_is_one_image_in_many_processes),
        TEST(test_another_file_of_that_name_is_not_believed),
        TEST(test_code_without_a_file_goes_to_the_map_of_its_process),
        TEST(test_live_threads_are_those_that_have_not_ended),
        TEST(test_a_sink_that_fails_is_heard),
        cmocka_unit_test_setup_teardown(test_a_file_of_several_names_is_called_as_it_was_started,
                                        setup_live, teardown),
        cmocka_unit_test_setup_teardown(test_our_own_functions_get_their_names, setup_live,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
