/* A lock chosen by what people type. */
#include "analyze/lock_table.h"

#include <errno.h>

static int choose_id(const struct lock_table *table, uint64_t id, const char *text, size_t *ret,
                     struct why *why)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].object == id) {
            *ret = i;
            return 0;
        }
    return why_set(why, WHY_USAGE, ENOENT, "take an id from the table of locks",
                   "there is no lock '%s'", text);
}

int lock_table_choose(const struct lock_table *table, const char *text, size_t *ret,
                      struct why *why)
{
    struct str name = str_from(text);
    uint64_t id;
    if (str_starts(name, "l") &&
        str_to_u64((struct str){name.data + 1, name.len - 1}, 10, &id) == 0)
        return choose_id(table, id, text, ret, why);
    if (str_to_u64(name, 10, &id) == 0)
        return choose_id(table, id, text, ret, why);
    size_t found = table->count, others = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (!str_is(name, table->rows[i].name))
            continue;
        others += found < table->count;
        found = MIN(found, i);
    }
    if (others > 0)
        return why_set(why, WHY_USAGE, EINVAL, "take an id from the table of locks",
                       "%zu locks are called '%s', the first of them is l%u", others + 1, text,
                       table->rows[found].object);
    if (found == table->count)
        return choose_id(table, UINT64_MAX, text, ret, why);
    *ret = found;
    return 0;
}
