/* JSON that collectors wrote, read without trust: what is missing or of another type is unknown. */
#include "analyze/io_facts.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

enum { FILES_MAX = 4096, UNSEEN_MAX = 64 };

static uint64_t number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    return number >= 0 ? (uint64_t)number : IO_FACT_UNKNOWN;
}

/* NULL where there is none. */
static const char *text_of(struct arena *arena, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && *text ? arena_dup(arena, text) : NULL;
}

static void file_read(struct arena *arena, const json_t *json, struct io_file_fact *ret)
{
    const json_t *free_pct = json_object_get(json, "free_pct");
    uint64_t object = number_of(json, "object"), pieces = number_of(json, "fragments");
    *ret = (struct io_file_fact){
        .object = object <= UINT32_MAX ? (uint32_t)object : 0,
        .path = text_of(arena, json, "path"),
        .filesystem = text_of(arena, json, "filesystem"),
        .mount = text_of(arena, json, "mount"),
        .size_bytes = number_of(json, "size_bytes"),
        /* What touches on the device is one piece, however the file system counts it. */
        .extents = pieces != IO_FACT_UNKNOWN ? pieces : number_of(json, "extents"),
        .shared_extents = number_of(json, "shared_extents"),
        .folder_entries = number_of(json, "folder_entries"),
        .free_bytes = number_of(json, "free_bytes"),
        .free_pct = json_is_number(free_pct) ? json_number_value(free_pct) : NAN,
        .cow = json_is_true(json_object_get(json, "cow")),
        .network = json_is_true(json_object_get(json, "network")),
    };
}

int io_file_facts_read(struct arena *arena, struct str json, struct io_file_facts *ret)
{
    json_t *root = json_loadb(json.data, json.len, 0, NULL);
    const json_t *files = json_object_get(root, "files");
    size_t count = MIN(json_array_size(files), (size_t)FILES_MAX);
    struct io_file_fact *facts = arena_alloc(arena, (count + 1) * sizeof(*facts));
    for (size_t i = 0; facts && i < count; i++)
        file_read(arena, json_array_get(files, i), &facts[i]);
    json_decref(root);
    if (arena_failed(arena))
        return -ENOMEM;
    *ret = (struct io_file_facts){facts, count};
    return 0;
}

/* The list has {"what", "reason"}, or plain texts. */
static struct io_unseen unseen_read(struct arena *arena, const json_t *json)
{
    const char *text = json_string_value(json);
    if (text)
        return (struct io_unseen){arena_dup(arena, text), NULL};
    return (struct io_unseen){text_of(arena, json, "what"), text_of(arena, json, "reason")};
}

/* A text, or true and false. */
static const char *word_of(struct arena *arena, const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    if (json_is_boolean(value))
        return json_is_true(value) ? "yes" : "no";
    return text_of(arena, json, key);
}

int io_facts_read(struct arena *arena, struct str json, struct io_facts *ret)
{
    json_t *root = json_loadb(json.data, json.len, 0, NULL);
    const json_t *list = json_object_get(root, "na");
    size_t count = MIN(json_array_size(list), (size_t)UNSEEN_MAX), taken = 0;
    struct io_unseen *unseen = arena_alloc(arena, (count + 1) * sizeof(*unseen));
    for (size_t i = 0; unseen && i < count; i++) {
        unseen[taken] = unseen_read(arena, json_array_get(list, i));
        taken += unseen[taken].what != NULL;
    }
    struct io_facts facts = {
        .tier = text_of(arena, root, "tier"),
        .not_higher = text_of(arena, root, "why_not_higher"),
        .stacks = word_of(arena, root, "stacks"),
        .requests = word_of(arena, root, "requests"),
        .unseen = unseen,
        .unseen_count = taken,
    };
    json_decref(root);
    if (arena_failed(arena))
        return -ENOMEM;
    *ret = facts;
    return 0;
}
