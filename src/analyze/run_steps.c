/* Stacks of the critical path merged by function, calls and requests hung into it, small ones
 * taken out. */
#include "analyze/run_steps.h"

#include "analyze/places.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { FRAMES_MAX = 512, STEPS_MAX = 100000 };

struct tree {
    struct arena *arena;
    const struct evidence *evidence;
    VEC(struct run_step) steps;
    struct intern names;
    struct map_u64 by_name; /* parent << 32 | name → index */
    bool several;           /* programs on the path: each is a step of its own */
    struct map_u64 of_io;   /* stack of calls and process → where it leads; plus one */
};

/* Begins every stack: no step of anybody. */
static bool is_beginning(struct str name)
{
    static const char *const names[] = {"_start",
                                        "start_thread",
                                        "clone",
                                        "__clone3",
                                        "clone3",
                                        "__libc_start_main",
                                        "_dl_main",
                                        "__libc_start_call_main",
                                        "__libc_start_main_impl"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}

static struct str base_name(struct str path)
{
    struct str name = path;
    while (path.len > 0)
        name = str_cut(&path, '/');
    return name;
}

static struct str exe_of(const struct profile *profile, uint32_t thread)
{
    if (thread == 0 || thread >= profile->thread_count)
        return (struct str){0};
    uint32_t process = profile->threads[thread].process;
    return process < profile->process_count ? profile->processes[process].exe : (struct str){0};
}

static struct str program_of(const struct profile *profile, uint32_t thread)
{
    return base_name(exe_of(profile, thread));
}

/* The child of that name; made when `make`. 0: there is none, or no room: the caller stays. */
static int child_at(struct tree *tree, uint32_t parent, struct str name, bool make, uint32_t *ret)
{
    uint32_t id = intern_find(&tree->names, name);
    *ret = 0;
    if (!id && !make)
        return 0;
    if (!id && intern_add(&tree->names, name, &id, NULL) < 0)
        return -ENOMEM;
    uint64_t key = (uint64_t)parent << 32 | id;
    uint64_t *known = map_u64_find(&tree->by_name, key);
    if (known) {
        *ret = (uint32_t)*known;
        return 0;
    }
    if (!make || tree->steps.len >= STEPS_MAX)
        return 0;
    uint64_t *at = map_u64_at(&tree->by_name, key, NULL);
    struct run_step step = {.parent = parent, .function = intern_get(&tree->names, id)};
    if (!at || VEC_PUSH(&tree->steps, step) < 0)
        return -ENOMEM;
    *at = tree->steps.len - 1;
    *ret = (uint32_t)*at;
    return 0;
}

/* Where a stack is on its way from the root to the leaf. */
struct walk {
    const struct profile *profile;
    struct str exe, program; /* path and name */
    bool make;
    uint32_t at; /* step */
    unsigned depth;
    bool ended; /* nothing of that name, or deep enough */
};

/* A function that is on the way already is recursion: back to where it began. */
static uint32_t on_the_way(const struct tree *tree, uint32_t at, struct str name)
{
    for (; at != 0; at = tree->steps.data[at].parent)
        if (str_eq(tree->steps.data[at].function, name))
            return at;
    return 0;
}

static unsigned depth_of(const struct tree *tree, uint32_t at)
{
    unsigned depth = 0;
    for (; at != 0; at = tree->steps.data[at].parent)
        depth++;
    return depth;
}

static int step_into(struct tree *tree, struct walk *walk, const struct profile_place *place)
{
    const struct profile_function *function = &walk->profile->functions[place->function];
    if (function->kernel || function->name.len == 0 || is_beginning(function->name))
        return 0;
    uint32_t back = on_the_way(tree, walk->at, function->name);
    if (back) {
        walk->at = back;
        walk->depth = depth_of(tree, back);
        return 0;
    }
    if (walk->depth >= RUN_STEPS_DEPTH_MAX) {
        walk->ended = true;
        return 0;
    }
    uint32_t child;
    int r = child_at(tree, walk->at, function->name, walk->make, &child);
    if (r < 0)
        return r;
    if (!child) {
        walk->ended = true;
        return 0;
    }
    struct run_step *step = &tree->steps.data[child];
    if (walk->make && step->place.function.len == 0) {
        step->place = place_of_function(walk->profile, place->function);
        step->service = walk->program;
    }
    walk->at = child;
    walk->depth++;
    return 0;
}

/* From the root of a stack to its leaf, or as far as there are steps. */
static int stack_walk(struct tree *tree, struct walk *walk, uint32_t stack)
{
    const struct profile *profile = walk->profile;
    uint32_t frames[FRAMES_MAX];
    size_t count = 0;
    /* Of a stack that is deeper the outermost frames are lost, not the innermost. */
    for (uint32_t at = stack; at != 0 && count < FRAMES_MAX; at = profile->stacks[at].parent)
        frames[count++] = profile->stacks[at].frame;
    if (tree->several && walk->program.len > 0) {
        uint32_t child;
        int r = child_at(tree, 0, walk->program, walk->make, &child);
        if (r < 0)
            return r;
        if (child && walk->make) {
            tree->steps.data[child].service = walk->program;
            tree->steps.data[child].place.image = walk->exe;
        }
        walk->ended = !child;
        walk->at = child;
        walk->depth = 1;
    }
    while (count > 0 && !walk->ended) {
        const struct profile_frame *frame = &profile->frames[frames[--count]];
        for (uint32_t i = frame->place_count; i > 0 && !walk->ended; i--) {
            int r = step_into(tree, walk, &profile->places[frame->places + i - 1]);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* ---- what was done meanwhile ---- */

static bool is_one_of(struct str name, const char *names)
{
    struct str rest = str_from(names);
    while (rest.len > 0)
        if (str_eq(str_word(&rest), name))
            return true;
    return false;
}

static enum finding_category running_kind(struct str syscall)
{
    static const struct {
        enum finding_category kind;
        const char *syscalls;
    } kinds[] = {
        {CATEGORY_IO_FILE,
         "read pread64 readv preadv preadv2 write pwrite64 writev pwritev pwritev2 fsync fdatasync "
         "sync syncfs sync_file_range msync open openat openat2 creat close stat lstat fstat "
         "newfstatat statx access faccessat faccessat2 unlink unlinkat rename renameat renameat2 "
         "mkdir mkdirat rmdir getdents getdents64 ftruncate truncate fallocate lseek readlink "
         "readlinkat copy_file_range sendfile splice"},
        {CATEGORY_IO_NETWORK,
         "socket connect accept accept4 sendto sendmsg sendmmsg recvfrom recvmsg "
         "recvmmsg bind listen shutdown"},
        {CATEGORY_LOCK, "futex futex_waitv"},
        {CATEGORY_MEMORY, "brk mmap munmap mremap madvise mprotect"},
    };
    for (size_t i = 0; syscall.len > 0 && i < ARRAY_SIZE(kinds); i++)
        if (is_one_of(syscall, kinds[i].syscalls))
            return kinds[i].kind;
    return CATEGORY_CPU;
}

static enum finding_category row_kind(const struct path_cost *row)
{
    static const enum finding_category kinds[WAIT_CLASS_UNKNOWN + 1] = {
        [WAIT_CLASS_RUNQ] = CATEGORY_CPU, /* it wants one */
        [WAIT_CLASS_LOCK] = CATEGORY_LOCK,          [WAIT_CLASS_DISK] = CATEGORY_IO_FILE,
        [WAIT_CLASS_NET] = CATEGORY_IO_NETWORK,     [WAIT_CLASS_PAGEFAULT] = CATEGORY_MEMORY,
        [WAIT_CLASS_CHILD] = CATEGORY_EXTERNAL,     [WAIT_CLASS_PIPE] = CATEGORY_EXTERNAL,
        [WAIT_CLASS_TIMER] = CATEGORY_ARCHITECTURE, /* somebody decided to sleep */
        [WAIT_CLASS_IDLE] = CATEGORY_UNKNOWN,       [WAIT_CLASS_UNKNOWN] = CATEGORY_UNKNOWN,
    };
    return row->class == WAIT_CLASS_RUNNING ? running_kind(row->syscall) : kinds[row->class];
}

static enum finding_category step_type(const struct run_step *step)
{
    enum finding_category type = CATEGORY_UNKNOWN;
    for (int i = 0; i < CATEGORIES; i++)
        if (step->kinds[i] > (type == CATEGORY_UNKNOWN ? 0 : step->kinds[type]))
            type = (enum finding_category)i;
    bool io = type == CATEGORY_IO_NETWORK || type == CATEGORY_IO_FILE;
    return io && step->asked_db_ns > step->asked_http_ns ? CATEGORY_IO_DB : type;
}

/* ---- the three sources ---- */

static bool several_programs(const struct path_costs *costs)
{
    struct str first = {0};
    for (size_t i = 0; i < costs->count; i++) {
        struct str program = program_of(costs->profile, costs->rows[i].thread);
        if (first.len == 0)
            first = program;
        else if (program.len > 0 && !str_eq(first, program))
            return true;
    }
    return false;
}

static int path_add(struct tree *tree)
{
    const struct path_costs *costs = &tree->evidence->costs_on_path;
    for (size_t i = 0; i < costs->count; i++) {
        const struct path_cost *row = &costs->rows[i];
        struct walk walk = {.profile = costs->profile,
                            .exe = exe_of(costs->profile, row->thread),
                            .program = program_of(costs->profile, row->thread),
                            .make = true};
        int r = stack_walk(tree, &walk, row->stack);
        if (r < 0)
            return r;
        enum finding_category kind = row_kind(row);
        for (uint32_t at = walk.at;; at = tree->steps.data[at].parent) {
            tree->steps.data[at].ns += row->ns;
            tree->steps.data[at].kinds[kind] += row->ns;
            if (at == 0)
                break;
        }
    }
    return 0;
}

/* Where a stack of calls leads: the same for all rows that have it. */
static int io_step(struct tree *tree, uint32_t thread, uint32_t stack, uint32_t *ret)
{
    const struct profile *profile = &tree->evidence->io.profile;
    uint32_t process = thread < profile->thread_count ? profile->threads[thread].process : 0;
    uint64_t *known = map_u64_at(&tree->of_io, (uint64_t)process << 32 | stack, NULL);
    if (!known)
        return -ENOMEM;
    if (*known == 0) {
        struct walk walk = {.profile = profile, .program = program_of(profile, thread)};
        int r = stack_walk(tree, &walk, stack);
        if (r < 0)
            return r;
        *known = (uint64_t)walk.at + 1;
    }
    *ret = (uint32_t)(*known - 1);
    return 0;
}

static int calls_add(struct tree *tree)
{
    const struct io *io = &tree->evidence->io;
    const struct io_kinds *kinds = &tree->evidence->io_sums.kinds;
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *call = &io->calls[i];
        enum io_kind kind = io_kind_of(kinds, &call->info);
        if (kind == IO_OTHER || kind == IO_WAIT || kind == IO_FAULT)
            continue;
        uint32_t leaf;
        int r = io_step(tree, call->info.thread, call->info.stack, &leaf);
        if (r < 0)
            return r;
        for (uint32_t at = leaf;; at = tree->steps.data[at].parent) {
            struct run_step *step = &tree->steps.data[at];
            step->calls += call->tally.count;
            step->read_bytes += kind == IO_READ ? call->tally.bytes : 0;
            step->write_bytes += kind == IO_WRITE || kind == IO_COPY ? call->tally.bytes : 0;
            if (at == 0)
                break;
        }
    }
    return 0;
}

static bool is_http(enum request_protocol protocol)
{
    return protocol == REQUEST_HTTP1 || protocol == REQUEST_HTTP2;
}

static bool is_database(enum request_protocol protocol)
{
    return protocol == REQUEST_POSTGRESQL || protocol == REQUEST_MYSQL ||
           protocol == REQUEST_SQLITE || protocol == REQUEST_REDIS;
}

/* The step of whoever asked: the user's own function on the stack, if there is one. */
static uint32_t asker_of(const struct tree *tree, uint32_t at, const struct place *place)
{
    uint32_t own = on_the_way(tree, at, place->function);
    return place->function.len > 0 && own ? own : at;
}

/* "shop at 10.0.0.5:5432": what it calls itself, and where it is. */
static struct str service_of(const struct tree *tree, const struct io_request_group *group)
{
    const struct io *io = &tree->evidence->io;
    struct str peer = group->peer < io->text_count ? io->texts[group->peer] : (struct str){0};
    if (group->service.len == 0 || peer.len == 0)
        return group->service.len > 0 ? group->service : peer;
    return str_from(
        arena_printf(tree->arena, "%.*s at %.*s", STR_FMT(group->service), STR_FMT(peer)));
}

static int request_add(struct tree *tree, const struct io_request_group *group, uint32_t thread)
{
    const struct io *io = &tree->evidence->io;
    uint32_t leaf;
    int r = io_step(tree, thread, group->stack, &leaf);
    if (r < 0)
        return r;
    struct place place = place_of_stack(&io->profile, group->stack);
    uint32_t asker = asker_of(tree, leaf, &place);
    double scale = tree->evidence->axes[AXIS_IO].scale;
    double ns = (double)group->tally.total_ns * (scale > 0 ? scale : 1);
    for (uint32_t at = asker;; at = tree->steps.data[at].parent) {
        struct run_step *step = &tree->steps.data[at];
        step->http_round_trips += is_http(group->protocol) ? group->tally.count : 0;
        step->asked_http_ns += is_database(group->protocol) ? 0 : ns;
        step->asked_db_ns += is_database(group->protocol) ? ns : 0;
        if (at == 0)
            break;
    }
    struct run_step made = {
        .parent = asker,
        .function = group->text < io->text_count ? io->texts[group->text] : (struct str){0},
        .place = place,
        .service = service_of(tree, group),
        .ns = fmin(ns, tree->steps.data[asker].ns),
        .requests = group->tally.count,
        .http_round_trips = is_http(group->protocol) ? group->tally.count : 0,
        .read_bytes = group->tally.bytes_in,
        .write_bytes = group->tally.bytes_out,
        .type = is_database(group->protocol) ? CATEGORY_IO_DB : CATEGORY_IO_NETWORK,
    };
    return VEC_PUSH(&tree->steps, made) < 0 ? -ENOMEM : 0;
}

static int requests_add(struct tree *tree)
{
    const struct io *io = &tree->evidence->io;
    const struct io_request_groups *groups = &tree->evidence->requests;
    /* A group may be of several threads: the program is that of one of them. */
    uint32_t *threads = calloc(groups->count + 1, sizeof(*threads));
    if (!threads)
        return -ENOMEM;
    for (size_t i = 1; groups->of_row && i < io->request_count; i++)
        threads[groups->of_row[i]] = io->requests[i].info.thread;
    int r = 0;
    for (size_t i = 0; i < groups->count && r == 0; i++)
        if (groups->groups[i].role != REQUEST_SERVER)
            r = request_add(tree, &groups->groups[i], threads[i + 1]);
    free(threads);
    return r;
}

/* ---- what is kept ---- */

struct ranked {
    double ns;
    uint32_t index;
};

static int by_ns(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1; /* the shortest first: each is put before its siblings */
    return x->index < y->index ? 1 : -1;
}

/* Requests to one step never take longer than it: what was traced beside each other is scaled. */
static void requests_fit(struct tree *tree, double *asked)
{
    for (size_t i = 1; i < tree->steps.len; i++)
        if (tree->steps.data[i].requests)
            asked[tree->steps.data[i].parent] += tree->steps.data[i].ns;
    for (size_t i = 1; i < tree->steps.len; i++) {
        struct run_step *step = &tree->steps.data[i];
        double all = tree->steps.data[step->parent].ns;
        if (step->requests && asked[step->parent] > all)
            step->ns *= all / asked[step->parent];
    }
}

/* Copies what is long enough, with new indexes; a parent is there before its children. */
static int steps_keep(struct tree *tree, struct run_steps *ret)
{
    size_t count = tree->steps.len;
    double least = tree->evidence->costs_on_path.ns * RUN_STEPS_SHARE_MIN;
    struct run_step *rows = arena_alloc(tree->arena, count * sizeof(*rows));
    uint32_t *now = calloc(count, sizeof(*now));
    struct ranked *ranked = calloc(count, sizeof(*ranked));
    double *asked = calloc(count, sizeof(*asked));
    int r = rows && now && ranked && asked ? 0 : -ENOMEM;
    size_t kept = 1;
    if (r == 0) {
        requests_fit(tree, asked);
        rows[0] = tree->steps.data[0];
    }
    for (uint32_t i = 1; r == 0 && i < count; i++) {
        const struct run_step *step = &tree->steps.data[i];
        bool in_tree = step->parent == 0 || now[step->parent] != 0;
        if (!in_tree || step->ns < least || step->ns <= 0)
            continue;
        now[i] = (uint32_t)kept;
        rows[kept] = *step;
        rows[kept].parent = now[step->parent];
        rows[kept].function = str_from(
            arena_dup_len(tree->arena, step->function.data, step->function.len));
        if (!step->requests)
            rows[kept].type = step_type(step);
        ranked[kept - 1] = (struct ranked){step->ns, (uint32_t)kept};
        kept++;
    }
    if (r == 0)
        qsort(ranked, kept - 1, sizeof(*ranked), by_ns);
    for (size_t i = 0; r == 0 && i + 1 < kept; i++) {
        struct run_step *step = &rows[ranked[i].index];
        step->next_sibling = rows[step->parent].first_child;
        rows[step->parent].first_child = ranked[i].index;
    }
    free(now);
    free(ranked);
    free(asked);
    ret->rows = rows;
    ret->count = kept;
    return r;
}

int run_steps_build(struct arena *arena, const struct evidence *evidence, struct run_steps *ret)
{
    struct tree tree = {.arena = arena, .evidence = evidence};
    const struct path_costs *costs = &evidence->costs_on_path;
    struct run_step root = {.type = CATEGORY_UNKNOWN};
    int r = VEC_PUSH(&tree.steps, root) < 0 ? -ENOMEM : 0;
    *ret = (struct run_steps){.io_known = evidence_has(evidence, AXIS_IO)};
    if (r == 0 && costs->profile) {
        tree.several = several_programs(costs);
        r = path_add(&tree);
    }
    if (r == 0 && ret->io_known)
        r = calls_add(&tree);
    if (r == 0 && ret->io_known)
        r = requests_add(&tree);
    if (r == 0)
        r = steps_keep(&tree, ret);
    if (r == 0) {
        ret->rows[0].type = step_type(&tree.steps.data[0]);
        ret->http_round_trips = ret->rows[0].http_round_trips;
        ret->left_out_ns = costs->ns;
        for (uint32_t at = ret->rows[0].first_child; at; at = ret->rows[at].next_sibling)
            ret->left_out_ns -= ret->rows[at].requests ? 0 : ret->rows[at].ns;
        ret->left_out_ns = fmax(0, ret->left_out_ns);
    }
    VEC_FREE(&tree.steps);
    intern_deinit(&tree.names);
    map_u64_deinit(&tree.by_name);
    map_u64_deinit(&tree.of_io);
    return r;
}
