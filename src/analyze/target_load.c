/* The document "target" of a recording. */
#include "analyze/target_load.h"

#include <jansson.h>
#include <string.h>

static uint64_t json_u64(const json_t *object, const char *key, uint64_t max)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;
    return number > 0 && (uint64_t)number <= max ? (uint64_t)number : 0;
}

void target_facts_read(struct str json_text, struct target_facts *ret)
{
    json_t *json = json_loadb(json_text.data, json_text.len, 0, NULL);
    const json_t *scope = json_object_get(json, "scope");
    if (json_is_string(scope)) {
        const char *name = json_string_value(scope);
        ret->known = true;
        ret->machine = strcmp(name, "command") != 0 && strcmp(name, "process") != 0;
        ret->root_pid = (uint32_t)json_u64(json, "pid", UINT32_MAX);
        ret->start_ns = json_u64(json, "start_ns", INT64_MAX);
        ret->end_ns = json_u64(json, "end_ns", INT64_MAX);
    }
    json_decref(json);
}

struct str target_command_read(struct arena *arena, struct str json_text)
{
    json_t *json = json_loadb(json_text.data, json_text.len, 0, NULL);
    const json_t *command = json_object_get(json, "command");
    struct str text = STR("");
    if (json_is_string(command))
        text = str_from(arena_dup(arena, json_string_value(command)));
    json_decref(json);
    return text;
}

void target_facts_root(const struct target_facts *facts, const struct profile *profile,
                       uint32_t *ret_process, uint32_t *ret_thread)
{
    uint32_t pid = facts->root_pid, process = 0, thread = 0;
    bool machine = facts->known && facts->machine;
    for (size_t i = 1; i < profile->process_count && pid == 0 && !machine; i++)
        if (profile->processes[i].parent == 0)
            pid = profile->processes[i].pid;
    for (size_t i = 1; i < profile->process_count && !machine; i++)
        if (profile->processes[i].pid == pid)
            process = (uint32_t)i;
    for (size_t i = 1; i < profile->thread_count && process != 0; i++)
        if (profile->threads[i].process == process && profile->threads[i].tid == pid)
            thread = (uint32_t)i;
    *ret_process = process;
    *ret_thread = thread;
}
