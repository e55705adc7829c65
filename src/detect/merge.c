/* Several places, one trouble (M25). */
#include "detect/judge_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static bool is_worth(const struct finding *finding)
{
    return finding->verdict == FINDING_CONFIRMED && finding->recoverable.ns > 0;
}

/* How much of `from` is not in `to` yet, 0 … 1; and then it is. Parts of a row are taken to be
 * different parts of it while there is room. Nothing known: all of it is new. */
static double covers_unite(const struct path_costs *costs, struct finding *to,
                           const struct finding *from)
{
    double all = 0, fresh = 0;
    if (!to->covers || !from->covers)
        return 1;
    for (size_t i = 0; i < costs->count; i++) {
        float part = MIN(from->covers[i], 1 - to->covers[i]);
        all += (double)from->covers[i] * costs->rows[i].ns;
        if (part <= 0)
            continue;
        fresh += (double)part * costs->rows[i].ns;
        to->covers[i] += part;
    }
    return all > 0 ? fresh / all : 1;
}

/* Ends are added as they are: the baseline's own uncertainty is the same for all of them. */
static struct estimate estimates_add(struct estimate a, struct estimate b, double part)
{
    return (struct estimate){a.ns + part * b.ns, a.low_ns + part * b.low_ns,
                             a.high_ns + part * b.high_ns};
}

static void fold(const struct path_costs *costs, struct finding *to, const struct finding *from)
{
    double fresh = covers_unite(costs, to, from);
    to->recoverable = estimates_add(to->recoverable, from->recoverable, fresh);
    if (!isnan(from->cost_ns))
        to->cost_ns = (isnan(to->cost_ns) ? 0 : to->cost_ns) + fresh * from->cost_ns;
    to->occurrences += from->occurrences;
    to->axes |= from->axes;
    to->affected[to->affected_count++] = (struct finding_affected){
        .place = from->place,
        .recoverable_ns = fresh * from->recoverable.ns,
        .occurrences = from->occurrences,
    };
}

static int heavier(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    if (is_worth(x) != is_worth(y))
        return is_worth(x) ? -1 : 1;
    if (!is_worth(x) || x->recoverable.ns == y->recoverable.ns)
        return 0;
    return x->recoverable.ns > y->recoverable.ns ? -1 : 1;
}

void findings_merge(const struct path_costs *costs, struct findings *findings, size_t first)
{
    size_t count = 0, last = findings->count;
    struct finding *items = findings->items + first;
    for (size_t i = first; i < last; i++)
        count += is_worth(&findings->items[i]);
    if (count < 2)
        return;
    qsort(items, last - first, sizeof(*items), heavier);
    struct finding *to = &items[0];
    to->affected = arena_alloc(findings->arena, count * sizeof(*to->affected));
    if (!to->affected)
        return; /* the arena tells */
    for (size_t i = 1; i < count; i++)
        fold(costs, to, &items[i]);
    for (size_t i = first + count; i < last; i++)
        findings->items[i - count + 1] = findings->items[i];
    findings->count -= count - 1;
    to->title = arena_printf(findings->arena, "%s; and the same at %zu more place%s", to->title,
                             count - 1, count == 2 ? "" : "s");
}
