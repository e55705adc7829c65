/* The end of a recording: names for the frames seen, and notes on images without them. */
#include "collect/stacks.h"

#include "base/jsonw.h"
#include "collect/stacks_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What is missing and why, for reports: {"images": [{"path", "kind", "note"}]}. */
static int notes_tell(struct stacks *st)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    jsonw_key(&json, "images");
    jsonw_array_begin(&json);
    for (size_t i = 0; i < st->images.len; i++) {
        const struct stack_image *image = &st->images.data[i];
        if (!image->note || image->frames.len == 0)
            continue;
        jsonw_object_begin(&json);
        jsonw_key(&json, "path");
        jsonw_text(&json, image->path);
        jsonw_key(&json, "note");
        jsonw_text(&json, str_from(image->note));
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? sink_document(st->sink, "images", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

int stacks_finish(struct stacks *st, struct why *why)
{
    int r = notes_tell(st);
    if (r == 0 && st->refused > 0)
        r = sink_counter(st->sink, "loss.stacks_over_limit", UNIT_COUNT, st->refused);
    return r < 0 ? why_errno(why, -r, NULL, "the notes on images could not be recorded") : 0;
}
