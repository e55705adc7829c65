/* Objects asked for both ways, by a program in the kernel and through /proc, for tests. */
#pragma once

#include "unit.h"

#include "base/macros.h"
#include "collect/bpf_ring.h"
#include "collect/bpf_unit.h"
#include "collect/objects.h"
#include "host/probe.h"
#include "model/sink_memory.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const unsigned char fds_bpf[];
extern const size_t fds_bpf_bytes;

enum { RING = 1 << 20, RING_SMALL = 4096 };

/* Both ways beside each other; `unit` is NULL where there is no BPF. */
struct ways {
    struct sink_memory kernel_sink, proc_sink;
    struct objects *kernel, *proc;
    struct bpf_unit *unit;
    struct bpf_ring ring;
    char folder[64];
};

static void unit_start(struct ways *ways, uint32_t ring_bytes, const char *cache_dir)
{
    struct why why = {0};
    struct bpf_blob blob = {"fds", fds_bpf, fds_bpf_bytes};
    uint32_t config[2] = {(uint32_t)getpid(), SYS_getppid};
    assert_int_equal(bpf_unit_open(&blob, cache_dir, &ways->unit, &why), 0);
    assert_int_equal(bpf_unit_config(ways->unit, config, sizeof(config), &why), 0);
    assert_int_equal(bpf_unit_map_size(ways->unit, "told", ring_bytes, &why), 0);
    if (bpf_unit_load(ways->unit, &why) < 0)
        fail_msg("%s", why.what);
    assert_int_equal(
        bpf_ring_map(bpf_unit_map_fd(ways->unit, "told"), ring_bytes, &ways->ring, &why), 0);
    assert_int_equal(bpf_unit_attach(ways->unit, &why), 0);
}

static void unit_end(struct ways *ways)
{
    if (!ways->unit)
        return;
    bpf_ring_deinit(&ways->ring);
    bpf_unit_close(ways->unit);
    ways->unit = NULL;
}

static int setup(void **state)
{
    struct ways *ways = calloc(1, sizeof(*ways));
    ways->kernel_sink = ways->proc_sink = SINK_MEMORY_INIT;
    assert_int_equal(objects_open(&ways->kernel_sink.sink, &ways->kernel), 0);
    assert_int_equal(objects_open(&ways->proc_sink.sink, &ways->proc), 0);
    snprintf(ways->folder, sizeof(ways->folder), "/tmp/whyslow-objects-XXXXXX");
    assert_non_null(mkdtemp(ways->folder));
    struct probe probe;
    probe_bpf_tracing(&probe);
    if (!probe.ok || fds_bpf_bytes == 0)
        print_message("no BPF here: %s\n", probe.ok ? "built without clang" : probe.detail);
    else
        unit_start(ways, RING, NULL);
    *state = ways;
    return 0;
}

static int teardown(void **state)
{
    struct ways *ways = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", ways->folder);
    assert_int_equal(system(command), 0);
    unit_end(ways);
    objects_close(ways->kernel);
    objects_close(ways->proc);
    sink_memory_deinit(&ways->kernel_sink);
    sink_memory_deinit(&ways->proc_sink);
    free(ways);
    return 0;
}

static size_t ring_take(struct ways *ways)
{
    const void *record;
    size_t bytes, count = 0;
    uint64_t place;
    bpf_ring_begin(&ways->ring);
    for (; (record = bpf_ring_next(&ways->ring, &bytes, &place)); count++)
        assert_int_equal(objects_take(ways->kernel, record, bytes), 0);
    bpf_ring_release(&ways->ring, UINT64_MAX);
    return count;
}

/* What the program in the kernel says about an fd; false: nothing. */
static bool kernel_ask(struct ways *ways, int fd, struct object_id *ret)
{
    uint32_t zero = 0;
    assert_int_equal(bpf_map_update_elem(bpf_unit_map_fd(ways->unit, "asked"), &zero, &fd, BPF_ANY),
                     0);
    syscall(SYS_getppid);
    return bpf_map_lookup_elem(bpf_unit_map_fd(ways->unit, "answers"), &zero, ret) == 0;
}

static const struct object_info *info_of(const struct sink_memory *memory, uint32_t object)
{
    assert_in_range(object, 1, memory->book.objects.len);
    return &memory->book.objects.data[object - 1].info;
}

static void info_is(const char *way, const struct object_info *info, enum object_kind kind,
                    uint32_t flags, const char *name)
{
    if (info->kind != kind || info->flags != flags || !str_is(info->name, name))
        fail_msg("by %s: kind %d flags %x '%.*s' instead of kind %d flags %x '%s'", way,
                 (int)info->kind, info->flags, STR_FMT(info->name), (int)kind, flags, name);
}

/* *ret_listener listens, the two others are connected through it. */
static void tcp_open(int family, int *ret_listener, int *ret_client, int *ret_server,
                     uint16_t *ret_port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address = {0};
    socklen_t len = family == AF_INET ? sizeof(address.four) : sizeof(address.six);
    address.any.sa_family = (sa_family_t)family;
    if (family == AF_INET)
        address.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        address.six.sin6_addr = in6addr_loopback;
    *ret_listener = socket(family, SOCK_STREAM, 0);
    assert_int_equal(bind(*ret_listener, &address.any, len), 0);
    assert_int_equal(listen(*ret_listener, 4), 0);
    assert_int_equal(getsockname(*ret_listener, &address.any, &len), 0);
    *ret_port = ntohs(family == AF_INET ? address.four.sin_port : address.six.sin6_port);
    *ret_client = socket(family, SOCK_STREAM, 0);
    assert_int_equal(connect(*ret_client, &address.any, len), 0);
    *ret_server = accept(*ret_listener, NULL, NULL);
    assert_true(*ret_server >= 0);
}
