/* A place-holder until the probes themselves arrive: nothing was tried. */
#include "host/probe.h"

#include <errno.h>
#include <stdio.h>

static void not_probed(struct probe *ret)
{
    *ret = (struct probe){.error = ENOSYS};
    snprintf(ret->detail, sizeof(ret->detail), "not probed");
}

void probe_perf_own(struct probe *ret)
{
    not_probed(ret);
}

void probe_perf_kernel(struct probe *ret)
{
    not_probed(ret);
}

void probe_perf_system(struct probe *ret)
{
    not_probed(ret);
}

void probe_perf_pmu(struct probe *ret)
{
    not_probed(ret);
}

void probe_perf_switch(struct probe *ret)
{
    not_probed(ret);
}

void probe_bpf_tracing(struct probe *ret)
{
    not_probed(ret);
}

void probe_bpf_uprobe(struct probe *ret)
{
    not_probed(ret);
}

void probe_preload(struct probe *ret)
{
    not_probed(ret);
}

void probe_remote_read(struct probe *ret)
{
    not_probed(ret);
}
