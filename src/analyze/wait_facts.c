/* The document "waits" of a recording, read as far as people want to know. */
#include "analyze/wait_facts.h"

#include <jansson.h>

enum { TEXTS_MAX = 32 };

struct value wait_facts_not_known(struct arena *arena, struct str facts_json)
{
    struct value list = value_list(arena);
    json_t *json = json_loadb(facts_json.data, facts_json.len, 0, NULL);
    const json_t *texts = json_object_get(json, "not_known");
    for (size_t i = 0; i < json_array_size(texts) && i < TEXTS_MAX; i++) {
        const char *text = json_string_value(json_array_get(texts, i));
        if (text)
            value_append(&list, value_text(arena_dup(arena, text)));
    }
    json_decref(json);
    return list;
}
