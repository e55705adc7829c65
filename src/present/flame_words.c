/* Numbers and names of a rectangle as a person reads them. */
#include "present/flame_words.h"

#include "base/text.h"
#include "present/flame_colors.h"
#include "present/markup.h"

#include <stdio.h>

struct str flame_label(const struct call_tree *tree, const struct flame_diff *diff, uint32_t node,
                       char buffer[FLAME_LABEL_BYTES_MAX])
{
    size_t used = 0;
    /* First, so that it is still there when the label is cut. */
    if (diff)
        used = (size_t)snprintf(buffer, FLAME_LABEL_BYTES_MAX, "%+.2f%% ", diff->change_pct[node]);
    struct str name = text_safe(flame_name(tree, node), buffer + used,
                                MARKUP_TEXT_BYTES_MAX - used);
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
    const char *counted = tree->profile && tree->profile->counted ? tree->profile->counted
                                                                  : "sample";
    int used = snprintf(buffer, size, "%s, %.2f%% of all, %s %s%s", total,
                        (double)n->total_weight / all * 100, count, counted,
                        n->total_count == 1 ? "" : "s");
    if (!tree->inverted && used >= 0 && (size_t)used < size)
        snprintf(buffer + used, size - (size_t)used, "; itself %s, %.2f%%", self,
                 (double)n->self_weight / all * 100);
    return buffer;
}

const char *flame_note_left_out(const struct flame_layout *layout, char *buffer, size_t size)
{
    char count[48], levels[80] = "";
    buffer[0] = '\0';
    if (layout->left_out == 0)
        return buffer;
    if (layout->levels_cut > 0)
        snprintf(levels, sizeof(levels), " or beyond %u levels", layout->levels_cut);
    snprintf(buffer, size, "Too narrow%s to draw: %s frame%s, %.2f%% of all together.", levels,
             units_format((double)layout->left_out, UNIT_COUNT, count, sizeof(count)),
             layout->left_out == 1 ? "" : "s",
             (double)layout->left_out_weight / (double)layout->rects[0].weight * 100);
    return buffer;
}

const char *flame_note_diff(const struct flame_diff *diff, char *buffer, size_t size)
{
    if (diff->shares)
        snprintf(buffer, size,
                 "Width: now. Colour and number: change of the share of the total, now minus "
                 "before, in percentage points.");
    else if (diff->scale == 1)
        snprintf(buffer, size,
                 "Width: now. Colour and number: now minus before, in percent of the earlier "
                 "total.");
    else
        snprintf(buffer, size,
                 "Width: now. Colour and number: now minus before, in percent of the earlier "
                 "total, after what is measured now is multiplied by %.4g for the work done.",
                 diff->scale);
    return buffer;
}

const char *flame_note_gone(const struct flame_diff *diff, char *buffer, size_t size)
{
    char name[160];
    buffer[0] = '\0';
    if (diff->gone > 0)
        snprintf(buffer, size,
                 "Not drawn, since gone: %zu path%s that took %.2f%% before; the largest is %s "
                 "with %.2f%%.",
                 diff->gone, diff->gone == 1 ? "" : "s", diff->gone_pct,
                 text_safe(diff->gone_name, name, sizeof(name)).data, diff->gone_name_pct);
    return buffer;
}

static bool legend_has(const struct flame_layout *layout, enum flame_kind kind)
{
    for (size_t i = 0; i < layout->count; i++)
        if (flame_kind_of(layout->tree, layout->rects[i].node) == kind)
            return true;
    return false;
}

static bool legend_next_kind(struct flame_legend *legend)
{
    static const struct {
        enum flame_kind kind;
        unsigned color;
        const char *text; /* NULL: the kind's own */
    } rows[] = {
        {FLAME_USER, FLAME_COLOR_USER + 4, "program (hue by image)"},
        {FLAME_KERNEL, FLAME_COLOR_KERNEL, NULL},
        {FLAME_INLINED, FLAME_COLOR_INLINED, NULL},
        {FLAME_JIT, FLAME_COLOR_JIT, NULL},
        {FLAME_UNKNOWN, FLAME_COLOR_UNKNOWN, NULL},
    };
    while (legend->at < ARRAY_SIZE(rows)) {
        unsigned at = legend->at++;
        if (!legend_has(legend->layout, rows[at].kind))
            continue;
        legend->color = rows[at].color;
        snprintf(legend->text, sizeof(legend->text), "%s",
                 rows[at].text ? rows[at].text : flame_kind_text(rows[at].kind));
        return true;
    }
    return false;
}

bool flame_legend_next(struct flame_legend *legend)
{
    if (!legend->diff)
        return legend_next_kind(legend);
    int step = (int)legend->at++ - FLAME_DIFF_STEPS;
    if (step > FLAME_DIFF_STEPS)
        return false;
    legend->color = (unsigned)(FLAME_COLOR_DIFF + step);
    snprintf(legend->text, sizeof(legend->text), "%s%.3g%%%s", step > 0 ? "+" : "",
             legend->diff_limit * step / FLAME_DIFF_STEPS,
             step == -FLAME_DIFF_STEPS  ? " less"
             : step == FLAME_DIFF_STEPS ? " more"
                                        : "");
    return true;
}
