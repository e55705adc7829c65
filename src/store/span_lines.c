/* One line at a time, forgiving. */
#include "store/span_lines.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct arena *arena;
    struct spans *spans;
    const json_t *line;
    const char *event_key; /* its value is the event, no field */
};

/* In any of our units; a sum of such figures is still a number. */
static const double figure_max = 1e18;

/* Beside the event, or one level down. */
static const json_t *field_get(const struct reading *r, const char *key)
{
    static const char *const nests[] = {"fields", "data", "attributes", "payload"};
    const json_t *value = strcmp(key, r->event_key) == 0 ? NULL : json_object_get(r->line, key);
    for (size_t i = 0; !value && i < ARRAY_SIZE(nests); i++)
        value = json_object_get(json_object_get(r->line, nests[i]), key);
    return value;
}

/* The first of some spellings, separated by blanks. */
static const json_t *field_find(const struct reading *r, const char *keys)
{
    struct str rest = str_from(keys);
    while (rest.len > 0) {
        struct str word = str_word(&rest);
        char key[32];
        snprintf(key, sizeof(key), "%.*s", STR_FMT(word));
        const json_t *value = field_get(r, key);
        if (value)
            return value;
    }
    return NULL;
}

static double number_get(const struct reading *r, const char *keys)
{
    const json_t *value = field_find(r, keys);
    const char *text = json_string_value(value);
    double number = NAN;
    if (json_is_number(value))
        number = json_number_value(value);
    else if (!text || str_to_f64(str_from(text), &number) < 0)
        return NAN;
    return number >= 0 && number <= figure_max ? number : NAN;
}

static struct str text_get(const struct reading *r, const char *keys)
{
    const json_t *value = field_find(r, keys);
    const char *text = json_string_value(value);
    return text ? str_from(arena_dup(r->arena, text)) : (struct str){0};
}

static struct span *span_find(const struct spans *spans, struct str name)
{
    for (size_t i = 0; i < spans->count; i++)
        if (str_eq(spans->items[i].name, name))
            return &spans->items[i];
    return NULL;
}

static double sum_known(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* Percentiles of two do not add up: the worse one is told. */
static void span_merge(struct span *into, const struct span *span)
{
    into->cumulative_us = sum_known(into->cumulative_us, span->cumulative_us);
    into->count += span->count;
    into->p50_us = fmax(into->p50_us, span->p50_us);
    into->p95_us = fmax(into->p95_us, span->p95_us);
}

static bool span_take(struct reading *r)
{
    struct spans *spans = r->spans;
    double count = number_get(r, "count");
    struct span span = {
        .name = text_get(r, "span span_name name"),
        .cumulative_us = number_get(r, "cumulative_us cumulative total_us"),
        .p50_us = number_get(r, "p50_us p50"),
        .p95_us = number_get(r, "p95_us p95"),
        .count = isnan(count) ? 0 : (uint64_t)count,
        .category = text_get(r, "category"),
        .evidence = text_get(r, "evidence"),
    };
    if (span.name.len == 0 || (isnan(span.cumulative_us) && isnan(span.p50_us)))
        return false;
    struct span *same = span_find(spans, span.name);
    if (same)
        span_merge(same, &span);
    else if (spans->count == SPANS_MAX)
        return false;
    else
        spans->items[spans->count++] = span;
    return true;
}

static bool hypothesis_take(struct reading *r)
{
    struct spans *spans = r->spans;
    struct str verdict = text_get(r, "verdict");
    struct span_hypothesis said = {
        .name = text_get(r, "name hypothesis"),
        .evidence = text_get(r, "evidence"),
        .supports = str_is(verdict, "supports"),
    };
    if (said.name.len == 0 || (!said.supports && !str_is(verdict, "rejects")) ||
        spans->hypothesis_count == SPANS_MAX)
        return false;
    spans->hypotheses[spans->hypothesis_count++] = said;
    return true;
}

static bool start_take(struct reading *r)
{
    r->spans->count = r->spans->hypothesis_count = 0;
    r->spans->scenario = text_get(r, "scenario");
    return true;
}

/* Of the others nothing is needed: what they count is counted better elsewhere. */
static bool nothing_take(struct reading *r)
{
    (void)r;
    return true;
}

static const struct {
    const char *event; /* after the mark */
    bool (*take)(struct reading *r);
} events[] = {
    {"hypothesis_evaluated", hypothesis_take},
    {"run_complete", nothing_take},
    {"run_start", start_take},
    {"sample_collected", nothing_take},
    {"span_summary", span_take},
};

/* NULL: the line is somebody else's. */
static const char *event_find(struct reading *r)
{
    static const char *const keys[] = {"event", "type", "name", "msg", "message"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const char *text = json_string_value(json_object_get(r->line, keys[i]));
        r->event_key = keys[i];
        if (text && strncmp(text, SPAN_LINE_MARK, strlen(SPAN_LINE_MARK)) == 0)
            return text + strlen(SPAN_LINE_MARK);
    }
    return NULL;
}

static void line_read(struct reading *r, struct str line)
{
    json_t *json = json_loadb(line.data, line.len, 0, NULL);
    r->line = json;
    r->spans->lines++;
    const char *event = json_is_object(json) ? event_find(r) : NULL;
    bool good = json_is_object(json) && !event; /* it only mentions us */
    for (size_t i = 0; event && i < ARRAY_SIZE(events); i++)
        if (strcmp(events[i].event, event) == 0)
            good = events[i].take(r);
    r->spans->odd += !good;
    json_decref(json);
}

static int span_compare(const void *a, const void *b)
{
    double x = ((const struct span *)a)->cumulative_us, y = ((const struct span *)b)->cumulative_us;
    x = isnan(x) ? 0 : x;
    y = isnan(y) ? 0 : y;
    return (x < y) - (x > y);
}

static bool is_ours(struct str line)
{
    return memmem(line.data, line.len, SPAN_LINE_MARK, strlen(SPAN_LINE_MARK)) != NULL;
}

int span_lines_read(struct arena *arena, struct str text, struct spans *ret)
{
    struct spans spans = {0};
    spans.items = arena_alloc(arena, SPANS_MAX * sizeof(*spans.items));
    spans.hypotheses = arena_alloc(arena, SPANS_MAX * sizeof(*spans.hypotheses));
    if (!spans.items || !spans.hypotheses)
        return -ENOMEM;
    struct reading reading = {.arena = arena, .spans = &spans};
    while (text.len > 0) {
        struct str line = str_trim(str_cut(&text, '\n'));
        if (line.len == 0 || line.data[0] != '{' || !is_ours(line))
            continue;
        if (line.len > SPAN_LINE_BYTES_MAX)
            spans.lines++, spans.odd++;
        else
            line_read(&reading, line);
    }
    if (spans.count > 0)
        qsort(spans.items, spans.count, sizeof(*spans.items), span_compare);
    if (arena_failed(arena))
        return -ENOMEM;
    *ret = spans;
    return 0;
}
