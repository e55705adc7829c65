/* From rules as they are read to rows as they are searched: equal rule sets are
 * kept once, equal neighbours are one row. */
#pragma once

#include "base/vec.h"
#include "unwind/machine.h"
#include "unwind/rows.h"

enum {
    CFI_COLUMNS = 40, /* registers that a table may name and we remember */
    /* Bounds on what a hostile image can make us keep. */
    ROWS_MAX = 1 << 24,
    RULES_MAX = 1 << 20,
    LIST_NONE = UINT32_MAX,
};

/* The rules at one address while a table is being read. Columns not in `set` have the
 * machine's default: what a call keeps is unchanged, the rest is lost. */
struct cfi_state {
    uint8_t cfa; /* enum unwind_cfa */
    uint8_t cfa_base;
    int32_t cfa_offset;
    int32_t cfa_offset2;
    uint64_t set; /* bit n: columns[n] has a rule */
    struct unwind_save columns[CFI_COLUMNS];
    uint32_t list; /* the columns as a known list of saves; LIST_NONE when they changed */
};

struct rows_index { /* open addressing; 0 is free */
    uint32_t *slots;
    size_t cap;
    size_t used;
};

struct rows_list {
    uint32_t first;
    uint32_t count;
    uint32_t ra_offset; /* the return address has a rule of its own */
    uint8_t ra, ra_base;
    bool simple;
};

struct rows_builder {
    const struct unwind_machine_info *info;
    uint64_t base;
    VEC(uint32_t) starts;
    VEC(uint32_t) rule_of;
    VEC(struct unwind_rules) rules;
    VEC(struct unwind_save) saves;
    VEC(struct rows_list) lists;
    VEC(uint8_t) pool;
    struct rows_index rules_index;
    struct rows_index lists_index;
    uint32_t pool_last; /* the expression added last */
};

MUST_USE int rows_builder_init(struct rows_builder *builder, enum unwind_machine machine,
                               uint64_t base);
void rows_builder_deinit(struct rows_builder *builder); /* half-built is fine */

/* The number of the rule set, made when it is new. -EFBIG: RULES_MAX. */
MUST_USE int rows_builder_rules(struct rows_builder *builder, struct cfi_state *state,
                                uint32_t ra_column, uint8_t flags, uint32_t *ret);
/* The state that a rule set was made from. */
void rows_builder_state(const struct rows_builder *builder, uint32_t number, uint32_t ra_column,
                        struct cfi_state *ret);
MUST_USE int rows_builder_expression(struct rows_builder *builder, const uint8_t *bytes, size_t len,
                                     int32_t *ret);

/* In rising order; a row lasts to the next. */
MUST_USE int rows_builder_add(struct rows_builder *builder, uint32_t start, uint32_t rules);

/* Everything in one block of memory, which is the caller's to free. */
MUST_USE int rows_builder_finish(struct rows_builder *builder, struct unwind_rows *ret,
                                 void **ret_memory);
