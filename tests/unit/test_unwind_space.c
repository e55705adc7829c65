/* Promises of an address space: what is mapped where, after overlaps, forks and exec,
 * and that a cache never answers for what has changed. */
#include "unit.h"

#include "unwind_build.h"

#include "unwind/space.h"

#include <errno.h>

static uint32_t tag_at(const struct unwind_space *space, uint64_t pc)
{
    uint32_t tag = 0;
    uint64_t vaddr = 0;
    return unwind_space_find(space, pc, &tag, &vaddr) ? tag : 0;
}

static uint64_t vaddr_at(const struct unwind_space *space, uint64_t pc)
{
    uint32_t tag = 0;
    uint64_t vaddr = 0;
    assert_true(unwind_space_find(space, pc, &tag, &vaddr));
    return vaddr;
}

static struct unwind_space *space_new(void)
{
    struct unwind_space *space = NULL;
    assert_int_equal(unwind_space_new(UNWIND_X86_64, &space), 0);
    return space;
}

static void map(struct unwind_space *space, uint64_t start, uint64_t end, uint32_t tag)
{
    assert_int_equal(unwind_space_map(space, start, end - start, 0, NULL, tag), 0);
}

static void a_mapping_is_found_up_to_its_last_byte(void **state)
{
    (void)state;
    struct unwind_space *space = space_new();
    assert_int_equal(tag_at(space, 0), 0);
    map(space, 0x3000, 0x4000, 3);
    map(space, 0x1000, 0x2000, 1);
    map(space, 0x2000, 0x3000, 2);
    assert_int_equal(tag_at(space, 0xfff), 0);
    assert_int_equal(tag_at(space, 0x1000), 1);
    assert_int_equal(tag_at(space, 0x1fff), 1);
    assert_int_equal(tag_at(space, 0x2000), 2);
    assert_int_equal(tag_at(space, 0x3fff), 3);
    assert_int_equal(tag_at(space, 0x4000), 0);
    assert_int_equal(tag_at(space, UINT64_MAX), 0);
    assert_int_equal(vaddr_at(space, 0x2345), 0x2345); /* no image: the address itself */
    unwind_space_free(space);
}

static void a_new_mapping_replaces_what_it_overlaps(void **state)
{
    (void)state;
    struct unwind_space *space = space_new();
    map(space, 0x1000, 0x9000, 1);
    map(space, 0x3000, 0x4000, 2); /* a hole in the middle */
    assert_int_equal(tag_at(space, 0x2fff), 1);
    assert_int_equal(tag_at(space, 0x3000), 2);
    assert_int_equal(tag_at(space, 0x4000), 1);
    map(space, 0x3800, 0x5000, 3); /* over an edge of both */
    assert_int_equal(tag_at(space, 0x37ff), 2);
    assert_int_equal(tag_at(space, 0x3800), 3);
    assert_int_equal(tag_at(space, 0x4fff), 3);
    assert_int_equal(tag_at(space, 0x5000), 1);
    assert_int_equal(unwind_space_unmap(space, 0x2000, 0x6000), 0);
    assert_int_equal(tag_at(space, 0x1fff), 1);
    assert_int_equal(tag_at(space, 0x2000), 0);
    assert_int_equal(tag_at(space, 0x7fff), 0);
    assert_int_equal(tag_at(space, 0x8000), 1);
    map(space, 0, 0x10000, 4); /* over all of it */
    assert_int_equal(space->count, 1);
    assert_int_equal(tag_at(space, 0x1234), 4);
    unwind_space_free(space);
}

/* The same by brute force. */
static void any_order_of_changes_ends_as_a_plain_array_would(void **state)
{
    (void)state;
    enum { PAGES = 64, CHANGES = 20000 };
    uint32_t truth[PAGES] = {0};
    uint32_t seed = 1;
    struct unwind_space *space = space_new();
    for (uint32_t i = 1; i <= CHANGES; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t start = seed >> 8 & (PAGES - 1), len = 1 + (seed >> 20) % (PAGES - start);
        bool unmap = seed >> 28 == 0;
        if (unmap)
            assert_int_equal(unwind_space_unmap(space, start, len), 0);
        else
            assert_int_equal(unwind_space_map(space, start, len, 0, NULL, i), 0);
        for (uint32_t page = start; page < start + len; page++)
            truth[page] = unmap ? 0 : i;
        for (uint32_t page = 0; page < PAGES; page++)
            assert_true(tag_at(space, page) == truth[page] &&
                        (truth[page] == 0 || vaddr_at(space, page) == page));
    }
    unwind_space_free(space);
}

static void a_clone_goes_its_own_way(void **state)
{
    (void)state;
    struct unwind_space *parent = space_new(), *child = NULL;
    map(parent, 0x1000, 0x2000, 1);
    assert_int_equal(unwind_space_clone(parent, &child), 0);
    assert_int_equal(tag_at(child, 0x1000), 1);
    map(child, 0x1000, 0x2000, 2);
    assert_int_equal(tag_at(parent, 0x1000), 1);
    assert_int_equal(tag_at(child, 0x1000), 2);
    unwind_space_clear(parent); /* exec */
    assert_int_equal(tag_at(parent, 0x1000), 0);
    assert_int_equal(tag_at(child, 0x1000), 2);
    unwind_space_free(parent);
    unwind_space_free(child);
    /* One without mappings too. */
    parent = space_new();
    assert_int_equal(unwind_space_clone(parent, &child), 0);
    map(child, 0x1000, 0x2000, 3);
    assert_int_equal(tag_at(child, 0x1000), 3);
    unwind_space_free(parent);
    unwind_space_free(child);
}

static void ranges_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct unwind_space *space = space_new();
    assert_int_equal(unwind_space_map(space, 0x1000, 0, 0, NULL, 1), -EINVAL);
    assert_int_equal(unwind_space_map(space, UINT64_MAX - 1, 5, 0, NULL, 1), -EINVAL);
    assert_int_equal(unwind_space_unmap(space, UINT64_MAX - 1, 5), -EINVAL);
    assert_int_equal(unwind_space_unmap(space, 0x5000, 0x1000), 0);
    assert_int_equal(space->count, 0);
    unwind_space_free(NULL);
    unwind_cache_free(NULL);
    unwind_image_free(NULL);
    unwind_space_free(space);
}

/* Two pages of stubs without a frame, one after the other: f pushes nothing, g 8 bytes. */
static void walk_once(const struct unwind_space *space, struct unwind_cache *cache, uint64_t pc,
                      struct unwind_frame *frames, struct unwind_result *result)
{
    const uint64_t stack[] = {0x500001, 0x500002, 0x500003, 0x500004};
    struct unwind_registers registers = {.pc = pc, .known = 1u << 7};
    registers.reg[7] = 0x7000;
    struct unwind_slice slice = {0x7000, (const uint8_t *)stack, sizeof(stack)};
    unwind_walk(space, &registers, &slice, cache, frames, 2, result);
}

static void a_cache_never_answers_for_what_has_changed(void **state)
{
    (void)state;
    struct unwind_image *image = NULL;
    struct unwind_cache *cache = NULL;
    struct unwind_frame frames[2];
    struct unwind_result result;
    if (!build_image("two", ".text\n f: .cfi_startproc\n nop\n .cfi_endproc\n"
                            ".p2align 12\n g: .cfi_startproc\n .cfi_adjust_cfa_offset 8\n nop\n"
                            ".cfi_endproc\n"))
        fail_msg("no compiler");
    assert_int_equal(build_load("two.so", NULL, &image, NULL), 0);
    assert_int_equal(unwind_cache_new(&cache), 0);
    uint64_t offset = 0, vaddr = 0;
    while (!unwind_image_vaddr(image, offset, &vaddr) || vaddr != CODE)
        offset += 4096;
    assert_true(unwind_image_vaddr(image, offset + 0x123, &vaddr));
    assert_int_equal(vaddr, CODE + 0x123);
    assert_false(unwind_image_vaddr(image, 1 << 30, &vaddr));

    struct unwind_space *space = space_new();
    map(space, 0x500000, 0x501000, 9);
    assert_int_equal(unwind_space_map(space, 0x400000, 0x1000, offset, image, 1), 0);
    for (unsigned twice = 0; twice < 2; twice++) {
        walk_once(space, cache, 0x400000, frames, &result);
        assert_int_equal(result.count, 2);
        assert_int_equal(frames[0].tag, 1);
        assert_int_equal(frames[0].vaddr, CODE);
        assert_int_equal(frames[1].pc, 0x500000);
        assert_int_equal(frames[1].tag, 9);
        assert_int_equal(frames[1].how, UNWIND_BY_ROW);
    }
    /* Another page of the image at the same address: the row is another one. */
    assert_int_equal(unwind_space_map(space, 0x400000, 0x1000, offset + 4096, image, 2), 0);
    walk_once(space, cache, 0x400000, frames, &result);
    assert_int_equal(frames[0].tag, 2);
    assert_int_equal(frames[0].vaddr, CODE + 4096);
    assert_int_equal(frames[1].pc, 0x500001); /* from the second word */
    /* A space of another process with the same cache. */
    struct unwind_space *other = space_new();
    map(other, 0x400000, 0x401000, 7);
    walk_once(other, cache, 0x400000, frames, &result);
    assert_int_equal(frames[0].tag, 7);
    assert_int_equal(result.end, UNWIND_NO_ROW);
    unwind_space_clear(space);
    walk_once(space, cache, 0x400000, frames, &result);
    assert_int_equal(frames[0].tag, 0);
    assert_int_equal(result.end, UNWIND_NO_MAPPING);
    unwind_space_free(space);
    unwind_space_free(other);
    unwind_cache_free(cache);
    unwind_image_free(image);
}

static void mapping_the_same_again_changes_nothing(void **state)
{
    (void)state;
    struct unwind_space *space = space_new();
    map(space, 0x1000, 0x2000, 1);
    uint64_t generation = space->generation;
    map(space, 0x1000, 0x2000, 1);
    assert_int_equal(unwind_space_unmap(space, 0x8000, 0x1000), 0);
    assert_int_equal(space->generation, generation);
    map(space, 0x1000, 0x2000, 2);
    assert_int_not_equal(space->generation, generation);
    unwind_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mapping_is_found_up_to_its_last_byte),
        cmocka_unit_test(a_new_mapping_replaces_what_it_overlaps),
        cmocka_unit_test(any_order_of_changes_ends_as_a_plain_array_would),
        cmocka_unit_test(a_clone_goes_its_own_way),
        cmocka_unit_test(ranges_that_cannot_be_are_refused),
        cmocka_unit_test(a_cache_never_answers_for_what_has_changed),
        cmocka_unit_test(mapping_the_same_again_changes_nothing),
    };
    return cmocka_run_group_tests(tests, build_group_setup, build_group_teardown);
}
