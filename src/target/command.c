/* From a text to what exec needs. */
#include "target/command.h"

#include "base/log.h"
#include "base/redact.h"
#include "base/str.h"
#include "base/words.h"
#include "target/program.h"

#include <ctype.h>
#include <errno.h>
#include <unistd.h>

#define SYSTEM_SHELL "/bin/sh"

static bool keep_arguments;

void command_keep_arguments(bool keep)
{
    keep_arguments = keep;
}

bool command_arguments_are_kept(void)
{
    return keep_arguments;
}

/* What hides a secret reads better without quotes, and nobody can type it again anyway. */
static bool is_plain(const char *word)
{
    if (!*word)
        return false;
    for (const char *p = word; *p; p++) {
        if (strncmp(p, REDACTED, strlen(REDACTED)) == 0)
            p += strlen(REDACTED) - 1;
        else if (!isalnum((unsigned char)*p) && !strchr("_-./=:,+@%", *p))
            return false;
    }
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

const char *command_shown(struct arena *arena, char *const *argv)
{
    char **shown = keep_arguments ? (char **)argv : redact_argv(arena, argv, NULL);
    return shown ? command_quote(arena, shown) : "";
}

const char *command_text_shown(struct arena *arena, const char *text)
{
    return keep_arguments ? text : redact_line(arena, text, NULL);
}

unsigned command_secrets(struct arena *arena, char *const *argv)
{
    unsigned count = 0;
    return keep_arguments || !redact_argv(arena, argv, &count) ? 0 : count;
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
                       "run it through a shell (--shell sh, or as sh -c '...'), or put quotes "
                       "around what is meant literally",
                       "the command uses shell syntax (%s at position %zu), and there is no "
                       "shell: %s",
                       words.syntax, words.syntax_at, command_text_shown(arena, text));
    if (words.count == 0)
        return why_set(why, WHY_USAGE, EINVAL, "give a program and its arguments",
                       "the command is empty");
    struct command_line line = {.text = command_text_shown(arena, text), .argv = words.argv};
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
    struct command_line line = {
        .text = command_text_shown(arena, text), .argv = argv, .shell = true};
    /* As system() does: nobody has asked for whatever a folder of PATH calls "sh". */
    line.path = strcmp(argv[0], "sh") == 0 && access(SYSTEM_SHELL, X_OK) == 0 ? SYSTEM_SHELL : NULL;
    r = line.path ? 0 : find(arena, &line, why);
    if (r == 0)
        *ret = line;
    return r;
}

static const char *find_in(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    return NULL;
}

/* A first word that only a shell knows. Many builtins are programs, too: those need no shell. */
static const char *shell_word(const char *first)
{
    static const char *const keywords[] = {"!", "{", "case", "for", "if", "until", "while"};
    static const char *const builtins[] = {
        ".",    ":",      "[",      "alias",   "bg",    "cd",    "command",  "echo",
        "eval", "exec",   "exit",   "export",  "false", "fg",    "getopts",  "hash",
        "jobs", "kill",   "local",  "printf",  "pwd",   "read",  "readonly", "return",
        "set",  "shift",  "source", "test",    "time",  "times", "trap",     "true",
        "type", "ulimit", "umask",  "unalias", "unset", "wait",
    };
    char path[PATH_MAX];
    const char *found = find_in(keywords, ARRAY_SIZE(keywords), first);
    if (found)
        return found;
    found = find_in(builtins, ARRAY_SIZE(builtins), first);
    return found && program_find(found, path, NULL) < 0 ? found : NULL;
}

const char *command_shell_syntax(struct arena *arena, const char *text)
{
    struct words words;
    if (words_split(arena, text, &words, NULL) < 0)
        return NULL;
    const char *syntax = words.syntax ? words.syntax : words.pattern;
    return syntax || words.count == 0 ? syntax : shell_word(words.argv[0]);
}

const char *command_shell_for(struct arena *arena, const char *shell, const char *const *texts,
                              size_t count)
{
    for (size_t i = 0; i < count && !shell; i++) {
        const char *syntax = texts[i] ? command_shell_syntax(arena, texts[i]) : NULL;
        if (!syntax)
            continue;
        shell = "sh";
        log_info("run through sh, since %s needs a shell; its own cost is in every run", syntax);
    }
    return shell;
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
    line.text = command_shown(arena, argv);
    int r = find(arena, &line, why);
    if (r == 0)
        *ret = line;
    return r;
}
