/* Promises of the reader of heap windows (collect/heap_user_parts.h), with windows made by hand:
 * what was counted arrives at the right thread and stack, and nothing that a target writes does
 * harm. Processes are made up. */
#include "unit.h"

#include "collect/heap_user_parts.h"
#include "model/sink_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PID = 2000001,
    THREADS_AT = 4096,
    IMAGES_AT = 65536,
    NODES_AT = 1 << 18,
    CELLS_AT = 1 << 20,
    LOGS_AT = 1 << 22
};
enum { THREADS = 8, IMAGES = 16, NODES = 4096, CELLS = 4096 };

struct fixture {
    struct sink_memory memory;
    struct preload_heap *preload;
    struct collector c;
    int fd; /* of the shared memory, as a target opens it */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct preload_heap_opts preload = {.temporary_within = 1};
    struct stacks_opts opts = {.machine = unwind_machine_here()};
    f->memory = SINK_MEMORY_INIT;
    *state = f;
    if (preload_heap_open(&preload, &f->preload, NULL) < 0 ||
        stacks_open(&opts, &f->memory.sink, &f->c.stacks, NULL) < 0)
        return -1;
    f->c.preload = f->preload;
    f->c.sink = &f->memory.sink;
    const char *const *variables = preload_heap_environment(f->preload, NULL);
    f->fd = open(strchr(variables[1], '=') + 1, O_RDWR | O_CLOEXEC);
    return f->fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    heap_log_free(&f->c);
    heap_windows_deinit(&f->c);
    map_u64_deinit(&f->c.programs);
    VEC_FREE(&f->c.dirty);
    stacks_close(f->c.stacks);
    preload_heap_close(f->preload);
    sink_memory_deinit(&f->memory);
    close(f->fd);
    free(f);
    return 0;
}

/* ---- as the library does it ---- */

struct made {
    char *memory;
    struct heap_process *process;
    struct heap_thread_place *threads;
    struct heap_image *images;
    struct heap_node *nodes;
    struct heap_cell *cells;
};

static struct made window_take(struct fixture *f, uint32_t pid, uint64_t start_ns)
{
    uint32_t index = preload_heap_header(f->preload)->windows++;
    char *memory = mmap(NULL, HEAP_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd,
                        (off_t)(HEAP_HEADER_BYTES + index * HEAP_WINDOW_BYTES));
    assert_ptr_not_equal(memory, MAP_FAILED);
    struct made made = {
        .memory = memory,
        .process = (void *)memory,
        .threads = (void *)(memory + THREADS_AT),
        .images = (void *)(memory + IMAGES_AT),
        .nodes = (void *)(memory + NODES_AT),
        .cells = (void *)(memory + CELLS_AT),
    };
    *made.process = (struct heap_process){
        .magic = HEAP_MAGIC,
        .pid = pid,
        .start_ns = start_ns,
        .threads_at = THREADS_AT,
        .images_at = IMAGES_AT,
        .nodes_at = NODES_AT,
        .cells_at = CELLS_AT,
        .threads_max = THREADS,
        .images_max = IMAGES,
        .nodes_max = NODES,
        .cells_max = CELLS,
        .nodes = 2,
        .threads = 1,
        .peak_epoch = HEAP_AT_PEAK,
    };
    made.threads[0] = (struct heap_thread_place){.state = HEAP_THREAD_TAKEN, .tid = pid};
    return made;
}

static void window_drop(struct made *made)
{
    munmap(made->memory, HEAP_WINDOW_BYTES);
}

static uint32_t node_add(struct made *made, uint32_t parent, uint64_t pc, bool leaf)
{
    uint32_t node = made->process->nodes++;
    made->nodes[node] = (struct heap_node){.pc = pc, .parent = parent, .leaf = leaf};
    return node;
}

static struct heap_cell *cell_add(struct made *made, uint32_t node, uint64_t count, uint64_t bytes)
{
    struct heap_cell *cell = &made->cells[made->process->cells++];
    *cell = (struct heap_cell){.node = node, .allocations = count, .allocated_bytes = bytes};
    return cell;
}

static void image_add(struct made *made, uint64_t start, const char *path, uint16_t epoch,
                      uint16_t gone_epoch)
{
    struct heap_image *image = &made->images[made->process->images++];
    *image = (struct heap_image){.start = start,
                                 .end = start + 0x10000,
                                 .load = start,
                                 .epoch = epoch,
                                 .gone_epoch = gone_epoch};
    strncpy(image->path, path, sizeof(image->path) - 1);
}

static void process_begin(struct fixture *f, int pid, uint64_t time_ns, const char *exe)
{
    assert_int_equal(stacks_comm(f->c.stacks, time_ns, pid, pid, str_from("made"), true), 0);
    struct stacks_mmap mmap = {.time_ns = time_ns,
                               .pid = pid,
                               .address = 0x400000,
                               .size_bytes = 0x10000,
                               .executable = true,
                               .path = str_from(exe)};
    assert_int_equal(stacks_mmap(f->c.stacks, &mmap), 0);
}

static const struct heap_site_row *site_at(const struct fixture *f, size_t index)
{
    assert_true(index < f->memory.heap.sites.len);
    return &f->memory.heap.sites.data[index];
}

/* The frame of a stack, counted from the innermost. */
static struct frame_info frame_of(const struct fixture *f, uint32_t stack, unsigned depth)
{
    for (; depth > 0 && stack > 0; depth--)
        stack = f->memory.interned.stacks.data[stack - 1].parent;
    assert_true(stack > 0);
    return interned_frame_get(&f->memory.interned, f->memory.interned.stacks.data[stack - 1].frame);
}

/* ---- promises ---- */

static void what_was_counted_arrives_with_thread_and_stack(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    image_add(&made, 0x400000, "", 0, 0);
    image_add(&made, 0x7f0000, "/no/library.so", 0, 0);
    uint32_t start = node_add(&made, 0, 0x400101, false);
    uint32_t work = node_add(&made, start, 0x7f0201, false);
    struct heap_cell *cell = cell_add(&made, node_add(&made, work, HEAP_CALLOC, true), 5, 500);
    cell->frees = 2;
    cell->freed_bytes = 200;
    cell->lived_ticks = 3;
    cell_add(&made, node_add(&made, start, HEAP_MMAP, true), 1, 4096);
    made.process->peak_bytes = 500;
    made.process->spare = 200;

    assert_int_equal(heap_windows_look(&f->c, 200), 0);
    assert_int_equal(f->c.windows.len, 0); /* what is of 200 may be of a process still to come */
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(f->c.windows.len, 1);
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    assert_int_equal(f->c.windows.len, 0);

    assert_int_equal(f->memory.heap.sites.len, 2);
    const struct heap_site_row *site = site_at(f, 0);
    assert_int_equal(site->info.kind, HEAP_KIND_HEAP);
    assert_int_equal(site->tally.allocations, 5);
    assert_int_equal(site->tally.freed_bytes, 200);
    assert_int_equal(site->tally.samples, 5);
    assert_int_equal(site->tally.peak_bytes, 300);
    assert_int_equal(site->tally.lived_ns, 3 * HEAP_TICK_NS);
    assert_int_equal(f->memory.threads.data[site->info.thread - 1].info.tid, PID);
    assert_int_equal(frame_of(f, site->info.stack, 0).kind, FRAME_NAMED);
    struct frame_info frame = frame_of(f, site->info.stack, 1);
    assert_int_equal(frame.address, 0x200); /* in the call, not behind it */
    assert_true(str_is(f->memory.images.data[frame.image - 1].path, "/no/library.so"));
    frame = frame_of(f, site->info.stack, 2);
    assert_int_equal(frame.address, 0x100);
    assert_true(str_is(f->memory.images.data[frame.image - 1].path, "/no/program"));
    assert_int_equal(site_at(f, 1)->info.kind, HEAP_KIND_MAP);
    assert_int_equal(site_at(f, 1)->tally.peak_bytes, 0);
    const struct heap_process_book *process = &f->memory.heap.processes.data[0];
    assert_int_equal(process->tally.peak_bytes, 500);
    assert_int_equal(process->tally.peak_count, 3);
    assert_int_equal(process->moments.data[process->moments.len - 1].live_bytes, 300);
    window_drop(&made);
}

/* The memory of a window that is read to the end goes back. */
static void windows_are_given_back(void **state)
{
    struct fixture *f = *state;
    struct stat before, after;
    for (int i = 0; i < 100; i++) {
        process_begin(f, PID + i, 100, "/no/program");
        struct made made = window_take(f, PID + (uint32_t)i, 200);
        cell_add(&made, node_add(&made, 0, HEAP_MALLOC, true), 1, 1);
        window_drop(&made);
        if (i == 0)
            assert_int_equal(fstat(f->fd, &before), 0);
        assert_int_equal(heap_windows_look(&f->c, 300), 0);
        assert_int_equal(heap_windows_end(&f->c, PID + i, 400), 0);
    }
    assert_int_equal(fstat(f->fd, &after), 0);
    assert_true(after.st_blocks <= before.st_blocks);
    assert_int_equal(f->memory.heap.sites.len, 100);
}

static void what_lived_at_the_peak_is_what_was_saved_when_it_was_left(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    struct heap_cell *left = cell_add(&made, node_add(&made, 0, HEAP_MALLOC, true), 10, 1000);
    struct heap_cell *stays = cell_add(&made, node_add(&made, 0, HEAP_NEW, true), 7, 70);
    made.process->peak_epoch = 3;
    left->frees = 9;
    left->freed_bytes = 900;
    left->epoch = 3;
    left->peak_count = 8;
    left->peak_bytes = 800;
    stays->epoch = 2; /* of an older peak: has not changed since the last */
    stays->peak_count = 1;
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(heap_cells_read(&f->c, f->c.windows.data[0].it), 0);
    assert_int_equal(site_at(f, 0)->tally.peak_count, 8);
    assert_int_equal(site_at(f, 1)->tally.peak_count, 7);

    /* A higher peak makes the saved one void, though the cells do not change. */
    made.process->peak_epoch = HEAP_AT_PEAK;
    assert_int_equal(heap_cells_read(&f->c, f->c.windows.data[0].it), 0);
    assert_int_equal(site_at(f, 0)->tally.peak_count, 1);
    /* So does one in the making. */
    made.process->peak_epoch = 3;
    made.process->spare = -5;
    made.process->peak_bytes = 165;
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    assert_int_equal(site_at(f, 0)->tally.peak_count, 1);
    assert_int_equal(f->memory.heap.processes.data[0].tally.peak_bytes, 170);
    window_drop(&made);
}

/* Two nodes may come to the same stack: what they count is added, not replaced. */
static void two_ways_to_one_stack_are_one_site(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    image_add(&made, 0x400000, "", 0, 0);
    uint32_t first = node_add(&made, 0, 0x400101, false);
    uint32_t later = node_add(&made, 0, 0x400101, false);
    made.nodes[later].epoch = 1;
    cell_add(&made, node_add(&made, first, HEAP_MALLOC, true), 2, 20);
    struct heap_cell *cell = cell_add(&made, node_add(&made, later, HEAP_MALLOC, true), 3, 30);
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(heap_cells_read(&f->c, f->c.windows.data[0].it), 0);
    assert_int_equal(f->memory.heap.sites.len, 1);
    assert_int_equal(site_at(f, 0)->tally.allocations, 5);
    cell->allocations = 4;
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    assert_int_equal(site_at(f, 0)->tally.allocations, 6);
    window_drop(&made);
}

/* After dlclose() another library stands at the same address. */
static void a_stack_is_of_the_images_of_its_time(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    image_add(&made, 0x7f0000, "/no/old.so", 0, 2);
    image_add(&made, 0x7f0000, "/no/new.so", 2, 0);
    uint32_t old = node_add(&made, 0, 0x7f0101, false), fresh = node_add(&made, 0, 0x7f0101, false);
    made.nodes[old].epoch = 1;
    made.nodes[fresh].epoch = 2;
    cell_add(&made, node_add(&made, fresh, HEAP_MALLOC, true), 1, 10);
    cell_add(&made, node_add(&made, old, HEAP_MALLOC, true), 1, 10);
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    const char *const paths[] = {"/no/new.so", "/no/old.so"};
    for (size_t i = 0; i < 2; i++) {
        struct frame_info frame = frame_of(f, site_at(f, i)->info.stack, 1);
        assert_true(str_is(f->memory.images.data[frame.image - 1].path, paths[i]));
    }
    window_drop(&made);
}

/* The loader's name for a library may say little about where it is: what is mapped there tells. */
static void an_image_without_a_whole_path_is_the_one_that_is_mapped(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    const char *const mapped[] = {"/no/plugin.so", "/no/unnamed.so"};
    for (size_t i = 0; i < 2; i++) {
        struct stacks_mmap mmap = {.time_ns = 150,
                                   .pid = PID,
                                   .address = 0x7f0000 + i * 0x100000,
                                   .size_bytes = 0x10000,
                                   .executable = true,
                                   .path = str_from(mapped[i])};
        assert_int_equal(stacks_mmap(f->c.stacks, &mmap), 0);
    }
    struct made made = window_take(f, PID, 200);
    image_add(&made, 0x7f0000, "../lib/plugin.so", 0, 0);
    /* Of the other one the window says nothing. */
    for (size_t i = 0; i < 2; i++) {
        uint32_t caller = node_add(&made, 0, 0x7f0101 + i * 0x100000, false);
        cell_add(&made, node_add(&made, caller, HEAP_MALLOC, true), 1, 10);
    }
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    for (size_t i = 0; i < 2; i++) {
        struct frame_info frame = frame_of(f, site_at(f, i)->info.stack, 1);
        assert_true(str_is(f->memory.images.data[frame.image - 1].path, mapped[i]));
    }
    window_drop(&made);
}

static void a_walk_that_did_not_reach_the_root_says_so(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    uint32_t outer = node_add(&made, 0, 0x400101, false);
    made.nodes[outer].end = HEAP_END_NO_RULE;
    cell_add(&made, node_add(&made, outer, HEAP_MALLOC, true), 1, 10);
    cell_add(&made, 1, 1, 10); /* somewhere */
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    assert_int_equal(frame_of(f, site_at(f, 0)->info.stack, 2).reason, UNWIND_NO_ROW);
    assert_int_equal(frame_of(f, site_at(f, 1)->info.stack, 0).reason, UNWIND_NO_STACK);
    assert_int_equal(f->c.stacks_complete, 0);
    window_drop(&made);
}

/* The same pid, one program after the other: each has its own figures. */
static void exec_begins_anew(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/first");
    struct made first = window_take(f, PID, 200);
    cell_add(&first, node_add(&first, 0, HEAP_MALLOC, true), 1, 10);
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(heap_thread_note(&f->c, f->c.windows.data[0].it, 300, PID), 0);
    assert_int_equal(heap_windows_end(&f->c, PID, 300), 0); /* told of before stacks is */
    process_begin(f, PID, 300, "/no/second");
    struct made second = window_take(f, PID, 400);
    cell_add(&second, node_add(&second, 0, HEAP_MALLOC, true), 2, 20);
    assert_int_equal(heap_windows_look(&f->c, 500), 0);
    assert_int_equal(heap_windows_end(&f->c, PID, 600), 0);
    assert_int_equal(f->memory.heap.processes.len, 2);
    assert_int_equal(f->memory.processes.len, 2);
    assert_int_equal(site_at(f, 0)->tally.allocations, 1);
    assert_int_equal(site_at(f, 1)->tally.allocations, 2);
    assert_true(site_at(f, 0)->info.thread != site_at(f, 1)->info.thread);
    window_drop(&first);
    window_drop(&second);
}

static void a_snapshot_has_what_lives_by_stack(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    uint32_t node = node_add(&made, 0, HEAP_MALLOC, true);
    made.process->threads = 2;
    made.threads[1].tid = PID + 1;
    cell_add(&made, node, 5, 50);
    struct heap_cell *other = cell_add(&made, node, 0, 0); /* freed by another thread */
    other->thread = 1;
    other->frees = 3;
    other->freed_bytes = 30;
    struct heap_cell *gone = cell_add(&made, node_add(&made, 0, HEAP_CALLOC, true), 4, 40);
    gone->frees = 4;
    gone->freed_bytes = 40;
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    struct heap_window *window = f->c.windows.data[0].it;
    assert_int_equal(heap_cells_read(&f->c, window), 0);
    assert_int_equal(heap_snapshot_read(&f->c, window, 350, HEAP_SNAPSHOT_SIGNAL), 0);
    assert_int_equal(f->memory.heap_snapshots.len, 1);
    assert_int_equal(f->memory.heap_snapshot_rows.len, 1);
    assert_int_equal(f->memory.heap_snapshot_rows.data[0].count, 2);
    assert_int_equal(f->memory.heap_snapshot_rows.data[0].bytes, 20);
    window_drop(&made);
}

static void log_put(struct made *made, uint64_t kind, uint64_t value)
{
    uint64_t *ring = (uint64_t *)(void *)(made->memory + LOGS_AT);
    struct heap_thread_place *place = &made->threads[0];
    ring[place->log_written % HEAP_LOG_WORDS] = kind << HEAP_LOG_SHIFT | value;
    __atomic_store_n(&place->log_written, place->log_written + 1, __ATOMIC_RELEASE);
}

static void with_a_log_every_event_is_kept(void **state)
{
    struct fixture *f = *state;
    f->c.opts.log = true;
    f->c.log_waiting_end = &f->c.log_waiting;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    made.process->logs_at = LOGS_AT;
    made.process->logs_max = made.process->logs = 1;
    made.threads[0].log = 1;
    uint64_t node = node_add(&made, 0, HEAP_MALLOC, true);
    assert_int_equal(heap_log_start(&f->c, NULL), 0);
    log_put(&made, HEAP_LOG_TICK, 7);
    log_put(&made, HEAP_LOG_ALLOCATED, 0x5000);
    while (__atomic_load_n(&made.threads[0].log_read, __ATOMIC_ACQUIRE) < 2)
        ; /* read in the midst of an event */
    assert_int_equal(heap_log_take(&f->c), 0);
    assert_int_equal(f->memory.heap_events.len, 0); /* its process is not known yet */
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    log_put(&made, 0, node << 40 | 123);
    log_put(&made, HEAP_LOG_FREED, 0x5000);
    log_put(&made, 9, 1); /* no such word */
    log_put(&made, HEAP_LOG_ALLOCATED, 0x6000);
    log_put(&made, 0, (uint64_t)NODES << 40 | 5); /* no such node */
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    assert_int_equal(f->memory.heap_events.len, 3);
    const struct heap_event *events = f->memory.heap_events.data;
    assert_int_equal(events[0].kind, HEAP_EVENT_ALLOCATED);
    assert_int_equal(events[0].address, 0x5000);
    assert_int_equal(events[0].size, 123);
    assert_int_equal(frame_of(f, events[0].stack, 0).kind, FRAME_NAMED);
    assert_int_equal(events[0].time_ns,
                     preload_heap_header(f->preload)->start_ns + UINT64_C(7) * HEAP_TICK_NS);
    assert_int_equal(events[1].kind, HEAP_EVENT_FREED);
    assert_int_equal(frame_of(f, events[2].stack, 0).reason, UNWIND_NO_STACK);
    assert_int_equal(f->c.malformed, 2);
    heap_log_stop(&f->c);
    window_drop(&made);
}

/* ---- refused ---- */

static void parents_that_do_not_come_before_their_children_are_refused(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    uint32_t a = node_add(&made, 0, 0x400101, false), b = node_add(&made, a, HEAP_MALLOC, true);
    made.nodes[a].parent = b; /* a ring */
    cell_add(&made, b, 1, 10);
    cell_add(&made, NODES, 1, 10); /* beyond the table */
    cell_add(&made, UINT32_MAX, 1, 10);
    uint32_t deep = 0;
    for (int i = 0; i < 2 * HEAP_CHAIN_MAX; i++)
        deep = node_add(&made, deep, 0x400101, false);
    cell_add(&made, deep, 1, 10);
    made.nodes[3000] = (struct heap_node){.pc = 9999, .leaf = 1}; /* no such call */
    cell_add(&made, 3000, 1, 10);
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    assert_true(f->c.malformed >= 5);
    assert_int_equal(f->c.allocations, 5); /* they were made, somewhere */
    window_drop(&made);
}

static void a_layout_that_leads_out_of_the_window_is_refused(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    uint64_t refused = 0;
    for (int i = 0; i < 8; i++) {
        struct made made = window_take(f, PID, 200);
        struct heap_process *p = made.process;
        switch (i) {
        case 0:
            p->threads_at = HEAP_WINDOW_BYTES;
            break;
        case 1:
            p->images_at = UINT64_MAX - 63;
            break;
        case 2:
            p->nodes_at = 0;
            break;
        case 3:
            p->cells_at = CELLS_AT + 4;
            break;
        case 4:
            p->cells_max = UINT32_MAX;
            break;
        case 5:
            p->nodes_max = HEAP_NODES_MAX + 1;
            break;
        case 6:
            p->threads_max = HEAP_THREADS_MAX + 1;
            break;
        default:
            p->pid = 0;
            break;
        }
        assert_int_equal(heap_windows_look(&f->c, 300), 0);
        assert_int_equal(f->c.windows.len, 0);
        assert_int_equal(f->c.malformed, ++refused);
        window_drop(&made);
    }
}

static void counts_beyond_the_tables_are_cut(void **state)
{
    struct fixture *f = *state;
    process_begin(f, PID, 100, "/no/program");
    struct made made = window_take(f, PID, 200);
    for (int i = 0; i < IMAGES; i++) {
        image_add(&made, 0x7f0000, "", 0, 0);
        memset(made.images[i].path, 'x', sizeof(made.images[i].path)); /* without an end */
    }
    made.process->threads = made.process->images = made.process->nodes = UINT32_MAX;
    made.process->cells = UINT32_MAX;
    made.cells[CELLS - 1] = (struct heap_cell){.node = 1, .allocations = 1, .thread = 65535};
    preload_heap_header(f->preload)->windows = UINT32_MAX;
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(heap_windows_end(&f->c, PID, 400), 0);
    assert_int_equal(f->memory.heap.sites.len, 1);
    assert_true(f->c.malformed >= IMAGES);
    assert_int_equal(f->c.windows_seen, preload_heap_windows_max(f->preload));
    window_drop(&made);
}

static void garbage_does_no_harm(void **state)
{
    struct fixture *f = *state;
    uint64_t random = 1;
    for (int round = 0; round < 30; round++) {
        int pid = PID + round;
        process_begin(f, pid, 100, "/no/program");
        struct made made = window_take(f, (uint32_t)pid, 200);
        /* All but where things lie, and often small numbers, which lead further. */
        uint64_t *words = (uint64_t *)(void *)(made.memory + THREADS_AT);
        for (size_t i = 0; i < (CELLS_AT + CELLS * sizeof(struct heap_cell) - THREADS_AT) / 8;
             i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            words[i] = random >> (random >> 58);
        }
        made.process->threads = made.process->images = made.process->cells = UINT32_MAX;
        made.process->peak_epoch = (uint32_t)(random >> 60);
        made.process->spare = (int64_t)random;
        made.process->peak_bytes = random;
        assert_int_equal(heap_windows_look(&f->c, 300), 0);
        struct heap_window *window = f->c.windows.data[0].it;
        assert_int_equal(heap_images_read(&f->c, window), 0);
        assert_int_equal(heap_cells_read(&f->c, window), 0);
        assert_int_equal(heap_snapshot_read(&f->c, window, 350, HEAP_SNAPSHOT_TIMER), 0);
        assert_int_equal(heap_windows_end(&f->c, pid, 400), 0);
        window_drop(&made);
    }
    assert_true(f->c.malformed > 0);
}

/* A window whose process nobody has announced: when it is gone what it counted is kept. */
static void a_process_that_was_missed_is_counted_all_the_same(void **state)
{
    struct fixture *f = *state;
    struct made made = window_take(f, INT32_MAX, 200); /* no such pid */
    cell_add(&made, node_add(&made, 0, HEAP_MALLOC, true), 3, 30);
    struct made living = window_take(f, (uint32_t)getpid(), 200); /* not of this recording */
    cell_add(&living, node_add(&living, 0, HEAP_MALLOC, true), 1, 10);
    assert_int_equal(heap_windows_look(&f->c, 300), 0);
    assert_int_equal(f->c.windows.len, 0);
    assert_int_equal(heap_windows_look(&f->c, UINT64_MAX), 0);
    assert_int_equal(heap_windows_end_all(&f->c), 0);
    assert_int_equal(f->c.allocations, 3);
    assert_int_equal(f->c.unmatched, 1);
    window_drop(&made);
    window_drop(&living);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_counted_arrives_with_thread_and_stack),
        TEST(windows_are_given_back),
        TEST(what_lived_at_the_peak_is_what_was_saved_when_it_was_left),
        TEST(two_ways_to_one_stack_are_one_site),
        TEST(a_stack_is_of_the_images_of_its_time),
        TEST(an_image_without_a_whole_path_is_the_one_that_is_mapped),
        TEST(a_walk_that_did_not_reach_the_root_says_so),
        TEST(exec_begins_anew),
        TEST(a_snapshot_has_what_lives_by_stack),
        TEST(with_a_log_every_event_is_kept),
        TEST(parents_that_do_not_come_before_their_children_are_refused),
        TEST(a_layout_that_leads_out_of_the_window_is_refused),
        TEST(counts_beyond_the_tables_are_cut),
        TEST(garbage_does_no_harm),
        TEST(a_process_that_was_missed_is_counted_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
