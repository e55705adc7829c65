/* Lines of mountinfo to fields. */
#include "host/mounts.h"

/* mountinfo writes blanks and backslashes as \040 and the like. */
static const char *unescape(struct arena *arena, struct str text)
{
    char *plain = arena_alloc(arena, text.len + 1);
    if (!plain)
        return "";
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.data + i;
        uint64_t code;
        if (*at == '\\' && i + 3 < text.len && str_to_u64((struct str){at + 1, 3}, 8, &code) == 0 &&
            code > 0 && code < 256) {
            plain[len++] = (char)code;
            i += 3;
        } else {
            plain[len++] = *at;
        }
    }
    return plain;
}

bool mount_holds(const char *point, const char *folder)
{
    size_t len = strlen(point);
    if (strcmp(point, "/") == 0)
        return true;
    return strncmp(point, folder, len) == 0 && (folder[len] == '\0' || folder[len] == '/');
}

bool mount_line_parse(struct arena *arena, struct str line, struct mount_line *ret)
{
    str_word(&line); /* mount id */
    str_word(&line); /* parent id */
    ret->device_id = str_word(&line);
    ret->root = unescape(arena, str_word(&line));
    ret->point = unescape(arena, str_word(&line));
    ret->own = str_word(&line);
    for (struct str word = str_word(&line); !str_is(word, "-"); word = str_word(&line))
        if (word.len == 0)
            return false;
    ret->type = str_word(&line);
    ret->source = str_from(unescape(arena, str_word(&line)));
    ret->super = str_word(&line);
    return ret->type.len > 0;
}
