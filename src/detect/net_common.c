/* Groups of requests and rows of the path, put together by their stacks. */
#include "detect/net_common.h"

#include "base/units.h"
#include "protocol/protocol.h"

#include <errno.h>
#include <math.h>

/* Of the time that requests took: with less the place is not where they wait. */
#define EXPECTED_PART 0.5
#define LONGER_MAX    1.25 /* one run beside another */

static const char net_syscalls[] = "sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg read write "
                                   "readv writev poll ppoll select pselect6 epoll_wait epoll_pwait";

struct net_stack *net_stack_of(struct arena *arena, const struct profile *profile, uint32_t stack)
{
    struct net_stack *ret = ARENA_NEW(arena, struct net_stack);
    unsigned total = 0, index = 0;
    for (uint32_t at = stack; at != 0; at = profile->stacks[at].parent)
        total += profile->frames[profile->stacks[at].frame].place_count;
    const struct profile_place *inner[NET_DEPTH_MAX];
    if (!ret)
        return NULL;
    ret->profile = profile;
    for (uint32_t at = stack; at != 0; at = profile->stacks[at].parent) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++, index++) {
            const struct profile_place *place = &profile->places[frame->places + i];
            const struct profile_function *function = &profile->functions[place->function];
            ret->cut = function->unnamed && function->image == 0;
            if (total - index <= NET_DEPTH_MAX && !function->kernel && !ret->cut)
                inner[ret->count++] = place;
        }
    }
    ret->places = arena_alloc(arena, (ret->count + 1) * sizeof(const struct profile_place *));
    for (unsigned i = 0; ret->places && i < ret->count; i++)
        ret->places[i] = inner[ret->count - 1 - i];
    return ret->places ? ret : NULL;
}

static bool same_function(const struct net_stack *a, unsigned i, const struct net_stack *b,
                          unsigned k)
{
    const struct profile_function *f = &a->profile->functions[a->places[i]->function];
    const struct profile_function *g = &b->profile->functions[b->places[k]->function];
    return str_eq(f->name, g->name) &&
           str_eq(a->profile->images[f->image].path, b->profile->images[g->image].path);
}

/* Where in `whole` the other begins. */
static unsigned begins_at(const struct net_stack *whole, const struct net_stack *cut)
{
    for (unsigned i = 0; cut->count > 0 && i < whole->count; i++)
        if (same_function(whole, i, cut, 0))
            return i;
    return whole->count;
}

unsigned net_common(const struct net_stack *a, const struct net_stack *b)
{
    unsigned i = b->cut ? begins_at(a, b) : 0;
    unsigned k = a->cut && (i == a->count || !b->cut) ? begins_at(b, a) : 0;
    i = i == a->count ? 0 : i;
    if (b->cut && i == 0 && k == 0 && b->count > 0 && a->count > 0 && !same_function(a, 0, b, 0))
        return 0;
    unsigned common = 2 * i;
    for (bool any = false; i < a->count && k < b->count; i++, k++, any = true) {
        if (!same_function(a, i, b, k))
            return any ? common : 0;
        if (a->places[i]->line != b->places[k]->line)
            return common + 1;
        common += 2;
    }
    return common;
}

/* ---- where a group asks ---- */

struct place net_place_at(const struct net_stack *stack, unsigned index)
{
    const struct profile_place *at = stack->places[index];
    struct place place = place_of_function(stack->profile, at->function);
    if (at->file.len > 0)
        place.file = at->file;
    if (at->line)
        place.line = at->line;
    return place;
}

/* Who asks is the program that an interpreter runs, not the library through which it asks. What
 * the interpreter computes meanwhile is other work: so it is the place, and not the extent. */
static struct place asker_in_interpreter(const struct net_stack *stack, unsigned full,
                                         struct place innermost)
{
    for (unsigned i = full; i > 0 && innermost.owner == FINDING_OWNER_LIBRARY; i--) {
        struct place place = net_place_at(stack, i - 1);
        if (place.owner == FINDING_OWNER_INTERPRETER)
            return place;
    }
    return innermost;
}

/* The innermost call in common that is the user's; else a user's function that asks and waits
 * itself; else whatever is innermost. */
struct net_place net_place_of(const struct net_stack *stack, unsigned common)
{
    unsigned full = common / 2;
    for (unsigned i = full; i > 0; i--) {
        struct place place = net_place_at(stack, i - 1);
        if (place.owner == FINDING_OWNER_USER && !str_is(place.function, "_start"))
            return (struct net_place){place, 2 * i, true};
    }
    bool between = common % 2 && full < stack->count;
    if (between || full > 0) {
        struct place innermost = net_place_at(stack, between ? full : full - 1);
        return (struct net_place){asker_in_interpreter(stack, full, innermost), common, !between};
    }
    return (struct net_place){0};
}

static bool is_net_call(struct str name)
{
    struct str rest = STR(net_syscalls);
    while (name.len > 0 && rest.len > 0)
        if (str_eq(str_word(&rest), name))
            return true;
    return false;
}

/* Where a program waits for answers: calls of the recording that has the requests, by stack. */
struct waited {
    struct net_stack **stacks;
    double *ns;
    size_t count;
};

static int waited_find(struct net *net, struct waited *ret)
{
    const struct io *io = &net->evidence->io;
    size_t count = io->profile.stack_count;
    double *by_stack = arena_alloc(net->arena, (count + 1) * sizeof(*by_stack));
    ret->stacks = arena_alloc(net->arena, NET_ROWS_MAX * sizeof(struct net_stack *));
    ret->ns = arena_alloc(net->arena, NET_ROWS_MAX * sizeof(*ret->ns));
    if (!by_stack || !ret->stacks || !ret->ns)
        return -ENOMEM;
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        const char *name = syscall_name_on(net->evidence->io_sums.kinds.machine, row->info.syscall);
        enum object_kind kind = io->objects[row->info.object].kind;
        if (row->info.stack < count && is_net_call(str_from(name)) &&
            (kind == OBJECT_SOCKET || kind == OBJECT_NONE || kind == OBJECT_POLL_SET))
            by_stack[row->info.stack] += (double)row->tally.total_ns;
    }
    for (uint32_t i = 1; i < count && ret->count < NET_ROWS_MAX && net->count > 0; i++) {
        if (!(by_stack[i] > 0))
            continue;
        ret->ns[ret->count] = by_stack[i];
        ret->stacks[ret->count] = net_stack_of(net->arena, &io->profile, i);
        if (!ret->stacks[ret->count++])
            return -ENOMEM;
    }
    return 0;
}

/* As far in as a good part of the time that its requests took is spent; where that is nowhere, as
 * far in as what is spent comes closest to it. */
static void place_find(struct net_group *group, const struct waited *waited)
{
    double by_common[2 * NET_DEPTH_MAX + 2] = {0}, sum = 0, best = INFINITY;
    double expected = (double)group->group->tally.total_ns;
    unsigned chosen = 0;
    for (size_t i = 0; i < waited->count; i++)
        by_common[net_common(group->stack, waited->stacks[i])] += waited->ns[i];
    for (unsigned common = 2 * NET_DEPTH_MAX + 1; common > 0; common--) {
        sum += by_common[common];
        double off = sum > 0 && expected > 0 ? fabs(log(sum / expected)) : INFINITY;
        if (by_common[common] > 0 && off < best) {
            best = off;
            chosen = common;
        }
        if (sum >= EXPECTED_PART * expected && sum > 0)
            break;
    }
    struct net_place found = net_place_of(group->stack, chosen);
    group->place = found.place;
    group->least = found.least;
    group->whole = found.whole;
}

/* ---- rows of the path ---- */

/* Being woken by an answer takes a while until one runs: that goes with the wait. */
bool net_is_wait(const struct evidence *evidence, const struct path_cost *row)
{
    return row->class == WAIT_CLASS_NET ||
           (row->class == WAIT_CLASS_RUNQ && row->wait && evidence->classes.rows &&
            evidence->classes.rows[row->wait] == WAIT_CLASS_NET);
}

/* 0: not of this group; else how much they have in common. */
static unsigned belongs(const struct net *net, const struct net_group *group,
                        const struct path_cost *row, const struct net_stack *stack)
{
    if (group->least == 0)
        return 0;
    unsigned common = net_common(group->stack, stack);
    bool fits = net_is_wait(net->evidence, row) ||
                (row->class == WAIT_CLASS_RUNNING && (group->whole || is_net_call(row->syscall)));
    return fits && common >= group->least ? common : 0;
}

/* Whoever has most in common; several by the time they took. */
static void row_share(struct net *net, size_t index, const struct net_stack *stack)
{
    const struct path_cost *row = &net->evidence->costs_on_path.rows[index];
    unsigned common[NET_GROUPS_MAX] = {0}, best = 0;
    double total = 0;
    for (size_t i = 0; i < net->count; i++) {
        common[i] = stack ? belongs(net, &net->groups[i], row, stack) : 0;
        best = MAX(best, common[i]);
    }
    /* Nobody's: of those of which it is not known where they wait. */
    if (best == 0 && !net_is_wait(net->evidence, row))
        return;
    for (size_t i = 0; i < net->count; i++)
        if (common[i] == best && (best > 0 || net->groups[i].least == 0))
            total += (double)net->groups[i].group->tally.total_ns;
    for (size_t i = 0; i < net->count && total > 0; i++)
        if (common[i] == best && (best > 0 || net->groups[i].least == 0))
            net->rows[index][i] = (float)((double)net->groups[i].group->tally.total_ns / total);
}

/* Waiting for answers cannot take longer than the requests took: what is more is somebody else's,
 * whose requests nobody saw. */
static void shares_bound(struct net *net)
{
    const struct path_costs *costs = &net->evidence->costs_on_path;
    double slower = fmax(net->evidence->axes[AXIS_IO].scale, 1);
    for (size_t i = 0; i < net->count; i++) {
        double waited = 0;
        double took = (double)net->groups[i].group->tally.total_ns * slower * LONGER_MAX;
        for (size_t k = 0; k < costs->count; k++)
            if (costs->rows[k].class == WAIT_CLASS_NET)
                waited += costs->rows[k].ns * (double)net->rows[k][i];
        for (size_t k = 0; k < costs->count && waited > took; k++)
            net->rows[k][i] *= (float)(took / waited);
    }
}

static int groups_take(struct net *net)
{
    const struct io_request_groups *all = &net->evidence->requests;
    net->groups = arena_alloc(net->arena, NET_GROUPS_MAX * sizeof(*net->groups));
    if (!net->groups)
        return -ENOMEM;
    for (size_t i = 0; i < all->count && net->count < NET_GROUPS_MAX; i++) {
        if (all->groups[i].role != REQUEST_CLIENT)
            continue;
        struct net_stack *stack = net_stack_of(net->arena, &net->evidence->io.profile,
                                               all->groups[i].stack);
        if (!stack)
            return -ENOMEM;
        net->groups[net->count++] = (struct net_group){.group = &all->groups[i], .stack = stack};
    }
    return 0;
}

/* Rows of which a request may be a part; the others stay NULL. */
static int stacks_take(struct net *net, struct net_stack **stacks)
{
    const struct path_costs *costs = &net->evidence->costs_on_path;
    for (size_t i = 0; i < costs->count && i < NET_ROWS_MAX && net->count > 0; i++) {
        const struct path_cost *row = &costs->rows[i];
        if (row->stack == 0 || !costs->profile ||
            (!net_is_wait(net->evidence, row) && row->class != WAIT_CLASS_RUNNING))
            continue;
        stacks[i] = net_stack_of(net->arena, costs->profile, row->stack);
        if (!stacks[i])
            return -ENOMEM;
    }
    return 0;
}

int net_build(struct arena *arena, const struct evidence *evidence, struct net *ret)
{
    struct net net = {.arena = arena, .evidence = evidence};
    size_t count = evidence->costs_on_path.count;
    struct waited waited = {0};
    struct net_stack **stacks = arena_alloc(arena, (count + 1) * sizeof(void *));
    net.rows = arena_alloc(arena, (count + 1) * sizeof(*net.rows));
    if (!stacks || !net.rows || groups_take(&net) < 0 || stacks_take(&net, stacks) < 0 ||
        waited_find(&net, &waited) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < net.count; i++)
        place_find(&net.groups[i], &waited);
    for (size_t i = 0; i < count; i++)
        row_share(&net, i, stacks[i]);
    shares_bound(&net);
    *ret = net;
    return 0;
}

/* ---- sums ---- */

struct net_choice {
    const struct net *net;
    uint64_t set;
};

static double part_of(const struct net_choice *choice, size_t row)
{
    double part = 0;
    for (size_t i = 0; i < choice->net->count; i++)
        if (choice->set >> i & 1)
            part += choice->net->rows[row][i];
    return fmin(part, 1);
}

static double net_pick(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    return part_of(context, (size_t)(row - costs->rows));
}

struct estimate net_sum(const struct net *net, uint64_t set)
{
    struct net_choice choice = {net, set};
    return path_costs_sum(&net->evidence->costs_on_path, net_pick, &choice);
}

struct estimate net_cover(const struct net *net, uint64_t set, struct finding *finding)
{
    struct net_choice choice = {net, set};
    return path_costs_cover(net->arena, &net->evidence->costs_on_path, net_pick, &choice, finding);
}

uint64_t net_alike(const struct net *net, size_t index)
{
    const struct net_group *first = &net->groups[index];
    uint64_t set = 0;
    for (size_t i = 0; i < net->count; i++) {
        const struct net_group *other = &net->groups[i];
        if (other->group->protocol == first->group->protocol &&
            other->group->peer == first->group->peer && other->group->text == first->group->text &&
            (other->least == 0 || first->least == 0 ||
             place_same(&other->place, &first->place, true)))
            set |= UINT64_C(1) << i;
    }
    return set;
}

struct io_request_group net_together(const struct net *net, uint64_t set)
{
    struct io_request_group together = {0};
    bool first = true;
    for (size_t i = 0; i < net->count; i++) {
        const struct io_request_group *group = net->groups[i].group;
        if (!(set >> i & 1))
            continue;
        if (first) {
            together = *group;
            first = false;
            continue;
        }
        request_tally_add(&together.tally, &group->tally);
        together.events += group->events;
        together.sequential += group->sequential;
        together.parameters = MAX(together.parameters, group->parameters);
        together.connections = MAX(together.connections, group->connections);
        together.parameters_more = true;
    }
    return together;
}

/* ---- words ---- */

struct str net_text(const struct net *net, uint32_t id)
{
    return id < net->evidence->io.text_count ? net->evidence->io.texts[id] : STR("");
}

bool net_is_sql(enum request_protocol protocol)
{
    return protocol == REQUEST_POSTGRESQL || protocol == REQUEST_MYSQL;
}

const char *net_count(struct arena *arena, uint64_t count)
{
    char text[48];
    return arena_dup(arena, units_format((double)count, UNIT_COUNT, text, sizeof(text)));
}

const char *net_time(struct arena *arena, double ns)
{
    char text[48];
    return arena_dup(arena, units_format(ns, UNIT_NS, text, sizeof(text)));
}

/* Counting knows how often the program gave up the CPU and how long it had none. */
static struct angle_word counted(const struct net *net, uint64_t count, double cost_ns)
{
    const struct run_costs *costs = &net->evidence->costs;
    double off_ns = costs->wall_ns - costs->cpu_ns, switches = costs->switches_voluntary;
    if (isnan(off_ns) || isnan(switches))
        return (struct angle_word){ANGLE_SILENT, "the baseline has no count of context switches"};
    bool often = switches >= 0.5 * (double)count, long_enough = off_ns >= 0.5 * cost_ns;
    return (struct angle_word){
        often && long_enough ? ANGLE_SUPPORTS : ANGLE_REJECTS,
        arena_printf(net->arena, "a plain run waits %s times, %s in all without a CPU",
                     net_count(net->arena, (uint64_t)switches), net_time(net->arena, off_ns))};
}

void net_angles(const struct net *net, struct finding *finding, uint64_t count, double cost_ns,
                const char *traced)
{
    double wall = net->evidence->costs_on_path.ns;
    finding->angles[ANGLE_SAMPLING] = (struct angle_word){
        cost_ns >= DETECT_SHARE_MIN * wall ? ANGLE_SUPPORTS : ANGLE_REJECTS,
        arena_printf(net->arena, "%s of the critical path, %.0f%%, lie there",
                     net_time(net->arena, cost_ns), wall > 0 ? cost_ns / wall * 100 : 0)};
    finding->angles[ANGLE_TRACING] = (struct angle_word){ANGLE_SUPPORTS, traced};
    finding->angles[ANGLE_COUNTING] = counted(net, count, cost_ns);
}

void net_facts(const struct net *net, struct findings *ret, struct finding *finding,
               const struct io_request_group *group)
{
    const char *artifact = net->evidence->axes[AXIS_IO].artifact;
    const struct request_tally *tally = &group->tally;
    finding_fact(ret, finding, "requests", "requests", value_uint(tally->count, UNIT_COUNT),
                 artifact, NULL);
    finding_fact(ret, finding, "requests_ns", "time in them",
                 value_real((double)tally->total_ns, UNIT_NS), artifact, NULL);
    finding_fact(ret, finding, "request_p50_ns", "half of them take at most",
                 value_real(io_quantile(tally->buckets, tally->count, tally->max_ns, 0.5), UNIT_NS),
                 artifact, NULL);
    finding_fact(ret, finding, "request", "what is asked", value_str(net_text(net, group->text)),
                 artifact, NULL);
    finding_fact(ret, finding, "peer", "of whom", value_str(net_text(net, group->peer)), artifact,
                 NULL);
    finding_fact(ret, finding, "protocol", "protocol", value_text(protocol_name(group->protocol)),
                 artifact, NULL);
    finding_fact(ret, finding, "path_ns", "on the critical path",
                 value_real(finding->cost_ns, UNIT_NS), net->evidence->axes[AXIS_WAITS].artifact,
                 NULL);
}

const char *net_too_little(struct arena *arena, double ns, double wall_ns, double ns_min,
                           double share_min, bool both)
{
    double share = wall_ns > 0 ? ns / wall_ns : 0;
    bool enough = both ? ns >= ns_min && share >= share_min : ns >= ns_min || share >= share_min;
    if (enough)
        return NULL;
    return arena_printf(arena, "%s, %.1f%% of the wall time; from %s %s %.0f%% on it counts",
                        net_time(arena, ns), share * 100, net_time(arena, ns_min),
                        both ? "and" : "or", share_min * 100);
}
