/* Escapes for XML 1.0, which forbids most control characters even when escaped. */
#include "base/xml.h"

#include "base/text.h"

static const char *entity(int32_t code)
{
    switch (code) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
    case '\n':
    case '\r':
        return " ";
    default:
        break;
    }
    bool allowed = (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code <= 0xfffd) ||
                   code >= 0x10000;
    /* Characters that turn the direction of writing would make a name look like another. */
    bool turning = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return allowed && !turning ? NULL : "\xef\xbf\xbd";
}

void xml_print(FILE *out, struct str text)
{
    while (text.len > 0) {
        int32_t code;
        size_t len = utf8_decode(text, &code);
        const char *instead = entity(code);
        if (instead)
            fputs(instead, out);
        else
            fwrite(text.data, 1, len, out);
        text.data += len;
        text.len -= len;
    }
}
