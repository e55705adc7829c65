/* tune: the kernel's knobs. Shows, asks, remembers, changes, and puts back. */
#include "cmd/cmd.h"

#include "base/fd.h"
#include "host/knobs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tune_opts {
    struct output_opts output;
    bool yes;
    bool force;
    const char *root;
};

static const struct opt tune_options[] = {
    {"yes", 'y', OPT_FLAG, offsetof(struct tune_opts, yes), NULL,
     "apply without asking, for scripts", NULL, NULL, false},
    {"force", 0, OPT_FLAG, offsetof(struct tune_opts, force), NULL,
     "revert also what somebody else has changed since", NULL, NULL, false},
    {"root", 0, OPT_FILE, offsetof(struct tune_opts, root), "DIR",
     "work on the files below DIR instead of on this machine", NULL, NULL, false},
    OUTPUT_OPTIONS(struct tune_opts, output),
    {0},
};

struct tune {
    const struct cmd_call *call;
    const struct tune_opts *opts;
    struct arena *arena;
    struct host host;
    char **names; /* of knobs */
    int count;
};

static int draw(const struct tune *tune, const struct value *root, struct why *why)
{
    if (arena_failed(tune->arena))
        return why_nomem(why);
    struct report report = {.schema = "whyslow.tune/1", .root = root};
    return cmd_render(tune->call, &tune->opts->output, &report, why);
}

static struct value root_make(const struct tune *tune, const char *action)
{
    struct value root = value_map(tune->arena);
    value_put_machine(&root, "action", value_text(action));
    value_put_machine(&root, "state_file", value_text(knob_state_path(&tune->host)));
    return root;
}

static int list(const struct tune *tune, struct why *why)
{
    struct knob_state state;
    int r = knob_state_load(&tune->host, &state, why);
    if (r < 0)
        return r;
    size_t remembered = state.entries.len;
    knob_state_deinit(&state);
    struct value root = root_make(tune, "list");
    value_put(&root, "knobs", "Knobs", knobs_table(&tune->host));
    value_put_machine(&root, "remembered", value_uint(remembered, UNIT_NONE));
    struct value next = value_map(tune->arena);
    value_put(&next, "apply", "change", value_text("sudo whyslow tune apply [KNOB…]"));
    if (remembered > 0)
        value_put(&next, "revert", "restore",
                  value_text(arena_printf(tune->arena,
                                          "sudo whyslow tune revert  (%zu changed by whyslow)",
                                          remembered)));
    value_put(&root, "next", "Next", next);
    r = draw(tune, &root, why);
    return r < 0 ? r : EXIT_DONE;
}

static const struct column change_columns[] = {
    {"knob", "knob", SHOW_ALWAYS, false, false},
    {"was", "was", SHOW_ALWAYS, false, false},
    {"becomes", "becomes", SHOW_ALWAYS, false, false},
    {"files", "files", SHOW_ALWAYS, true, false},
    {"result", "result", SHOW_ALWAYS, false, false},
    {"detail", "detail", SHOW_ALWAYS, false, true},
};

static enum tone tone_of(enum knob_result result)
{
    return result == KNOB_CHANGED || result == KNOB_RESTORED || result == KNOB_ALREADY ? TONE_GOOD
           : result == KNOB_PLANNED                                                    ? TONE_PLAIN
           : result == KNOB_LEFT_ALONE                                                 ? TONE_WARN
                                                                                       : TONE_BAD;
}

/* One row a run of changes of the same knob with the same values and fate. */
static struct value changes_table(const struct tune *tune, const struct knob_changes *changes,
                                  bool notes)
{
    struct value table = value_table(tune->arena, change_columns, ARRAY_SIZE(change_columns));
    if (table.table)
        table.table->empty = "nothing to do";
    for (size_t i = 0; i < changes->items.len;) {
        const struct knob_change *change = &changes->items.data[i];
        size_t end = i + 1;
        for (; end < changes->items.len; end++) {
            const struct knob_change *other = &changes->items.data[end];
            if (strcmp(other->knob, change->knob) != 0 || strcmp(other->now, change->now) != 0 ||
                strcmp(other->to, change->to) != 0 || other->result != change->result)
                break;
        }
        const struct knob *knob = knob_find(change->knob);
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(change->knob);
        row->cells[1] = value_text(change->action ? "-" : knob_shown(change->path, change->now));
        row->cells[2] = value_text(knob_shown(change->path, change->to));
        row->cells[3] = value_uint(end - i, UNIT_NONE);
        row->cells[4] = value_tone(value_text(knob_result_name(change->result)),
                                   tone_of(change->result));
        row->cells[5] = value_text(change->detail  ? change->detail
                                   : notes && knob ? knob->note
                                                   : "");
        i = end;
    }
    return table;
}

/* ".../cpu/cpu3/cpufreq/…" is one command with "cpu*" for all of them. */
static const char *for_every_cpu(struct arena *arena, const char *path)
{
    static const char head[] = "/sys/devices/system/cpu/cpu";
    size_t len = sizeof(head) - 1;
    if (strncmp(path, head, len) != 0 || path[len] < '0' || path[len] > '9')
        return path;
    return arena_printf(arena, "%s*%s", head, path + len + strspn(path + len, "0123456789"));
}

static void command_add(struct value *typed, const char *command)
{
    for (const struct value_item *item = typed->items ? typed->items->first : NULL; item;
         item = item->next)
        if (str_is(item->value.text, command))
            return;
    value_append(typed, value_text(command));
}

/* Not permitted: the commands to type instead, and those that undo them, since nothing
 * is remembered for what is typed by hand. */
static int denied(const struct tune *tune, const struct knob_changes *changes, const char *action,
                  struct why *why)
{
    struct arena *arena = tune->arena;
    bool apply_now = strcmp(action, "apply") == 0;
    struct value root = root_make(tune, action), typed = value_list(arena),
                 undo = value_list(arena);
    for (size_t i = 0; i < changes->items.len; i++) {
        const struct knob_change *change = &changes->items.data[i];
        bool done = change->result == KNOB_RESTORED || change->result == KNOB_ALREADY ||
                    change->result == KNOB_LEFT_ALONE;
        if (done)
            continue;
        /* Wanted values are the same on every CPU, old ones need not be. */
        const char *path = apply_now ? for_every_cpu(arena, change->path) : change->path;
        command_add(&typed, knob_command(arena, path, change->to));
        if (!change->action)
            command_add(&undo, knob_command(arena, change->path, change->now));
    }
    value_put(&root, "verdict", "verdict",
              value_tone(value_text(apply_now ? "not permitted: nothing was changed"
                                              : "not permitted: not everything was restored"),
                         TONE_BAD));
    value_put(&root, "try", "try",
              value_text(apply_now ? "sudo whyslow tune apply  (remembers the old values)"
                                   : "sudo whyslow tune revert"));
    value_put(&root, "changes", "Changes", changes_table(tune, changes, false));
    value_put(&root, "commands", "Or type", typed);
    if (apply_now)
        value_put(&root, "undo", "To undo it later", undo);
    int r = draw(tune, &root, why);
    return r < 0 ? r : EXIT_DENIED;
}

static int exit_of(const struct knob_changes *changes)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < changes->items.len; i++) {
        enum knob_result result = changes->items.data[i].result;
        int own = result == KNOB_FAILED       ? EXIT_OWN_FAILURE
                  : result == KNOB_DENIED     ? EXIT_DENIED
                  : result == KNOB_LEFT_ALONE ? EXIT_REGRESSION
                                              : EXIT_DONE;
        status = MAX(status, own);
    }
    return status;
}

/* On stderr, as the plan is: stdout is for the result. */
static int ask(const struct tune *tune, const struct knob_changes *changes, bool *ret_agreed,
               struct why *why)
{
    FILE *err = tune->call->err;
    struct value root = value_map(tune->arena);
    value_put(&root, "changes", "Would change", changes_table(tune, changes, true));
    struct report report = {.schema = "whyslow.tune/1", .root = &root};
    struct render_opts opts = {.width = isatty(fileno(err)) ? 80 : 0};
    int r = render(renderer_find("text"), &report, &opts, err, why);
    if (r < 0)
        return r;
    if (!isatty(STDIN_FILENO))
        return why_set(why, WHY_USAGE, EINVAL, "add --yes to agree",
                       "nothing was changed: there is no terminal to ask on");
    fprintf(err, "Change %s? 'whyslow tune revert' puts everything back. [y/N] ",
            changes->items.len == 1 ? "it" : "them");
    fflush(err);
    char answer[16] = "";
    *ret_agreed = fgets(answer, sizeof(answer), stdin) &&
                  (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0 ||
                   strcmp(answer, "Y\n") == 0);
    return 0;
}

static bool is_same(const struct knob_changes *a, const struct knob_changes *b)
{
    bool same = a->items.len == b->items.len;
    for (size_t i = 0; same && i < a->items.len; i++)
        same = strcmp(a->items.data[i].path, b->items.data[i].path) == 0 &&
               strcmp(a->items.data[i].now, b->items.data[i].now) == 0;
    return same;
}

/* Under the lock, from a second look: the answer may have taken minutes. */
static int change_now(const struct tune *tune, const struct knob_changes *agreed,
                      struct knob_changes *changes, struct why *why)
{
    AUTO(fd_close) int lock = -1;
    int r = knob_state_lock(&tune->host, &lock, why);
    if (r < 0)
        return r;
    r = knobs_plan(&tune->host, tune->names, tune->count, changes, why);
    if (r < 0)
        return r;
    if (!is_same(agreed, changes))
        return why_set(why, WHY_FAILED, EAGAIN, "look at 'whyslow tune list' and run it again",
                       "nothing was changed: the settings are others than a moment ago");
    r = knobs_remember(&tune->host, changes, why);
    return r < 0 ? r : knobs_write(&tune->host, changes, why);
}

static bool has_setting(const struct knob_changes *changes)
{
    for (size_t i = 0; i < changes->items.len; i++)
        if (!changes->items.data[i].action && changes->items.data[i].result == KNOB_CHANGED)
            return true;
    return false;
}

static int apply(const struct tune *tune, struct why *why)
{
    AUTO(knob_changes_deinit) struct knob_changes plan = {0};
    AUTO(knob_changes_deinit) struct knob_changes changes = {0};
    int r = knobs_plan(&tune->host, tune->names, tune->count, &plan, why);
    if (r < 0)
        return r;
    if (knobs_check_permission(&tune->host, &plan) > 0)
        return denied(tune, &plan, "apply", why);
    bool agreed = true;
    if (plan.items.len > 0 && !tune->opts->yes) {
        r = ask(tune, &plan, &agreed, why);
        if (r < 0)
            return r;
    }
    if (!agreed) {
        fputs("Nothing was changed.\n", tune->call->err);
        return EXIT_DONE;
    }
    if (plan.items.len > 0) {
        r = change_now(tune, &plan, &changes, why);
        if (r < 0)
            return r;
    }
    struct value root = root_make(tune, "apply");
    value_put(&root, "changes", "Changes", changes_table(tune, &changes, false));
    if (has_setting(&changes))
        value_put(&root, "next", "restore with", value_text("whyslow tune revert"));
    r = draw(tune, &root, why);
    return r < 0 ? r : exit_of(&changes);
}

static int revert(const struct tune *tune, struct why *why)
{
    AUTO(knob_changes_deinit) struct knob_changes changes = {0};
    AUTO(fd_close) int lock = -1;
    int r;
    /* Without a state file there is nothing to lock, and perhaps no right to make it. */
    if (access(knob_state_path(&tune->host), F_OK) == 0) {
        r = knob_state_lock(&tune->host, &lock, why);
        if (r < 0)
            return r;
    }
    r = knobs_revert(&tune->host, tune->names, tune->count, tune->opts->force, &changes, why);
    if (r < 0)
        return r;
    int status = exit_of(&changes);
    if (status == EXIT_DENIED)
        return denied(tune, &changes, "revert", why);
    struct value root = root_make(tune, "revert");
    value_put(&root, "changes", "Restored", changes_table(tune, &changes, false));
    r = draw(tune, &root, why);
    return r < 0 ? r : status;
}

static int tune_run(const struct cmd_call *call, struct why *why)
{
    const struct tune_opts *opts = call->opts;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    const char *action = call->argc > 0 ? call->argv[0] : "list";
    struct stat st;
    if (opts->root && (opts->root[0] == '\0' || stat(opts->root, &st) < 0 || !S_ISDIR(st.st_mode)))
        return why_set(why, WHY_USAGE, ENOTDIR, "name a folder with proc/ and sys/",
                       "'%s' is no folder", opts->root);
    struct tune tune = {
        .call = call,
        .opts = opts,
        .arena = &arena,
        .host = {.root = opts->root ? opts->root : "", .arena = &arena},
        .names = call->argv + 1,
        .count = MAX(call->argc - 1, 0),
    };
    if (strcmp(action, "apply") == 0)
        return apply(&tune, why);
    if (strcmp(action, "revert") == 0)
        return revert(&tune, why);
    if (strcmp(action, "list") == 0 && tune.count == 0)
        return list(&tune, why);
    return why_set(why, WHY_USAGE, EINVAL,
                   "whyslow tune list, whyslow tune apply [KNOB…] or whyslow tune revert [KNOB…]",
                   "tune does not know what to do with '%s'",
                   strcmp(action, "list") == 0 ? call->argv[1] : action);
}

static const struct cmd_example tune_examples[] = {
    {"whyslow tune", "each knob, its value, the value wanted and what that gives"},
    {"sudo whyslow tune apply governor turbo", "a steady clock; asks first"},
    {"sudo whyslow tune apply --yes drop_caches", "start the next run cold"},
    {"sudo whyslow tune revert", "everything as it was, also after a crash"},
    {0},
};

const struct command cmd_tune = {
    .name = "tune",
    .group = "Prepare the machine",
    .operands = "[list|apply|revert] [KNOB…]",
    .summary = "kernel settings for steady measurements: show, apply, revert",
    .about =
        "'list' (the default) shows each knob with its value, the value wanted and the effect. "
        "'apply' shows what it would change and what that costs, asks, writes the old values to "
        "/var/lib/whyslow/tune.json and only then changes anything; each value is read back. "
        "'revert' restores them, also after a crash or a partial apply.\n\n"
        "Without names 'apply' means every setting that is not as wanted; drop_caches is done "
        "only when named. Applying twice keeps the original values. A value that somebody else "
        "has changed since is left alone by 'revert', unless --force is given.\n\n"
        "Without the permission nothing is changed, the exact commands to type are printed, and "
        "the exit status is 4. Exit status 1: something was left alone; 5: a value was refused "
        "by the kernel.",
    .options = tune_options,
    .options_size = sizeof(struct tune_opts),
    .stop = OPT_MIXED,
    .operands_max = -1,
    .examples = tune_examples,
    .run = tune_run,
};
