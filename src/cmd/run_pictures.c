/* One tree an axis; each becomes a file and a tab of the page. */
#include "cmd/run_pictures.h"

#include "analyze/call_tree.h"
#include "analyze/wait_profile.h"
#include "base/fd.h"
#include "cmd/cmd.h"
#include "present/flame.h"
#include "present/run_page.h"

#include <errno.h>
#include <stdlib.h>

struct pictures {
    struct arena *arena;
    const struct evidence *evidence;
};

/* Idle waits are left out, as they are in tables. */
static const char *wait_leaf_text(void *context, uint32_t row)
{
    const struct pictures *pictures = context;
    const struct evidence *evidence = pictures->evidence;
    enum wait_class class = evidence->classes.rows[row];
    if (evidence->groups.of_row[row] == 0 || class == WAIT_CLASS_IDLE)
        return NULL;
    return arena_printf(pictures->arena, "%s: %s", wait_class_name(class),
                        wait_cause(pictures->arena, &evidence->waits, row));
}

static int offcpu_profile(struct pictures *pictures, struct profile *ret)
{
    return wait_profile_build(pictures->arena, &pictures->evidence->waits, wait_leaf_text, pictures,
                              ret);
}

static const char *call_leaf_text(void *context, uint32_t row)
{
    const struct pictures *pictures = context;
    const struct evidence *evidence = pictures->evidence;
    const struct call_info *info = &evidence->io.calls[row].info;
    const struct object_info *object = &evidence->io.objects[info->object];
    if (io_is_idle(&evidence->io_sums.kinds, info, object))
        return NULL;
    const char *call = io_call_name(pictures->arena, &evidence->io_sums.kinds, info->syscall);
    return object->name.len == 0
               ? call
               : arena_printf(pictures->arena, "%s of %.*s", call, STR_FMT(object->name));
}

/* Calls as rows of waits, which the shared way to a profile takes. */
static int io_profile(struct pictures *pictures, struct profile *ret)
{
    const struct io *io = &pictures->evidence->io;
    struct waits waits = {.profile = io->profile, .row_count = io->call_count};
    waits.rows = arena_alloc(pictures->arena, (io->call_count + 1) * sizeof(*waits.rows));
    if (!waits.rows)
        return -ENOMEM;
    for (size_t i = 1; i < io->call_count; i++) {
        waits.rows[i].info.thread = io->calls[i].info.thread;
        waits.rows[i].info.stack = io->calls[i].info.stack;
        waits.rows[i].tally.count = io->calls[i].tally.count;
        waits.rows[i].tally.total_ns = io->calls[i].tally.total_ns;
    }
    return wait_profile_build(pictures->arena, &waits, call_leaf_text, pictures, ret);
}

static int alloc_profile(struct pictures *pictures, struct profile *ret)
{
    int r = heap_profile(pictures->arena, &pictures->evidence->heap, HEAP_BY_BYTES, ret);
    if (r == 0)
        ret->counted = "call";
    return r;
}

static int cpu_profile(struct pictures *pictures, struct profile *ret)
{
    *ret = pictures->evidence->cpu;
    return 0;
}

static const struct axis_picture {
    const char *id, *title, *what, *file;
    enum axis axis;
    int (*profile)(struct pictures *pictures, struct profile *ret);
    const char *nothing; /* when the axis was recorded, and there is nothing to draw */
} axis_pictures[] = {
    {"cpu", "CPU", "Widths are CPU time of all threads, by stack.", "flame-cpu.svg", AXIS_CPU,
     cpu_profile, "no sample was taken: it was hardly ever on a CPU"},
    {"offcpu", "Off-CPU",
     "Widths are time spent waiting, of all threads, by stack; idle is left out.",
     "flame-offcpu.svg", AXIS_WAITS, offcpu_profile, "nothing was waited for"},
    {"alloc", "Allocation", "Widths are allocated bytes, by stack.", "flame-alloc.svg", AXIS_HEAP,
     alloc_profile, "nothing was allocated"},
    {"io", "I/O", "Widths are time in system calls, by stack, call and file or peer.",
     "flame-io.svg", AXIS_IO, io_profile, "there is no call but what is idle"},
};

static const char *honesty_of(struct pictures *pictures, enum axis axis)
{
    const struct evidence *evidence = pictures->evidence;
    switch (axis) {
    case AXIS_CPU:
        return honesty_line(pictures->arena, &evidence->cpu_honesty);
    case AXIS_WAITS:
        return wait_honesty_line(pictures->arena, &evidence->wait_honesty);
    case AXIS_IO:
        return io_honesty_line(pictures->arena, &evidence->io_honesty);
    default:
        return heap_honesty_line(pictures->arena, &evidence->heap_honesty);
    }
}

static int graph_build(struct pictures *pictures, const struct axis_picture *picture,
                       struct run_graph *ret)
{
    *ret = (struct run_graph){.id = picture->id,
                              .title = picture->title,
                              .what = picture->what,
                              .file = picture->file,
                              .na = pictures->evidence->axes[picture->axis].na};
    if (ret->na)
        return 0;
    struct profile *profile = ARENA_NEW(pictures->arena, struct profile);
    struct call_tree *tree = ARENA_NEW(pictures->arena, struct call_tree);
    if (!profile || !tree || picture->profile(pictures, profile) < 0)
        return -ENOMEM;
    if (profile->weight == 0) {
        ret->na = picture->nothing;
        return 0;
    }
    if (call_tree_build(pictures->arena, profile, NULL, tree) < 0)
        return -ENOMEM;
    ret->tree = tree;
    ret->honesty = honesty_of(pictures, picture->axis);
    return arena_failed(pictures->arena) ? -ENOMEM : 0;
}

static int flame_draw(const void *drawn, FILE *out, struct why *why)
{
    const struct run_graph *graph = drawn;
    struct flame_opts opts = {.title = graph->what, .subtitle = graph->honesty};
    return flame_svg(&opts, graph->tree, NULL, 1, out, why);
}

static int page_draw(const void *drawn, FILE *out, struct why *why)
{
    return run_page_write(drawn, out, why);
}

/* Whole or not at all. */
static int picture_write(int (*draw)(const void *drawn, FILE *out, struct why *why),
                         const void *drawn, const char *path, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return why_nomem(why);
    int r = draw(drawn, out, why);
    if (fclose(out) != 0 && r == 0)
        r = why_nomem(why);
    if (r == 0)
        r = file_write_atomic(path, text, len, why);
    free(text);
    return r;
}

int run_pictures_write(struct arena *arena, const struct interpretation *run,
                       const struct value *screen, const char *folder, FILE *err, struct why *why)
{
    struct pictures pictures = {arena, run->evidence};
    struct run_graph graphs[ARRAY_SIZE(axis_pictures)];
    struct why one = {0};
    for (size_t i = 0; i < ARRAY_SIZE(graphs); i++) {
        if (graph_build(&pictures, &axis_pictures[i], &graphs[i]) < 0)
            return why_nomem(why);
        const char *path = arena_printf(arena, "%s/%s", folder, graphs[i].file);
        if (!path)
            return why_nomem(why);
        if (graphs[i].tree && picture_write(flame_draw, &graphs[i], path, &one) < 0)
            cmd_print_error(err, &one);
    }
    struct run_page page = {
        .run = run, .screen = screen, .graphs = graphs, .graph_count = ARRAY_SIZE(graphs)};
    const char *path = arena_printf(arena, "%s/report.html", folder);
    if (!path)
        return why_nomem(why);
    if (picture_write(page_draw, &page, path, &one) < 0)
        cmd_print_error(err, &one);
    return 0;
}
