/* doctor: what this machine is, what would spoil a measurement on it, and what can be
 * measured. Reads, asks the tables of host/ and collect/, and changes nothing. */
#include "cmd/cmd.h"

#include "cmd/doctor_target.h"
#include "collect/collectors.h"
#include "host/checks.h"
#include "host/fingerprint.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

struct doctor_opts {
    struct output_opts output;
    const char *target;
    bool strict;
    bool diff;
    bool all;
    const char *root;
};

static const struct opt doctor_options[] = {
    {"for", 0, OPT_FILE, offsetof(struct doctor_opts, target), "BINARY|PID",
     "look also at how this program was built, or at this process", NULL, NULL, false},
    {"strict", 0, OPT_FLAG, offsetof(struct doctor_opts, strict), NULL,
     "exit 1 if a check failed (with --diff: 1 if not comparable, 3 if it cannot be told)", NULL,
     NULL, false},
    {"diff", 0, OPT_FLAG, offsetof(struct doctor_opts, diff), NULL,
     "name the fields that make two results incomparable: takes two JSON files", NULL, NULL, false},
    {"all", 0, OPT_FLAG, offsetof(struct doctor_opts, all), NULL,
     "show every field of the fingerprint (JSON always has them all)", NULL, NULL, false},
    {"root", 0, OPT_FILE, offsetof(struct doctor_opts, root), "DIR",
     "read the facts of a captured machine: DIR holds its proc/, sys/ and etc/", NULL, NULL, false},
    OUTPUT_OPTIONS(struct doctor_opts, output),
    {0},
};

/* What one run of doctor knows. */
struct doctor {
    const struct doctor_opts *opts;
    struct arena *arena;
    struct host host;
    struct doctor_target target; /* path NULL when none was named */
    struct build_info binary;
    const char *binary_na; /* NULL when `binary` is filled */
    double resident_share; /* NaN when not known */
    struct value fingerprint;
    struct value checks;
    struct value collectors;
    unsigned failed;
    unsigned warned;
    const char *tier; /* NULL when nothing was probed */
};

/* "n/a" alone where a fact is missing: the overview is short, --all has the reasons. */
static const char *say(const struct doctor *doctor, const char *path)
{
    const struct value *value = value_find(&doctor->fingerprint, path);
    if (!value || value->kind == VALUE_NA)
        return "n/a";
    char buffer[600];
    struct str text = value_display(value, buffer, sizeof(buffer));
    return arena_dup_len(doctor->arena, text.data, text.len);
}

static const char *tools_present(const struct doctor *doctor)
{
    const struct value *tools = value_get(&doctor->fingerprint, "toolchain");
    const char *present = "";
    for (const struct value_item *item = tools && tools->items ? tools->items->first : NULL; item;
         item = item->next)
        if (item->value.kind == VALUE_TEXT && strcmp(item->key, "whyslow") != 0)
            present = arena_printf(doctor->arena, "%s%s%s", present, *present ? ", " : "",
                                   strcmp(item->key, "libc") == 0 ? say(doctor, "toolchain.libc")
                                                                  : item->key);
    return *present ? present : "n/a";
}

static struct value overview(const struct doctor *doctor)
{
    struct arena *arena = doctor->arena;
    struct value map = value_map(arena);
#define LINE(key, title, ...)                                                                      \
    value_put(&map, key, title, value_text(arena_printf(arena, __VA_ARGS__)))
#define SAY(path) say(doctor, path)
    LINE("cpu", "CPU", "%s; %s cores, %s threads, SMT %s", SAY("cpu.model"), SAY("cpu.cores"),
         SAY("cpu.threads"), SAY("cpu.smt"));
    LINE("clock", "clock", "governor %s; turbo %s; at most %s", SAY("cpu.governor"),
         SAY("cpu.turbo"), SAY("cpu.freq_max_hz"));
    LINE("memory", "memory", "%s, %s available; swap %s, %s used; huge pages %s",
         SAY("memory.total_bytes"), SAY("memory.available_bytes"), SAY("memory.swap_total_bytes"),
         SAY("memory.swap_used_bytes"), SAY("memory.thp"));
    LINE("storage", "storage", "%s, %s on %s, %s free", SAY("storage.kind"),
         SAY("storage.filesystem"), SAY("storage.device"), SAY("storage.free_bytes"));
    LINE("kernel", "kernel", "%s %s; %s; clock source %s", SAY("kernel.release"),
         SAY("kernel.arch"), SAY("kernel.distribution"), SAY("kernel.clocksource"));
    LINE("isolation", "isolation", "container %s, VM %s; CPUs %s; limits: CPU %s, memory %s",
         SAY("isolation.container"), SAY("isolation.vm"), SAY("isolation.affinity"),
         SAY("isolation.cpu_limit"), SAY("isolation.memory_limit_bytes"));
    LINE("noise", "noise", "load %s, %s tasks running, steal %s now, %s since boot",
         SAY("isolation.load_1m"), SAY("isolation.tasks_running"),
         SAY("isolation.steal_now_percent"), SAY("isolation.steal_boot_percent"));
    LINE("toolchain", "toolchain", "%s", tools_present(doctor));
    LINE("run", "run", "%s; git %.12s", SAY("run.id"), SAY("run.git_revision"));
#undef SAY
#undef LINE
    return map;
}

static int target_read(struct doctor *doctor, struct why *why)
{
    doctor->resident_share = NAN;
    doctor->binary_na = "no program was named; use --for BINARY or PID";
    if (!doctor->opts->target)
        return 0;
    int r = doctor_target_find(doctor->arena, doctor->opts->target, &doctor->target, why);
    if (r < 0)
        return r;
    if (doctor->target.pid && doctor->opts->root)
        return why_set(why, WHY_USAGE, EINVAL, "name the binary, or leave out --root",
                       "a captured machine has no running process %d", doctor->target.pid);
    /* Before anything reads the file and warms it up. */
    if (fingerprint_resident_share(doctor->target.path, &doctor->resident_share) < 0)
        doctor->resident_share = NAN;
    r = build_info_read(doctor->arena, doctor->target.path, &doctor->binary, why);
    if (r < 0)
        return r;
    doctor->binary_na = NULL;
    return 0;
}

static void fingerprint_take(struct doctor *doctor)
{
    struct fingerprint_input input = {
        .host = &doctor->host,
        .binary = doctor->binary_na ? NULL : &doctor->binary,
        .binary_na = doctor->binary_na,
        .pid = doctor->target.pid,
        .folder = host_is_live(&doctor->host) ? "." : "/",
        .resident_share = isnan(doctor->resident_share) ? NULL : &doctor->resident_share,
    };
    doctor->fingerprint = fingerprint_read(&input);
}

static const struct table_row *rows_of(const struct value *table)
{
    return table->kind == VALUE_TABLE && table->table ? table->table->first : NULL;
}

static void checks_take(struct doctor *doctor)
{
    struct check_input input = {
        .host = &doctor->host,
        .binary = doctor->binary_na ? NULL : &doctor->binary,
        .binary_na = doctor->binary_na,
        .pid = doctor->target.pid,
        .output_folder = ".",
    };
    doctor->checks = checks_table(&input, &doctor->failed);
    for (const struct table_row *row = rows_of(&doctor->checks); row; row = row->next)
        doctor->warned += str_is(table_text(doctor->checks.table, row, "verdict"), "warn");
}

/* The best tier any collector reaches; each row says its own. */
static void collectors_take(struct doctor *doctor)
{
    static const struct column none[] = {{"collector", "collector", SHOW_ALWAYS, false, false}};
    if (!host_is_live(&doctor->host)) {
        doctor->collectors = value_table(doctor->arena, none, ARRAY_SIZE(none));
        if (doctor->collectors.table)
            doctor->collectors.table
                ->empty = "not probed: what is permitted shows only on the machine itself";
        return;
    }
    doctor->collectors = collectors_table(doctor->arena);
    for (int tier = TIER_KERNEL; tier >= TIER_NONE && !doctor->tier; tier--)
        for (const struct table_row *row = rows_of(&doctor->collectors); row; row = row->next)
            if (str_is(table_text(doctor->collectors.table, row, "tier"), tier_name(tier)))
                doctor->tier = tier_name(tier);
}

/* The mending of the worst finding, or else the step that follows doctor. */
static const char *next_command(const struct doctor *doctor)
{
    static const char *const verdicts[] = {"fail", "warn"};
    for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
        for (const struct table_row *row = rows_of(&doctor->checks); row; row = row->next) {
            struct str mend = table_text(doctor->checks.table, row, "mend");
            if (str_is(table_text(doctor->checks.table, row, "verdict"), verdicts[i]) &&
                mend.len > 0)
                return arena_dup_len(doctor->arena, mend.data, mend.len);
        }
    if (doctor->target.path && doctor->target.pid == 0)
        return arena_printf(doctor->arena, "whyslow run -- %s", doctor->opts->target);
    return doctor->target.pid ? "whyslow tune list" : "whyslow doctor --for ./your-program";
}

static struct value summary(const struct doctor *doctor)
{
    struct value map = value_map(doctor->arena);
    value_put_machine(&map, "failed", value_uint(doctor->failed, UNIT_NONE));
    value_put_machine(&map, "warned", value_uint(doctor->warned, UNIT_NONE));
    const char *text = arena_printf(doctor->arena, "%u %s failed, %u %s; tier: %s", doctor->failed,
                                    doctor->failed == 1 ? "check" : "checks", doctor->warned,
                                    doctor->warned == 1 ? "warning" : "warnings",
                                    doctor->tier ? doctor->tier : "n/a");
    value_put(&map, "text", "result",
              value_tone(value_text(text), doctor->failed   ? TONE_BAD
                                           : doctor->warned ? TONE_WARN
                                                            : TONE_GOOD));
    value_put(&map, "next", "next", value_text(next_command(doctor)));
    return map;
}

/* In text the overview stands for the fingerprint: only what the target tells is shown as a
 * whole, unless everything was asked for. */
static bool is_shown(const struct doctor *doctor, const char *group)
{
    bool target = strcmp(group, "build") == 0 || strcmp(group, "cache") == 0;
    return target ? !doctor->binary_na : doctor->opts->all;
}

static void fingerprint_put(const struct doctor *doctor, struct value *root)
{
    const struct value_items *groups = doctor->fingerprint.items;
    bool any = false;
    for (struct value_item *item = groups ? groups->first : NULL; item; item = item->next) {
        item->show = is_shown(doctor, item->key) ? SHOW_ALWAYS : SHOW_MACHINE;
        any = any || item->show == SHOW_ALWAYS;
    }
    if (any)
        value_put(root, "fingerprint", doctor->opts->all ? "Fingerprint" : "Target",
                  doctor->fingerprint);
    else
        value_put_machine(root, "fingerprint", doctor->fingerprint);
}

/* People see the checks that found something; the rest is a list of names. */
static void checks_fold(const struct doctor *doctor, struct value *root)
{
    static const struct {
        const char *verdict, *key, *title;
    } folds[] = {{"ok", "passed", "passed"}, {"n/a", "not_applicable", "not applicable here"}};
    if (doctor->opts->all)
        return;
    struct value folded = value_map(doctor->arena);
    for (size_t i = 0; i < ARRAY_SIZE(folds); i++) {
        const char *names = "";
        for (struct table_row *row = doctor->checks.table ? doctor->checks.table->first : NULL; row;
             row = row->next) {
            if (!str_is(table_text(doctor->checks.table, row, "verdict"), folds[i].verdict))
                continue;
            row->show = SHOW_MACHINE;
            struct str name = table_text(doctor->checks.table, row, "check");
            names = arena_printf(doctor->arena, "%s%s%.*s", names, *names ? ", " : "",
                                 STR_FMT(name));
        }
        if (*names)
            value_put(&folded, folds[i].key, folds[i].title, value_text(names));
    }
    if (doctor->checks.table)
        doctor->checks.table->empty = "nothing that would spoil a measurement";
    value_put(root, "checks_in_short", "Checks in short", folded);
}

static int doctor_draw(const struct cmd_call *call, const struct doctor *doctor, struct why *why)
{
    struct value root = value_map(doctor->arena);
    if (doctor->opts->root)
        value_put(&root, "root", "facts read from", value_text(doctor->opts->root));
    value_put_machine(&root, "tier",
                      doctor->tier
                          ? value_text(doctor->tier)
                          : value_na("not probed: the facts are those of a captured machine"));
    value_put(&root, "overview", "Machine", overview(doctor));
    fingerprint_put(doctor, &root);
    value_put(&root, "checks", "Before measuring", doctor->checks);
    checks_fold(doctor, &root);
    value_put(&root, "collectors", "What can be measured here", doctor->collectors);
    value_put(&root, "summary", "Summary", summary(doctor));
    if (arena_failed(doctor->arena))
        return why_nomem(why);
    struct report report = {.schema = "whyslow.doctor/1", .root = &root};
    return cmd_render(call, &doctor->opts->output, &report, why);
}

static size_t rows_with(const struct value *table, const char *verdict)
{
    size_t count = 0;
    for (const struct table_row *row = rows_of(table); row; row = row->next)
        count += str_is(table_text(table->table, row, "verdict"), verdict);
    return count;
}

/* Yes, no, or why it cannot be told. */
static const char *diff_verdict(struct arena *arena, const struct value *table,
                                unsigned incomparable, struct value *ret_comparable)
{
    size_t unknown = rows_with(table, "unknown"), caution = rows_with(table, "caution");
    *ret_comparable = value_bool(incomparable == 0);
    if (incomparable > 0)
        return arena_printf(arena, "not comparable: %u %s", incomparable,
                            incomparable == 1 ? "field forbids it" : "fields forbid it");
    if (unknown > 0) {
        const char *reason = arena_printf(arena, "%zu %s must match, known in one file only",
                                          unknown, unknown == 1 ? "field that" : "fields that");
        *ret_comparable = value_na(reason);
        return arena_printf(arena, "cannot be told: %s", reason);
    }
    return caution > 0 ? arena_printf(arena, "comparable, with caution: %zu %s", caution,
                                      caution == 1 ? "field differs" : "fields differ")
                       : "comparable";
}

static int diff_run(const struct cmd_call *call, struct arena *arena, struct why *why)
{
    const struct doctor_opts *opts = call->opts;
    if (call->argc != 2)
        return why_set(why, WHY_USAGE, EINVAL, "whyslow doctor --diff A.json B.json",
                       "--diff needs two JSON files, not %d", call->argc);
    struct value table, comparable;
    unsigned incomparable;
    int r = fingerprint_diff(arena, call->argv[0], call->argv[1], &table, &incomparable, why);
    if (r < 0)
        return r;
    struct value root = value_map(arena);
    const char *verdict = diff_verdict(arena, &table, incomparable, &comparable);
    bool open = comparable.kind == VALUE_NA;
    value_put(&root, "a", "a", value_text(call->argv[0]));
    value_put(&root, "b", "b", value_text(call->argv[1]));
    value_put_machine(&root, "comparable", comparable);
    value_put_machine(&root, "incomparable", value_uint(incomparable, UNIT_NONE));
    value_put(&root, "verdict", "verdict",
              value_tone(value_text(verdict), incomparable              ? TONE_BAD
                                              : open || rows_of(&table) ? TONE_WARN
                                                                        : TONE_GOOD));
    value_put(&root, "differences", "Differences", table);
    if (arena_failed(arena))
        return why_nomem(why);
    struct report report = {.schema = "whyslow.fingerprint-diff/1", .root = &root};
    r = cmd_render(call, &opts->output, &report, why);
    if (r < 0)
        return r;
    return !opts->strict  ? EXIT_DONE
           : incomparable ? EXIT_REGRESSION
           : open         ? EXIT_INCONCLUSIVE
                          : EXIT_DONE;
}

static int root_check(const char *root, struct why *why)
{
    struct stat st;
    if (!root)
        return 0;
    if (stat(root, &st) < 0)
        return why_errno(why, errno, "name the folder of a capture", "cannot look at '%s'", root);
    if (root[0] == '\0' || !S_ISDIR(st.st_mode))
        return why_set(why, WHY_USAGE, ENOTDIR, "name the folder of a capture", "'%s' is no folder",
                       root);
    return 0;
}

static int doctor_run(const struct cmd_call *call, struct why *why)
{
    const struct doctor_opts *opts = call->opts;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    if (opts->diff)
        return diff_run(call, &arena, why);
    if (call->argc > 0)
        return why_set(why, WHY_USAGE, EINVAL, "whyslow doctor --for BINARY|PID",
                       "'%s' stands alone: a program is named with --for", call->argv[0]);
    struct doctor doctor = {.opts = opts,
                            .arena = &arena,
                            .host = {.root = opts->root ? opts->root : "", .arena = &arena}};
    int r = root_check(opts->root, why);
    if (r < 0)
        return r;
    r = target_read(&doctor, why);
    if (r < 0)
        return r;
    fingerprint_take(&doctor);
    checks_take(&doctor);
    collectors_take(&doctor);
    r = doctor_draw(call, &doctor, why);
    if (r < 0)
        return r;
    return opts->strict && doctor.failed > 0 ? EXIT_REGRESSION : EXIT_DONE;
}

static const struct cmd_example doctor_examples[] = {
    {"whyslow doctor", "this machine: facts, checks, what can be measured"},
    {"whyslow doctor --for ./app", "the same, and how ./app was built"},
    {"whyslow doctor --for 4711 --strict", "a running process; exit 1 if a check fails"},
    {"whyslow doctor --json > here.json", "keep the fingerprint"},
    {"whyslow doctor --diff here.json there.json", "may results of these two be compared?"},
    {0},
};

const struct command cmd_doctor = {
    .name = "doctor",
    .group = "Prepare the machine",
    .operands = "[A.json B.json]",
    .summary = "what this machine is, what would spoil a run, what can be measured",
    .about =
        "Prints the fingerprint of the machine (CPU, memory, storage, kernel, isolation, "
        "toolchain), "
        "the pre-flight checks with what each failure spoils and the command that mends it, and "
        "for each collector which tier is available here and why not a higher one. Nothing is "
        "changed. What cannot be known is shown as n/a with the reason.\n\n"
        "--for names a program or a process: how it was built is then read from the file itself, "
        "and the affinity and cgroup shown are those of the process. A bare name is looked for "
        "on PATH; a number is a process.\n\n"
        "--diff compares the fingerprints in two JSON files (of doctor, or any with a "
        "'fingerprint' member): 'incomparable' fields forbid a comparison, 'caution' fields may "
        "explain a difference, 'unknown' fields would forbid it but are known in one file only.",
    .options = doctor_options,
    .options_size = sizeof(struct doctor_opts),
    .stop = OPT_MIXED,
    .operands_max = 2,
    .examples = doctor_examples,
    .run = doctor_run,
};
