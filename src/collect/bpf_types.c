/* A small BTF from a large one: structs by name, in each only the members that were asked for,
 * at the places they really have. Members of nameless structs stand in their parent. What stands
 * behind "___" in a name is no part of it, as everywhere in CO-RE: "file___io" is a struct file,
 * of which one program asks for other members than another. */
#include "collect/bpf_types.h"

#include "base/fd.h"
#include "base/sha256.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Part of a file's name: files that this code made otherwise are not taken. */
static const char made_by[] = "types 3";

enum {
    STRUCTS_MAX = 64,
    ARRAYS_MAX = 64,
    NESTING_MAX = 8,
    NAME_BYTES = 128,
    TYPE_INTS = 4,                /* ids 1 to 4: integers of 1, 2, 4 and 8 bytes */
    TYPE_POINTER = TYPE_INTS + 1, /* where it points to is of no matter */
    TYPE_STRUCTS = TYPE_POINTER + 1,
};

struct maker {
    const struct btf *local, *kernel;
    struct btf *small;
    struct {
        int local, kernel; /* ids */
    } structs[STRUCTS_MAX];
    size_t struct_count;
    struct {
        int element, count;
    } arrays[ARRAYS_MAX]; /* they get their ids after the structs, in this order */
    size_t array_count;
};

static const struct btf_type *plain_type(const struct btf *btf, int *id)
{
    const struct btf_type *type = btf__type_by_id(btf, (uint32_t)*id);
    for (int i = 0; i < NESTING_MAX && type && (btf_is_mod(type) || btf_is_typedef(type)); i++) {
        *id = (int)type->type;
        type = btf__type_by_id(btf, type->type);
    }
    return type;
}

static bool is_composite(const struct btf_type *type)
{
    return type && (btf_is_struct(type) || btf_is_union(type));
}

/* Where a member lies, and how many bits of its type it has (0: all). */
struct place {
    uint32_t offset_bits, size_bits;
    int type;
};

/* False when there is none of that name. `place` comes with where the struct begins. */
static bool member_find(const struct btf *btf, int id, const char *name, int nesting,
                        struct place *place)
{
    const struct btf_type *type = plain_type(btf, &id);
    if (!is_composite(type) || nesting > NESTING_MAX)
        return false;
    uint32_t start = place->offset_bits;
    const struct btf_member *members = btf_members(type);
    for (uint32_t i = 0; i < btf_vlen(type); i++) {
        const char *its = btf__name_by_offset(btf, members[i].name_off);
        place->offset_bits = start + btf_member_bit_offset(type, i);
        if (its && *its == '\0' && member_find(btf, (int)members[i].type, name, nesting + 1, place))
            return true;
        if (its && strcmp(its, name) == 0) {
            place->type = (int)members[i].type;
            place->size_bits = btf_member_bitfield_size(type, i);
            return true;
        }
    }
    return false;
}

/* An id in the small BTF; 0: nothing that we have a place for. */
static int type_of(struct maker *maker, int id)
{
    const struct btf_type *type = plain_type(maker->kernel, &id);
    if (!type)
        return 0;
    if (btf_is_ptr(type))
        return TYPE_POINTER;
    if (btf_is_int(type))
        return type->size <= 8 ? __builtin_ctz(type->size) + 1 : 0;
    for (size_t i = 0; i < maker->struct_count && is_composite(type); i++)
        if (maker->structs[i].kernel == id)
            return TYPE_STRUCTS + (int)i;
    if (!btf_is_array(type) || maker->array_count == ARRAYS_MAX)
        return 0;
    size_t at = maker->array_count++;
    maker->arrays[at].count = (int)btf_array(type)->nelems;
    maker->arrays[at].element = type_of(maker, (int)btf_array(type)->type);
    return TYPE_STRUCTS + (int)(maker->struct_count + at);
}

/* What the kernel has under a name of the program's. */
static int kernel_find(const struct maker *maker, const char *name, uint32_t kind)
{
    char plain[NAME_BYTES];
    const char *flavour = strstr(name, "___");
    size_t len = flavour && flavour != name ? (size_t)(flavour - name) : strlen(name);
    if (len == 0 || len >= sizeof(plain))
        return -ENOENT;
    memcpy(plain, name, len);
    plain[len] = '\0';
    return btf__find_by_name_kind(maker->kernel, plain, kind);
}

static void structs_find(struct maker *maker)
{
    uint32_t count = btf__type_cnt(maker->local);
    for (uint32_t id = 1; id < count && maker->struct_count < STRUCTS_MAX; id++) {
        const struct btf_type *type = btf__type_by_id(maker->local, id);
        const char *name = btf__name_by_offset(maker->local, type->name_off);
        if (!btf_is_struct(type) || !name || *name == '\0')
            continue;
        int kernel = kernel_find(maker, name, BTF_KIND_STRUCT);
        if (kernel <= 0)
            continue; /* one of ours */
        maker->structs[maker->struct_count].local = (int)id;
        maker->structs[maker->struct_count++].kernel = kernel;
    }
}

static int struct_add(struct maker *maker, size_t index)
{
    const struct btf_type *local = btf__type_by_id(maker->local,
                                                   (uint32_t)maker->structs[index].local);
    const struct btf_type *kernel = btf__type_by_id(maker->kernel,
                                                    (uint32_t)maker->structs[index].kernel);
    const struct btf_member *members = btf_members(local);
    int r = btf__add_struct(maker->small, btf__name_by_offset(maker->local, local->name_off),
                            kernel->size);
    for (uint32_t i = 0; i < btf_vlen(local) && r >= 0; i++) {
        const char *name = btf__name_by_offset(maker->local, members[i].name_off);
        struct place place = {0};
        if (!member_find(maker->kernel, maker->structs[index].kernel, name, 0, &place))
            continue; /* this kernel has it not: programs ask before they read */
        int type = type_of(maker, place.type);
        if (type != 0)
            r = btf__add_field(maker->small, name, type, place.offset_bits, place.size_bits);
    }
    return r < 0 ? r : 0;
}

/* The same name, but for what makes the program's its own. */
static bool value_is(const char *local, const char *kernel)
{
    const char *flavour = strstr(local, "___");
    size_t len = flavour ? (size_t)(flavour - local) : strlen(local);
    return strlen(kernel) == len && memcmp(local, kernel, len) == 0;
}

/* Numbers that differ from kernel to kernel; those it does not have are left out. */
static int enum_add(struct maker *maker, const struct btf_type *local, int kernel_id)
{
    const struct btf_type *kernel = btf__type_by_id(maker->kernel, (uint32_t)kernel_id);
    const struct btf_enum *asked = btf_enum(local), *has = btf_enum(kernel);
    int r = btf__add_enum(maker->small, btf__name_by_offset(maker->local, local->name_off),
                          kernel->size);
    for (uint32_t i = 0; i < btf_vlen(local) && r >= 0; i++) {
        const char *name = btf__name_by_offset(maker->local, asked[i].name_off);
        for (uint32_t k = 0; k < btf_vlen(kernel); k++) {
            if (!value_is(name, btf__name_by_offset(maker->kernel, has[k].name_off)))
                continue;
            r = btf__add_enum_value(maker->small, name, has[k].val);
            break;
        }
    }
    return r < 0 ? r : 0;
}

static int enums_add(struct maker *maker)
{
    uint32_t count = btf__type_cnt(maker->local);
    int r = 0;
    for (uint32_t id = 1; id < count && r >= 0; id++) {
        const struct btf_type *type = btf__type_by_id(maker->local, id);
        const char *name = btf__name_by_offset(maker->local, type->name_off);
        if (!btf_is_enum(type) || !name || *name == '\0')
            continue;
        int kernel = kernel_find(maker, name, BTF_KIND_ENUM);
        if (kernel > 0)
            r = enum_add(maker, type, kernel);
    }
    return r;
}

static int types_add(struct maker *maker)
{
    static const char *const names[TYPE_INTS] = {"u8", "u16", "u32", "u64"};
    int r = 0;
    for (int i = 0; i < TYPE_INTS && r >= 0; i++)
        r = btf__add_int(maker->small, names[i], (size_t)1 << i, 0);
    if (r >= 0)
        r = btf__add_ptr(maker->small, 0);
    for (size_t i = 0; i < maker->struct_count && r >= 0; i++)
        r = struct_add(maker, i);
    for (size_t i = 0; i < maker->array_count && r >= 0; i++)
        r = btf__add_array(maker->small, 3, maker->arrays[i].element,
                           (uint32_t)maker->arrays[i].count);
    if (r >= 0)
        r = enums_add(maker);
    return r < 0 ? r : 0;
}

struct btf *bpf_types_make(const struct btf *local, const struct btf *kernel)
{
    struct maker maker = {.local = local, .kernel = kernel, .small = btf__new_empty()};
    if (!maker.small)
        return NULL;
    structs_find(&maker);
    int r = types_add(&maker);
    if (r < 0) {
        btf__free(maker.small);
        errno = -r;
        return NULL;
    }
    return maker.small;
}

static int path_make(const void *program, size_t program_bytes, const char *cache_dir,
                     char path[PATH_MAX])
{
    struct utsname kernel;
    struct sha256 hash;
    char name[SHA256_TEXT_BYTES];
    if (uname(&kernel) < 0)
        return -errno;
    sha256_init(&hash);
    sha256_add(&hash, made_by, sizeof(made_by));
    sha256_add(&hash, kernel.release, strlen(kernel.release) + 1);
    sha256_add(&hash, kernel.version, strlen(kernel.version) + 1);
    sha256_add(&hash, program, program_bytes);
    sha256_finish(&hash, name);
    int n = snprintf(path, PATH_MAX, "%s/bpf/%.32s.btf", cache_dir, name);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int file_make(const struct btf *local, const char *cache_dir, const char *path)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s/bpf", cache_dir) >= PATH_MAX)
        return -ENAMETOOLONG;
    int r = folder_make(folder, NULL);
    if (r < 0)
        return r;
    struct btf *kernel = btf__load_vmlinux_btf();
    struct btf *small = kernel ? bpf_types_make(local, kernel) : NULL;
    r = small ? 0 : -errno;
    uint32_t bytes = 0;
    const void *raw = small ? btf__raw_data(small, &bytes) : NULL;
    if (r == 0)
        r = raw ? file_write_atomic(path, raw, bytes, NULL) : -ENOMEM;
    btf__free(small);
    btf__free(kernel);
    return r;
}

int bpf_types_file(const void *program, size_t program_bytes, const struct btf *local,
                   const char *cache_dir, char ret_path[PATH_MAX])
{
    char path[PATH_MAX];
    int r = cache_dir && local ? path_make(program, program_bytes, cache_dir, path) : -ENOENT;
    if (r == 0 && access(path, R_OK) < 0)
        r = file_make(local, cache_dir, path);
    if (r < 0)
        return r;
    memcpy(ret_path, path, sizeof(path));
    return 0;
}
