/* Any bytes as a perf.data: first the reader alone, touching all that it hands out, then the
 * whole importer. */
#include "collect/perf_data.h"
#include "fuzz_import.h"

static volatile uint64_t touched;

static void touch(const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        touched += ((const uint8_t *)bytes)[i];
}

static int begin(void *context, const struct perf_data_about *about, struct why *why)
{
    (void)context;
    (void)why;
    touch(about, sizeof(*about));
    return 0;
}

static int event(void *context, const struct perf_data_event *event, struct why *why)
{
    uint64_t *last_ns = context;
    (void)why;
    *last_ns = event->time_ns;
    touch(event->comm.data, event->comm.len);
    touch(event->mmap.path.data, event->mmap.path.len);
    touch(event->mmap.build_id, event->mmap.build_id_len);
    const struct perf_data_sample *sample = &event->sample;
    if (event->kind != PERF_DATA_SAMPLE)
        return 0;
    touch(sample->kernel, sample->kernel_count * 8);
    touch(sample->user, sample->user_count * 8);
    touch(sample->stack, sample->stack_len);
    if (sample->regs)
        touch(sample->regs, 8 * (size_t)__builtin_popcountll(sample->regs_mask));
    touch(sample->attr, sizeof(*sample->attr));
    return 0;
}

static void skip(void *context, const char *reason)
{
    (void)context;
    touch(reason, strlen(reason));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct perf_data_ops ops = {begin, event, skip};
    struct import_source source;
    struct why why = {0};
    uint64_t last_ns = 0;
    if (import_source_memory((struct str){(const char *)data, size}, &source) < 0)
        return 0;
    if (perf_data_read(&source, &ops, &last_ns, &why) < 0 && why.what[0] == '\0')
        abort();
    import_source_close(&source);
    fuzz_import("perf.data", data, size);
    return 0;
}
