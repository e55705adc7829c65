/* Frames, functions and texts as columns: what web/profile.js reads. */
#include "present/html_data.h"

#include "base/intern.h"
#include "base/jsonw.h"
#include "base/text.h"
#include "base/vec.h"
#include "present/flame_colors.h"
#include "present/markup.h"

#include <errno.h>
#include <math.h>

enum {
    TEXT_TOTAL_BYTES_MAX = 16 << 20, /* of all names together */
    TEXT_BYTES_MIN = 64,
};

struct function_row {
    uint32_t name, file, image; /* texts */
    uint32_t line;
    const char *kind;
};

struct columns {
    const struct html_data *data;
    struct arena arena;
    struct intern texts; /* id 0 is the empty text */
    VEC(struct function_row) functions;
    uint32_t *function_of; /* of each rectangle, in `functions` */
    uint32_t left_out;     /* the function that stands for what is not drawn */
    size_t text_bytes_max;
};

static void columns_deinit(struct columns *columns)
{
    intern_deinit(&columns->texts);
    VEC_FREE(&columns->functions);
    arena_deinit(&columns->arena);
}

static int add_text(struct columns *columns, struct str text, uint32_t *ret)
{
    char buffer[MARKUP_TEXT_BYTES_MAX];
    if (text.len == 0) {
        *ret = 0;
        return 0;
    }
    return intern_add(&columns->texts, text_safe(text, buffer, columns->text_bytes_max), ret, NULL);
}

static int add_function(struct columns *columns, const struct call_tree *tree, uint32_t node)
{
    const struct profile_function *function = flame_function(tree, node);
    const struct image_info *image = flame_image(tree, node);
    enum flame_kind kind = flame_kind_of(tree, node);
    struct function_row row = {
        .line = node == 0 ? 0 : function->line,
        /* Whether it is inlined is said of each frame. */
        .kind = flame_kind_text(kind == FLAME_INLINED ? FLAME_USER : kind),
    };
    int r = add_text(columns, flame_name(tree, node), &row.name);
    if (r == 0 && node != 0)
        r = add_text(columns, function->file, &row.file);
    if (r == 0 && node != 0 && image)
        r = add_text(columns, image->path, &row.image);
    return r < 0 ? r : VEC_PUSH(&columns->functions, row);
}

/* Only functions that are drawn, numbered in the order in which they appear. */
static int columns_fill(struct columns *columns)
{
    const struct flame_layout *layout = columns->data->layout;
    const struct call_tree *tree = layout->tree;
    size_t known = tree->profile ? tree->profile->function_count : 0;
    /* Of each function its number plus one; 0: not seen yet. */
    uint32_t *number = arena_alloc(&columns->arena, (known + 1) * sizeof(*number));
    columns->function_of = arena_alloc(&columns->arena,
                                       layout->count * sizeof(*columns->function_of));
    if (!number || !columns->function_of)
        return -ENOMEM;
    int r = add_function(columns, tree, 0);
    for (size_t i = 1; r == 0 && i < layout->count; i++) {
        uint32_t node = layout->rects[i].node;
        uint32_t *at = &number[MIN((size_t)tree->nodes[node].function, known)];
        if (*at == 0) {
            r = add_function(columns, tree, node);
            *at = (uint32_t)columns->functions.len;
        }
        columns->function_of[i] = *at - 1;
    }
    struct function_row rest = {.kind = flame_kind_text(FLAME_UNKNOWN)};
    if (r == 0)
        r = add_text(columns, STR("[not drawn]"), &rest.name);
    columns->left_out = (uint32_t)columns->functions.len;
    return r < 0 ? r : VEC_PUSH(&columns->functions, rest);
}

static void put_texts(struct jsonw *json, const struct columns *columns)
{
    jsonw_key(json, "strings");
    jsonw_array_begin(json);
    jsonw_text(json, STR(""));
    for (size_t id = 1; id <= columns->texts.len; id++)
        jsonw_text(json, intern_get(&columns->texts, (uint32_t)id));
    jsonw_array_end(json);
}

#define FUNCTION_COLUMN(json, columns, field)                                                      \
    do {                                                                                           \
        jsonw_key((json), #field);                                                                 \
        jsonw_array_begin(json);                                                                   \
        for (size_t i = 0; i < (columns)->functions.len; i++)                                      \
            jsonw_u64((json), (columns)->functions.data[i].field);                                 \
        jsonw_array_end(json);                                                                     \
    } while (0)

static void put_functions(struct jsonw *json, const struct columns *columns)
{
    jsonw_key(json, "functions");
    jsonw_object_begin(json);
    FUNCTION_COLUMN(json, columns, name);
    FUNCTION_COLUMN(json, columns, file);
    FUNCTION_COLUMN(json, columns, line);
    FUNCTION_COLUMN(json, columns, image);
    jsonw_key(json, "kind");
    jsonw_array_begin(json);
    for (size_t i = 0; i < columns->functions.len; i++)
        jsonw_text(json, str_from(columns->functions.data[i].kind));
    jsonw_array_end(json);
    jsonw_object_end(json);
}

static uint64_t get_depth(const struct columns *c, size_t i)
{
    return c->data->layout->rects[i].depth;
}

static uint64_t get_function(const struct columns *c, size_t i)
{
    return c->function_of[i];
}

static uint64_t get_weight(const struct columns *c, size_t i)
{
    return c->data->layout->rects[i].weight;
}

static const struct call_node *node_of(const struct columns *c, size_t i)
{
    return &c->data->layout->tree->nodes[c->data->layout->rects[i].node];
}

static uint64_t get_self(const struct columns *c, size_t i)
{
    return node_of(c, i)->self_weight;
}

static uint64_t get_count(const struct columns *c, size_t i)
{
    return node_of(c, i)->total_count;
}

static uint64_t get_self_count(const struct columns *c, size_t i)
{
    return node_of(c, i)->self_count;
}

static uint64_t get_inlined(const struct columns *c, size_t i)
{
    return node_of(c, i)->inlined;
}

static uint64_t get_color(const struct columns *c, size_t i)
{
    uint32_t node = c->data->layout->rects[i].node;
    return c->data->diff ? flame_color_change(c->data->diff->change_pct[node], c->data->diff_limit)
                         : flame_color(c->data->layout->tree, node);
}

static void put_frames(struct jsonw *json, const struct columns *columns)
{
    static const struct {
        const char *key;
        uint64_t (*get)(const struct columns *columns, size_t i);
    } rows[] = {
        {"depth", get_depth},     {"function", get_function}, {"weight", get_weight},
        {"self", get_self},       {"count", get_count},       {"self_count", get_self_count},
        {"inlined", get_inlined}, {"color", get_color},
    };
    jsonw_key(json, "frames");
    jsonw_object_begin(json);
    for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
        jsonw_key(json, rows[row].key);
        jsonw_array_begin(json);
        for (size_t i = 0; i < columns->data->layout->count; i++)
            jsonw_u64(json, rows[row].get(columns, i));
        jsonw_array_end(json);
    }
    jsonw_object_end(json);
}

static void put_percents(struct jsonw *json, const char *key, const struct flame_layout *layout,
                         const double *percents)
{
    jsonw_key(json, key);
    jsonw_array_begin(json);
    for (size_t i = 0; i < layout->count; i++) {
        double value = percents[layout->rects[i].node];
        jsonw_f64(json, round(value * 1e4) / 1e4);
    }
    jsonw_array_end(json);
}

static void put_diff(struct jsonw *json, const struct html_data *data)
{
    jsonw_key(json, "diff");
    if (!data->diff) {
        jsonw_null(json);
        return;
    }
    jsonw_object_begin(json);
    jsonw_key(json, "scale");
    jsonw_f64(json, data->diff->scale);
    jsonw_key(json, "limit_pct");
    jsonw_f64(json, data->diff_limit);
    jsonw_key(json, "gone");
    jsonw_u64(json, data->diff->gone);
    jsonw_key(json, "gone_pct");
    jsonw_f64(json, data->diff->gone_pct);
    put_percents(json, "change_pct", data->layout, data->diff->change_pct);
    put_percents(json, "before_pct", data->layout, data->diff->before_pct);
    jsonw_object_end(json);
}

static const char *unit_key(enum unit unit)
{
    return unit == UNIT_NS ? "ns" : unit == UNIT_BYTES ? "bytes" : "count";
}

static void put_all(struct jsonw *json, const struct columns *columns)
{
    const struct html_data *data = columns->data;
    const struct call_tree *tree = data->layout->tree;
    jsonw_object_begin(json);
    jsonw_key(json, "schema");
    jsonw_text(json, STR("whyslow.flame/1"));
    jsonw_key(json, "title");
    jsonw_text(json, str_from(data->title));
    jsonw_key(json, "unit");
    jsonw_text(json, str_from(unit_key(tree->profile ? tree->profile->unit : UNIT_COUNT)));
    jsonw_key(json, "counted");
    jsonw_text(json, str_from(tree->profile && tree->profile->counted ? tree->profile->counted
                                                                      : "sample"));
    jsonw_key(json, "inverted");
    jsonw_bool(json, tree->inverted);
    jsonw_key(json, "left_out");
    jsonw_object_begin(json);
    jsonw_key(json, "frames");
    jsonw_u64(json, data->layout->left_out);
    jsonw_key(json, "weight");
    jsonw_u64(json, data->layout->left_out_weight);
    jsonw_key(json, "function");
    jsonw_u64(json, columns->left_out);
    jsonw_key(json, "color");
    jsonw_u64(json, FLAME_COLOR_UNKNOWN);
    jsonw_object_end(json);
    put_texts(json, columns);
    put_functions(json, columns);
    put_frames(json, columns);
    put_diff(json, data);
    jsonw_object_end(json);
}

int html_data_write(const struct html_data *data, FILE *out, struct why *why)
{
    AUTO(columns_deinit) struct columns columns = {.data = data, .arena = ARENA_INIT};
    size_t texts = MIN(data->layout->count, data->layout->tree->profile
                                                ? data->layout->tree->profile->function_count
                                                : 1);
    columns.text_bytes_max = MIN(
        MAX(TEXT_TOTAL_BYTES_MAX / (3 * MAX(texts, 1)), (size_t)TEXT_BYTES_MIN),
        (size_t)MARKUP_TEXT_BYTES_MAX);
    if (columns_fill(&columns) < 0)
        return why_nomem(why);
    struct jsonw json;
    jsonw_init(&json, out, 0);
    put_all(&json, &columns);
    return 0;
}
