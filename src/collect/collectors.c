/* The table of collectors. A new one is a file here and a row. */
#include "collect/collectors.h"

#include "collect/counters.h"
#include "collect/cpu.h"
#include "collect/heap.h"
#include "collect/io.h"
#include "collect/locks.h"
#include "collect/offcpu.h"
#include "collect/usage.h"

const struct collector_ops *const collectors[] = {
    &collector_cpu,  &collector_offcpu,   &collector_locks, &collector_io,
    &collector_heap, &collector_counters, &collector_usage, NULL,
};
