/* From embedded bytes to programs in the kernel, and from its refusals to words. */
#include "collect/bpf_unit.h"

#include "base/str.h"
#include "collect/bpf_types.h"
#include "host/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOG_BYTES = 1 << 16,
    WORDS_BYTES = 256,
    LINKS_MAX = 32,
};

struct bpf_unit {
    const char *name;
    struct bpf_object *object;
    struct bpf_link *links[LINKS_MAX];
    size_t link_count;
    char *log; /* the verifier's */
};

/* The last thing libbpf wanted to print. */
static char libbpf_words[WORDS_BYTES];

static int words_keep(enum libbpf_print_level level, const char *format, va_list arguments)
{
    char text[WORDS_BYTES];
    if (level != LIBBPF_WARN)
        return 0;
    vsnprintf(text, sizeof(text), format, arguments);
    struct str line = str_trim(str_from(text));
    /* The first is nearest to the cause; what follows says that it failed because it failed. */
    if (libbpf_words[0] == '\0')
        snprintf(libbpf_words, sizeof(libbpf_words), "%.*s", (int)line.len, line.data);
    return 0;
}

static libbpf_print_fn_t words_begin(void)
{
    libbpf_words[0] = '\0';
    return libbpf_set_print(words_keep);
}

/* Of the verifier's log the last line before its figures says what it did not like. */
static struct str verifier_words(const char *log)
{
    struct str rest = str_from(log), found = {0};
    while (rest.len > 0) {
        struct str line = str_trim(str_cut(&rest, '\n'));
        if (str_starts(line, "processed "))
            break;
        if (line.len > 0)
            found = line;
    }
    return found;
}

static int unit_why(const struct bpf_unit *unit, int error, const char *doing, struct why *why)
{
    struct str verifier = verifier_words(unit->log ? unit->log : "");
    if (verifier.len > 0)
        return why_set(why, WHY_DENIED, error,
                       "report this with your kernel's version: a newer kernel may take it",
                       "the kernel's verifier refuses the BPF program '%s': %.*s", unit->name,
                       (int)MIN(verifier.len, (size_t)WORDS_BYTES), verifier.data);
    if (error == EPERM || error == EACCES || error == EINVAL || error == ENOSYS) {
        struct probe probe;
        char what[64];
        snprintf(what, sizeof(what), "%s the BPF program '%.20s'", doing, unit->name);
        probe_bpf_refused(&probe, error, what);
        return why_set(why, WHY_DENIED, error, probe.remedy, "%s", probe.detail);
    }
    return why_errno(why, error,
                     error == ENOMEM ? "free some memory, or raise the cgroup's memory.max" : NULL,
                     "%s the BPF program '%s'%s%s", doing, unit->name, libbpf_words[0] ? ": " : "",
                     libbpf_words);
}

/* Opened once for its own types, and once more with those of the kernel that it needs. */
static struct bpf_object *object_open(const struct bpf_blob *blob, const char *cache_dir)
{
    LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = blob->name);
    char types[PATH_MAX];
    struct bpf_object *object = bpf_object__open_mem(blob->bytes, blob->len, &opts);
    if (!object ||
        bpf_types_file(blob->bytes, blob->len, bpf_object__btf(object), cache_dir, types) < 0)
        return object;
    bpf_object__close(object);
    opts.btf_custom_path = types;
    return bpf_object__open_mem(blob->bytes, blob->len, &opts);
}

int bpf_unit_open(const struct bpf_blob *blob, const char *cache_dir, struct bpf_unit **ret,
                  struct why *why)
{
    if (blob->len == 0)
        return why_set(why, WHY_DENIED, EOPNOTSUPP,
                       "build whyslow where clang 12 or newer is installed (meson: -Dbpf=enabled)",
                       "this whyslow was built without BPF programs");
    if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
        return why_set(why, WHY_DENIED, errno, "use a kernel built with CONFIG_DEBUG_INFO_BTF",
                       "the kernel's type information (/sys/kernel/btf/vmlinux) is not there");
    struct bpf_unit *unit = calloc(1, sizeof(*unit));
    if (!unit)
        return why_nomem(why);
    unit->name = blob->name;
    libbpf_print_fn_t old = words_begin();
    unit->object = object_open(blob, cache_dir);
    int r = unit->object ? 0 : -errno;
    libbpf_set_print(old);
    if (r < 0) {
        unit_why(unit, -r, "reading", why);
        bpf_unit_close(unit);
        return r;
    }
    *ret = unit;
    return 0;
}

void bpf_unit_detach(struct bpf_unit *unit)
{
    libbpf_print_fn_t old = words_begin();
    for (size_t i = 0; i < unit->link_count; i++)
        bpf_link__destroy(unit->links[i]);
    unit->link_count = 0;
    libbpf_set_print(old);
}

void bpf_unit_close(struct bpf_unit *unit)
{
    if (!unit)
        return;
    bpf_unit_detach(unit);
    libbpf_print_fn_t old = words_begin();
    bpf_object__close(unit->object);
    libbpf_set_print(old);
    free(unit->log);
    free(unit);
}

int bpf_unit_config(struct bpf_unit *unit, const void *config, size_t bytes, struct why *why)
{
    struct bpf_map *map;
    int r = -ENOENT;
    bpf_object__for_each_map(map, unit->object)
    {
        const char *name = bpf_map__name(map);
        size_t len = strlen(name);
        if (len >= 7 && strcmp(name + len - 7, ".rodata") == 0)
            r = bpf_map__set_initial_value(map, config, bytes);
    }
    return r < 0 ? why_set(why, WHY_FAILED, -r, NULL,
                           "the BPF program '%s' has no constants of %zu bytes", unit->name, bytes)
                 : 0;
}

int bpf_unit_map_size(struct bpf_unit *unit, const char *map, uint32_t entries, struct why *why)
{
    struct bpf_map *found = bpf_object__find_map_by_name(unit->object, map);
    int r = found ? bpf_map__set_max_entries(found, entries) : -ENOENT;
    return r < 0 ? why_set(why, WHY_FAILED, -r, NULL,
                           "the BPF program '%s' has no map '%s' to size", unit->name, map)
                 : 0;
}

int bpf_unit_map_share(struct bpf_unit *unit, const char *map, int fd, struct why *why)
{
    struct bpf_map *found = bpf_object__find_map_by_name(unit->object, map);
    libbpf_print_fn_t old = words_begin();
    int r = found ? bpf_map__reuse_fd(found, fd) : -ENOENT;
    libbpf_set_print(old);
    return r < 0 ? why_set(why, WHY_FAILED, -r, NULL,
                           "the BPF program '%s' cannot share a map as '%s'", unit->name, map)
                 : 0;
}

int bpf_unit_leave_out(struct bpf_unit *unit, const char *program)
{
    struct bpf_program *found = bpf_object__find_program_by_name(unit->object, program);
    return found ? bpf_program__set_autoload(found, false) : -ENOENT;
}

int bpf_unit_uprobes_multi(struct bpf_unit *unit)
{
    enum { TRACE_UPROBE_MULTI = 48 }; /* of enum bpf_attach_type, which may be older than this */
    struct bpf_program *program;
    int r = 0;
    bpf_object__for_each_program(program, unit->object)
    {
        if (r == 0 && bpf_program__type(program) == BPF_PROG_TYPE_KPROBE)
            r = bpf_program__set_expected_attach_type(program,
                                                      (enum bpf_attach_type)TRACE_UPROBE_MULTI);
    }
    return r;
}

int bpf_unit_load(struct bpf_unit *unit, struct why *why)
{
    unit->log = calloc(1, LOG_BYTES);
    if (!unit->log)
        return why_nomem(why);
    struct bpf_program *program;
    int r = 0;
    bpf_object__for_each_program(program, unit->object)
    {
        if (r == 0)
            r = bpf_program__set_log_buf(program, unit->log, LOG_BYTES);
    }
    libbpf_print_fn_t old = words_begin();
    if (r == 0)
        r = bpf_object__load(unit->object);
    libbpf_set_print(old);
    return r < 0 ? unit_why(unit, -r, "loading", why) : 0;
}

bool bpf_unit_is_disliked(int r)
{
    return r < 0 && r != -EPERM && r != -EACCES && r != -ENOMEM;
}

int bpf_unit_attach(struct bpf_unit *unit, struct why *why)
{
    struct bpf_program *program;
    int r = 0;
    libbpf_print_fn_t old = words_begin();
    bpf_object__for_each_program(program, unit->object)
    {
        enum bpf_prog_type type = bpf_program__type(program);
        if (r < 0 || type == BPF_PROG_TYPE_PERF_EVENT || type == BPF_PROG_TYPE_KPROBE ||
            !bpf_program__autoload(program))
            continue;
        struct bpf_link *link = unit->link_count < LINKS_MAX ? bpf_program__attach(program) : NULL;
        if (link)
            unit->links[unit->link_count++] = link;
        else
            r = unit->link_count < LINKS_MAX ? -errno : -E2BIG;
    }
    libbpf_set_print(old);
    return r < 0 ? unit_why(unit, -r, "attaching", why) : 0;
}

int bpf_unit_begin(struct bpf_unit *unit, uint64_t start_ns, struct why *why)
{
    uint32_t zero = 0;
    int fd = bpf_unit_map_fd(unit, "begun"), r = fd < 0 ? fd : 0;
    if (r == 0 && bpf_map_update_elem(fd, &zero, &start_ns, BPF_ANY) < 0)
        r = -errno;
    return r < 0 ? unit_why(unit, -r, "beginning", why) : 0;
}

int bpf_unit_program_fd(const struct bpf_unit *unit, const char *program)
{
    const struct bpf_program *found = bpf_object__find_program_by_name(unit->object, program);
    return found ? bpf_program__fd(found) : -ENOENT;
}

int bpf_unit_map_fd(const struct bpf_unit *unit, const char *map)
{
    const struct bpf_map *found = bpf_object__find_map_by_name(unit->object, map);
    return found ? bpf_map__fd(found) : -ENOENT;
}

int bpf_counts_read(int map_fd, uint64_t *ret, uint32_t count)
{
    int cpus = libbpf_num_possible_cpus();
    uint64_t *values = cpus > 0 ? calloc((size_t)cpus, sizeof(*values)) : NULL;
    int r = cpus < 0 ? cpus : !values ? -ENOMEM : 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        if (bpf_map_lookup_elem(map_fd, &i, values) < 0) {
            r = -errno;
            break;
        }
        ret[i] = 0;
        for (int cpu = 0; cpu < cpus; cpu++)
            ret[i] += values[cpu];
    }
    free(values);
    return r;
}
