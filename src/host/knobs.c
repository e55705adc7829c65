/* The table of knobs, and reading them. Changing is knobs_change.c. */
#include "host/knobs.h"

#include "host/fp.h"
#include "host/knobs_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CPU_FOLDER "/sys/devices/system/cpu"

const struct knob knobs[] = {
    {"perf_event_paranoid",
     KNOB_SETTING,
     FIT_AT_MOST,
     {{"/proc/sys/kernel/perf_event_paranoid", "0"}},
     "profiles see the kernel and every CPU without root",
     "every user of the machine may then profile it"},
    {"kptr_restrict",
     KNOB_SETTING,
     FIT_AT_MOST,
     {{"/proc/sys/kernel/kptr_restrict", "0"}},
     "kernel functions in a profile have names",
     "kernel addresses become visible to every user"},
    {"perf_mlock_kb",
     KNOB_SETTING,
     FIT_AT_LEAST,
     {{"/proc/sys/kernel/perf_event_mlock_kb", "8192"}},
     "larger sample buffers without root: fewer lost samples",
     "a user may lock that much memory per CPU"},
    {"perf_sample_rate",
     KNOB_SETTING,
     FIT_AT_LEAST,
     {{"/proc/sys/kernel/perf_event_max_sample_rate", "20000"}},
     "the kernel accepts the sampling rates whyslow asks for",
     "the kernel lowers it by itself when sampling takes too long"},
    {"nmi_watchdog",
     KNOB_SETTING,
     FIT_EXACT,
     {{"/proc/sys/kernel/nmi_watchdog", "0"}},
     "one more hardware counter, and no periodic interrupt from it",
     "a CPU that hangs in the kernel is no longer noticed"},
    {"governor",
     KNOB_PER_CPU,
     FIT_EXACT,
     {{CPU_FOLDER "/cpu%u/cpufreq/scaling_governor", "performance"}},
     "the clock no longer follows the load: times repeat",
     "more power, more heat, shorter battery life"},
    {"turbo",
     KNOB_SETTING,
     FIT_EXACT,
     {{CPU_FOLDER "/intel_pstate/no_turbo", "1"}, {CPU_FOLDER "/cpufreq/boost", "0"}},
     "the clock no longer depends on heat and neighbours",
     "everything runs slower until it is reverted"},
    {"aslr",
     KNOB_SETTING,
     FIT_EXACT,
     {{"/proc/sys/kernel/randomize_va_space", "0"}},
     "every run has the same addresses: less variance from alignment",
     "a protection of the whole machine is off; one layout may be a lucky one"},
    {"swappiness",
     KNOB_SETTING,
     FIT_AT_MOST,
     {{"/proc/sys/vm/swappiness", "1"}},
     "memory is not swapped out while there is page cache to drop",
     "the page cache shrinks sooner"},
    {"thp",
     KNOB_SETTING,
     FIT_ANY_OF,
     {{"/sys/kernel/mm/transparent_hugepage/enabled", "madvise|never"}},
     "huge pages only where a program asks: no background collapsing",
     "programs that profit from huge pages without asking run slower"},
    {"drop_caches",
     KNOB_ACTION,
     FIT_EXACT,
     {{"/proc/sys/vm/drop_caches", "3"}},
     "the next run starts cold: page cache, dentries and inodes are dropped",
     "everything on the machine reads from disk again; only when named"},
    {"affinity",
     KNOB_ADVICE,
     FIT_EXACT,
     {{NULL, NULL}},
     "the target stays on one CPU: no migrations, warm caches",
     "not for programs with several busy threads"},
    {0},
};

const struct knob *knob_find(const char *name)
{
    for (const struct knob *knob = knobs; knob->name; knob++)
        if (strcmp(knob->name, name) == 0)
            return knob;
    return NULL;
}

int knob_read(const struct host *host, const char *path, const char **ret)
{
    struct str text;
    int r = host_read(host, path, &text, NULL);
    if (r < 0)
        return r;
    /* "always [madvise] never": the chosen one stands in brackets. */
    struct str rest = text;
    str_cut(&rest, '[');
    struct str chosen = str_cut(&rest, ']');
    if (chosen.len > 0)
        text = chosen;
    *ret = arena_dup_len(host->arena, text.data, text.len);
    return 0;
}

bool knob_fits(const struct knob *knob, const char *wanted, const char *now)
{
    int64_t have, want;
    struct str choices = str_from(wanted);
    switch (knob->fit) {
    case FIT_AT_MOST:
    case FIT_AT_LEAST:
        if (str_to_i64(str_from(now), &have) < 0 || str_to_i64(str_from(wanted), &want) < 0)
            return false;
        return knob->fit == FIT_AT_MOST ? have <= want : have >= want;
    case FIT_ANY_OF:
        while (choices.len > 0)
            if (str_is(str_cut(&choices, '|'), now))
                return true;
        return false;
    default:
        return strcmp(now, wanted) == 0;
    }
}

const char *knob_first_choice(struct arena *arena, const char *wanted)
{
    struct str rest = str_from(wanted);
    struct str first = str_cut(&rest, '|');
    return arena_dup_len(arena, first.data, first.len);
}

static const char *per_cpu_path(struct arena *arena, const char *pattern, unsigned cpu)
{
    const char *mark = strstr(pattern, "%u");
    return arena_printf(arena, "%.*s%u%s", (int)(mark - pattern), pattern, cpu, mark + 2);
}

/* The governors a driver offers; a missing list is no objection. */
static bool is_offered(const struct host *host, unsigned cpu, const char *wanted)
{
    struct str list;
    const char *path = arena_printf(host->arena,
                                    CPU_FOLDER "/cpu%u/cpufreq/scaling_available_governors", cpu);
    if (host_read(host, path, &list, NULL) < 0)
        return true;
    while (list.len > 0)
        if (str_is(str_word(&list), wanted))
            return true;
    return false;
}

static void reading_per_cpu(const struct host *host, const struct knob *knob,
                            struct knob_reading *reading)
{
    static const char *const absent =
        "no cpufreq driver here: the clock is set by the hardware, the firmware or the host";
    struct fp_cpus online;
    reading->na = absent;
    if (!fp_cpus_online(host, &online))
        return;
    for (unsigned cpu = 0; cpu < FP_CPUS_MAX; cpu++) {
        const char *path = per_cpu_path(host->arena, knob->places[0].path, cpu);
        struct knob_file file = {.path = path, .wanted = knob->places[0].wanted};
        if (!online.on[cpu] || knob_read(host, path, &file.now) < 0)
            continue;
        if (!is_offered(host, cpu, file.wanted)) {
            reading->na = arena_printf(host->arena, "the driver does not offer '%s'", file.wanted);
            continue;
        }
        if (VEC_PUSH(&reading->files, file) < 0)
            break;
        reading->na = NULL;
    }
    if (reading->files.len > 0)
        reading->na = NULL;
}

static void reading_single(const struct host *host, const struct knob *knob,
                           struct knob_reading *reading)
{
    for (size_t i = 0; i < ARRAY_SIZE(knob->places) && knob->places[i].path; i++) {
        struct knob_file file = {.path = knob->places[i].path, .wanted = knob->places[i].wanted};
        /* An action's file may be one that can only be written. */
        if (knob->kind == KNOB_ACTION && host_exists(host, file.path))
            file.now = "";
        else {
            int r = knob_read(host, file.path, &file.now);
            if (r < 0) {
                reading->na = reading->na
                                  ? arena_printf(host->arena, "neither %s nor %s is there",
                                                 knob->places[0].path, file.path)
                                  : arena_printf(host->arena, "%s: %s", file.path, strerror(-r));
                continue;
            }
        }
        reading->na = VEC_PUSH(&reading->files, file) < 0 ? "out of memory" : NULL;
        return;
    }
}

void knob_reading_take(const struct host *host, const struct knob *knob, struct knob_reading *ret)
{
    *ret = (struct knob_reading){0};
    if (knob->kind == KNOB_PER_CPU)
        reading_per_cpu(host, knob, ret);
    else if (knob->kind != KNOB_ADVICE)
        reading_single(host, knob, ret);
}

void knob_reading_deinit(struct knob_reading *reading)
{
    VEC_FREE(&reading->files);
}

bool knob_reading_fits(const struct knob *knob, const struct knob_reading *reading)
{
    for (size_t i = 0; i < reading->files.len; i++)
        if (!knob_fits(knob, reading->files.data[i].wanted, reading->files.data[i].now))
            return false;
    return true;
}

const char *knob_shown(const char *path, const char *value)
{
    bool one = strcmp(value, "1") == 0, zero = strcmp(value, "0") == 0;
    if (!one && !zero)
        return value;
    if (strcmp(path, CPU_FOLDER "/intel_pstate/no_turbo") == 0)
        return one ? "off" : "on";
    if (strcmp(path, CPU_FOLDER "/cpufreq/boost") == 0)
        return one ? "on" : "off";
    return value;
}

const char *knob_command(struct arena *arena, const char *path, const char *value)
{
    if (strncmp(path, "/proc/sys/", 10) != 0)
        return arena_printf(arena, "echo %s | sudo tee %s", value, path);
    char name[128];
    snprintf(name, sizeof(name), "%s", path + 10);
    for (char *at = name; *at; at++)
        if (*at == '/')
            *at = '.';
    return arena_printf(arena, "sudo sysctl -w %s=%s", name, value);
}

static const struct column columns[] = {
    {"knob", "knob", SHOW_ALWAYS, false, false},
    {"now", "now", SHOW_ALWAYS, false, false},
    {"wanted", "wanted", SHOW_ALWAYS, false, false},
    {"state", "state", SHOW_ALWAYS, false, false},
    {"effect", "effect of the wanted value", SHOW_ALWAYS, false, true},
    {"note", "cost or risk", SHOW_MACHINE, false, true},
    {"reason", "reason", SHOW_MACHINE, false, true},
    {"command", "command", SHOW_MACHINE, false, false},
};
enum { COL_KNOB, COL_NOW, COL_WANTED, COL_STATE, COL_EFFECT, COL_NOTE, COL_REASON, COL_COMMAND };

/* "powersave", or "powersave on 3 of 4" when the CPUs disagree. */
static const char *now_text(struct arena *arena, const struct knob_reading *reading)
{
    size_t len = reading->files.len, same = 0;
    const char *first = reading->files.data[0].now;
    for (size_t i = 0; i < len; i++)
        same += strcmp(reading->files.data[i].now, first) == 0;
    first = knob_shown(reading->files.data[0].path, first);
    return same == len ? first : arena_printf(arena, "%s on %zu of %zu", first, same, len);
}

static void advice_row(const struct host *host, struct table_row *row)
{
    struct str status, list = {"", 0};
    struct fp_cpus cpus;
    unsigned last = 0;
    if (host_read(host, "/proc/self/status", &status, NULL) == 0)
        list = str_field(status, "Cpus_allowed_list");
    if (list.len == 0 || !fp_cpus_parse(list, &cpus)) {
        row->cells[COL_NOW] = value_na("/proc/self/status tells no Cpus_allowed_list");
    } else {
        row->cells[COL_NOW] = value_str(list);
        for (unsigned cpu = 0; cpu < FP_CPUS_MAX; cpu++)
            last = cpus.on[cpu] ? cpu : last;
    }
    row->cells[COL_WANTED] = value_text("one CPU");
    row->cells[COL_STATE] = value_tone(value_text("advice"), TONE_DIM);
    row->cells[COL_COMMAND] = value_text(arena_printf(host->arena, "taskset -c %u CMD", last));
    row->cells[COL_EFFECT] = value_text(
        arena_printf(host->arena, "%s: taskset -c %u CMD", row->cells[COL_EFFECT].text.data, last));
}

static void setting_row(const struct host *host, const struct knob *knob,
                        const struct knob_reading *reading, struct table_row *row)
{
    if (!reading->files.data) {
        const char *wanted = knob_first_choice(host->arena, knob->places[0].wanted);
        row->cells[COL_NOW] = value_tone(value_text("n/a"), TONE_DIM);
        row->cells[COL_WANTED] = value_text(knob_shown(knob->places[0].path, wanted));
        row->cells[COL_STATE] = value_tone(value_text("n/a"), TONE_DIM);
        row->cells[COL_EFFECT] = value_tone(
            value_text(arena_printf(host->arena, "n/a: %s", reading->na)), TONE_DIM);
        row->cells[COL_REASON] = value_text(reading->na);
        return;
    }
    const char *wanted = knob_first_choice(host->arena, reading->files.data[0].wanted);
    const char *path = knob->kind == KNOB_PER_CPU ? CPU_FOLDER "/cpu*/cpufreq/scaling_governor"
                                                  : reading->files.data[0].path;
    row->cells[COL_WANTED] = value_text(knob_shown(path, wanted));
    row->cells[COL_COMMAND] = value_text(knob_command(host->arena, path, wanted));
    if (knob->kind == KNOB_ACTION) {
        row->cells[COL_NOW] = value_text("-");
        row->cells[COL_STATE] = value_tone(value_text("action"), TONE_DIM);
        return;
    }
    bool fits = knob_reading_fits(knob, reading);
    row->cells[COL_NOW] = value_text(now_text(host->arena, reading));
    row->cells[COL_STATE] = fits ? value_tone(value_text("ok"), TONE_GOOD)
                                 : value_tone(value_text("change"), TONE_WARN);
}

struct value knobs_table(const struct host *host)
{
    struct value table = value_table(host->arena, columns, ARRAY_SIZE(columns));
    for (const struct knob *knob = knobs; knob->name; knob++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[COL_KNOB] = value_text(knob->name);
        row->cells[COL_EFFECT] = value_text(knob->effect);
        row->cells[COL_NOTE] = value_text(knob->note);
        row->cells[COL_REASON] = value_text("");
        row->cells[COL_COMMAND] = value_text("");
        if (knob->kind == KNOB_ADVICE) {
            advice_row(host, row);
            continue;
        }
        AUTO(knob_reading_deinit) struct knob_reading reading;
        knob_reading_take(host, knob, &reading);
        setting_row(host, knob, &reading, row);
    }
    return table;
}
