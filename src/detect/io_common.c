/* Sites by name: the same in the recording of calls and in that of the path. */
#include "detect/io_common.h"

#include "analyze/places.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How closely a row of the path is known. It is taken at the first level at which calls are:
 * a walk that lost its way in one recording need not have in the other. */
enum level {
    LEVEL_CALL, /* function, line, system call */
    LEVEL_LINE, /* function, line: of a sample at the edge of the kernel, without a call's name */
    LEVEL_FUNCTION, /* function, system call */
    LEVEL_SYSCALL,  /* of stacks that say nothing about the program; of calls without stacks */
    LEVELS,
};

static const char *site_key(struct arena *arena, enum level level, const struct place *place,
                            struct str call)
{
    bool line = level == LEVEL_CALL || level == LEVEL_LINE;
    if (level == LEVEL_SYSCALL)
        return arena_printf(arena, "%d\n%.*s", (int)level, STR_FMT(call));
    return arena_printf(arena, "%d\n%.*s\n%.*s\n%u\n%.*s", (int)level, STR_FMT(place->function),
                        STR_FMT(place->image), line ? place->line : 0,
                        STR_FMT(level == LEVEL_LINE ? STR("") : call));
}

/* Rows share stacks: each is looked at once. */
static const struct place *place_at(struct arena *arena, const struct profile *profile,
                                    struct place **places, uint32_t stack)
{
    static const struct place nowhere;
    if (stack >= profile->stack_count)
        return &nowhere;
    if (!places[stack]) {
        places[stack] = ARENA_NEW(arena, struct place);
        if (!places[stack])
            return NULL;
        *places[stack] = stack ? place_of_stack(profile, stack) : nowhere;
    }
    return places[stack];
}

/* What is made once for all rows of one stack and call. */
struct naming {
    struct io_shares *shares;
    struct arena *scratch;
    struct intern *names;
    struct place **places;
    struct map_u64 known; /* stack and call to the row that has it already */
};

static int call_name(struct naming *naming, size_t row)
{
    struct io_shares *shares = naming->shares;
    const struct io *io = &shares->evidence->io;
    const struct call_info *info = &io->calls[row].info;
    uint64_t key = (uint64_t)info->stack << 32 | (uint32_t)info->syscall;
    bool fresh;
    uint64_t *at = map_u64_at(&naming->known, key, &fresh);
    if (!at)
        return -ENOMEM;
    if (!fresh) {
        memcpy(shares->call_sites[row], shares->call_sites[*at], sizeof(*shares->call_sites));
        return 0;
    }
    *at = row;
    const struct place *place = place_at(naming->scratch, &io->profile, naming->places,
                                         info->stack);
    if (!place)
        return -ENOMEM;
    const char *call = io_call_name(naming->scratch, &shares->evidence->io_sums.kinds,
                                    info->syscall);
    for (int level = 0; level < LEVELS; level++) {
        const char *text = site_key(naming->scratch, (enum level)level, place, str_from(call));
        if (intern_add(naming->names, str_from(text), &shares->call_sites[row][level], NULL) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int calls_name(struct io_shares *shares, struct arena *scratch, struct intern *names)
{
    const struct io *io = &shares->evidence->io;
    struct naming naming = {.shares = shares, .scratch = scratch, .names = names};
    naming.places = arena_alloc(scratch, (io->profile.stack_count + 1) * sizeof(void *));
    shares->call_sites = arena_alloc(shares->arena,
                                     (io->call_count + 1) * sizeof(*shares->call_sites));
    int r = naming.places && shares->call_sites ? 0 : -ENOMEM;
    for (size_t i = 1; i < io->call_count && r == 0; i++)
        r = call_name(&naming, i);
    map_u64_deinit(&naming.known);
    return r;
}

/* A sample in the program's own code is none of a call, even at its line. */
static bool is_own_code(const struct profile *profile, uint32_t stack, const struct place *place)
{
    const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
    const struct profile_function *leaf = &profile
                                               ->functions[profile->places[frame->places].function];
    return str_eq(leaf->name, place->function) &&
           str_eq(profile->images[leaf->image].path, place->image);
}

static uint32_t path_site(struct arena *scratch, const struct intern *names,
                          const struct profile *profile, const struct path_cost *row,
                          bool stackless)
{
    const struct place *place = &row->place;
    bool known = place->function.len > 0 && !stackless;
    for (int level = 0; level < LEVELS; level++) {
        if (level == LEVEL_LINE
                ? !known || row->syscall.len > 0 || is_own_code(profile, row->stack, place)
                : row->syscall.len == 0 || known == (level == LEVEL_SYSCALL))
            continue;
        const char *key = site_key(scratch, (enum level)level, place, row->syscall);
        uint32_t site = intern_find(names, str_from(key));
        if (site)
            return site;
    }
    return 0;
}

static int path_name(struct io_shares *shares, struct arena *scratch, const struct intern *names)
{
    const struct path_costs *costs = &shares->evidence->costs_on_path;
    shares->path_sites = arena_alloc(shares->arena,
                                     (costs->count + 1) * sizeof(*shares->path_sites));
    if (!shares->path_sites || !costs->profile)
        return shares->path_sites ? 0 : -ENOMEM;
    bool stackless = true;
    for (size_t i = 1; i < shares->evidence->io.call_count && stackless; i++)
        stackless = shares->evidence->io.calls[i].info.stack == 0;
    for (size_t i = 0; i < costs->count; i++)
        if (costs->rows[i].stack)
            shares->path_sites[i] = path_site(scratch, names, costs->profile, &costs->rows[i],
                                              stackless);
    return 0;
}

/* io_sums has what has one name as one file: so have we. */
static int files_name(struct io_shares *shares, struct arena *scratch)
{
    const struct io *io = &shares->evidence->io;
    const struct io_sums *sums = &shares->evidence->io_sums;
    struct intern names = {0};
    VEC(uint32_t) files = {0};
    int r = 0;
    shares->files = arena_alloc(shares->arena, (io->object_count + 1) * sizeof(*shares->files));
    uint32_t *ids = arena_alloc(scratch, (io->object_count + 1) * sizeof(*ids));
    for (size_t i = 1; i < io->object_count && r == 0 && ids && shares->files; i++) {
        const struct object_info *info = &io->objects[i];
        const char *key = info->name.len > 0 ? arena_printf(scratch, "%d %.*s", (int)info->kind,
                                                            STR_FMT(info->name))
                                             : arena_printf(scratch, "%zu", i);
        bool fresh;
        r = intern_add(&names, str_from(key), &ids[i], &fresh);
        if (r == 0 && fresh)
            r = VEC_PUSH(&files, 0);
    }
    for (size_t i = 0; i < sums->file_count && r == 0 && ids; i++)
        if (ids[sums->files[i].object] && files.data)
            files.data[ids[sums->files[i].object] - 1] = (uint32_t)i + 1;
    for (size_t i = 1; i < io->object_count && r == 0 && ids && shares->files; i++)
        shares->files[i] = files.data ? files.data[ids[i] - 1] : 0;
    intern_deinit(&names);
    VEC_FREE(&files);
    return r < 0 || !ids || !shares->files ? -ENOMEM : 0;
}

int io_shares_init(const struct evidence *evidence, struct io_shares *ret)
{
    struct arena scratch = ARENA_INIT;
    struct intern names = {0};
    *ret = (struct io_shares){.evidence = evidence, .arena = evidence->arena};
    int r = calls_name(ret, &scratch, &names);
    if (r == 0)
        r = path_name(ret, &scratch, &names);
    if (r == 0)
        r = files_name(ret, &scratch);
    ret->site_count = names.len + 1;
    ret->sites = arena_alloc(ret->arena, ret->site_count * sizeof(*ret->sites));
    if (r == 0 && ret->sites)
        io_shares_clear(ret);
    r = r < 0 || !ret->sites || arena_failed(&scratch) ? -ENOMEM : 0;
    intern_deinit(&names);
    arena_deinit(&scratch);
    return r;
}

void io_shares_clear(struct io_shares *shares)
{
    const struct io *io = &shares->evidence->io;
    for (size_t i = 0; i < shares->site_count; i++)
        shares->sites[i] = (struct io_site_share){0};
    for (size_t i = 1; i < io->call_count; i++)
        for (int level = 0; level < LEVELS; level++)
            shares->sites[shares->call_sites[i][level]].ns += (double)io->calls[i].tally.total_ns;
}

void io_shares_mean(struct io_shares *shares, size_t call, double part)
{
    double ns = part * (double)shares->evidence->io.calls[call].tally.total_ns;
    for (int level = 0; level < LEVELS; level++)
        shares->sites[shares->call_sites[call][level]].meant_ns += ns;
}

static bool is_sync(struct str call)
{
    static const char *const names[] = {"fsync", "fdatasync",       "msync",
                                        "sync",  "sync_file_range", "syncfs"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_is(call, names[i]))
            return true;
    return false;
}

/* Who runs is driven off the CPU now and then: without the calls that are meant, so much of that
 * would not be there either. What a wait costs in the run queue stands with the wait. */
static void runq_mean(struct io_shares *shares)
{
    const struct evidence *evidence = shares->evidence;
    const struct path_costs *costs = &evidence->costs_on_path;
    size_t threads = evidence->waits.profile.thread_count;
    double *running_ns = arena_alloc(shares->arena, (threads + 1) * sizeof(*running_ns));
    shares->runq = arena_alloc(shares->arena, (threads + 1) * sizeof(*shares->runq));
    if (!running_ns || !shares->runq || !evidence_has(evidence, AXIS_WAITS) || costs->na)
        return;
    for (size_t i = 0; i < costs->count; i++) {
        const struct path_cost *row = &costs->rows[i];
        if (row->class != WAIT_CLASS_RUNNING)
            continue;
        running_ns[row->thread] += row->ns;
        shares->runq[row->thread] += io_shares_pick(shares, costs, row) * row->ns;
    }
    for (size_t i = 0; i < threads; i++)
        shares->runq[i] /= fmax(running_ns[i], 1);
}

double io_shares_pick(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    const struct io_shares *shares = context;
    bool queues = row->class == WAIT_CLASS_RUNQ;
    if (queues && !row->wait) /* else it is known which wait it came after */
        return shares->runq ? shares->runq[row->thread] : 0;
    const struct io_site_share *site = &shares->sites[shares->path_sites[row - costs->rows]];
    bool waits = queues || row->class == WAIT_CLASS_DISK || row->class == WAIT_CLASS_TIMER ||
                 row->class == WAIT_CLASS_PAGEFAULT || is_sync(row->syscall);
    if (shares->waits_only && !waits)
        return 0;
    return site->ns > 0 ? fmin(site->meant_ns / site->ns, 1) : 0;
}

const struct io_file *io_shares_file(const struct io_shares *shares, const struct call_row *row)
{
    uint32_t file = shares->files[row->info.object];
    return file ? &shares->evidence->io_sums.files[file - 1] : NULL;
}

enum io_kind io_shares_kind(const struct io_shares *shares, const struct call_row *row)
{
    return io_kind_of(&shares->evidence->io_sums.kinds, &row->info);
}

struct place io_place(const struct evidence *evidence, uint32_t stack)
{
    return stack ? place_of_stack(&evidence->io.profile, stack) : (struct place){0};
}

void io_groups_add(struct io_groups *groups, const struct io_shares *shares, size_t file)
{
    struct place place = io_place(shares->evidence, shares->evidence->io_sums.files[file].stack);
    for (size_t i = 0; i < groups->count; i++) {
        if (!place_same(&groups->rows[i].place, &place, true))
            continue;
        groups->rows[i].files++;
        groups->of[file] = (uint32_t)i + 1;
        return;
    }
    if (groups->count == IO_SHOWN_MAX)
        return; /* files come the longest first */
    groups->rows[groups->count] = (struct io_group){.place = place, .first = file, .files = 1};
    groups->of[file] = (uint32_t)++groups->count;
}

int io_groups_init(struct io_groups *groups, const struct io_shares *shares)
{
    *groups = (struct io_groups){0};
    groups->of = arena_alloc(shares->arena,
                             (shares->evidence->io_sums.file_count + 1) * sizeof(*groups->of));
    return groups->of ? 0 : -ENOMEM;
}

uint32_t io_groups_of(const struct io_groups *groups, const struct io_shares *shares,
                      const struct call_row *row)
{
    uint32_t file = shares->files[row->info.object];
    return file ? groups->of[file - 1] : 0;
}

const char *io_others(struct arena *arena, size_t files)
{
    if (files < 2)
        return "";
    return arena_printf(arena, " and %s other%s", io_count_text(arena, (double)files - 1),
                        files > 2 ? "s" : "");
}

double io_off_cpu_ns(const struct evidence *evidence)
{
    const struct run_costs *costs = &evidence->costs;
    double off = costs->wall_ns - costs->cpu_ns;
    return off > 0 ? off + costs->system_ns : NAN; /* several threads at once: it cannot be told */
}

void io_place_set(const struct io_shares *shares, struct finding *finding, uint32_t stack)
{
    const struct path_costs *costs = &shares->evidence->costs_on_path;
    const struct path_cost *most = NULL;
    finding->place = io_place(shares->evidence, stack);
    if (finding->place.function.len > 0 || !finding->covers)
        return;
    for (size_t i = 0; i < costs->count; i++) {
        const struct path_cost *row = &costs->rows[i];
        if (row->place.function.len > 0 && finding->covers[i] > 0.5f &&
            (!most || row->ns > most->ns))
            most = row;
    }
    if (most)
        finding->place = most->place;
}

double io_cost(struct io_shares *shares, struct finding *finding, double factor)
{
    const struct path_costs *costs = &shares->evidence->costs_on_path;
    runq_mean(shares);
    struct estimate cost = path_costs_cover(shares->arena, costs, io_shares_pick, shares, finding);
    finding->recoverable = estimate_scale(cost, factor);
    return costs->ns > 0 ? finding->recoverable.ns / costs->ns : 0;
}

void io_angles(struct io_shares *shares, struct finding *finding, const char *traced,
               double counted_ns, const char *counted)
{
    const struct evidence *evidence = shares->evidence;
    double wall = evidence->costs_on_path.ns, cost = finding->cost_ns;
    bool seen = wall > 0 && cost >= DETECT_SHARE_MIN * wall;
    finding->angles[ANGLE_SAMPLING] = (struct angle_word){
        seen ? ANGLE_SUPPORTS : ANGLE_REJECTS,
        arena_printf(shares->arena, "%.1f%% of the wall time is at these places, in these calls",
                     wall > 0 ? cost / wall * 100 : 0)};
    finding->angles[ANGLE_TRACING] = (struct angle_word){ANGLE_SUPPORTS, traced};
    if (isnan(counted_ns)) {
        finding->angles[ANGLE_COUNTING] = (struct angle_word){ANGLE_SILENT, counted};
        return;
    }
    /* The kernel's account is of the whole run: there must be room for it, with some slack for
     * what its ticks and the path are rough by. */
    bool room = counted_ns >= 0.7 * cost;
    finding->angles[ANGLE_COUNTING] = (struct angle_word){
        room ? ANGLE_SUPPORTS : ANGLE_REJECTS,
        arena_printf(shares->arena, "%s: %s a run", counted,
                     io_time_text(shares->arena, counted_ns))};
}

static const char *unit_text(struct arena *arena, double value, enum unit unit)
{
    char text[48];
    return arena_dup(arena, units_format(value, unit, text, sizeof(text)));
}

const char *io_count_text(struct arena *arena, double count)
{
    return unit_text(arena, count, UNIT_COUNT);
}

const char *io_time_text(struct arena *arena, double ns)
{
    return unit_text(arena, ns, UNIT_NS);
}

const char *io_bytes_text(struct arena *arena, double bytes)
{
    return unit_text(arena, bytes, UNIT_BYTES);
}

struct str io_name(const struct evidence *evidence, uint32_t object)
{
    struct str name = evidence->io.objects[object].name;
    return name.len > 0 ? name : STR("[no name]");
}

bool io_is_made_up(struct str name)
{
    return str_starts(name, "/proc/") || str_starts(name, "/sys/") || str_starts(name, "/dev/");
}

void io_dismiss(struct arena *arena, struct finding *finding, const char *fmt, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof(text), fmt, arguments);
    va_end(arguments);
    finding->verdict = FINDING_DISMISSED;
    finding->reason = arena_dup(arena, text);
}
