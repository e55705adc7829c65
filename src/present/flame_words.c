/* Numbers and names of a rectangle as a person reads them. */
#include "present/flame_words.h"

#include "base/text.h"
#include "present/markup.h"

#include <stdio.h>

struct str flame_label(const struct call_tree *tree, const struct flame_diff *diff, uint32_t node,
                       char buffer[FLAME_LABEL_BYTES_MAX])
{
    size_t used = 0;
    /* First, so that it is still there when the label is cut. */
    if (diff)
        used = (size_t)snprintf(buffer, FLAME_LABEL_BYTES_MAX, "%+.2f%% ", diff->change_pct[node]);
    struct str name = text_safe(flame_name(tree, node), buffer + used, MARKUP_TEXT_BYTES_MAX - used);
    return (struct str){buffer, used + name.len};
}

const char *flame_cost(const struct call_tree *tree, uint32_t node, char *buffer, size_t size)
{
    char total[48], self[48], count[48];
    const struct call_node *n = &tree->nodes[node];
    double all = (double)tree->nodes[0].total_weight;
    enum unit unit = tree->profile ? tree->profile->unit : UNIT_NONE;
    units_format((double)n->total_weight, unit, total, sizeof(total));
    units_format((double)n->self_weight, unit, self, sizeof(self));
    units_format((double)n->total_count, UNIT_COUNT, count, sizeof(count));
    snprintf(buffer, size, "%s, %.2f%% of all, %s sample%s; itself %s, %.2f%%", total,
             (double)n->total_weight / all * 100, count, n->total_count == 1 ? "" : "s", self,
             (double)n->self_weight / all * 100);
    return buffer;
}
