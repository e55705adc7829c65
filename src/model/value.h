/* A result as a tree: what commands build and renderers draw.
 *
 * One tree gives the text, the JSON and the Markdown of a report, so that they
 * cannot disagree. Numbers keep their unit: a renderer for people writes
 * "1.5 GiB", one for machines 1610612736. What could not be measured is a
 * VALUE_NA with its reason, never 0.
 *
 * All memory is the arena's. Builders accept NULL parents and return NULL when
 * the arena is out of memory: build the whole tree, then check arena_failed().
 * Keys and titles are borrowed: literals, or text of the same arena. */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "base/units.h"

enum value_kind {
    VALUE_NA, /* not available; text is the reason */
    VALUE_BOOL,
    VALUE_INT,  /* i64 */
    VALUE_UINT, /* u64 */
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_LIST,  /* children in order */
    VALUE_MAP,   /* children with keys, in order */
    VALUE_TABLE, /* columns and rows; JSON: a list of maps */
    VALUE_NULL,  /* data that is null by itself, as in SQL; not "could not be measured" */
};

/* Who is shown an entry. What machines are not shown says in another form what they are. */
enum value_show {
    SHOW_ALWAYS,
    SHOW_MACHINE,  /* left out of text and Markdown */
    SHOW_PEOPLE,   /* left out of JSON */
    SHOW_TERMINAL, /* in text only: drawings of fixed width */
};

enum tone {
    TONE_PLAIN,
    TONE_GOOD,
    TONE_WARN,
    TONE_BAD,
    TONE_DIM,
    TONE_BLUE, /* these tell parts of a drawing apart */
    TONE_MAGENTA,
    TONE_CYAN,
};

struct value {
    enum value_kind kind;
    enum unit unit;
    enum tone tone; /* colour on a terminal; carries no meaning of its own */
    bool about;     /* a number that was estimated, from samples: people see "~" before it */
    union {
        bool truth;
        int64_t i64;
        uint64_t u64;
        double real;
        struct str text;
        struct value_items *items;
        struct table *table;
    };
};

struct value_item {
    const char *key;   /* JSON key; NULL in lists */
    const char *title; /* for people; NULL: the key */
    enum value_show show;
    struct value value;
    struct value_item *next;
};

struct value_items {
    struct arena *arena;
    struct value_item *first;
    struct value_item *last;
    size_t len;
};

struct column {
    const char *key;
    const char *title;
    enum value_show show;
    bool right; /* numbers stand right */
    bool wrap;  /* may be broken over several lines on a narrow terminal */
};

enum { TABLE_COLUMNS_MAX = 48 };

struct table_row {
    struct table_row *next;
    enum value_show show; /* SHOW_MACHINE: a row of no interest to people, such as a passed check */
    struct value cells[]; /* as many as the table has columns */
};

struct table {
    struct arena *arena;
    const struct column *columns; /* borrowed */
    size_t column_count;
    struct table_row *first;
    struct table_row *last;
    size_t row_count;
    const char *empty; /* said instead of an empty table; NULL: "none" */
};

/* Scalars, by value. Texts are borrowed: copy into the arena what may vanish. */
struct value value_na(const char *reason);
struct value value_null(void);
struct value value_bool(bool truth);
struct value value_int(int64_t number, enum unit unit);
struct value value_uint(uint64_t number, enum unit unit);
struct value value_real(double number, enum unit unit);
struct value value_text(const char *text);
struct value value_str(struct str text);
struct value value_tone(struct value value, enum tone tone);
/* A number other than 0 as one that was estimated; anything else as it is. */
struct value value_about(struct value value);
/* The reason is formatted into the arena. */
struct value value_na_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Containers. */
struct value value_map(struct arena *arena);
struct value value_list(struct arena *arena);
struct value value_table(struct arena *arena, const struct column *columns, size_t count);

/* Appends a child and returns its place (NULL when out of memory, or when
 * `parent` is NULL). `title` may be NULL. */
struct value *value_put(struct value *parent, const char *key, const char *title,
                        struct value child);
struct value *value_put_machine(struct value *parent, const char *key, struct value child);
/* The same for people only, or for a terminal only. */
struct value *value_put_for(struct value *parent, enum value_show show, const char *key,
                            const char *title, struct value child);
struct value *value_append(struct value *list, struct value child);

/* Appends a row of NA cells ("not set") to be filled; NULL when out of memory. */
struct table_row *table_add(struct value *value);

/* The rows shown to people: `row` is NULL for the first. NULL at the end. */
const struct table_row *table_shown(const struct table *table, const struct table_row *row);
/* The text of a row's cell by the key of its column; empty when it has none. */
struct str table_text(const struct table *table, const struct table_row *row, const char *key);
/* A column shown to people: not machine-only, and not blank in every row shown. */
bool table_shows(const struct table *table, size_t column);

/* NULL when there is no such key, or `map` is no map. */
const struct value *value_get(const struct value *map, const char *key);
/* The same for a path such as "cpu.model". */
const struct value *value_find(const struct value *map, const char *path);
double value_number(const struct value *value);  /* NaN when it is no number */
bool value_is_scalar(const struct value *value); /* neither list, map nor table */
const char *value_item_title(const struct value_item *item);

/* What renderers are given. */
struct report {
    const char *schema;       /* "whyslow.doctor/1": name and version of the JSON */
    const struct value *root; /* a map */
};
