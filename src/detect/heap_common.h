/* Where memory is asked for, as the heap's recording knows it, beside the samples of the CPU. */
#pragma once

#include "detect/cpu_common.h"

/* Rows of the critical path that are the allocator's, by who asked: index into sites, plus one;
 * 0: it is not the allocator's, or who asked allocates nothing himself (he frees). */
struct heap_sites {
    const struct heap_sum_list *sums; /* by function */
    const struct cpu_rows *rows;
    uint32_t *of_row;   /* by row of the path */
    double *ns;         /* by site: what the allocator takes for it */
    double unknown_ns;  /* of the allocator's time: for nobody who allocates */
    uint64_t calls_all; /* of all sites */
};

/* 0 or -ENOMEM. */
MUST_USE int heap_sites_build(struct arena *arena, const struct evidence *evidence,
                              const struct cpu_rows *rows, struct heap_sites *ret);
struct place heap_site_place(const struct evidence *evidence, const struct heap_sum *sum);
/* Allocations and frees. */
static inline uint64_t heap_site_calls(const struct heap_sum *sum)
{
    return sum->figures.allocations + sum->figures.frees;
}
/* How much of a row is the site's: what nobody who allocates asked for is shared by calls. */
float heap_site_part(const struct heap_sites *sites, size_t site, size_t row);
/* The same, added up. */
double heap_site_ns(const struct heap_sites *sites, size_t site);
/* Where allocations are sampled a figure is an estimate: "~1,234", and told as one in JSON. */
const char *heap_number(const struct evidence *evidence, struct arena *arena, double number,
                        enum unit unit);
const char *heap_pct(const struct evidence *evidence, struct arena *arena, double share);
const char *heap_ns_text(const struct evidence *evidence, struct arena *arena, double ns);
struct value heap_value(const struct evidence *evidence, struct value value);
/* Facts and angles that all detectors of the heap have. */
void heap_site_words(const struct evidence *evidence, struct findings *ret, struct finding *finding,
                     const struct heap_sum *sum, const float *parts);
