/* From a text to what exec needs. */
#include "target/command.h"

#include "base/str.h"
#include "base/words.h"
#include "target/program.h"

#include <ctype.h>
#include <errno.h>

static bool is_plain(const char *word)
{
    if (!*word)
        return false;
    for (const char *p = word; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("_-./=:,+@%", *p))
            return false;
    return true;
}

const char *command_quote(struct arena *arena, char *const *argv)
{
    const char *all = "";
    for (size_t i = 0; argv[i]; i++) {
        const char *word = argv[i];
        if (!is_plain(word)) {
            const char *quoted = "'";
            struct str rest = str_from(word);
            while (rest.len > 0) {
                struct str part = str_cut(&rest, '\'');
                bool more = part.data + part.len < word + strlen(word);
                quoted = arena_printf(arena, "%s%.*s%s", quoted, STR_FMT(part),
                                      more ? "'\\''" : "");
            }
            word = arena_printf(arena, "%s'", quoted);
        }
        all = arena_printf(arena, "%s%s%s", all, i ? " " : "", word);
    }
    return all;
}

static int find(struct arena *arena, struct command_line *line, struct why *why)
{
    char path[PATH_MAX];
    int r = program_find(line->argv[0], path, why);
    if (r < 0)
        return r;
    line->path = arena_dup(arena, path);
    return arena_failed(arena) ? why_nomem(why) : 0;
}

static int parse_plain(struct arena *arena, const char *text, struct command_line *ret,
                       struct why *why)
{
    struct words words;
    int r = words_split(arena, text, &words, why);
    if (r < 0)
        return r;
    if (words.syntax)
        return why_set(why, WHY_USAGE, EINVAL,
                       "run it through a shell with --shell sh, or put quotes around what is "
                       "meant literally",
                       "the command uses shell syntax (%s at position %zu), and there is no "
                       "shell: %s",
                       words.syntax, words.syntax_at, text);
    if (words.count == 0)
        return why_set(why, WHY_USAGE, EINVAL, "give a program and its arguments",
                       "the command is empty");
    struct command_line line = {.text = text, .argv = words.argv};
    r = find(arena, &line, why);
    if (r == 0)
        *ret = line;
    return r;
}

static int parse_shell(struct arena *arena, const char *text, const char *shell,
                       struct command_line *ret, struct why *why)
{
    struct words words;
    int r = words_split(arena, shell, &words, why);
    if (r < 0)
        return r;
    if (words.count == 0 || words.syntax)
        return why_set(why, WHY_USAGE, EINVAL, "name a shell, e.g. --shell sh",
                       "'%s' names no shell", shell);
    char **argv = arena_alloc(arena, (words.count + 3) * sizeof(*argv));
    char *copy = arena_alloc(arena, strlen(text) + 1);
    char *flag = arena_alloc(arena, sizeof("-c"));
    if (!argv || !copy || !flag)
        return why_nomem(why);
    memcpy(argv, words.argv, words.count * sizeof(*argv));
    argv[words.count] = memcpy(flag, "-c", sizeof("-c"));
    argv[words.count + 1] = memcpy(copy, text, strlen(text) + 1);
    struct command_line line = {.text = text, .argv = argv, .shell = true};
    r = find(arena, &line, why);
    if (r == 0)
        *ret = line;
    return r;
}

int command_line_parse(struct arena *arena, const char *text, const char *shell,
                       struct command_line *ret, struct why *why)
{
    return shell ? parse_shell(arena, text, shell, ret, why) : parse_plain(arena, text, ret, why);
}

int command_line_from_argv(struct arena *arena, char *const *argv, struct command_line *ret,
                           struct why *why)
{
    size_t count = 0;
    while (argv[count])
        count++;
    if (count == 0)
        return why_set(why, WHY_USAGE, EINVAL, "give a program and its arguments",
                       "the command is empty");
    char **copy = arena_alloc(arena, (count + 1) * sizeof(*copy));
    if (!copy)
        return why_nomem(why);
    memcpy(copy, argv, count * sizeof(*copy));
    struct command_line line = {.argv = copy};
    line.text = command_quote(arena, argv);
    int r = find(arena, &line, why);
    if (r == 0)
        *ret = line;
    return r;
}
