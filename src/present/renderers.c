/* The table of renderers, and what they share. */
#include "present/renderers.h"

#include "present/json.h"
#include "present/markdown.h"
#include "present/text.h"
#include "present/yaml.h"

#include <errno.h>
#include <string.h>

const struct renderer renderers[] = {
    {"text", "for people, on a terminal or in a pipe", text_draw},
    {"json", "for programs; the schema is named in it", json_draw},
    {"markdown", "for issues, pull requests and CI summaries", markdown_draw},
    {"yaml", "the JSON's tree, for whoever keeps such files", yaml_draw},
    {0},
};

const struct renderer *renderer_find(const char *name)
{
    for (const struct renderer *renderer = renderers; renderer->name; renderer++)
        if (strcmp(renderer->name, name) == 0)
            return renderer;
    return NULL;
}

int render(const struct renderer *renderer, const struct report *report,
           const struct render_opts *opts, FILE *out, struct why *why)
{
    errno = 0;
    renderer->draw(report, opts, out);
    if (fflush(out) != 0 || ferror(out))
        return why_set(why, WHY_FAILED, errno ? errno : EIO, "free some space, or write elsewhere",
                       "cannot write the %s output: %s", renderer->name,
                       strerror(errno ? errno : EIO));
    return 0;
}

/* "3.1%, 4.2%": a short list in one cell; what does not fit is "…". */
static struct str list_display(const struct value *list, char *buffer, size_t size)
{
    size_t len = 0;
    for (const struct value_item *item = list->items ? list->items->first : NULL; item;
         item = item->next) {
        char part[600];
        struct str text = value_is_scalar(&item->value)
                              ? value_display(&item->value, part, sizeof(part))
                              : STR("…");
        text = str_trim(text); /* pieces of a line bring their gaps */
        const char *comma = len > 0 ? ", " : "";
        if (len + strlen(comma) + text.len + sizeof("…") > size) {
            len += (size_t)snprintf(buffer + len, size - len, "…");
            break;
        }
        len += (size_t)snprintf(buffer + len, size - len, "%s", comma);
        memcpy(buffer + len, text.data, text.len);
        len += text.len;
    }
    return (struct str){buffer, len};
}

struct str value_display(const struct value *value, char *buffer, size_t size)
{
    if (value->about && size > 1) {
        struct value number = *value;
        number.about = false;
        struct str text = value_display(&number, buffer + 1, size - 1);
        buffer[0] = '~';
        return (struct str){buffer, text.len + 1};
    }
    switch (value->kind) {
    case VALUE_NA:
        snprintf(buffer, size, "n/a: %.*s", STR_FMT(value->text));
        return str_from(buffer);
    case VALUE_NULL:
        return STR("NULL");
    case VALUE_BOOL:
        return value->truth ? STR("yes") : STR("no");
    case VALUE_TEXT:
        return value->text;
    case VALUE_INT:
    case VALUE_UINT:
        if (value->unit == UNIT_NONE) {
            if (value->kind == VALUE_INT)
                snprintf(buffer, size, "%lld", (long long)value->i64);
            else
                snprintf(buffer, size, "%llu", (unsigned long long)value->u64);
            return str_from(buffer);
        }
        return str_from(units_format(value_number(value), value->unit, buffer, size));
    case VALUE_REAL:
        return str_from(units_format(value->real, value->unit, buffer, size));
    case VALUE_LIST:
        return list_display(value, buffer, size);
    default:
        return STR("…");
    }
}
