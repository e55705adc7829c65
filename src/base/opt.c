/* The option parser; see opt.h. It keeps no state between calls. */
#include "base/opt.h"

#include "base/str.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPT_TABLE_MAX = 128, NEAREST_LEN_MAX = 40 };

/* Levenshtein distance; long texts are no typing mistakes. */
static size_t distance(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len > NEAREST_LEN_MAX || b_len > NEAREST_LEN_MAX)
        return NEAREST_LEN_MAX;
    size_t row[NEAREST_LEN_MAX + 1];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t above = row[j];
            size_t swap = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = MIN(MIN(above, row[j - 1]) + 1, swap);
            diagonal = above;
        }
    }
    return row[b_len];
}

const char *opt_nearest(const char *typed, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(typed) / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(typed, candidates[i]);
        if (d <= best_distance && d < strlen(typed)) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}

static bool choice_has(const char *choices, const char *value)
{
    struct str rest = str_from(choices);
    while (rest.len > 0)
        if (str_is(str_cut(&rest, '|'), value))
            return true;
    return false;
}

static int number_store(const struct opt *opt, const char *value, void *field)
{
    struct str text = str_from(value);
    uint64_t number = 0;
    double real = 0;
    int r;
    switch (opt->type) {
    case OPT_U32:
    case OPT_U64:
        r = str_to_u64(text, 10, &number);
        if (r == 0 && opt->type == OPT_U32 && number > UINT32_MAX)
            r = -ERANGE;
        break;
    case OPT_DURATION:
        r = units_parse_duration(text, &number);
        break;
    case OPT_SIZE:
        r = units_parse_size(text, &number);
        break;
    case OPT_PERCENT:
        r = units_parse_percent(text, &real);
        break;
    default:
        r = str_to_f64(text, &real);
        break;
    }
    if (r < 0)
        return r;
    if (opt->type == OPT_U32)
        *(uint32_t *)field = (uint32_t)number;
    else if (opt->type == OPT_F64 || opt->type == OPT_PERCENT)
        *(double *)field = real;
    else
        *(uint64_t *)field = number;
    return 0;
}

static const char *const type_hints[] = {
    [OPT_U32] = "a whole number",
    [OPT_U64] = "a whole number",
    [OPT_F64] = "a number",
    [OPT_DURATION] = "a duration such as 500ms, 10s or 2m",
    [OPT_SIZE] = "a size such as 4096, 512KiB or 1GiB",
    [OPT_PERCENT] = "a percentage such as 10%",
};

static int value_store(const struct opt *opt, const char *value, void *opts, struct why *why)
{
    void *field = (char *)opts + opt->offset;
    switch (opt->type) {
    case OPT_FLAG:
        *(bool *)field = true;
        return 0;
    case OPT_TEXT:
    case OPT_FILE:
        *(const char **)field = value;
        return 0;
    case OPT_CHOICE:
        if (!choice_has(opt->choices, value))
            return why_set(why, WHY_USAGE, EINVAL, NULL, "--%s takes one of %s, not '%s'",
                           opt->name, opt->choices, value);
        *(const char **)field = value;
        return 0;
    case OPT_LIST: {
        struct opt_list *list = field;
        if (list->len >= OPT_LIST_MAX)
            return why_set(why, WHY_USAGE, E2BIG, NULL, "--%s given more than %d times", opt->name,
                           OPT_LIST_MAX);
        list->items[list->len++] = value;
        return 0;
    }
    default:
        break;
    }
    int r = number_store(opt, value, field);
    if (r == -ERANGE)
        return why_set(why, WHY_USAGE, ERANGE, NULL, "--%s: '%s' is out of range", opt->name,
                       value);
    if (r < 0)
        return why_set(why, WHY_USAGE, EINVAL, NULL, "--%s takes %s, not '%s'", opt->name,
                       type_hints[opt->type], value);
    return 0;
}

static const struct opt *find_long(const struct opt *table, struct str name)
{
    for (const struct opt *opt = table; opt && opt->name; opt++)
        if (str_is(name, opt->name))
            return opt;
    return NULL;
}

static const struct opt *find_letter(const struct opt *table, char letter)
{
    for (const struct opt *opt = table; opt && opt->name; opt++)
        if (opt->letter == letter)
            return opt;
    return NULL;
}

static int unknown(const struct opt *table, const char *typed, struct why *why)
{
    const char *names[OPT_TABLE_MAX];
    size_t count = 0;
    for (const struct opt *opt = table; opt && opt->name && count < OPT_TABLE_MAX; opt++)
        if (!opt->hidden)
            names[count++] = opt->name;
    char name[NEAREST_LEN_MAX + 1];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(typed + strspn(typed, "-"), "="),
             typed + strspn(typed, "-"));
    const char *nearest = strlen(name) > 1 ? opt_nearest(name, names, count) : NULL;
    why_set(why, WHY_USAGE, EINVAL, NULL, "unknown option '%s'", typed);
    if (nearest)
        why_set_remedy(why, "did you mean --%s?", nearest);
    return -EINVAL;
}

/* What is still to be read of argv while parsing. */
struct cursor {
    int argc;
    char **argv;
    int next;
};

static int take_value(struct cursor *cursor, const struct opt *opt, const char **ret,
                      struct why *why)
{
    if (cursor->next >= cursor->argc)
        return why_set(why, WHY_USAGE, EINVAL, NULL, "--%s needs %s after it", opt->name,
                       opt->argument ? opt->argument : "a value");
    *ret = cursor->argv[cursor->next++];
    return 0;
}

/* The other values of an option that takes several at once. */
static int take_more(struct cursor *cursor, const struct opt *opt, void *opts, struct why *why)
{
    for (unsigned i = 1; i < opt->words; i++) {
        const char *value = NULL;
        int r = take_value(cursor, opt, &value, why);
        if (r == 0)
            r = value_store(opt, value, opts, why);
        if (r < 0)
            return r;
    }
    return 0;
}

static int parse_long(const struct opt *table, const char *typed, struct cursor *cursor, void *opts,
                      struct why *why)
{
    struct str rest = str_from(typed + 2);
    bool has_value = str_contains(rest, "=");
    struct str name = str_cut(&rest, '=');
    const struct opt *opt = find_long(table, name);
    if (!opt)
        return unknown(table, typed, why);
    const char *value = has_value ? rest.data : NULL;
    if (opt->type == OPT_FLAG && value)
        return why_set(why, WHY_USAGE, EINVAL, NULL, "--%s takes no value", opt->name);
    if (opt->type != OPT_FLAG && !value) {
        int r = take_value(cursor, opt, &value, why);
        if (r < 0)
            return r;
    }
    int r = value_store(opt, value, opts, why);
    return r < 0 ? r : take_more(cursor, opt, opts, why);
}

static int parse_letters(const struct opt *table, const char *typed, struct cursor *cursor,
                         void *opts, struct why *why)
{
    for (const char *at = typed + 1; *at; at++) {
        const struct opt *opt = find_letter(table, *at);
        if (!opt)
            return unknown(table, typed, why);
        const char *value = NULL;
        if (opt->type != OPT_FLAG) {
            value = at + 1;
            if (*value == '\0') {
                int r = take_value(cursor, opt, &value, why);
                if (r < 0)
                    return r;
            }
            int r = value_store(opt, value, opts, why);
            return r < 0 ? r : take_more(cursor, opt, opts, why);
        }
        int r = value_store(opt, value, opts, why);
        if (r < 0)
            return r;
    }
    return 0;
}

static int defaults(const struct opt *table, void *opts, struct why *why)
{
    for (const struct opt *opt = table; opt && opt->name; opt++) {
        int r = opt->fallback ? value_store(opt, opt->fallback, opts, why) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int opt_parse(const struct opt *table, enum opt_stop stop, int argc, char **argv, void *opts,
              struct why *why)
{
    int r = defaults(table, opts, why);
    if (r < 0)
        return r;
    struct cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    int operands = 0;
    bool done = false;
    while (cursor.next < argc) {
        char *typed = argv[cursor.next];
        bool option = !done && typed[0] == '-' && typed[1] != '\0';
        cursor.next++;
        if (option && strcmp(typed, "--") == 0) {
            done = true;
            const struct opt *dashes = find_long(table, STR(""));
            if (dashes)
                *(bool *)((char *)opts + dashes->offset) = true;
            continue;
        }
        if (!option) {
            argv[operands++] = typed;
            done = done || stop == OPT_FIRST_OPERAND;
            continue;
        }
        r = typed[1] == '-' ? parse_long(table, typed, &cursor, opts, why)
                            : parse_letters(table, typed, &cursor, opts, why);
        if (r < 0)
            return r;
    }
    argv[operands] = NULL;
    return operands;
}
