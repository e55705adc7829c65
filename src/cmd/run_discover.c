/* The table of what builds have, and the search through it. */
#include "cmd/run_discover.h"

#include "base/fd.h"
#include "base/words.h"
#include "target/program.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20, ENTRIES_MAX = 400, SCAN_DEPTH_MAX = 2 };

enum kind { KIND_BENCH, KIND_TEST, KIND_SCRIPT };

struct rule {
    enum kind kind;
    const char *file; /* must be there; "*.go": any of that name */
    const char
        *needle;      /* must be in it; "^x": a line begins with x; "scripts.x": of package.json */
    const char *also; /* must be there, too; BUILD: a folder of the build, put in for %s */
    const char *command;
    const char *says; /* after the file's name: "has a target 'bench'" */
};

#define BUILD_NINJA "%s/build.ninja"
#define BUILD_CTEST "%s/CTestTestfile.cmake"

/* By kind first, then in this order. */
static const struct rule rules[] = {
    {KIND_BENCH, "Makefile", "^bench:", NULL, "make bench", "has a target 'bench'"},
    {KIND_BENCH, "Makefile", "^benchmark:", NULL, "make benchmark", "has a target 'benchmark'"},
    {KIND_BENCH, "meson.build", "benchmark(", BUILD_NINJA, "meson test -C %s --benchmark",
     "has benchmarks"},
    {KIND_BENCH, "Cargo.toml", NULL, "benches", "cargo bench", "has a folder 'benches' beside it"},
    {KIND_BENCH, "*_test.go", "func Benchmark", "go.mod", "go test -run ^$ -bench . ./...",
     "has benchmarks"},
    {KIND_BENCH, "package.json", "scripts.bench", NULL, "npm run --silent bench",
     "has a script 'bench'"},
    {KIND_TEST, "Makefile", "^test:", NULL, "make test", "has a target 'test'"},
    {KIND_TEST, "Makefile", "^check:", NULL, "make check", "has a target 'check'"},
    {KIND_TEST, "meson.build", "test(", BUILD_NINJA, "meson test -C %s", "has tests"},
    {KIND_TEST, "CMakeLists.txt", "test", BUILD_CTEST, "ctest --test-dir %s", "has tests"},
    {KIND_TEST, "Cargo.toml", NULL, NULL, "cargo test --release", "is there"},
    {KIND_TEST, "*_test.go", "func Test", "go.mod", "go test ./...", "has tests"},
    {KIND_TEST, "package.json", "scripts.test", NULL, "npm test --silent", "has a script 'test'"},
    {KIND_TEST, "pytest.ini", NULL, NULL, "python3 -m pytest -q", "is there"},
    {KIND_TEST, "pyproject.toml", "pytest", NULL, "python3 -m pytest -q", "names pytest"},
    {KIND_TEST, "test_*.py", "def test_", NULL, "python3 -m pytest -q", "has tests"},
    {KIND_SCRIPT, "e2e.sh", NULL, NULL, "sh e2e.sh", "is there"},
    {KIND_SCRIPT, "scripts/e2e.sh", NULL, NULL, "sh scripts/e2e.sh", "is there"},
    {KIND_SCRIPT, "bench.sh", NULL, NULL, "sh bench.sh", "is there"},
    {KIND_SCRIPT, "run_tests.sh", NULL, NULL, "sh run_tests.sh", "is there"},
    {KIND_SCRIPT, "test.sh", NULL, NULL, "sh test.sh", "is there"},
    {KIND_SCRIPT, "tests/run.sh", NULL, NULL, "sh tests/run.sh", "is there"},
};

struct search {
    struct arena *arena;
    const char *folder;
    const char *unmet; /* the first thing that was there but cannot be run; NULL */
};

static const char *path_in(const struct search *s, const char *name)
{
    return arena_printf(s->arena, "%s/%s", s->folder, name);
}

static bool lines_begin(struct str text, const char *prefix)
{
    while (text.len > 0)
        if (str_starts(str_cut(&text, '\n'), prefix))
            return true;
    return false;
}

/* npm's own placeholder prints an error and is no test. */
static bool script_is_there(struct str text, const char *name)
{
    json_t *json = json_loadb(text.data, text.len, 0, NULL);
    const char *script = json_string_value(json_object_get(json_object_get(json, "scripts"), name));
    bool there = script && !strstr(script, "no test specified");
    json_decref(json);
    return there;
}

static bool file_has(const struct search *s, const char *path, const char *needle)
{
    struct str text;
    struct why why = {0};
    if (!needle)
        return access(path, F_OK) == 0;
    if (file_read_regular(s->arena, path, FILE_BYTES_MAX, &text, &why) < 0)
        return false;
    if (strncmp(needle, "scripts.", 8) == 0)
        return script_is_there(text, needle + 8);
    return needle[0] == '^' ? lines_begin(text, needle + 1) : str_contains(text, needle);
}

/* '*' stands for anything, once. */
static bool name_fits(const char *name, const char *pattern)
{
    const char *star = strchr(pattern, '*');
    if (!star)
        return strcmp(name, pattern) == 0;
    size_t before = (size_t)(star - pattern), after = strlen(star + 1), len = strlen(name);
    return len >= before + after && strncmp(name, pattern, before) == 0 &&
           strcmp(name + len - after, star + 1) == 0;
}

static bool entry_is_hidden(const char *name)
{
    static const char *const others[] = {"node_modules", "target", "vendor", "whyslow-out"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return name[0] == '.';
}

/* The file in the folder or a few levels below; NULL: none. */
static const char *file_scan(const struct search *s, const char *folder, const struct rule *rule,
                             int depth, size_t *seen)
{
    DIR *dir = opendir(folder);
    const char *found = NULL;
    for (struct dirent *entry; dir && !found && *seen < ENTRIES_MAX && (entry = readdir(dir));) {
        struct stat st;
        if (entry_is_hidden(entry->d_name))
            continue;
        ++*seen;
        const char *path = arena_printf(s->arena, "%s/%s", folder, entry->d_name);
        if (lstat(path, &st) < 0)
            continue;
        if (S_ISREG(st.st_mode) && name_fits(entry->d_name, rule->file) &&
            file_has(s, path, rule->needle))
            found = path;
        else if (S_ISDIR(st.st_mode) && depth < SCAN_DEPTH_MAX)
            found = file_scan(s, path, rule, depth + 1, seen);
    }
    if (dir)
        closedir(dir);
    return found;
}

static const char *file_find(const struct search *s, const struct rule *rule)
{
    static const char *const makefiles[] = {"Makefile", "GNUmakefile", "makefile"};
    size_t seen = 0;
    if (strcmp(rule->file, "Makefile") == 0) {
        for (size_t i = 0; i < ARRAY_SIZE(makefiles); i++)
            if (file_has(s, path_in(s, makefiles[i]), rule->needle))
                return path_in(s, makefiles[i]);
        return NULL;
    }
    /* A build has one file at the top, and its tests often in one further down. */
    bool nested = strcmp(rule->file, "meson.build") == 0 ||
                  strcmp(rule->file, "CMakeLists.txt") == 0;
    if (nested && access(path_in(s, rule->file), F_OK) < 0)
        return NULL;
    if (nested || strchr(rule->file, '*'))
        return file_scan(s, s->folder, rule, 0, &seen);
    const char *path = path_in(s, rule->file);
    return file_has(s, path, rule->needle) ? path : NULL;
}

/* The folder of the build for %s, or "" where none is needed; NULL: what must be there is not. */
static const char *also_find(const struct search *s, const struct rule *rule)
{
    static const char *const builds[] = {"build", "builddir", "_build", "out"};
    if (!rule->also)
        return "";
    if (!strchr(rule->also, '%'))
        return access(path_in(s, rule->also), F_OK) == 0 ? "" : NULL;
    for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
        const char *file = strcmp(rule->also, BUILD_NINJA) == 0 ? "build.ninja"
                                                                : "CTestTestfile.cmake";
        if (access(path_in(s, arena_printf(s->arena, "%s/%s", builds[i], file)), F_OK) == 0)
            return builds[i];
    }
    return NULL;
}

static const char *command_fill(const struct search *s, const struct rule *rule, const char *build)
{
    const char *mark = strstr(rule->command, "%s");
    return mark ? arena_printf(s->arena, "%.*s%s%s", (int)(mark - rule->command), rule->command,
                               build, mark + 2)
                : rule->command;
}

static bool rule_try(struct search *s, const struct rule *rule, const char **ret_command,
                     const char **ret_why)
{
    char program[PATH_MAX];
    struct words words;
    const char *file = file_find(s, rule);
    if (!file)
        return false;
    const char *build = also_find(s, rule);
    const char *shown = file + strlen(s->folder) + 1;
    if (!build) {
        if (!s->unmet && strchr(rule->also, '%'))
            s->unmet = arena_printf(s->arena, "%s %s, but there is no configured build folder",
                                    shown, rule->says);
        return false;
    }
    const char *command = command_fill(s, rule, build);
    if (words_split(s->arena, command, &words, NULL) < 0 || words.count == 0 ||
        program_find(words.argv[0], program, NULL) < 0) {
        if (!s->unmet)
            s->unmet = arena_printf(s->arena, "%s %s, but '%s' is not installed", shown, rule->says,
                                    words.count ? words.argv[0] : command);
        return false;
    }
    *ret_command = command;
    *ret_why = arena_printf(s->arena, "%s %s", shown, rule->says);
    return true;
}

int run_discover(struct arena *arena, const char *folder, struct discovery *ret, struct why *why)
{
    struct search search = {.arena = arena, .folder = folder};
    struct discovery found = {0};
    const char *scenario = path_in(&search, "scenario.toml");
    struct stat st;
    if (stat(scenario, &st) == 0) {
        if (!S_ISREG(st.st_mode)) /* a pipe would be waited for */
            return why_set(why, WHY_USAGE, EINVAL, "move it away, or name a command",
                           "'%s' is not a regular file", scenario);
        *ret = (struct discovery){.scenario = scenario};
        return arena_failed(arena) ? why_nomem(why) : 0;
    }
    enum kind kind = KIND_BENCH;
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        if (!found.command && rule_try(&search, &rules[i], &found.command, &found.why))
            kind = rules[i].kind;
        else if (found.command && kind == KIND_BENCH && rules[i].kind == KIND_TEST && !found.check)
            rule_try(&search, &rules[i], &found.check, &found.check_why);
    }
    if (arena_failed(arena))
        return why_nomem(why);
    if (!found.command)
        return why_set(
            why, WHY_USAGE, ENOENT,
            arena_printf(arena, "name a command: cd '%s' && whyslow run -- ./app ARGUMENTS",
                         folder),
            "nothing to run was found in '%s'%s%s; looked for scenario.toml, targets bench, test "
            "and check of make, benchmarks and tests of meson, cmake, cargo, go, npm and pytest, "
            "and e2e.sh, bench.sh, run_tests.sh, test.sh",
            folder, search.unmet ? ": " : "", search.unmet ? search.unmet : "");
    *ret = found;
    return 0;
}
