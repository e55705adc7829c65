/* Promises of target/preload_heap.h and target/preload_file.h. */
#include "unit.h"

#include "base/macros.h"
#include "target/preload_file.h"
#include "target/preload_heap.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Renamed in copies of this program: one that has a malloc() of its own. */
void mallox(void);
void mallox(void)
{
}

struct fixture {
    char folder[64];
    char path[128]; /* a file in it */
    unsigned char *self;
    size_t len;
};

/* This test is also built with a sanitizer, and the program made of it is to pass for one without.
 */
static void names_hide(const struct fixture *f, const char *name)
{
    unsigned char *at = f->self;
    while ((at = memmem(at, f->len - (size_t)(at - f->self), name, strlen(name))))
        *at++ = 'x';
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->folder, sizeof(f->folder), "/tmp/whyslow-test-XXXXXX");
    *state = f;
    FILE *in = fopen("/proc/self/exe", "rb");
    if (!mkdtemp(f->folder) || !in)
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/program", f->folder);
    fseek(in, 0, SEEK_END);
    f->len = (size_t)ftell(in);
    rewind(in);
    f->self = malloc(f->len);
    size_t got = fread(f->self, 1, f->len, in);
    fclose(in);
    names_hide(f, "__asan_init");
    return got == f->len ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int r = system(command);
    free(f->self);
    free(f);
    return r;
}

static void file_make(const char *path, const void *bytes, size_t len, mode_t mode)
{
    unlink(path);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, len, out), len);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void program_make(const struct fixture *f)
{
    file_make(f->path, f->self, f->len, 0755);
}

static void fits_not(const struct fixture *f, const char *reason)
{
    char why[512] = "";
    assert_false(preload_heap_fits(f->path, why, sizeof(why)));
    assert_non_null(strstr(why, reason));
    assert_non_null(strstr(why, f->path));
}

static Elf64_Phdr *loader_of(const struct fixture *f)
{
    Elf64_Ehdr *header = (void *)f->self;
    Elf64_Phdr *parts = (void *)(f->self + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (parts[i].p_type == PT_INTERP)
            return &parts[i];
    fail_msg("this test is static");
    return NULL;
}

/* ---- whether it fits ---- */

static void a_program_with_glibc_fits_and_so_does_a_script(void **state)
{
    struct fixture *f = *state;
    char why[512], script[160], text[192];
    program_make(f);
    assert_true(preload_heap_fits(f->path, why, sizeof(why)));
    snprintf(script, sizeof(script), "%s/script", f->folder);
    snprintf(text, sizeof(text), "#! %s -x\nrest", f->path);
    file_make(script, text, strlen(text), 0755);
    assert_true(preload_heap_fits(script, why, sizeof(why)));
    /* A script's interpreter is what is run. */
    loader_of(f)->p_type = PT_NULL;
    program_make(f);
    assert_false(preload_heap_fits(script, why, sizeof(why)));
    /* One that names itself does not go on for ever. */
    snprintf(text, sizeof(text), "#!%s\n", script);
    file_make(script, text, strlen(text), 0755);
    assert_false(preload_heap_fits(script, why, sizeof(why)));
}

static void a_static_program_does_not(void **state)
{
    struct fixture *f = *state;
    loader_of(f)->p_type = PT_NULL;
    program_make(f);
    fits_not(f, "statically");
}

static void a_program_of_another_libc_does_not(void **state)
{
    struct fixture *f = *state;
    char *loader = (char *)f->self + loader_of(f)->p_offset;
    snprintf(loader, loader_of(f)->p_filesz, "/lib/ld-musl-x.so.1");
    program_make(f);
    fits_not(f, "musl");
    snprintf(loader, loader_of(f)->p_filesz, "/opt/ld.so");
    program_make(f);
    fits_not(f, "not glibc's");
}

static void a_program_of_another_machine_does_not(void **state)
{
    struct fixture *f = *state;
    ((Elf64_Ehdr *)(void *)f->self)->e_machine = EM_RISCV;
    program_make(f);
    fits_not(f, "another machine");
}

static void a_program_with_its_own_malloc_does_not(void **state)
{
    struct fixture *f = *state;
    unsigned char *at = f->self;
    while ((at = memmem(at, f->len - (size_t)(at - f->self), "\0mallox", 8)))
        at[6] = 'c';
    program_make(f);
    fits_not(f, "malloc() of its own");
}

static void a_program_that_gets_rights_does_not(void **state)
{
    struct fixture *f = *state;
    char why[512];
    program_make(f);
    assert_int_equal(chmod(f->path, 04755), 0); /* our own: no new rights */
    assert_true(preload_heap_fits(f->path, why, sizeof(why)));
    if (geteuid() != 0 || chown(f->path, 65534, (gid_t)-1) < 0)
        return; /* only root can give it to somebody else */
    assert_int_equal(chmod(f->path, 04755), 0);
    fits_not(f, "set-user-ID");
}

static void what_is_no_program_does_not(void **state)
{
    struct fixture *f = *state;
    char why[512];
    file_make(f->path, "#!", 2, 0755);
    fits_not(f, "no ELF");
    file_make(f->path, f->self, 100, 0755); /* cut short */
    assert_false(preload_heap_fits(f->path, why, sizeof(why)));
    unlink(f->path);
    fits_not(f, "cannot be read");
}

/* ---- the library ---- */

static const unsigned char bytes[] = "the library";
static const struct preload_blob blob = {bytes, sizeof(bytes), "test.so"};

static void the_library_is_kept_under_its_hash_and_found_again(void **state)
{
    struct fixture *f = *state;
    struct preload_file first, again;
    struct stat before, after;
    if (geteuid() == 0) {
        /* Below /tmp others may move folders about: nothing that root runs lies there. */
        assert_int_equal(preload_file_keep(&blob, f->folder, &first), -EPERM);
        return;
    }
    assert_int_equal(preload_file_keep(&blob, f->folder, &first), 0);
    assert_int_equal(stat(first.path, &before), 0);
    assert_int_equal(preload_file_keep(&blob, f->folder, &again), 0);
    assert_string_equal(first.path, again.path);
    assert_int_equal(stat(first.path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    preload_file_remove(&first); /* not ours alone */
    assert_int_equal(stat(first.path, &after), 0);
    /* What is not ours to the byte, or others may write, is replaced. */
    file_make(first.path, "THE library", sizeof(bytes), 0755);
    assert_int_equal(preload_file_keep(&blob, f->folder, &again), 0);
    char text[sizeof(bytes)];
    FILE *in = fopen(first.path, "rb");
    assert_int_equal(fread(text, 1, sizeof(text), in), sizeof(text));
    fclose(in);
    assert_memory_equal(text, bytes, sizeof(bytes));
    assert_int_equal(chmod(first.path, 0777), 0);
    assert_int_equal(preload_file_keep(&blob, f->folder, &again), 0);
    assert_int_equal(stat(first.path, &after), 0);
    assert_int_equal(after.st_mode & 0777, 0755);
}

/* As somebody else, where we are root: what is kept for users has to be tried as one. */
static void as_nobody(void (*test)(void **), void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(f->folder, 65534, 65534), 0);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(0); /* a sandbox with one user */
        test(state);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void the_library_of_a_user_is_kept(void **state)
{
    as_nobody(the_library_is_kept_under_its_hash_and_found_again, state);
}

static void a_folder_that_others_may_rename_is_refused(void **state)
{
    struct fixture *f = *state;
    struct preload_file file;
    char inner[PATH_MAX];
    snprintf(inner, sizeof(inner), "%s/inner", f->folder);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(chmod(f->folder, 0777), 0);
    assert_int_equal(preload_file_keep(&blob, inner, &file), -EPERM);
    assert_int_equal(rmdir(inner), 0);
}

static void a_folder_of_a_user_that_others_may_rename_is_refused(void **state)
{
    as_nobody(a_folder_that_others_may_rename_is_refused, state);
}

static void a_folder_that_others_may_write_keeps_nothing(void **state)
{
    struct fixture *f = *state;
    struct preload_file file;
    assert_int_equal(chmod(f->folder, 0777), 0);
    assert_int_equal(preload_file_keep(&blob, f->folder, &file), -EPERM);
    assert_int_equal(preload_file_keep(&blob, "/tmp/a:b", &file), -EPERM);
    assert_int_equal(preload_file_keep(&blob, "relative", &file), -EPERM);
}

/* ---- the memory ---- */

static struct preload_heap *opened(void)
{
    struct preload_heap *preload = NULL;
    struct preload_heap_opts opts = {.sample_bytes = 77, .temporary_within = 3};
    assert_int_equal(preload_heap_open(&opts, &preload, NULL), 0);
    return preload;
}

static void the_libraries_share_one_variable(void **state)
{
    (void)state;
    struct preload_heap *preload = opened();
    const char *const others[] = {"LD_PRELOAD=/x/locks.so:/y.so", "WHYSLOW_OTHER=1", NULL};
    const char *const *variables = preload_heap_environment(preload, others);
    char expected[PATH_MAX + 64];
    snprintf(expected, sizeof(expected), "LD_PRELOAD=%s:/x/locks.so:/y.so",
             preload_heap_path(preload));
    assert_string_equal(variables[0], expected);
    assert_memory_equal(variables[1], HEAP_VARIABLE "=/proc/", sizeof(HEAP_VARIABLE) + 6);
    assert_string_equal(variables[2], "WHYSLOW_OTHER=1");
    assert_null(variables[3]);
    variables = preload_heap_environment(preload, NULL);
    assert_null(variables[2]);
    preload_heap_close(preload);
}

static int shared_open(struct preload_heap *preload)
{
    const char *const *variables = preload_heap_environment(preload, NULL);
    return open(strchr(variables[1], '=') + 1, O_RDWR | O_CLOEXEC);
}

static void a_target_opens_the_memory_but_cannot_cut_it_short(void **state)
{
    (void)state;
    struct preload_heap *preload = opened();
    struct heap_header *header = preload_heap_header(preload);
    assert_int_equal(header->magic, HEAP_MAGIC);
    assert_int_equal(header->sample_bytes, 77);
    assert_int_equal(header->temporary_within, 3);
    assert_int_equal(header->windows_max, HEAP_WINDOWS_MAX);
    int fd = shared_open(preload);
    struct stat st;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, HEAP_FILE_BYTES);
    assert_non_null(preload_heap_window(preload, HEAP_WINDOWS_MAX - 1));
    assert_null(preload_heap_window(preload, HEAP_WINDOWS_MAX));
    close(fd);
    preload_heap_close(preload);
}

static void a_window_that_is_done_is_empty_again(void **state)
{
    (void)state;
    struct preload_heap *preload = opened();
    int fd = shared_open(preload);
    struct heap_process process = {.magic = HEAP_MAGIC, .pid = 7}, seen;
    off_t at = (off_t)(HEAP_HEADER_BYTES + 5 * HEAP_WINDOW_BYTES);
    assert_int_equal(pwrite(fd, &process, sizeof(process), at), sizeof(process));
    assert_int_equal(preload_heap_window_look(preload, 5, &seen), 0);
    assert_int_equal(seen.pid, 7);
    assert_int_equal(preload_heap_window(preload, 5)->pid, 7);
    preload_heap_window_done(preload, 5);
    assert_int_equal(preload_heap_window_look(preload, 5, &seen), 0);
    assert_int_equal(seen.magic, 0);
    close(fd);
    preload_heap_close(preload);
}

/* A limit that cannot be raised leaves fewer windows, or is an error that names it. */
static void a_limit_on_files_means_fewer_windows(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {5 * HEAP_WINDOW_BYTES, 5 * HEAP_WINDOW_BYTES};
        struct preload_heap *preload = NULL;
        struct preload_heap_opts opts = {.temporary_within = 1};
        struct why why = {0};
        setrlimit(RLIMIT_FSIZE, &limit);
        bool is_fewer = preload_heap_open(&opts, &preload, NULL) == 0 &&
                        preload_heap_header(preload)->windows_max == 4 &&
                        !preload_heap_window(preload, 4);
        preload_heap_close(preload);
        limit.rlim_cur = limit.rlim_max = 1 << 20;
        setrlimit(RLIMIT_FSIZE, &limit);
        int r = preload_heap_open(&opts, &preload, &why);
        _exit(is_fewer && r == -EFBIG && strstr(why.remedy, "ulimit -f") ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_program_with_glibc_fits_and_so_does_a_script),
        TEST(a_static_program_does_not),
        TEST(a_program_of_another_libc_does_not),
        TEST(a_program_of_another_machine_does_not),
        TEST(a_program_with_its_own_malloc_does_not),
        TEST(a_program_that_gets_rights_does_not),
        TEST(what_is_no_program_does_not),
        TEST(the_library_is_kept_under_its_hash_and_found_again),
        TEST(the_library_of_a_user_is_kept),
        TEST(a_folder_of_a_user_that_others_may_rename_is_refused),
        TEST(a_folder_that_others_may_write_keeps_nothing),
        cmocka_unit_test(the_libraries_share_one_variable),
        cmocka_unit_test(a_target_opens_the_memory_but_cannot_cut_it_short),
        cmocka_unit_test(a_window_that_is_done_is_empty_again),
        cmocka_unit_test(a_limit_on_files_means_fewer_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
