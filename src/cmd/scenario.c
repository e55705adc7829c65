/* Reads and writes scenario.toml: what is written is read back as it was. */
#include "cmd/scenario.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/toml.h"
#include "cmd/run_artifacts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 1000000, ARGUMENTS_BYTES_MAX = 8 * 1024 * 1024 };

struct filler {
    struct arena *arena;
    const char *path;
    struct scenario *scenario;
    struct why *why;
};

static int refuse(const struct filler *f, const struct toml_entry *entry, const char *what)
{
    return why_set(f->why, WHY_USAGE, EINVAL, "see 'whyslow help bench'", "'%s', line %zu: %s %s",
                   f->path, entry->value.line, entry->key, what);
}

static int text_fill(const struct filler *f, const struct toml_entry *entry, void *field)
{
    if (entry->value.kind != TOML_TEXT)
        return refuse(f, entry, "must be a text");
    *(const char **)field = entry->value.text;
    return 0;
}

static int count_fill(const struct filler *f, const struct toml_entry *entry, void *field)
{
    const struct toml_value *value = &entry->value;
    if (value->kind != TOML_INT || value->integer < 0 || value->integer > RUNS_MAX)
        return refuse(f, entry, "must be a whole number from 0 to 1000000");
    *(uint32_t *)field = (uint32_t)value->integer;
    f->scenario->has_warmup = f->scenario->has_warmup || field == &f->scenario->warmup;
    return 0;
}

static int seconds_fill(const struct filler *f, const struct toml_entry *entry, void *field)
{
    const struct toml_value *value = &entry->value;
    double seconds = value->kind == TOML_REAL  ? value->real
                     : value->kind == TOML_INT ? (double)value->integer
                                               : NAN;
    if (!(seconds > 0 && seconds < 1e9))
        return refuse(f, entry, "must be a number of seconds above 0");
    *(uint64_t *)field = (uint64_t)llround(seconds * 1e9);
    return 0;
}

static int command_fill(const struct filler *f, const struct toml_entry *entry, void *field)
{
    (void)field;
    if (entry->value.kind == TOML_TEXT && entry->value.text[0]) {
        f->scenario->text = entry->value.text;
        return 0;
    }
    if (entry->value.kind != TOML_LIST || entry->value.list.len == 0)
        return refuse(f, entry, "must be a text or a list of texts, and not empty");
    f->scenario->argv = entry->value.list.items;
    return 0;
}

/* Earlier versions wrote the hash under a name of its own. */
static int golden_hash_fill(const struct filler *f, const struct toml_entry *entry, void *field)
{
    if (entry->value.kind != TOML_TEXT)
        return refuse(f, entry, "must be a text");
    *(const char **)field = arena_printf(f->arena, "sha256:%s", entry->value.text);
    return 0;
}

static const struct {
    const char *key;
    int (*fill)(const struct filler *f, const struct toml_entry *entry, void *field);
    size_t offset;
} keys[] = {
    {"command", command_fill, 0},
    {"folder", text_fill, offsetof(struct scenario, folder)},
    {"input", text_fill, offsetof(struct scenario, input)},
    {"metric", text_fill, offsetof(struct scenario, metric)},
    {"runs", count_fill, offsetof(struct scenario, runs)},
    {"warmup", count_fill, offsetof(struct scenario, warmup)},
    {"budget_s", seconds_fill, offsetof(struct scenario, budget_ns)},
    {"timeout_s", seconds_fill, offsetof(struct scenario, timeout_ns)},
    {"golden", text_fill, offsetof(struct scenario, golden)},
    {"golden_output_sha256", golden_hash_fill, offsetof(struct scenario, golden)},
    {"run_id", text_fill, offsetof(struct scenario, run_id)},
    {"arguments_file", text_fill, offsetof(struct scenario, arguments_file)},
};

#define HEX_ENDING "_hex"

static int hex_read(const struct filler *f, const struct toml_entry *entry, const char *hex,
                    const char **ret)
{
    size_t len = strlen(hex) / 2;
    char *bytes = arena_alloc(f->arena, len + 1);
    if (!bytes)
        return why_nomem(f->why);
    for (size_t i = 0; i < len; i++) {
        uint64_t byte;
        if (str_to_u64((struct str){hex + 2 * i, 2}, 16, &byte) < 0 || byte == 0)
            return refuse(f, entry, "must be bytes as two hex digits each, and not 00");
        bytes[i] = (char)byte;
    }
    if (strlen(hex) % 2 != 0)
        return refuse(f, entry, "must be bytes as two hex digits each, and not 00");
    bytes[len] = '\0';
    *ret = bytes;
    return 0;
}

/* "command_hex": a text that is no UTF-8, which TOML cannot have otherwise. */
static int hex_undo(const struct filler *f, struct toml_entry *entry)
{
    size_t len = strlen(entry->key);
    if (len <= strlen(HEX_ENDING) || strcmp(entry->key + len - strlen(HEX_ENDING), HEX_ENDING) != 0)
        return 0;
    int r = 0;
    if (entry->value.kind == TOML_TEXT)
        r = hex_read(f, entry, entry->value.text, &entry->value.text);
    for (size_t i = 0; entry->value.kind == TOML_LIST && i < entry->value.list.len && r == 0; i++) {
        const char *bytes = NULL;
        r = hex_read(f, entry, entry->value.list.items[i], &bytes);
        entry->value.list.items[i] = (char *)bytes; /* the arena's, as the list is */
    }
    entry->key = arena_dup_len(f->arena, entry->key, len - strlen(HEX_ENDING));
    return r;
}

static int entry_fill(const struct filler *f, struct toml_entry *entry)
{
    int r = hex_undo(f, entry);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(keys[i].key, entry->key) == 0)
            return keys[i].fill(f, entry, (char *)f->scenario + keys[i].offset);
    return refuse(f, entry, "is no key of a scenario");
}

/* Relative to the file, not to where whyslow happens to be started. */
static const char *folder_resolve(struct arena *arena, const char *path, const char *folder)
{
    const char *slash = strrchr(path, '/');
    if (!folder || folder[0] == '/' || !slash)
        return folder;
    return arena_printf(arena, "%.*s/%s", (int)(slash - path), path, folder);
}

/* Words that end with a NUL each. */
static int arguments_read(struct arena *arena, const char *path, struct scenario *scenario,
                          struct why *why)
{
    const char *file = folder_resolve(arena, path, scenario->arguments_file);
    struct str text;
    int r = file_read_regular(arena, file, ARGUMENTS_BYTES_MAX, &text, why);
    if (r < 0) {
        why_set_remedy(why, "its command held secrets: give it anew, whyslow run -- COMMAND");
        return r;
    }
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\0';
    if (count == 0 || text.data[text.len - 1] != '\0')
        return why_set(why, WHY_USAGE, EINVAL, "give the command anew: whyslow run -- COMMAND",
                       "'%s' holds no command: words that end with a NUL each", file);
    char **argv = arena_alloc(arena, (count + 1) * sizeof(*argv));
    if (!argv)
        return why_nomem(why);
    for (size_t i = 0; i < count; i++) {
        struct str word = str_cut(&text, '\0');
        argv[i] = (char *)arena_dup_len(arena, word.data, word.len);
    }
    scenario->argv = argv;
    return 0;
}

int scenario_read(struct arena *arena, const char *path, struct scenario *ret, struct why *why)
{
    struct str text;
    struct toml toml = {0};
    int r = file_read(arena, path, TOML_BYTES_MAX, &text, why);
    if (r == 0)
        r = toml_parse(arena, path, text, &toml, why);
    if (r < 0)
        return r;
    struct scenario scenario = {0};
    struct filler filler = {.arena = arena, .path = path, .scenario = &scenario, .why = why};
    for (size_t i = 0; i < toml.len; i++) {
        r = entry_fill(&filler, &toml.entries[i]);
        if (r < 0)
            return r;
    }
    if (!scenario.argv && !scenario.text)
        return why_set(why, WHY_USAGE, EINVAL,
                       "add a line: command = [\"./app\", \"--size\", \"10\"]",
                       "'%s' has no command", path);
    if (scenario.arguments_file) {
        r = arguments_read(arena, path, &scenario, why);
        if (r < 0)
            return r;
    }
    scenario.folder = folder_resolve(arena, path, scenario.folder);
    if (arena_failed(arena))
        return why_nomem(why);
    *ret = scenario;
    return 0;
}

static bool is_utf8(const char *text)
{
    int32_t code;
    for (struct str rest = str_from(text); rest.len > 0;) {
        size_t n = utf8_decode(rest, &code);
        if (code < 0)
            return false;
        rest = (struct str){rest.data + n, rest.len - n};
    }
    return true;
}

/* As text, or as the bytes it has. */
static void value_print(FILE *out, const char *value, bool hex)
{
    if (!hex) {
        toml_text_print(out, str_from(value));
        return;
    }
    fputc('"', out);
    for (; *value; value++)
        fprintf(out, "%02x", (unsigned char)*value);
    fputc('"', out);
}

static void text_line(FILE *out, const char *key, const char *value)
{
    if (!value)
        return;
    bool hex = !is_utf8(value);
    fprintf(out, "%s%s = ", key, hex ? HEX_ENDING : "");
    value_print(out, value, hex);
    fputc('\n', out);
}

static void command_line_print(FILE *out, const struct scenario *scenario)
{
    char *const *argv = scenario->shown ? scenario->shown : scenario->argv;
    if (!argv) {
        text_line(out, "command", scenario->text);
        return;
    }
    bool hex = false;
    for (size_t i = 0; argv[i]; i++)
        hex = hex || !is_utf8(argv[i]);
    fprintf(out, "command%s = [", hex ? HEX_ENDING : "");
    for (size_t i = 0; argv[i]; i++) {
        fputs(i ? ", " : "", out);
        value_print(out, argv[i], hex);
    }
    fputs("]\n", out);
    if (scenario->shown)
        text_line(out, "arguments_file", ARGUMENTS_FILE);
}

static int arguments_write(const char *folder, char *const *argv, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return why_nomem(why);
    for (size_t i = 0; argv[i]; i++)
        fwrite(argv[i], 1, strlen(argv[i]) + 1, out);
    int r = fclose(out) != 0 ? why_nomem(why)
                             : artifact_write(folder, ARGUMENTS_FILE, text, len, why);
    free(text);
    return r;
}

static void scenario_print(FILE *out, const struct scenario *scenario)
{
    fputs("# What was measured. Keep it beside the program to measure the same again.\n", out);
    command_line_print(out, scenario);
    text_line(out, "folder", scenario->folder);
    text_line(out, "input", scenario->input);
    text_line(out, "metric", scenario->metric);
    if (scenario->runs > 0)
        fprintf(out, "runs = %u\n", scenario->runs);
    if (scenario->has_warmup)
        fprintf(out, "warmup = %u\n", scenario->warmup);
    if (scenario->budget_ns > 0)
        fprintf(out, "budget_s = %.3f\n", (double)scenario->budget_ns / 1e9);
    if (scenario->timeout_ns > 0)
        fprintf(out, "timeout_s = %.3f\n", (double)scenario->timeout_ns / 1e9);
    text_line(out, "golden", scenario->golden);
    text_line(out, "run_id", scenario->run_id);
}

int scenario_write(const char *folder, const struct scenario *scenario, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return why_nomem(why);
    scenario_print(out, scenario);
    if (fclose(out) != 0) {
        free(text);
        return why_nomem(why);
    }
    int r = scenario->shown ? arguments_write(folder, scenario->argv, why) : 0;
    if (r == 0)
        r = artifact_write(folder, "scenario.toml", text, len, why);
    free(text);
    return r;
}
