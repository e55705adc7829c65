/* Self weight by source line and by instruction: the finest a profile can tell. */
#pragma once

#include "base/arena.h"
#include "model/profile.h"

struct hot_line {
    uint32_t function;
    struct str file;
    uint32_t line; /* 0: unknown */
    uint64_t weight, count;
};

struct hot_lines {
    struct hot_line *rows;
    size_t count;
};

/* Lines of the innermost functions of samples; by function, file and line. */
MUST_USE int hot_lines_build(struct arena *arena, const struct profile *profile,
                             struct hot_lines *ret);
/* Heaviest first. */
void hot_lines_rank(struct hot_lines *lines);

/* Lines of one function with what they cost themselves and with all they call; a sample
 * counts once a line, also under recursion. By file and line. */
struct line_cost {
    struct str file;
    uint32_t line;
    uint64_t self_weight, total_weight;
    uint64_t self_count;
};
MUST_USE int line_costs_build(struct arena *arena, const struct profile *profile, uint32_t function,
                              struct line_cost **ret, size_t *ret_count);

/* Self weight by address inside [start, start + size) of an image, by address. */
struct address_cost {
    uint64_t address;
    uint64_t weight, count;
};
MUST_USE int address_costs_build(struct arena *arena, const struct profile *profile, uint32_t image,
                                 uint64_t start, uint64_t size, struct address_cost **ret,
                                 size_t *ret_count);
