/* The tree as aligned text. A map is a heading with "title  value" lines, a
 * table has one line a row; on a terminal the columns that may wrap share the
 * width that the others leave. In a pipe nothing wraps and nothing is cut. */
#include "present/text.h"

#include "base/text.h"

enum { INDENT = 2, GAP = 2, WRAP_COLUMNS_MIN = 16, WORD_COLUMNS_MAX = 36, TITLE_COLUMNS_MAX = 28 };

struct style {
    FILE *out;
    const struct render_opts *opts;
};

static void tone_begin(const struct style *style, enum tone tone)
{
    static const char *const codes[] = {
        [TONE_PLAIN] = "",           [TONE_GOOD] = "\033[32m", [TONE_WARN] = "\033[33m",
        [TONE_BAD] = "\033[31m",     [TONE_DIM] = "\033[2m",   [TONE_BLUE] = "\033[34m",
        [TONE_MAGENTA] = "\033[35m", [TONE_CYAN] = "\033[36m",
    };
    if (style->opts->color)
        fputs(codes[tone], style->out);
}

static void tone_end(const struct style *style, enum tone tone)
{
    if (style->opts->color && tone != TONE_PLAIN)
        fputs("\033[0m", style->out);
}

static void heading(const struct style *style, const char *title, int depth)
{
    fprintf(style->out, "%*s%s%s%s\n", depth * INDENT, "", style->opts->color ? "\033[1m" : "",
            title, style->opts->color ? "\033[0m" : "");
}

static void pad(FILE *out, size_t columns)
{
    fprintf(out, "%*s", (int)columns, "");
}

static enum tone tone_of(const struct value *value)
{
    bool absent = value->kind == VALUE_NA || value->kind == VALUE_NULL;
    return absent && value->tone == TONE_PLAIN ? TONE_DIM : value->tone;
}

/* The head of *rest that fits into `columns`, broken at a blank where there is
 * one; takes it off *rest. Always makes progress. */
static struct str line_take(struct str *rest, size_t columns)
{
    struct str line = {rest->data, text_fit(*rest, columns)};
    if (line.len == rest->len) {
        *rest = (struct str){rest->data + rest->len, 0};
        return line;
    }
    size_t cut = line.len;
    while (cut > 0 && rest->data[cut] != ' ' && rest->data[cut - 1] != ' ')
        cut--;
    if (cut > 0)
        line.len = cut;
    if (line.len == 0)
        line.len = 1;
    rest->data += line.len;
    rest->len -= line.len;
    line = str_trim(line);
    *rest = str_trim(*rest);
    return line;
}

static void put_wrapped(const struct style *style, struct str text, enum tone tone, size_t at)
{
    size_t width = style->opts->width;
    size_t room = width > at + WRAP_COLUMNS_MIN ? width - at : 0;
    if (room == 0)
        room = SIZE_MAX;
    bool first = true;
    do {
        if (!first) {
            fputc('\n', style->out);
            pad(style->out, at);
        }
        first = false;
        tone_begin(style, tone);
        text_print(style->out, line_take(&text, room));
        tone_end(style, tone);
    } while (text.len > 0);
    fputc('\n', style->out);
}

/* Widths of the columns that are shown; 0 marks a hidden one. */
static void measure(const struct table *table, size_t *widths)
{
    char buffer[600];
    for (size_t i = 0; i < table->column_count; i++) {
        widths[i] = 0;
        if (!table_shows(table, i))
            continue;
        widths[i] = MAX(text_width(str_from(table->columns[i].title)), (size_t)1);
        for (const struct table_row *row = NULL; (row = table_shown(table, row));)
            widths[i] = MAX(widths[i],
                            text_width(value_display(&row->cells[i], buffer, sizeof(buffer))));
    }
}

/* The longest word of a column, so that a command or a path can be copied in one piece. */
static size_t word_width(const struct table *table, size_t column)
{
    size_t widest = WRAP_COLUMNS_MIN;
    char buffer[600];
    for (const struct table_row *row = NULL; (row = table_shown(table, row));) {
        struct str rest = value_display(&row->cells[column], buffer, sizeof(buffer));
        while (rest.len > 0) {
            size_t word = text_width(str_word(&rest)); /* apart: MAX() asks twice */
            widest = MAX(widest, word);
        }
    }
    return MIN(widest, (size_t)WORD_COLUMNS_MAX);
}

/* On a terminal: take width from the widest columns that may wrap. */
static void squeeze(const struct table *table, size_t *widths, size_t width)
{
    size_t least[TABLE_COLUMNS_MAX] = {0};
    for (size_t i = 0; width > 0 && i < table->column_count; i++)
        if (widths[i] > 0 && table->columns[i].wrap)
            least[i] = word_width(table, i);
    for (;;) {
        size_t total = INDENT, widest = table->column_count;
        for (size_t i = 0; i < table->column_count; i++) {
            if (widths[i] == 0)
                continue;
            total += widths[i] + GAP;
            if (table->columns[i].wrap && widths[i] > least[i] &&
                (widest == table->column_count || widths[i] > widths[widest]))
                widest = i;
        }
        if (width == 0 || total <= width + GAP || widest == table->column_count)
            return;
        widths[widest]--;
    }
}

static void draw_cell(const struct style *style, const struct column *column, struct str line,
                      enum tone tone, size_t width, bool last)
{
    size_t used = text_width(line);
    size_t blank = width > used ? width - used : 0;
    if (column->right)
        pad(style->out, blank);
    tone_begin(style, tone);
    text_print(style->out, line);
    tone_end(style, tone);
    if (!column->right && !last)
        pad(style->out, blank);
    if (!last)
        pad(style->out, GAP);
}

static void draw_row(const struct style *style, const struct table *table,
                     const struct table_row *row, const size_t *widths, size_t indent, size_t last)
{
    char buffers[TABLE_COLUMNS_MAX][600];
    struct str rest[TABLE_COLUMNS_MAX];
    for (size_t i = 0; i < table->column_count; i++)
        rest[i] = value_display(&row->cells[i], buffers[i], sizeof(buffers[i]));
    for (bool more = true; more;) {
        more = false;
        size_t end = last;
        while (end > 0 && (widths[end] == 0 || rest[end].len == 0))
            end--;
        pad(style->out, indent);
        for (size_t i = 0; i <= end; i++) {
            if (widths[i] == 0)
                continue;
            struct str line = line_take(&rest[i], widths[i]);
            draw_cell(style, &table->columns[i], line, tone_of(&row->cells[i]), widths[i],
                      i == end);
            more = more || rest[i].len > 0;
        }
        fputc('\n', style->out);
    }
}

static void draw_table(const struct style *style, const struct table *table, int depth)
{
    size_t indent = (size_t)depth * INDENT;
    if (!table || !table_shown(table, NULL)) {
        pad(style->out, indent);
        fprintf(style->out, "%s\n", table && table->empty ? table->empty : "none");
        return;
    }
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    measure(table, widths);
    squeeze(table, widths, style->opts->width);
    size_t last = 0;
    for (size_t i = 0; i < table->column_count; i++)
        if (widths[i] > 0)
            last = i;
    pad(style->out, indent);
    for (size_t i = 0; i <= last; i++)
        if (widths[i] > 0)
            draw_cell(style, &table->columns[i], str_from(table->columns[i].title), TONE_DIM,
                      widths[i], i == last);
    fputc('\n', style->out);
    for (const struct table_row *row = NULL; (row = table_shown(table, row));)
        draw_row(style, table, row, widths, indent, last);
}

static void draw_scalars(const struct style *style, const struct value *map, int depth)
{
    const struct value_item *first = map->items ? map->items->first : NULL;
    size_t width = 0;
    for (const struct value_item *item = first; item; item = item->next)
        if (item->show != SHOW_MACHINE && value_is_scalar(&item->value))
            width = MAX(width, text_width(str_from(value_item_title(item))));
    width = MIN(width, (size_t)TITLE_COLUMNS_MAX);
    for (const struct value_item *item = first; item; item = item->next) {
        if (item->show == SHOW_MACHINE || !value_is_scalar(&item->value))
            continue;
        size_t used = text_width(str_from(value_item_title(item)));
        pad(style->out, (size_t)depth * INDENT);
        fputs(value_item_title(item), style->out);
        pad(style->out, (width > used ? width - used : 0) + GAP);
        char buffer[600];
        put_wrapped(style, value_display(&item->value, buffer, sizeof(buffer)),
                    tone_of(&item->value), (size_t)depth * INDENT + MAX(width, used) + GAP);
    }
}

/* A list in a list is one line in pieces, each with its own tone; it goes on below where a piece
 * does not fit any more. */
static void draw_pieces(const struct style *style, const struct value *pieces, size_t at)
{
    size_t column = at, width = style->opts->width;
    for (const struct value_item *item = pieces->items ? pieces->items->first : NULL; item;
         item = item->next) {
        char buffer[600];
        struct str text = value_display(&item->value, buffer, sizeof(buffer));
        if (width > 0 && column > at && column + text_width(text) > width) {
            fputc('\n', style->out);
            pad(style->out, at);
            column = at;
            text = str_trim(text);
        }
        column += text_width(text);
        tone_begin(style, item->value.tone);
        text_print(style->out, text);
        tone_end(style, item->value.tone);
    }
    fputc('\n', style->out);
}

static void draw_list(const struct style *style, const struct value *list, int depth)
{
    for (const struct value_item *item = list->items ? list->items->first : NULL; item;
         item = item->next) {
        char buffer[600];
        pad(style->out, (size_t)depth * INDENT);
        if (item->value.kind == VALUE_LIST)
            draw_pieces(style, &item->value, (size_t)depth * INDENT);
        else
            put_wrapped(style, value_display(&item->value, buffer, sizeof(buffer)),
                        tone_of(&item->value), (size_t)depth * INDENT);
    }
}

static void draw_map(const struct style *style, const struct value *map, int depth)
{
    draw_scalars(style, map, depth);
    bool blank = depth == 0;
    bool any = false;
    for (const struct value_item *item = map->items ? map->items->first : NULL; item;
         item = item->next)
        any = any || (item->show != SHOW_MACHINE && value_is_scalar(&item->value));
    for (const struct value_item *item = map->items ? map->items->first : NULL; item;
         item = item->next) {
        if (item->show == SHOW_MACHINE || value_is_scalar(&item->value))
            continue;
        if (blank && any)
            fputc('\n', style->out);
        any = true;
        heading(style, value_item_title(item), depth);
        if (item->value.kind == VALUE_MAP)
            draw_map(style, &item->value, depth + 1);
        else if (item->value.kind == VALUE_TABLE)
            draw_table(style, item->value.table, depth + 1);
        else
            draw_list(style, &item->value, depth + 1);
    }
}

void text_draw(const struct report *report, const struct render_opts *opts, FILE *out)
{
    struct style style = {.out = out, .opts = opts};
    draw_map(&style, report->root, 0);
}
