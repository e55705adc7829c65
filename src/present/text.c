/* The tree as aligned text. A map is a heading with "title  value" lines, a
 * table has one line a row; on a terminal the columns that may wrap share the
 * width that the others leave, and a row that is still too wide goes on below.
 * In a pipe nothing wraps unless COLUMNS says so. Nothing is ever cut. */
#include "present/text.h"

#include "base/text.h"

enum {
    INDENT = 2,
    FOLD_INDENT = 4,
    GAP = 2,
    WRAP_COLUMNS_MIN = 16,
    WORD_COLUMNS_MAX = 36,
    TITLE_COLUMNS_MAX = 28,
};

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

static void heading(const struct style *style, const char *title, int depth)
{
    size_t width = style->opts->width, at = (size_t)depth * INDENT;
    size_t room = width > at + WRAP_COLUMNS_MIN ? width - at : SIZE_MAX;
    struct str rest = str_from(title);
    do {
        pad(style->out, at);
        fputs(style->opts->color ? "\033[1m" : "", style->out);
        text_print(style->out, line_take(&rest, room));
        fputs(style->opts->color ? "\033[0m\n" : "\n", style->out);
    } while (rest.len > 0);
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
static void squeeze(const struct table *table, size_t *widths, size_t indent, size_t width)
{
    size_t least[TABLE_COLUMNS_MAX] = {0};
    for (size_t i = 0; width > 0 && i < table->column_count; i++)
        if (widths[i] > 0 && table->columns[i].wrap)
            least[i] = word_width(table, i);
    for (;;) {
        size_t total = indent, widest = table->column_count;
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

/* How a table is laid out: each column has its width, 0 when it is hidden, and the line of a row
 * that it stands in. */
struct layout {
    size_t widths[TABLE_COLUMNS_MAX];
    size_t line_of[TABLE_COLUMNS_MAX];
    size_t lines;
    size_t indent;
};

static size_t line_indent(const struct layout *layout, size_t line)
{
    return layout->indent + (line > 0 ? FOLD_INDENT : 0);
}

/* What squeezing took is given back where folding has left room. */
static void widen(const struct table *table, struct layout *layout, const size_t *natural,
                  size_t width)
{
    size_t used[TABLE_COLUMNS_MAX];
    for (size_t line = 0; line < layout->lines; line++)
        used[line] = line_indent(layout, line) - GAP;
    for (size_t i = 0; i < table->column_count; i++)
        if (layout->widths[i] > 0)
            used[layout->line_of[i]] += layout->widths[i] + GAP;
    for (size_t i = 0; i < table->column_count; i++) {
        size_t line = layout->line_of[i];
        if (layout->widths[i] == 0 || used[line] >= width)
            continue;
        size_t more = MIN(natural[i] - layout->widths[i], width - used[line]);
        layout->widths[i] += more;
        used[line] += more;
    }
}

/* A row that is still too wide goes on in another line, below and further in. */
static void fold(const struct table *table, struct layout *layout, size_t width)
{
    size_t at = layout->indent, line = 0;
    size_t most = MAX(width, layout->indent + FOLD_INDENT + WRAP_COLUMNS_MIN);
    for (size_t i = 0; i < table->column_count; i++) {
        if (layout->widths[i] == 0)
            continue;
        size_t begin = line_indent(layout, line);
        if (at > begin && at + layout->widths[i] > most)
            begin = at = line_indent(layout, ++line);
        layout->widths[i] = MIN(layout->widths[i], most - begin);
        layout->line_of[i] = line;
        at += layout->widths[i] + GAP;
    }
    layout->lines = line + 1;
}

static struct layout layout_make(const struct table *table, size_t indent, size_t width)
{
    struct layout layout = {.lines = 1, .indent = indent};
    size_t natural[TABLE_COLUMNS_MAX];
    measure(table, layout.widths);
    if (width == 0)
        return layout;
    memcpy(natural, layout.widths, sizeof(natural));
    squeeze(table, layout.widths, indent, width);
    fold(table, &layout, width);
    if (layout.lines > 1)
        widen(table, &layout, natural, width);
    return layout;
}

static bool is_in(const struct layout *layout, size_t column, size_t line)
{
    return layout->widths[column] > 0 && layout->line_of[column] == line;
}

/* The columns of one line; their texts may go on over several. Of a row without any text there is
 * a line all the same, and titles stand above all of their columns. */
static void draw_line(const struct style *style, const struct table *table,
                      const struct layout *layout, size_t line, struct str *rest,
                      const enum tone *tones, bool titles)
{
    for (bool first = line == 0;; first = titles = false) {
        size_t end = 0; /* behind the last one with text */
        for (size_t i = 0; i < table->column_count; i++)
            if (is_in(layout, i, line) && (rest[i].len > 0 || titles))
                end = i + 1;
        if (end == 0 && !first)
            return;
        pad(style->out, line_indent(layout, line));
        for (size_t i = 0; i < end; i++)
            if (is_in(layout, i, line))
                draw_cell(style, &table->columns[i], line_take(&rest[i], layout->widths[i]),
                          tones[i], layout->widths[i], i + 1 == end);
        fputc('\n', style->out);
    }
}

static void draw_row(const struct style *style, const struct table *table,
                     const struct table_row *row, const struct layout *layout)
{
    char buffers[TABLE_COLUMNS_MAX][600];
    struct str rest[TABLE_COLUMNS_MAX];
    enum tone tones[TABLE_COLUMNS_MAX];
    for (size_t i = 0; i < table->column_count; i++) {
        rest[i] = row ? value_display(&row->cells[i], buffers[i], sizeof(buffers[i]))
                      : str_from(table->columns[i].title);
        tones[i] = row ? tone_of(&row->cells[i]) : TONE_DIM;
    }
    for (size_t line = 0; line < layout->lines; line++)
        draw_line(style, table, layout, line, rest, tones, !row);
}

static void draw_table(const struct style *style, const struct table *table, int depth)
{
    size_t indent = (size_t)depth * INDENT;
    if (!table || !table_shown(table, NULL)) {
        pad(style->out, indent);
        fprintf(style->out, "%s\n", table && table->empty ? table->empty : "none");
        return;
    }
    struct layout layout = layout_make(table, indent, style->opts->width);
    draw_row(style, table, NULL, &layout); /* the titles */
    for (const struct table_row *row = NULL; (row = table_shown(table, row));)
        draw_row(style, table, row, &layout);
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
        do {
            if (width > at && column > at && column + text_width(text) > width) {
                fputc('\n', style->out);
                pad(style->out, at);
                column = at;
                text = str_trim(text);
            }
            struct str line = line_take(&text, width > at ? width - at : SIZE_MAX);
            column += text_width(line);
            tone_begin(style, item->value.tone);
            text_print(style->out, line);
            tone_end(style, item->value.tone);
        } while (text.len > 0);
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
