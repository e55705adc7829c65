/* Flame graphs and the page: drawn into memory, written whole or not at all. */
#include "cmd/pictures.h"

#include "base/fd.h"
#include "present/flame.h"
#include "present/html.h"

#include <stdlib.h>

enum picture { PICTURE_FLAME, PICTURE_ICICLE, PICTURE_PAGE };

static int picture_draw(const struct pictured *pictured, enum picture kind, FILE *out,
                        struct why *why)
{
    if (kind == PICTURE_PAGE) {
        struct html_opts page = {
            .title = pictured->title,
            .honesty = pictured->honesty,
            .hotspots = pictured->table,
            .table_title = pictured->table_title,
            .tree = pictured->tree,
            .before = pictured->before,
            .scale = pictured->scale,
        };
        return html_write(&page, out, why);
    }
    struct flame_opts flame = {
        .title = pictured->title, .subtitle = pictured->subtitle, .icicle = kind == PICTURE_ICICLE};
    return flame_svg(&flame, pictured->tree, pictured->before, pictured->scale, out, why);
}

static int picture_write(const struct pictured *pictured, enum picture kind, const char *path,
                         struct value *files, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return why_nomem(why);
    int r = picture_draw(pictured, kind, out, why);
    if (fclose(out) != 0 && r == 0)
        r = why_nomem(why);
    if (r == 0)
        r = file_write_atomic(path, text, len, why);
    free(text);
    if (r == 0)
        value_append(files, value_text(path));
    return r;
}

bool pictures_wanted(const struct picture_opts *opts)
{
    return opts->flame || opts->icicle || opts->html;
}

int pictures_write(const struct picture_opts *opts, const struct pictured *pictured,
                   struct arena *arena, struct value *root, struct why *why)
{
    const char *paths[] = {
        [PICTURE_FLAME] = opts->flame,
        [PICTURE_ICICLE] = opts->icicle,
        [PICTURE_PAGE] = opts->html,
    };
    struct value files = value_list(arena);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        int r = paths[i] ? picture_write(pictured, (enum picture)i, paths[i], &files, why) : 0;
        if (r < 0)
            return r;
    }
    value_put(root, "written", "Written", files);
    return 0;
}
