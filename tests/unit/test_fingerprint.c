/* Promises of host/fingerprint.h: every fact of mission M2 is there, or says why not. */
#include "unit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "host/fingerprint.h"
#include "host/fp.h"
#include "host/fp_tool_files.h"
#include "host/memory_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Mission M2 by name; a row that goes missing from the table fails here. */
static const char *const wanted[] = {
    "cpu.model",
    "cpu.vendor",
    "cpu.microcode",
    "cpu.sockets",
    "cpu.cores",
    "cpu.threads",
    "cpu.numa_nodes",
    "cpu.smt",
    "cpu.governor",
    "cpu.scaling_driver",
    "cpu.energy_preference",
    "cpu.turbo",
    "cpu.freq_min_hz",
    "cpu.freq_max_hz",
    "cpu.freq_now_hz",
    "cpu.l1d_bytes",
    "cpu.l1i_bytes",
    "cpu.l2_bytes",
    "cpu.l3_bytes",
    "cpu.flags",
    "cpu.mitigations",
    "memory.total_bytes",
    "memory.available_bytes",
    "memory.swap_total_bytes",
    "memory.swap_used_bytes",
    "memory.huge_pages",
    "memory.huge_page_bytes",
    "memory.thp",
    "memory.thp_defrag",
    "memory.swappiness",
    "memory.page_bytes",
    "storage.folder",
    "storage.mount_point",
    "storage.device",
    "storage.kind",
    "storage.model",
    "storage.scheduler",
    "storage.filesystem",
    "storage.options",
    "storage.size_bytes",
    "storage.free_bytes",
    "kernel.release",
    "kernel.version",
    "kernel.arch",
    "kernel.distribution",
    "kernel.flags",
    "kernel.preemption",
    "kernel.clocksource",
    "kernel.aslr",
    "kernel.perf_event_paranoid",
    "kernel.kptr_restrict",
    "kernel.nmi_watchdog",
    "kernel.perf_max_sample_rate",
    "toolchain.cc",
    "toolchain.gcc",
    "toolchain.clang",
    "toolchain.ld",
    "toolchain.rustc",
    "toolchain.go",
    "toolchain.python3",
    "toolchain.node",
    "toolchain.java",
    "toolchain.libc",
    "toolchain.whyslow",
    "build.path",
    "build.machine",
    "build.kind",
    "build.build_id",
    "build.language",
    "build.compiler",
    "build.optimization",
    "build.lto",
    "build.frame_pointers",
    "build.unwind_tables",
    "build.symbols",
    "build.debug_info",
    "build.split_debug",
    "build.stripped",
    "build.sanitizers",
    "build.instrumented",
    "isolation.affinity",
    "isolation.scheduling",
    "isolation.cgroup_version",
    "isolation.cgroup",
    "isolation.cpu_limit",
    "isolation.memory_limit_bytes",
    "isolation.cpuset",
    "isolation.throttled",
    "isolation.container",
    "isolation.container_evidence",
    "isolation.vm",
    "isolation.vm_evidence",
    "isolation.steal_boot_percent",
    "isolation.steal_now_percent",
    "isolation.load_1m",
    "isolation.load_5m",
    "isolation.load_15m",
    "isolation.tasks_running",
    "isolation.tasks",
    "isolation.isolated_cpus",
    "isolation.nohz_full",
    "isolation.namespaces",
    "cache.state",
    "cache.binary_percent",
    "cache.page_cache_bytes",
    "cache.dirty_bytes",
    "run.id",
    "run.git_revision",
    "run.git_branch",
    "run.time",
    "run.hostname",
    "run.user_id",
    "run.cwd",
    "run.environment_bytes",
    "run.uptime_s",
};

struct world {
    struct arena arena;
    struct host host;
    struct fingerprint_input input;
    char folder[64]; /* thrown away at the end */
};

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    snprintf(world->folder, sizeof(world->folder), "/tmp/whyslow-fp-XXXXXX");
    if (!mkdtemp(world->folder))
        return -1;
    world->host = (struct host){.root = "", .arena = &world->arena};
    world->input = (struct fingerprint_input){
        .host = &world->host, .binary_na = "none named", .folder = world->folder};
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    int r = system(command);
    arena_deinit(&world->arena);
    free(world);
    return r;
}

static void put(struct world *world, const char *name, const char *text)
{
    const char *path = arena_printf(&world->arena, "%s/%s", world->folder, name);
    char *folder = strdup(path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(folder_make(folder, NULL), 0);
    free(folder);
    assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), 0);
}

static struct value read_root(struct world *world, const char *root)
{
    world->host.root = root;
    world->input.folder = "/";
    return fingerprint_read(&world->input);
}

static const char *capture(struct world *world, const char *name)
{
    const char *source = getenv("SOURCE_ROOT");
    return arena_printf(&world->arena, "%s/tests/captures/%s", source ? source : ".", name);
}

static void assert_text(struct value fingerprint, const char *path, const char *text)
{
    const struct value *value = value_find(&fingerprint, path);
    assert_non_null(value);
    assert_true(value->kind == VALUE_TEXT);
    char found[300];
    snprintf(found, sizeof(found), "%.*s", STR_FMT(value->text));
    assert_string_equal(found, text);
}

static void assert_every_field(struct value fingerprint)
{
    size_t rows = 0;
    for (const struct fp_field *field = fp_fields; field->group; field++)
        rows++;
    assert_int_equal(rows, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        const struct value *value = value_find(&fingerprint, wanted[i]);
        if (!value)
            fail_msg("%s is missing", wanted[i]);
        if (value && value->kind == VALUE_NA && value->text.len == 0)
            fail_msg("%s is n/a without a reason", wanted[i]);
    }
}

static void every_field_of_m2_is_there_on_this_machine(void **state)
{
    struct world *world = *state;
    struct value fingerprint = fingerprint_read(&world->input);
    assert_every_field(fingerprint);
    assert_true(value_number(value_find(&fingerprint, "cpu.threads")) >= 1);
    assert_true(value_number(value_find(&fingerprint, "memory.total_bytes")) > 1e6);
    assert_int_equal(value_find(&fingerprint, "kernel.release")->kind, VALUE_TEXT);
    double steal = value_number(value_find(&fingerprint, "isolation.steal_now_percent"));
    assert_true(isnan(steal) || (steal >= 0 && steal <= 100));
}

static void a_machine_that_tells_nothing_gives_reasons_and_no_zeros(void **state)
{
    struct world *world = *state;
    struct value fingerprint = read_root(world, capture(world, "empty"));
    assert_every_field(fingerprint);
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        const struct value *value = value_find(&fingerprint, wanted[i]);
        bool ours = strncmp(wanted[i], "run.", 4) == 0 ||
                    strcmp(wanted[i], "storage.folder") == 0 ||
                    strcmp(wanted[i], "toolchain.whyslow") == 0;
        if (!ours && value && value->kind != VALUE_NA)
            fail_msg("%s claims to be known", wanted[i]);
    }
}

static void governors_that_disagree_are_said_to_be_mixed(void **state)
{
    struct world *world = *state;
    struct value fingerprint = read_root(world, capture(world, "laptop-intel"));
    assert_text(fingerprint, "cpu.governor", "mixed: 3 powersave, 1 performance");
    assert_text(fingerprint, "cpu.turbo", "on");
    assert_text(fingerprint, "storage.kind", "NVMe SSD");
    assert_text(fingerprint, "isolation.scheduling", "other, nice 5");
    assert_text(fingerprint, "kernel.flags", "mitigations=off isolcpus=3");
}

static void the_tightest_limit_on_the_way_up_holds(void **state)
{
    struct world *world = *state;
    struct value fingerprint = read_root(world, capture(world, "container-v2"));
    assert_true(value_number(value_find(&fingerprint, "isolation.cpu_limit")) == 1.5);
    assert_true(value_number(value_find(&fingerprint, "isolation.memory_limit_bytes")) == 1 << 30);
    assert_true(memory_limit_bytes(&world->host) == 1 << 30);
    assert_text(fingerprint, "isolation.container", "docker");
    fingerprint = read_root(world, capture(world, "server-arm"));
    assert_true(value_number(value_find(&fingerprint, "isolation.cpu_limit")) == 0.5);
    assert_text(fingerprint, "isolation.memory_limit_bytes", "unlimited");
    assert_true(isinf(memory_limit_bytes(&world->host)));
    assert_text(fingerprint, "cpu.model", "Arm Neoverse-N1");
    assert_text(fingerprint, "storage.kind", "rotating disk");
}

static void an_image_booted_as_a_machine_is_no_container(void **state)
{
    struct world *world = *state;
    static const char *const first[] = {"cgroup:[4026531835]", "ipc:[4026531839]",
                                        "pid:[4026531836]", "user:[4026531837]",
                                        "uts:[4026531838]"};
    put(world, ".dockerenv", "");
    put(world, "proc/self/cgroup", "0::/\n");
    put(world, "proc/self/ns/none", "");
    assert_text(read_root(world, world->folder), "isolation.container", "docker");
    for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
        const char *kind = arena_dup_len(&world->arena, first[i], strcspn(first[i], ":"));
        const char *path = arena_printf(&world->arena, "%s/proc/self/ns/%s", world->folder, kind);
        assert_int_equal(symlink(first[i], path), 0);
    }
    assert_text(read_root(world, world->folder), "isolation.container", "none");
}

static void a_mount_point_holds_its_folders_and_not_its_namesakes(void **state)
{
    struct world *world = *state;
    put(world, "proc/self/mountinfo",
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "garbage\n"
        "2 1 8:2 / /home rw,noatime - xfs /dev/sdb1 rw\n"
        "3 1 0:9 / /with\\040blank rw - tmpfs none rw\n"
        "4 1 8:3 / /home rw - btrfs /dev/sdc1 rw\n");
    world->host.root = world->folder;
    static const char *const rows[][2] = {
        {"/home/x", "btrfs"}, {"/home", "btrfs"}, {"/homes", "ext4"}, {"/with blank/y", "tmpfs"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        world->input.folder = rows[i][0];
        assert_text(fingerprint_read(&world->input), "storage.filesystem", rows[i][1]);
    }
}

static void cpu_lists_are_read_and_nonsense_is_refused(void **state)
{
    (void)state;
    struct fp_cpus cpus;
    assert_true(fp_cpus_parse(STR("0-2,8\n"), &cpus));
    assert_int_equal(cpus.count, 4);
    assert_true(cpus.on[8] && !cpus.on[3]);
    assert_true(fp_cpus_parse(STR("0-99999999999"), &cpus));
    assert_int_equal(cpus.count, FP_CPUS_MAX);
    assert_false(fp_cpus_parse(STR("a-b"), &cpus));
    assert_false(fp_cpus_parse(STR("1,,x"), &cpus));
}

#define HASH   "0123456789abcdef0123456789abcdef01234567"
#define PACKED "fedcba9876543210fedcba9876543210fedcba98"

static void the_git_revision_is_found_loose_packed_detached_and_in_a_work_tree(void **state)
{
    struct world *world = *state;
    put(world, "repo/.git/HEAD", "ref: refs/heads/main\n");
    put(world, "repo/.git/refs/heads/main", HASH "\n");
    put(world, "repo/sub/folder/file", "");
    world->input.folder = arena_printf(&world->arena, "%s/repo/sub/folder", world->folder);
    struct value fingerprint = fingerprint_read(&world->input);
    assert_text(fingerprint, "run.git_revision", HASH);
    assert_text(fingerprint, "run.git_branch", "main");

    put(world, "repo/.git/HEAD", "ref: refs/heads/old\n");
    put(world, "repo/.git/packed-refs", "# pack-refs with: peeled\n" PACKED " refs/heads/old\n");
    assert_text(fingerprint_read(&world->input), "run.git_revision", PACKED);

    put(world, "repo/.git/HEAD", HASH "\n");
    fingerprint = fingerprint_read(&world->input);
    assert_text(fingerprint, "run.git_revision", HASH);
    assert_int_equal(value_find(&fingerprint, "run.git_branch")->kind, VALUE_NA);

    put(world, "repo/.git/worktrees/w/HEAD", "ref: refs/heads/old\n");
    put(world, "repo/.git/worktrees/w/commondir", "../..\n");
    put(world, "w/.git", "gitdir: ../repo/.git/worktrees/w\n");
    world->input.folder = arena_printf(&world->arena, "%s/w", world->folder);
    assert_text(fingerprint_read(&world->input), "run.git_revision", PACKED);
}

static void a_broken_repository_is_a_reason(void **state)
{
    struct world *world = *state;
    static const char *const heads[] = {"ref: refs/heads/unborn\n", "ref: ../../../etc/passwd\n",
                                        "ref: HEAD\n", "", "nonsense\n"};
    world->input.folder = world->folder;
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        put(world, ".git/HEAD", heads[i]);
        struct value fingerprint = fingerprint_read(&world->input);
        assert_int_equal(value_find(&fingerprint, "run.git_revision")->kind, VALUE_NA);
    }
}

static void the_share_of_a_file_in_the_page_cache_is_measured(void **state)
{
    struct world *world = *state;
    const char *path = arena_printf(&world->arena, "%s/big", world->folder);
    size_t size = 4 * 1024 * 1024;
    char *data = malloc(size);
    memset(data, 'x', size);
    assert_int_equal(file_write_atomic(path, data, size, NULL), 0);
    free(data);
    double share = -1;
    assert_int_equal(fingerprint_resident_share(path, &share), 0);
    assert_true(share > 0.99);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(fdatasync(fd), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    assert_int_equal(fingerprint_resident_share(path, &share), 0);
    struct build_info binary = {.path = path, .sanitizers = "", .instrumented = ""};
    world->input.binary = &binary;
    world->input.resident_share = &share;
    /* A filesystem in memory cannot drop its pages: there is nothing else to read them from. */
    assert_text(fingerprint_read(&world->input), "cache.state", share > 0.99 ? "warm" : "cold");
    share = 0.5;
    assert_text(fingerprint_read(&world->input), "cache.state", "partly");
    share = -1;
    assert_true(fingerprint_resident_share(world->folder, &share) < 0);
    assert_true(fingerprint_resident_share("/nonexistent", &share) < 0);
    assert_true(share == -1);
}

static void no_tool_is_run_to_learn_its_version(void **state)
{
    struct world *world = *state;
    static const char *const programs[] = {"bin/gcc",     "bin/clang", "bin/rustc", "bin/go",
                                           "bin/python3", "bin/node",  "bin/java",  "rustc"};
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        put(world, programs[i],
            arena_printf(&world->arena, "#!/bin/sh\n: >'%s/ran'\n", world->folder));
        assert_int_equal(
            chmod(arena_printf(&world->arena, "%s/%s", world->folder, programs[i]), 0755), 0);
    }
    struct utsname machine;
    assert_int_equal(uname(&machine), 0);
    put(world, arena_printf(&world->arena, "lib/gcc/%s-other/99/specs", machine.machine), "");
    put(world, "lib/clang/99.0.1/share", "");
    put(world, "VERSION", "go1.99.2\ntime now\n");
    put(world, "include/python3/patchlevel.h", "#define PY_VERSION      \"3.99.4\"\n");
    put(world, "include/node/node_version.h",
        "#define NODE_MAJOR_VERSION 99\n#define NODE_MINOR_VERSION 3\n"
        "#define NODE_PATCH_VERSION 1\n");
    put(world, "release", "A=\"b\"\nJAVA_RUNTIME_VERSION=\"99+1\"\n");
    const char *rustup = arena_printf(&world->arena, "%s/bin/rustup", world->folder);
    assert_int_equal(link(arena_printf(&world->arena, "%s/bin/rustc", world->folder), rustup), 0);
    char *path = strdup(getenv("PATH"));
    setenv("PATH", arena_printf(&world->arena, "%s/bin:.::bin", world->folder), 1);
    assert_int_equal(chdir(world->folder), 0);
    struct value good = fingerprint_read(&world->input);
    assert_int_equal(chmod(arena_printf(&world->arena, "%s/bin", world->folder), 0777), 0);
    struct value open = fingerprint_read(&world->input);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(chdir("/"), 0);
    assert_text(good, "toolchain.gcc", "gcc 99");
    assert_text(good, "toolchain.clang", "clang version 99.0.1");
    assert_text(good, "toolchain.go", "go1.99.2");
    assert_text(good, "toolchain.python3", "Python 3.99.4");
    assert_text(good, "toolchain.node", "v99.3.1");
    assert_text(good, "toolchain.java", "java 99+1");
    assert_int_equal(value_find(&good, "toolchain.rustc")->kind, VALUE_NA);
    assert_true(str_starts(value_find(&good, "toolchain.rustc")->text, "rustup picks one"));
    assert_int_equal(value_find(&good, "toolchain.cc")->kind, VALUE_NA);
    /* Anybody may exchange what lies there: it is not even looked at. */
    assert_int_equal(value_find(&open, "toolchain.go")->kind, VALUE_NA);
    assert_int_equal(access(arena_printf(&world->arena, "%s/ran", world->folder), F_OK), -1);
}

static struct str identity(struct world *world, const char *path, const char *package)
{
    struct fp_tool_file file;
    assert_true(fp_tool_file_make(&world->arena, "tool", path, &file));
    return fp_tool_identity(&world->arena, &file, package);
}

static void a_tool_without_a_version_is_known_by_its_package_or_its_build(void **state)
{
    struct world *world = *state;
    char real[PATH_MAX];
    assert_non_null(realpath("/usr/bin/env", real));
    if (access("/var/lib/dpkg/info/coreutils.list", F_OK) == 0) {
        assert_true(str_starts(identity(world, real, "coreutils"), "package coreutils "));
        assert_true(str_starts(identity(world, real, "bash"), "env, build-id ")); /* not its file */
    }
    put(world, "bin/script", "#!/bin/sh\n");
    put(world, "json", "{\"type\":\"rpm\",\"name\":\"tool\",\"version\":\"7.8-9\"}");
    const char *tool = arena_printf(&world->arena, "%s/bin/tool", world->folder);
    const char *command = arena_printf(&world->arena,
                                       "objcopy --add-section .note.package='%s/json' '%s' '%s'",
                                       world->folder, real, tool);
    assert_int_equal(system(command), 0);
    assert_true(str_is(identity(world, tool, NULL), "package tool 7.8-9"));
    const char *script = arena_printf(&world->arena, "%s/bin/script", world->folder);
    assert_int_equal(identity(world, script, NULL).len, 0);
    assert_int_equal(chmod(tool, 0777), 0);
    assert_int_equal(identity(world, tool, NULL).len, 0);
}

static void run_ids_sort_by_time_and_have_their_shape(void **state)
{
    struct world *world = *state;
    const char *id = run_id_make(&world->arena);
    assert_int_equal(strlen(id), 20);
    assert_true(id[8] == '-' && id[15] == '-');
    assert_int_equal(strspn(id, "0123456789-abcdef"), 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_field_of_m2_is_there_on_this_machine),
        TEST(a_machine_that_tells_nothing_gives_reasons_and_no_zeros),
        TEST(governors_that_disagree_are_said_to_be_mixed),
        TEST(the_tightest_limit_on_the_way_up_holds),
        TEST(an_image_booted_as_a_machine_is_no_container),
        TEST(a_mount_point_holds_its_folders_and_not_its_namesakes),
        TEST(cpu_lists_are_read_and_nonsense_is_refused),
        TEST(the_git_revision_is_found_loose_packed_detached_and_in_a_work_tree),
        TEST(a_broken_repository_is_a_reason),
        TEST(the_share_of_a_file_in_the_page_cache_is_measured),
        TEST(no_tool_is_run_to_learn_its_version),
        TEST(a_tool_without_a_version_is_known_by_its_package_or_its_build),
        TEST(run_ids_sort_by_time_and_have_their_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
