/* Escaping for XML 1.0 and HTML: the same five entities do for both. */
#include "present/markup.h"

#include "base/text.h"

#include <errno.h>

static void put(FILE *out, struct str safe)
{
    for (size_t i = 0; i < safe.len; i++) {
        switch (safe.data[i]) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>': /* "]]>" is not allowed in XML's text */
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc(safe.data[i], out);
        }
    }
}

void markup_short(FILE *out, struct str text, size_t bytes_max)
{
    char buffer[MARKUP_TEXT_BYTES_MAX];
    put(out, text_safe(text, buffer, MIN(bytes_max, sizeof(buffer))));
}

void markup_text(FILE *out, struct str text)
{
    markup_short(out, text, MARKUP_TEXT_BYTES_MAX);
}

void markup_label(FILE *out, struct str text, size_t columns)
{
    char buffer[MARKUP_TEXT_BYTES_MAX];
    struct str safe = text_safe(text, buffer, sizeof(buffer));
    if (text_width(safe) <= columns) {
        put(out, safe);
        return;
    }
    put(out, (struct str){safe.data, text_fit(safe, columns > 0 ? columns - 1 : 0)});
    fputs("…", out);
}

int markup_end(FILE *out, const char *what, struct why *why)
{
    errno = 0;
    if (fflush(out) == 0 && !ferror(out))
        return 0;
    return why_errno(why, errno ? errno : EIO, "free some space, or write elsewhere",
                     "cannot write the %s", what);
}
