/* Self weights from the totals, total weights from the tree of stacks: a function's total is
 * the sum over its calls that have no call of the same function above them. No hashing: the
 * cost is one walk over the stacks, whatever the number of samples. */
#include "analyze/hotspots.h"

#include "analyze/categories.h"
#include "analyze/hot_lines.h"
#include "base/map.h"
#include "base/opt.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* The weight of one function in one thread group. */
struct share {
    uint32_t function, group;
    uint64_t weight;
};

struct ranking {
    struct arena *arena;
    const struct profile *profile;
    struct hotspot *by_function; /* [function] */
    struct map_u64 share_at;     /* function and group to index */
    VEC(struct share) shares;
};

static uint32_t leaf_function(const struct profile *profile, uint32_t stack)
{
    if (stack == 0)
        return 0;
    const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
    return profile->places[frame->places].function;
}

static int share_add(struct ranking *ranking, uint32_t function, uint32_t group, uint64_t weight)
{
    bool fresh;
    uint64_t *at = map_u64_at(&ranking->share_at, (uint64_t)function << 32 | group, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        *at = ranking->shares.len;
        struct share share = {function, group, 0};
        if (VEC_PUSH(&ranking->shares, share) < 0)
            return -ENOMEM;
    }
    ranking->shares.data[*at].weight += weight;
    return 0;
}

static int rank_self(struct ranking *ranking)
{
    const struct profile *profile = ranking->profile;
    for (size_t i = 0; i < profile->total_count; i++) {
        const struct profile_total *total = &profile->totals[i];
        uint32_t function = leaf_function(profile, total->stack);
        struct hotspot *hotspot = &ranking->by_function[function];
        hotspot->self_weight += total->weight;
        hotspot->self_count += total->count;
        if (total->stack == 0) {
            hotspot->total_weight += total->weight;
            hotspot->total_count += total->count;
        }
        int r = share_add(ranking, function, profile->threads[total->thread].group, total->weight);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The tree of stacks: weights of everything below a stack, and children to walk. */
struct stack_tree {
    const struct profile *profile;
    struct {
        uint64_t weight, count;
    } * below; /* with the stack's own */
    uint32_t *first_child, *next_sibling;
};

static void stack_tree_deinit(struct stack_tree *tree)
{
    free(tree->below);
    free(tree->first_child);
    free(tree->next_sibling);
}

/* Children have higher ids than their parents, so one pass from the end sums all up. */
static int stack_tree_init(struct stack_tree *tree, const struct profile *profile)
{
    size_t count = profile->stack_count;
    tree->profile = profile;
    tree->below = calloc(count, sizeof(*tree->below));
    tree->first_child = calloc(count, sizeof(*tree->first_child));
    tree->next_sibling = calloc(count, sizeof(*tree->next_sibling));
    if (!tree->below || !tree->first_child || !tree->next_sibling)
        return -ENOMEM;
    for (size_t i = 0; i < profile->total_count; i++) {
        tree->below[profile->totals[i].stack].weight += profile->totals[i].weight;
        tree->below[profile->totals[i].stack].count += profile->totals[i].count;
    }
    for (uint32_t i = (uint32_t)count - 1; i > 0; i--) {
        uint32_t parent = profile->stacks[i].parent;
        if (tree->below[i].count == 0)
            continue; /* of another series, or filtered out */
        tree->below[parent].weight += tree->below[i].weight;
        tree->below[parent].count += tree->below[i].count;
        tree->next_sibling[i] = tree->first_child[parent];
        tree->first_child[parent] = i;
    }
    return 0;
}

/* Kept apart from the hotspots: small enough to stay in a cache during the walk. */
struct function_total {
    uint64_t weight, count;
    uint32_t open; /* calls of it on the way from the root */
};

static void stack_enter(const struct stack_tree *tree, uint32_t stack,
                        struct function_total *totals)
{
    const struct profile *profile = tree->profile;
    const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
    for (uint32_t i = 0; i < frame->place_count; i++) {
        struct function_total *total = &totals[profile->places[frame->places + i].function];
        if (total->open++ > 0)
            continue; /* a call further out has counted this */
        total->weight += tree->below[stack].weight;
        total->count += tree->below[stack].count;
    }
}

static void stack_leave(const struct stack_tree *tree, uint32_t stack,
                        struct function_total *totals)
{
    const struct profile *profile = tree->profile;
    const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
    for (uint32_t i = 0; i < frame->place_count; i++)
        totals[profile->places[frame->places + i].function].open--;
}

/* All stacks in depth, without recursion: hostile ones have no end. */
static void stacks_walk(const struct stack_tree *tree, struct function_total *totals)
{
    uint32_t at = tree->first_child[0];
    while (at != 0) {
        stack_enter(tree, at, totals);
        if (tree->first_child[at]) {
            at = tree->first_child[at];
            continue;
        }
        while (at != 0 && !tree->next_sibling[at]) {
            stack_leave(tree, at, totals);
            at = tree->profile->stacks[at].parent;
        }
        if (at != 0) {
            stack_leave(tree, at, totals);
            at = tree->next_sibling[at];
        }
    }
}

static int rank_total(struct ranking *ranking)
{
    struct stack_tree tree = {0};
    size_t count = ranking->profile->function_count;
    struct function_total *totals = calloc(count, sizeof(*totals));
    int r = totals ? stack_tree_init(&tree, ranking->profile) : -ENOMEM;
    if (r == 0)
        stacks_walk(&tree, totals);
    for (size_t i = 0; r == 0 && i < count; i++) {
        ranking->by_function[i].total_weight += totals[i].weight;
        ranking->by_function[i].total_count += totals[i].count;
    }
    stack_tree_deinit(&tree);
    free(totals);
    return r;
}

static int rank_lines(struct ranking *ranking)
{
    struct hot_lines lines;
    int r = hot_lines_build(ranking->arena, ranking->profile, &lines);
    uint64_t best = 0;
    for (size_t i = 0; r == 0 && i < lines.count; i++) {
        const struct hot_line *line = &lines.rows[i];
        struct hotspot *hotspot = &ranking->by_function[line->function];
        bool first = i == 0 || lines.rows[i - 1].function != line->function;
        if (line->line > 0 && (first || hotspot->line == 0 || line->weight > best)) {
            best = line->weight;
            hotspot->file = line->file;
            hotspot->line = line->line;
        } else if (first) {
            best = 0;
        }
    }
    return r;
}

static int shares_order(const void *left, const void *right)
{
    const struct share *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return (a->group > b->group) - (a->group < b->group);
}

static void rank_groups(struct ranking *ranking)
{
    if (ranking->shares.len > 0)
        qsort(ranking->shares.data, ranking->shares.len, sizeof(*ranking->shares.data),
              shares_order);
    for (size_t i = 0; i < ranking->shares.len; i++) {
        const struct share *share = &ranking->shares.data[i];
        struct hotspot *hotspot = &ranking->by_function[share->function];
        if (hotspot->group_count < HOTSPOT_GROUPS_MAX)
            hotspot->groups[hotspot->group_count] = share->group;
        hotspot->group_count++;
    }
}

static int hotspots_order(const void *left, const void *right)
{
    const struct hotspot *a = left, *b = right;
    if (a->self_weight != b->self_weight)
        return a->self_weight > b->self_weight ? -1 : 1;
    if (a->total_weight != b->total_weight)
        return a->total_weight > b->total_weight ? -1 : 1;
    return (a->function > b->function) - (a->function < b->function);
}

double profile_effective_samples(const struct profile *profile)
{
    double squares = 0;
    if (profile->sample_time_ns) {
        for (size_t i = 0; i < profile->sample_count; i++)
            squares += (double)profile->sample_weight[i] * (double)profile->sample_weight[i];
    } else {
        for (size_t i = 0; i < profile->total_count; i++)
            if (profile->totals[i].count > 0)
                squares += (double)profile->totals[i].weight * (double)profile->totals[i].weight /
                           (double)profile->totals[i].count;
    }
    return effective_count((double)profile->weight, squares);
}

static const char *category_text(struct arena *arena, const struct profile *profile,
                                 const struct profile_function *function)
{
    const char *category = category_of(function);
    return category ? arena_printf(arena, "%s/%s", profile->series, category) : profile->series;
}

/* Functions that were seen, compacted and in order. */
static void rank_finish(struct ranking *ranking, struct hotspots *ret)
{
    const struct profile *profile = ranking->profile;
    double whole = (double)profile->weight, samples = profile_effective_samples(profile);
    struct hotspot *rows = ranking->by_function;
    size_t kept = 0;
    for (uint32_t i = 0; i < profile->function_count; i++) {
        struct hotspot hotspot = rows[i];
        const struct profile_function *function = &profile->functions[i];
        if (hotspot.total_count == 0)
            continue;
        hotspot.function = i;
        hotspot.self_share = share_interval((double)hotspot.self_weight / whole, samples);
        hotspot.total_share = share_interval((double)hotspot.total_weight / whole, samples);
        hotspot.category = category_text(ranking->arena, profile, function);
        if (hotspot.line == 0) {
            hotspot.file = function->file;
            hotspot.line = function->line;
        }
        rows[kept++] = hotspot;
    }
    if (kept > 1)
        qsort(rows, kept, sizeof(*rows), hotspots_order);
    *ret = (struct hotspots){profile, rows, kept, samples};
}

int hotspots_build(struct arena *arena, const struct profile *profile, struct hotspots *ret)
{
    struct ranking ranking = {.arena = arena, .profile = profile};
    ranking.by_function = arena_alloc(arena,
                                      profile->function_count * sizeof(*ranking.by_function));
    int r = ranking.by_function ? rank_self(&ranking) : -ENOMEM;
    if (r == 0)
        r = rank_total(&ranking);
    if (r == 0)
        r = rank_lines(&ranking);
    if (r == 0) {
        rank_groups(&ranking);
        rank_finish(&ranking, ret);
    }
    map_u64_deinit(&ranking.share_at);
    VEC_FREE(&ranking.shares);
    return r;
}

const struct hotspot *hotspots_find(const struct hotspots *hotspots, uint32_t function)
{
    for (size_t i = 0; i < hotspots->count; i++)
        if (hotspots->rows[i].function == function)
            return &hotspots->rows[i];
    return NULL;
}

static struct str image_name(const struct profile *profile, uint32_t function)
{
    struct str rest = profile->images[profile->functions[function].image].path, last = rest;
    while (rest.len > 0)
        last = str_cut(&rest, '/');
    return last;
}

/* "name" or "image:name"; C++ names have colons of their own, so both are tried. */
static bool is_meant(const struct profile *profile, uint32_t function, struct str text)
{
    const struct profile_function *row = &profile->functions[function];
    if (str_eq(row->name, text) || (row->linkage.len > 0 && str_eq(row->linkage, text)))
        return true;
    struct str rest = text;
    struct str image = str_cut(&rest, ':');
    return rest.len > 0 && str_eq(image, image_name(profile, function)) && str_eq(row->name, rest);
}

enum name_match { MATCH_WHOLE, MATCH_PART, MATCH_PART_ANY_CASE, MATCHES };

static bool has_part(struct str name, struct str part, bool any_case)
{
    for (size_t at = 0; at + part.len <= name.len; at++)
        if ((any_case ? strncasecmp(name.data + at, part.data, part.len)
                      : strncmp(name.data + at, part.data, part.len)) == 0)
            return true;
    return false;
}

static bool is_match(const struct profile *profile, uint32_t function, struct str text,
                     enum name_match match)
{
    const struct profile_function *row = &profile->functions[function];
    if (match == MATCH_WHOLE)
        return is_meant(profile, function, text);
    return text.len > 0 && !row->unnamed && has_part(row->name, text, match == MATCH_PART_ANY_CASE);
}

/* The hottest ones, as many as fit: "f3 (work_items), f9 (work_done)". Functions of one name are
 * told apart by their images. */
static void ids_write(const struct hotspots *hotspots, struct str text, enum name_match match,
                      char *ids, size_t size)
{
    enum { NAME_MAX_SHOWN = 40 };
    size_t len = 0;
    ids[0] = '\0';
    for (size_t i = 0; i < hotspots->count; i++) {
        uint32_t function = hotspots->rows[i].function;
        if (!is_match(hotspots->profile, function, text, match))
            continue;
        struct str what = match == MATCH_WHOLE ? image_name(hotspots->profile, function)
                                               : hotspots->profile->functions[function].name;
        int n = snprintf(ids + len, size - len, "%sf%u (%.*s)", len > 0 ? ", " : "", function,
                         (int)MIN(what.len, (size_t)NAME_MAX_SHOWN), what.data);
        if (n < 0 || (size_t)n >= size - len) {
            ids[len] = '\0'; /* an id that was cut would be another one */
            return;
        }
        len += (size_t)n;
    }
}

static uint32_t matches_count(const struct hotspots *hotspots, struct str text,
                              enum name_match match, uint32_t *ret_first)
{
    uint32_t count = 0;
    for (size_t i = hotspots->count; i-- > 0;) {
        if (!is_match(hotspots->profile, hotspots->rows[i].function, text, match))
            continue;
        *ret_first = hotspots->rows[i].function;
        count++;
    }
    return count;
}

/* "decoder::work(int)" is "work" to who types it. */
static struct str bare_name(struct str name)
{
    size_t end = 0;
    while (end < name.len && name.data[end] != '(' && name.data[end] != '<')
        end++;
    size_t begin = end;
    while (begin > 0 && name.data[begin - 1] != ':' && name.data[begin - 1] != '.')
        begin--;
    return (struct str){name.data + begin, end - begin};
}

/* The function whose name is nearest to what was typed, the hottest of equals; 0: none is near. */
static uint32_t nearest(const struct hotspots *hotspots, const char *text)
{
    enum { LOOKED_AT_MAX = 10000, TYPED_MAX = 40 };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    size_t count = MIN(hotspots->count, (size_t)LOOKED_AT_MAX), len = 0;
    const char **names = arena_alloc(&arena, (2 * count + 1) * sizeof(*names));
    uint32_t *functions = arena_alloc(&arena, (2 * count + 1) * sizeof(*functions));
    if (!names || !functions || strlen(text) > TYPED_MAX)
        return 0;
    for (size_t i = count; i-- > 0;) { /* of equals the last one counts */
        uint32_t function = hotspots->rows[i].function;
        const struct profile_function *row = &hotspots->profile->functions[function];
        struct str forms[] = {row->name, bare_name(row->name)};
        for (size_t form = 0; form < ARRAY_SIZE(forms) && !row->unnamed; form++) {
            functions[len] = function;
            names[len++] = arena_dup_len(&arena, forms[form].data, forms[form].len);
        }
    }
    const char *found = opt_nearest(text, names, len);
    for (size_t i = 0; found && i < len; i++)
        if (names[i] == found)
            return functions[i];
    return 0;
}

static int not_found(const struct hotspots *hotspots, struct str text, int shown, struct why *why)
{
    uint32_t near = nearest(hotspots, text.data);
    struct str name = hotspots->profile->functions[near].name;
    why_set(why, WHY_USAGE, ENOENT, "take an id from the first column of 'whyslow report REC'",
            "no function '%.*s' was seen, nor one with that in its name", shown, text.data);
    if (near > 0)
        why_set_remedy(why, "did you mean f%u (%.*s)?", near, (int)MIN(name.len, 100u), name.data);
    return -ENOENT;
}

/* Its whole name, else a part of one, else a part in other capitals. */
static int choose_by_name(const struct hotspots *hotspots, struct str text, uint32_t *ret,
                          struct why *why)
{
    int shown = (int)MIN(text.len, 200u);
    uint32_t found = 0, matches = 0;
    enum name_match match = MATCH_WHOLE;
    for (; match < MATCHES; match++) {
        matches = matches_count(hotspots, text, match, &found);
        if (matches > 0)
            break;
    }
    if (matches == 0)
        return not_found(hotspots, text, shown, why);
    if (matches > 1) {
        char ids[256];
        ids_write(hotspots, text, match, ids, sizeof(ids));
        why_set(why, WHY_USAGE, EINVAL, NULL,
                match == MATCH_WHOLE ? "%u functions are called '%.*s'"
                                     : "no function is called so, and %u have '%.*s' in their name",
                matches, shown, text.data);
        why_set_remedy(why, "say which: %s", ids);
        return -EINVAL;
    }
    *ret = found;
    return 0;
}

int hotspots_choose(const struct hotspots *hotspots, const char *text, uint32_t *ret,
                    struct why *why)
{
    struct str name = str_from(text);
    struct str digits = {name.data + (name.len > 0 && name.data[0] == 'f'), name.len};
    digits.len -= (size_t)(digits.data - name.data);
    uint64_t id;
    if (str_to_u64(digits, 10, &id) == 0 && id <= UINT32_MAX &&
        hotspots_find(hotspots, (uint32_t)id)) {
        *ret = (uint32_t)id;
        return 0;
    }
    return choose_by_name(hotspots, name, ret, why);
}
