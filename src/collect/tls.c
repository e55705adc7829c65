/* The functions of OpenSSL that are looked at, and the program for each. */
#include "collect/tls.h"

#include "collect/bpf_unit.h"
#include "format/io_heads.h"

#include <errno.h>
#include <stdlib.h>

extern const unsigned char tls_bpf[];
extern const size_t tls_bpf_bytes;

static const struct {
    const char *function, *program;
    bool at_return;
} table[] = {
    {"SSL_read", "tls_data", false},
    {"SSL_read", "tls_read_done", true},
    {"SSL_write", "tls_data", false},
    {"SSL_write", "tls_write_done", true},
    {"SSL_read_ex", "tls_data_ex", false},
    {"SSL_read_ex", "tls_read_done", true},
    {"SSL_write_ex", "tls_data_ex", false},
    {"SSL_write_ex", "tls_write_done", true},
    {"SSL_do_handshake", "tls_handshake", false},
    {"SSL_do_handshake", "tls_write_done", true},
    {"SSL_free", "tls_free", false},
};

struct tls {
    struct bpf_unit *unit;
    struct uprobe_function functions[ARRAY_SIZE(table)];
};

static int unit_load(struct tls *tls, const struct tls_opts *opts, const char *cache_dir,
                     struct why *why)
{
    const struct bpf_blob blob = {"tls", tls_bpf, tls_bpf_bytes};
    const struct io_heads_tls_config config = {.ring_bytes = opts->ring_bytes};
    bpf_unit_close(tls->unit);
    tls->unit = NULL;
    int r = bpf_unit_open(&blob, cache_dir, &tls->unit, why);
    if (r == 0)
        r = bpf_unit_config(tls->unit, &config, sizeof(config), why);
    if (r == 0)
        r = bpf_unit_map_share(tls->unit, "told", opts->told_fd, why);
    if (r == 0)
        r = bpf_unit_map_share(tls->unit, "threads", opts->threads_fd, why);
    if (r == 0)
        r = bpf_unit_map_share(tls->unit, "tls_now", opts->now_fd, why);
    if (r == 0)
        r = bpf_unit_map_share(tls->unit, "begun", opts->begun_fd, why);
    if (r == 0 && bpf_unit_uprobes_multi(tls->unit) < 0)
        r = why_set(why, WHY_FAILED, EINVAL, NULL, "libbpf does not take uprobes of a newer kind");
    return r < 0 ? r : bpf_unit_load(tls->unit, why);
}

int tls_open(const struct tls_opts *opts, struct uprobes *uprobes, struct tls **ret,
             struct why *why)
{
    struct tls *tls = calloc(1, sizeof(*tls));
    if (!tls)
        return why_nomem(why);
    int r = unit_load(tls, opts, opts->cache_dir, why);
    if (r < 0 && r != -EPERM && r != -EACCES && opts->cache_dir)
        r = unit_load(tls, opts, NULL, why);
    for (size_t i = 0; i < ARRAY_SIZE(table) && r == 0; i++) {
        int fd = bpf_unit_program_fd(tls->unit, table[i].program);
        tls->functions[i] = (struct uprobe_function){table[i].function, fd, table[i].at_return};
        if (fd < 0)
            r = why_set(why, WHY_FAILED, -fd, NULL, "the BPF program 'tls' has lost a part");
    }
    if (r == 0)
        r = uprobes_add(uprobes, "libssl.so", tls->functions, ARRAY_SIZE(table));
    if (r < 0) {
        tls_close(tls);
        return r;
    }
    *ret = tls;
    return 0;
}

void tls_close(struct tls *tls)
{
    if (!tls)
        return;
    bpf_unit_close(tls->unit);
    free(tls);
}

int tls_finish(struct tls *tls, struct sink *sink)
{
    uint64_t counts[IO_HEADS_COUNTS];
    int r = bpf_counts_read(bpf_unit_map_fd(tls->unit, "tls_counts"), counts, IO_HEADS_COUNTS);
    if (r == 0)
        r = sink_counter(sink, "io.tls", UNIT_COUNT, counts[IO_HEADS_TOLD]);
    return r < 0 ? r : sink_counter(sink, "io.tls_lost", UNIT_COUNT, counts[IO_HEADS_LOST]);
}
