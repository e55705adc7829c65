/* Rule sets and lists of saved registers are interned by content. */
#include "unwind/rows_builder.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static uint64_t hash_bytes(const void *data, size_t len, uint64_t hash)
{
    const uint8_t *at = data;
    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint64_t word;
        memcpy(&word, at + i, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static int index_grow(struct rows_index *index, size_t cap)
{
    uint32_t *slots = calloc(cap, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    free(index->slots);
    index->slots = slots;
    index->cap = cap;
    return 0;
}

static size_t index_home(const struct rows_index *index, uint64_t hash)
{
    return (size_t)(hash >> 20) & (index->cap - 1);
}

/* Finding equals only saves memory, so a search may give up: a table made to collide
 * costs us duplicates instead of time. */
enum { PROBES_MAX = 64 };

static void index_put(struct rows_index *index, uint64_t hash, uint32_t number)
{
    size_t at = index_home(index, hash);
    for (unsigned probes = 0; probes < PROBES_MAX; probes++, at = (at + 1) & (index->cap - 1))
        if (index->slots[at] == 0) {
            index->slots[at] = number + 1;
            return;
        }
}

static uint64_t rules_hash(const struct unwind_rules *rules)
{
    return hash_bytes(rules, sizeof(*rules), 1);
}

static uint64_t list_hash(const struct rows_list *list, const struct unwind_save *saves)
{
    uint64_t seed = (uint64_t)list->ra_offset << 16 | (uint64_t)list->ra << 8 | list->ra_base;
    return hash_bytes(saves, list->count * sizeof(*saves), seed + list->count);
}

int rows_builder_init(struct rows_builder *builder, enum unwind_machine machine, uint64_t base)
{
    *builder = (struct rows_builder){
        .info = unwind_machine_info(machine), .base = base, .pool_last = UINT32_MAX};
    struct unwind_rules none = {.cfa = UNWIND_CFA_NONE};
    if (index_grow(&builder->rules_index, 1024) < 0 || index_grow(&builder->lists_index, 256) < 0 ||
        VEC_PUSH(&builder->rules, none) < 0) {
        rows_builder_deinit(builder);
        return -ENOMEM;
    }
    return 0;
}

void rows_builder_deinit(struct rows_builder *builder)
{
    VEC_FREE(&builder->starts);
    VEC_FREE(&builder->rule_of);
    VEC_FREE(&builder->rules);
    VEC_FREE(&builder->saves);
    VEC_FREE(&builder->lists);
    VEC_FREE(&builder->pool);
    free(builder->rules_index.slots);
    free(builder->lists_index.slots);
    *builder = (struct rows_builder){0};
}

/* Finds or adds a list; its saves are not in the pool yet when it is new. */
static int list_intern(struct rows_builder *builder, struct rows_list *list,
                       const struct unwind_save *saves, uint32_t *ret)
{
    struct rows_index *index = &builder->lists_index;
    uint64_t hash = list_hash(list, saves);
    size_t at = index_home(index, hash);
    for (unsigned probes = 0; index->slots[at] != 0 && probes < PROBES_MAX;
         probes++, at = (at + 1) & (index->cap - 1)) {
        const struct rows_list *old = &builder->lists.data[index->slots[at] - 1];
        if (old->count == list->count && old->ra == list->ra && old->ra_base == list->ra_base &&
            old->ra_offset == list->ra_offset &&
            (list->count == 0 ||
             memcmp(builder->saves.data + old->first, saves, list->count * sizeof(*saves)) == 0)) {
            *ret = index->slots[at] - 1;
            return 0;
        }
    }
    if (builder->lists.len >= RULES_MAX)
        return -EFBIG;
    if ((index->used + 1) * 2 > index->cap) {
        if (index_grow(index, index->cap * 2) < 0)
            return -ENOMEM;
        for (size_t i = 0; i < builder->lists.len; i++) {
            const struct rows_list *old = &builder->lists.data[i];
            index_put(index, list_hash(old, builder->saves.data + old->first), (uint32_t)i);
        }
    }
    list->first = (uint32_t)builder->saves.len;
    if (VEC_RESERVE(&builder->saves, builder->saves.len + list->count) < 0 ||
        VEC_PUSH(&builder->lists, *list) < 0)
        return -ENOMEM;
    if (list->count > 0)
        memcpy(builder->saves.data + builder->saves.len, saves, list->count * sizeof(*saves));
    builder->saves.len += list->count;
    index->used++;
    *ret = (uint32_t)(builder->lists.len - 1);
    index_put(index, hash, *ret);
    return 0;
}

/* The columns as a list, without what is the default anyway. */
static int state_list(struct rows_builder *builder, struct cfi_state *state, uint32_t ra_column)
{
    const struct unwind_machine_info *info = builder->info;
    struct unwind_save saves[CFI_COLUMNS];
    struct rows_list list = {.simple = true};
    list.ra = ra_column == info->lr ? UNWIND_SAME : UNWIND_UNDEFINED;
    for (uint64_t bits = state->set; bits != 0; bits &= bits - 1) {
        unsigned column = (unsigned)__builtin_ctzll(bits);
        const struct unwind_save *save = &state->columns[column];
        if (column == ra_column) {
            list.ra = save->place;
            list.ra_base = save->base;
            list.ra_offset = (uint32_t)save->offset;
            continue;
        }
        bool kept = column < info->registers && (info->callee_saved >> column & 1);
        if (column >= info->registers || (save->place == UNWIND_SAME && kept) ||
            (save->place == UNWIND_UNDEFINED && !kept))
            continue;
        saves[list.count++] = *save;
        list.simple &= save->place <= UNWIND_CFA_PLUS;
    }
    return list_intern(builder, &list, saves, &state->list);
}

int rows_builder_rules(struct rows_builder *builder, struct cfi_state *state, uint32_t ra_column,
                       uint8_t flags, uint32_t *ret)
{
    int r = state->list == LIST_NONE ? state_list(builder, state, ra_column) : 0;
    if (r < 0)
        return r;
    const struct rows_list *list = &builder->lists.data[state->list];
    struct unwind_rules rules = {
        .cfa_offset = state->cfa_offset,
        .cfa_offset2 = state->cfa_offset2,
        .ra_offset = (int32_t)list->ra_offset,
        .saves_first = list->first,
        .cfa = state->cfa,
        .cfa_base = state->cfa_base,
        .ra = list->ra,
        .ra_base = list->ra_base,
        .flags = (uint8_t)(flags | (list->simple ? UNWIND_RULES_SIMPLE : 0)),
        .saves_count = (uint8_t)list->count,
    };
    struct rows_index *index = &builder->rules_index;
    uint64_t hash = rules_hash(&rules);
    size_t at = index_home(index, hash);
    for (unsigned probes = 0; index->slots[at] != 0 && probes < PROBES_MAX;
         probes++, at = (at + 1) & (index->cap - 1)) {
        if (memcmp(&builder->rules.data[index->slots[at] - 1], &rules, sizeof(rules)) == 0) {
            *ret = index->slots[at] - 1;
            return 0;
        }
    }
    if (builder->rules.len >= RULES_MAX)
        return -EFBIG;
    if ((index->used + 1) * 2 > index->cap) {
        if (index_grow(index, index->cap * 2) < 0)
            return -ENOMEM;
        for (size_t i = 1; i < builder->rules.len; i++)
            index_put(index, rules_hash(&builder->rules.data[i]), (uint32_t)i);
    }
    if (VEC_PUSH(&builder->rules, rules) < 0)
        return -ENOMEM;
    index->used++;
    *ret = (uint32_t)(builder->rules.len - 1);
    index_put(index, hash, *ret);
    return 0;
}

void rows_builder_state(const struct rows_builder *builder, uint32_t number, uint32_t ra_column,
                        struct cfi_state *ret)
{
    const struct unwind_rules *rules = &builder->rules.data[number];
    ret->cfa = rules->cfa;
    ret->cfa_base = rules->cfa_base;
    ret->cfa_offset = rules->cfa_offset;
    ret->cfa_offset2 = rules->cfa_offset2;
    ret->set = 0;
    ret->list = LIST_NONE;
    for (unsigned i = 0; i < rules->saves_count; i++) {
        const struct unwind_save *save = &builder->saves.data[rules->saves_first + i];
        ret->columns[save->target] = *save;
        ret->set |= UINT64_C(1) << save->target;
    }
    if (ra_column < CFI_COLUMNS) {
        ret->columns[ra_column] = (struct unwind_save){rules->ra_offset, (uint8_t)ra_column,
                                                       rules->ra, rules->ra_base, 0};
        ret->set |= UINT64_C(1) << ra_column;
    }
}

int rows_builder_expression(struct rows_builder *builder, const uint8_t *bytes, size_t len,
                            int32_t *ret)
{
    if (len > UNWIND_EXPRESSION_MAX)
        return -EFBIG;
    uint16_t len16 = (uint16_t)len;
    /* Neighbours often share theirs. */
    if (builder->pool_last != UINT32_MAX) {
        const uint8_t *last = builder->pool.data + builder->pool_last;
        if (memcmp(last, &len16, sizeof(len16)) == 0 && memcmp(last + 2, bytes, len) == 0) {
            *ret = (int32_t)builder->pool_last;
            return 0;
        }
    }
    size_t at = builder->pool.len;
    if (at + 2 + len > INT32_MAX)
        return -EFBIG;
    if (VEC_RESERVE(&builder->pool, at + 2 + len) < 0)
        return -ENOMEM;
    memcpy(builder->pool.data + at, &len16, sizeof(len16));
    memcpy(builder->pool.data + at + 2, bytes, len);
    builder->pool.len = at + 2 + len;
    builder->pool_last = (uint32_t)at;
    *ret = (int32_t)at;
    return 0;
}

int rows_builder_add(struct rows_builder *builder, uint32_t start, uint32_t rules)
{
    size_t len = builder->starts.len;
    assert(len == 0 || builder->starts.data[len - 1] <= start);
    if (len > 0 && builder->starts.data[len - 1] == start) { /* the later word counts */
        builder->starts.len = --builder->rule_of.len;
        len--;
    }
    if (len > 0 ? builder->rule_of.data[len - 1] == rules : rules == UNWIND_RULES_NONE)
        return 0;
    if (len >= ROWS_MAX)
        return -EFBIG;
    if (VEC_PUSH(&builder->starts, start) < 0)
        return -ENOMEM;
    if (VEC_PUSH(&builder->rule_of, rules) < 0) {
        builder->starts.len--;
        return -ENOMEM;
    }
    return 0;
}

static const void *block_append(uint8_t **at, const void *data, size_t size)
{
    const void *place = *at;
    if (size > 0)
        memcpy(*at, data, size);
    *at += size;
    return place;
}

int rows_builder_finish(struct rows_builder *builder, struct unwind_rows *ret, void **ret_memory)
{
    size_t rules_size = builder->rules.len * sizeof(struct unwind_rules);
    size_t saves_size = builder->saves.len * sizeof(struct unwind_save);
    size_t rows_size = builder->starts.len * sizeof(uint32_t);
    uint8_t *memory = malloc(rules_size + saves_size + 2 * rows_size + builder->pool.len + 1);
    if (!memory)
        return -ENOMEM;
    uint8_t *at = memory;
    *ret = (struct unwind_rows){
        .base = builder->base,
        .count = builder->starts.len,
        .rules_count = builder->rules.len,
        .saves_count = builder->saves.len,
        .pool_len = builder->pool.len,
    };
    ret->rules = block_append(&at, builder->rules.data, rules_size);
    ret->saves = block_append(&at, builder->saves.data, saves_size);
    ret->starts = block_append(&at, builder->starts.data, rows_size);
    ret->rule_of = block_append(&at, builder->rule_of.data, rows_size);
    ret->pool = block_append(&at, builder->pool.data, builder->pool.len);
    *ret_memory = memory;
    return 0;
}

int unwind_rows_index(struct unwind_rows *rows, uint32_t **ret_memory)
{
    /* About one row a bucket. The last row is a gap without end: nothing is lost there. */
    uint64_t end = rows->count > 0 ? (uint64_t)rows->starts[rows->count - 1] + 1 : 0;
    unsigned shift = 0;
    while (end >> shift > rows->count)
        shift++;
    size_t len = rows->count > 0 ? (size_t)((end - 1) >> shift) + 1 : 0;
    uint32_t *index = malloc((len + 1) * sizeof(*index));
    if (!index)
        return -ENOMEM;
    size_t row = 0;
    for (size_t i = 0; i <= len; i++) {
        while (row < rows->count && rows->starts[row] < (uint64_t)i << shift)
            row++;
        index[i] = (uint32_t)row;
    }
    rows->index = index;
    rows->index_len = len;
    rows->shift = shift;
    *ret_memory = index;
    return 0;
}
