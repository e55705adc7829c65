/* The list of suspicions, and the words for what is in one. */
#include "model/finding.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FINDINGS_FIRST = 32, FACTS_FIRST = 8 };

static void *grown(struct arena *arena, const void *old, size_t count, size_t room, size_t size)
{
    void *items = arena_alloc(arena, room * size);
    if (items && count > 0)
        memcpy(items, old, count * size);
    return items;
}

struct finding *finding_add(struct findings *findings, const char *detector)
{
    if (findings->count == findings->room) {
        size_t room = findings->room > 0 ? findings->room * 2 : FINDINGS_FIRST;
        struct finding *items = grown(findings->arena, findings->items, findings->count, room,
                                      sizeof(*items));
        if (!items)
            return NULL;
        findings->items = items;
        findings->room = room;
    }
    struct finding *finding = &findings->items[findings->count++];
    *finding = (struct finding){
        .detector = detector,
        .title = "",
        .recoverable = {NAN, NAN, NAN},
        .cost_ns = NAN,
    };
    return finding;
}

void finding_fact(struct findings *findings, struct finding *finding, const char *name,
                  const char *title, struct value value, const char *artifact, const char *id)
{
    if (!finding)
        return;
    if (finding->fact_count == finding->fact_room) {
        size_t room = finding->fact_room > 0 ? finding->fact_room * 2 : FACTS_FIRST;
        struct finding_fact *facts = grown(findings->arena, finding->facts, finding->fact_count,
                                           room, sizeof(*facts));
        if (!facts)
            return;
        finding->facts = facts;
        finding->fact_room = room;
    }
    finding->facts[finding->fact_count++] = (struct finding_fact){
        .name = name, .title = title, .value = value, .artifact = artifact, .id = id};
}

void finding_why(struct findings *findings, struct finding *finding, const char *evidence,
                 const char *fmt, ...)
{
    if (!finding || finding->why_count == FINDING_WHYS_MAX)
        return;
    char text[1024];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof(text), fmt, arguments);
    va_end(arguments);
    finding->whys[finding->why_count++] = (struct finding_why){
        .text = arena_dup(findings->arena, text), .evidence = evidence};
}

unsigned finding_angles(const struct finding *finding, enum angle_verdict verdict)
{
    unsigned count = 0;
    for (int i = 0; i < ANGLES; i++)
        count += finding->angles[i].verdict == verdict;
    return count;
}

const char *finding_class_name(enum finding_class class)
{
    static const char *const names[FINDING_CLASSES] = {"fix", "context", "environment"};
    return names[class];
}

const char *finding_verdict_name(enum finding_verdict verdict)
{
    static const char *const names[] = {"confirmed", "dismissed", "not judged"};
    return names[verdict];
}

const char *finding_category_name(enum finding_category category)
{
    static const char *const names[CATEGORIES] = {"CPU",   "I/O-DB", "I/O-Network",  "I/O-File",
                                                  "Lock",  "Memory", "Architecture", "External",
                                                  "Cache", "Unknown"};
    return names[category];
}

const char *finding_owner_name(enum finding_owner owner)
{
    static const char *const names[FINDING_OWNERS] = {"unknown", "user", "library", "kernel",
                                                      "interpreter"};
    return names[owner];
}

const char *finding_remedy_name(enum finding_remedy remedy)
{
    static const char *const names[REMEDIES] = {"setting", "local",     "reuse",
                                                "batch",   "algorithm", "redesign"};
    return names[remedy];
}

const char *angle_name(enum angle angle)
{
    static const char *const names[ANGLES] = {"sampling", "tracing", "counting"};
    return names[angle];
}

const char *angle_verdict_name(enum angle_verdict verdict)
{
    static const char *const names[] = {"silent", "supports", "rejects"};
    return names[verdict];
}

static struct str base_name(struct str path)
{
    struct str name = path;
    while (path.len > 0)
        name = str_cut(&path, '/');
    return name;
}

const char *place_text(struct arena *arena, const struct place *place)
{
    if (place->function.len == 0)
        return "[unknown place]";
    /* A line of an interpreter is no line of the program that runs in it. */
    if (place->file.len > 0 && place->line > 0 && place->owner != FINDING_OWNER_INTERPRETER)
        return arena_printf(arena, "%.*s (%.*s:%u)", STR_FMT(place->function),
                            STR_FMT(base_name(place->file)), place->line);
    struct str image = base_name(place->image);
    if (image.len > 0)
        return arena_printf(arena, "%.*s (%.*s)", STR_FMT(place->function), STR_FMT(image));
    return arena_printf(arena, "%.*s", STR_FMT(place->function));
}
