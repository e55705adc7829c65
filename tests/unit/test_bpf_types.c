/* Promises of collect/bpf_types.c: the members a program asks for, where the kernel has them,
 * and nothing made up; a cache that cannot be used does no harm. */
#include "unit.h"

#include "base/fd.h"
#include "collect/bpf_types.h"
#include "collect/cpu_deep.h"
#include "host/probe.h"

#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const size_t cpu_deep_bpf_bytes;

/* struct task { char pad[16]; union { const u32_t inner; }; struct list lists[3]; void *next;
 * u32 bits:3; }, struct list { u64 a, b; } */
static struct btf *kernel_make(void)
{
    struct btf *btf = btf__new_empty();
    int u8 = btf__add_int(btf, "u8", 1, 0), u32 = btf__add_int(btf, "u32", 4, 0);
    int u64 = btf__add_int(btf, "u64", 8, 0);
    int named = btf__add_typedef(btf, "u32_t", btf__add_const(btf, u32));
    int pad = btf__add_array(btf, u32, u8, 16);
    int either = btf__add_union(btf, "", 4);
    btf__add_field(btf, "inner", named, 0, 0);
    int list = btf__add_struct(btf, "list", 16);
    btf__add_field(btf, "a", u64, 0, 0);
    btf__add_field(btf, "b", u64, 64, 0);
    int lists = btf__add_array(btf, u32, list, 3);
    int next = btf__add_ptr(btf, 0);
    btf__add_struct(btf, "task", 88);
    btf__add_field(btf, "pad", pad, 0, 0);
    btf__add_field(btf, "", either, 128, 0);
    btf__add_field(btf, "lists", lists, 192, 0);
    btf__add_field(btf, "next", next, 576, 0);
    btf__add_field(btf, "bits", u32, 640, 3);
    btf__add_enum(btf, "marks", 4);
    btf__add_enum_value(btf, "mark_first", 0);
    btf__add_enum_value(btf, "mark_head", 9);
    return btf;
}

/* What a program says it needs, at places of its own. */
static struct btf *local_make(void)
{
    struct btf *btf = btf__new_empty();
    int u32 = btf__add_int(btf, "u32", 4, 0), u64 = btf__add_int(btf, "u64", 8, 0);
    int list = btf__add_struct(btf, "list", 8);
    btf__add_field(btf, "b", u64, 0, 0);
    int lists = btf__add_array(btf, u32, list, 1);
    int next = btf__add_ptr(btf, 0);
    btf__add_struct(btf, "task", 40);
    btf__add_field(btf, "inner", u32, 0, 0);
    btf__add_field(btf, "next", next, 64, 0);
    btf__add_field(btf, "lists", lists, 128, 0);
    btf__add_field(btf, "bits", u32, 192, 0);
    btf__add_field(btf, "of_a_newer_kernel", u32, 224, 0);
    btf__add_struct(btf, "ours", 4);
    btf__add_field(btf, "what", u32, 0, 0);
    btf__add_struct(btf, "task___mine", 4);
    btf__add_field(btf, "bits", u32, 0, 0);
    btf__add_enum(btf, "marks___mine", 4);
    btf__add_enum_value(btf, "mark_head___mine", 6);
    btf__add_enum_value(btf, "mark_of_a_newer_kernel___mine", 7);
    return btf;
}

static const struct btf_type *find(const struct btf *btf, const char *name)
{
    int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
    return id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
}

static void assert_member(const struct btf *btf, const struct btf_type *type, uint32_t index,
                          const char *name, uint32_t bits)
{
    const struct btf_member *member = &btf_members(type)[index];
    assert_string_equal(btf__name_by_offset(btf, member->name_off), name);
    assert_int_equal(btf_member_bit_offset(type, index), bits);
}

static void members_stand_where_the_kernel_has_them(void **state)
{
    (void)state;
    struct btf *local = local_make(), *kernel = kernel_make();
    struct btf *small = bpf_types_make(local, kernel);
    assert_non_null(small);
    const struct btf_type *task = find(small, "task"), *list = find(small, "list");
    assert_non_null(task);
    assert_int_equal(task->size, 88);
    /* Not what this kernel does not have. */
    assert_int_equal(btf_vlen(task), 4);
    assert_member(small, task, 0, "inner", 128);
    assert_member(small, task, 1, "next", 576);
    assert_member(small, task, 2, "lists", 192);
    assert_member(small, task, 3, "bits", 640);
    assert_int_equal(btf_member_bitfield_size(task, 3), 3); /* a part of a word */
    assert_int_equal(btf_member_bitfield_size(task, 2), 0);
    const struct btf_type *inner = btf__type_by_id(small, btf_members(task)[0].type);
    assert_true(btf_is_int(inner) && inner->size == 4);
    assert_true(btf_is_ptr(btf__type_by_id(small, btf_members(task)[1].type)));
    const struct btf_type *lists = btf__type_by_id(small, btf_members(task)[2].type);
    assert_true(btf_is_array(lists));
    assert_int_equal(btf_array(lists)->nelems, 3);
    assert_ptr_equal(btf__type_by_id(small, btf_array(lists)->type), list);
    assert_int_equal(list->size, 16);
    assert_int_equal(btf_vlen(list), 1);
    assert_member(small, list, 0, "b", 64);
    assert_null(find(small, "ours"));
    btf__free(small);
    btf__free(kernel);
    btf__free(local);
}

static void a_flavour_is_the_kernel_s_type_with_members_of_its_own(void **state)
{
    (void)state;
    struct btf *local = local_make(), *kernel = kernel_make();
    struct btf *small = bpf_types_make(local, kernel);
    assert_non_null(small);
    const struct btf_type *mine = find(small, "task___mine");
    assert_non_null(mine);
    assert_int_equal(mine->size, 88);
    assert_int_equal(btf_vlen(mine), 1);
    assert_member(small, mine, 0, "bits", 640);
    int id = btf__find_by_name_kind(small, "marks___mine", BTF_KIND_ENUM);
    assert_true(id > 0);
    const struct btf_type *marks = btf__type_by_id(small, (uint32_t)id);
    assert_int_equal(btf_vlen(marks), 1);
    assert_int_equal(btf_enum(marks)[0].val, 9);
    btf__free(small);
    btf__free(kernel);
    btf__free(local);
}

static void without_a_cache_there_is_no_file(void **state)
{
    (void)state;
    char path[PATH_MAX] = "untouched";
    struct btf *local = local_make();
    assert_int_equal(bpf_types_file("x", 1, local, NULL, path), -ENOENT);
    assert_true(bpf_types_file("x", 1, local, "/proc/nowhere", path) < 0);
    assert_string_equal(path, "untouched");
    btf__free(local);
}

/* The one file in the folder, for a test that is about to damage it. */
static void file_replace(const char *folder, const char *text)
{
    char path[PATH_MAX + 300] = "";
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    closedir(dir);
    assert_true(*path);
    if (text)
        assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), 0);
    else
        assert_int_equal(unlink(path), 0);
}

static void a_program_loads_with_a_cache_that_is_new_used_or_damaged(void **state)
{
    (void)state;
    struct probe probe;
    probe_bpf_tracing(&probe);
    if (!probe.ok || cpu_deep_bpf_bytes == 0)
        skip("no BPF here");
    char cache[] = "/tmp/whyslow-types-XXXXXX", folder[64];
    assert_non_null(mkdtemp(cache));
    snprintf(folder, sizeof(folder), "%s/bpf", cache);
    for (int round = 0; round < 3; round++) {
        struct why why = {0};
        struct cpu_deep *deep = NULL;
        if (round == 2)
            file_replace(folder, "no BTF at all");
        int r = cpu_deep_open(1, cache, &deep, &why);
        if (r < 0)
            print_message("%s\n", why.what);
        assert_int_equal(r, 0);
        cpu_deep_close(deep);
    }
    file_replace(folder, NULL);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(cache), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_stand_where_the_kernel_has_them),
        cmocka_unit_test(a_flavour_is_the_kernel_s_type_with_members_of_its_own),
        cmocka_unit_test(without_a_cache_there_is_no_file),
        cmocka_unit_test(a_program_loads_with_a_cache_that_is_new_used_or_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
