/* The palette of flame graphs; the numbers come from steps of equal lightness in OKLCH. */
#include "present/flame_colors.h"

#include "base/map.h"

#include <math.h>

struct color {
    const char *light, *dark;
};

/* clang-format off */
static const struct color colors[FLAME_COLORS] = {
    /* root */
    {"#e0ded7", "#3f3d37"},
    /* user */
    {"#ff9d7f", "#6b3321"},
    {"#ffaf93", "#773e2c"},
    {"#ffc1a7", "#834937"},
    {"#f6a565", "#66380c"},
    {"#ffb67d", "#72431a"},
    {"#ffc795", "#7e4e26"},
    {"#e8af56", "#5f3d00"},
    {"#f3bf71", "#6a480b"},
    {"#fecf8a", "#76531a"},
    {"#d4b953", "#534400"},
    {"#e0c86f", "#5e4f07"},
    {"#ecd789", "#6a5a18"},
    /* kernel */
    {"#b3aaed", "#433578"},
    {"#c1baf6", "#4f4186"},
    {"#d0c9ff", "#5b4e94"},
    /* inlined */
    {"#7fd1d5", "#104f52"},
    {"#98dee1", "#1f5a5d"},
    {"#afebee", "#2b6568"},
    /* JIT */
    {"#8bd28d", "#245127"},
    {"#a1dfa2", "#2f5c31"},
    {"#b6ebb6", "#3a673c"},
    /* unknown */
    {"#c2c4c7", "#4b4d50"},
    /* less … */
    {"#539af2", "#1157a4"},
    {"#72aaf2", "#1f518d"},
    {"#90baf1", "#284b76"},
    {"#aecaee", "#2e4460"},
    {"#cbd9ec", "#323d4b"},
    /* no change */
    {"#e8e8e8", "#353535"},
    /* … more */
    {"#f0cfca", "#4d3532"},
    {"#f5b5ad", "#62342f"},
    {"#f89a90", "#77302a"},
    {"#f97e72", "#8d2824"},
    {"#f75e54", "#a21a1b"},
    /* hit */
    {"#f16eef", "#9f12a0"},
};
/* clang-format on */

static struct str base_name(struct str path)
{
    for (size_t i = path.len; i > 0; i--)
        if (path.data[i - 1] == '/')
            return (struct str){path.data + i, path.len - i};
    return path;
}

unsigned flame_color(const struct call_tree *tree, uint32_t node)
{
    static const unsigned first[FLAME_KINDS] = {
        [FLAME_ROOT] = FLAME_COLOR_ROOT,     [FLAME_USER] = FLAME_COLOR_USER,
        [FLAME_KERNEL] = FLAME_COLOR_KERNEL, [FLAME_INLINED] = FLAME_COLOR_INLINED,
        [FLAME_JIT] = FLAME_COLOR_JIT,       [FLAME_UNKNOWN] = FLAME_COLOR_UNKNOWN,
    };
    enum flame_kind kind = flame_kind_of(tree, node);
    if (kind == FLAME_ROOT || kind == FLAME_UNKNOWN)
        return first[kind];
    struct str name = flame_name(tree, node);
    unsigned shade = (unsigned)(hash_bytes(name.data, name.len) % 3);
    if (kind != FLAME_USER)
        return first[kind] + shade;
    /* The folder of an image differs between machines and builds; its name does not. */
    const struct image_info *image = flame_image(tree, node);
    struct str file = image ? base_name(image->path) : STR("");
    return first[kind] + 3 * (unsigned)(hash_bytes(file.data, file.len) % 4) + shade;
}

unsigned flame_color_change(double change, double limit)
{
    double step = limit > 0 ? round(change / limit * FLAME_DIFF_STEPS) : 0;
    step = fmin(fmax(step, -FLAME_DIFF_STEPS), FLAME_DIFF_STEPS);
    return (unsigned)(FLAME_COLOR_DIFF + (int)step);
}

static void put_classes(FILE *out, bool dark)
{
    for (unsigned i = 0; i < FLAME_COLORS; i++)
        fprintf(out, ".f%u rect{fill:%s}\n", i, dark ? colors[i].dark : colors[i].light);
    /* A found frame takes the colour of findings, whatever its own. */
    fprintf(out, ".r.hit rect{fill:%s}\n",
            dark ? colors[FLAME_COLOR_HIT].dark : colors[FLAME_COLOR_HIT].light);
}

void flame_colors_classes(FILE *out)
{
    put_classes(out, false);
    fputs("@media (prefers-color-scheme:dark){\n", out);
    put_classes(out, true);
    fputs("}\n", out);
}

void flame_colors_variables(FILE *out)
{
    fputs(":root{\n", out);
    for (unsigned i = 0; i < FLAME_COLORS; i++)
        fprintf(out, "--f%u:%s;\n", i, colors[i].light);
    fputs("}\n@media (prefers-color-scheme:dark){:root{\n", out);
    for (unsigned i = 0; i < FLAME_COLORS; i++)
        fprintf(out, "--f%u:%s;\n", i, colors[i].dark);
    fputs("}}\n", out);
}
