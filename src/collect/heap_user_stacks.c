/* From a window's tree to stacks of the sink, and from its threads to theirs.
 *
 * A stack is made when the first cell names it: by then its nodes are whole, from the call to the
 * outermost. A node's stack is kept, so that the next one goes up only to where they part. */
#include "collect/heap_user_parts.h"

#include <errno.h>
#include <string.h>

static const char *const entry_names[HEAP_BRK + 1] = {
    [HEAP_MALLOC] = "malloc",
    [HEAP_CALLOC] = "calloc",
    [HEAP_REALLOC] = "realloc",
    [HEAP_REALLOCARRAY] = "reallocarray",
    [HEAP_POSIX_MEMALIGN] = "posix_memalign",
    [HEAP_ALIGNED_ALLOC] = "aligned_alloc",
    [HEAP_MEMALIGN] = "memalign",
    [HEAP_VALLOC] = "valloc",
    [HEAP_PVALLOC] = "pvalloc",
    [HEAP_NEW] = "operator new",
    [HEAP_NEW_ARRAY] = "operator new[]",
    [HEAP_MMAP] = "mmap",
    [HEAP_MUNMAP] = "munmap",
    [HEAP_MREMAP] = "mremap",
    [HEAP_BRK] = "brk",
};

/* ---- images ---- */

static int image_take(struct collector *c, struct heap_window *window, uint32_t index,
                      const struct heap_image *from)
{
    /* A copy: what is checked is what is used. */
    struct heap_image copy = *from;
    struct heap_seen_image seen = {
        .start = copy.start,
        .end = copy.end,
        .load = copy.load,
        .epoch = copy.epoch,
        .gone_epoch = copy.gone_epoch,
        .index = index,
        .image = UINT32_MAX,
    };
    size_t len = strnlen(copy.path, sizeof(copy.path));
    if (copy.end <= copy.start || len == sizeof(copy.path) || copy.load > copy.start) {
        c->malformed++;
        return 0;
    }
    struct stacks_told_image told = {copy.start, copy.end, {copy.path, len}};
    int r = stacks_told_image(c->stacks, window->is_foreign ? -1 : (int)window->pid, &told,
                              &seen.image);
    if (r < 0 && r != -ENOENT && r != -E2BIG)
        return r;
    return VEC_PUSH(&window->images, seen);
}

int heap_images_read(struct collector *c, struct heap_window *window)
{
    uint32_t used = MIN(__atomic_load_n(&window->shared->images, __ATOMIC_ACQUIRE),
                        window->at.images_max);
    /* Which are gone by now. */
    for (size_t i = 0; i < window->images.len; i++) {
        struct heap_seen_image *seen = &window->images.data[i];
        seen->gone_epoch = window->at.images[seen->index].gone_epoch;
    }
    for (; window->images_read < used; window->images_read++) {
        const struct heap_image *image = &window->at.images[window->images_read];
        if (__atomic_load_n(&image->start, __ATOMIC_ACQUIRE) == 0)
            return 0; /* it is being written: the next time */
        int r = image_take(c, window, window->images_read, image);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool image_holds(const struct heap_seen_image *image, uint64_t address, uint16_t epoch)
{
    return address >= image->start && address < image->end && image->epoch <= epoch &&
           (image->gone_epoch == 0 || epoch < image->gone_epoch);
}

static const struct heap_seen_image *image_find(struct heap_window *window, uint64_t address,
                                                uint16_t epoch)
{
    if (window->image_last < window->images.len &&
        image_holds(&window->images.data[window->image_last], address, epoch))
        return &window->images.data[window->image_last];
    for (size_t i = window->images.len; i-- > 0;)
        if (image_holds(&window->images.data[i], address, epoch)) {
            window->image_last = i;
            return &window->images.data[i];
        }
    return NULL;
}

/* ---- frames ---- */

static int entry_frame(struct collector *c, uint64_t entry, uint32_t *ret)
{
    if (entry >= ARRAY_SIZE(entry_names) || !entry_names[entry]) {
        c->malformed++;
        return stacks_told_end(c->stacks, UNWIND_NO_STACK, ret);
    }
    if (!c->entry_frames[entry]) {
        struct frame_info info = {.kind = FRAME_NAMED};
        int r = sink_text(c->sink, str_from(entry_names[entry]), &info.name);
        if (r == 0)
            r = sink_frame(c->sink, &info, &c->entry_frames[entry]);
        if (r < 0)
            return r;
    }
    *ret = c->entry_frames[entry];
    return 0;
}

static int call_frame(struct collector *c, struct heap_window *window, uint64_t pc, uint16_t epoch,
                      uint32_t *ret)
{
    uint64_t address = pc - (pc > 0); /* in the call, not behind it */
    const struct heap_seen_image *image = image_find(window, address, epoch);
    if (!image && window->images_read < window->shared->images) {
        int r = heap_images_read(c, window);
        if (r < 0)
            return r;
        image = image_find(window, address, epoch);
    }
    if (image && image->image != UINT32_MAX)
        return stacks_told_frame(c->stacks, image->image, address - image->load, ret);
    return stacks_told_address(c->stacks, window->is_foreign ? -1 : (int)window->pid, address, ret);
}

/* ---- nodes ---- */

static int nodes_reserve(struct heap_window *window, uint32_t node)
{
    if (node < window->nodes.len)
        return 0;
    /* In strides: nodes come one after the other. */
    size_t need = MIN((size_t)window->at.nodes_max, (size_t)node * 3 / 2 + 64);
    need = MAX(need, (size_t)node + 1);
    if (VEC_RESERVE(&window->nodes, need) < 0)
        return -ENOMEM;
    memset(window->nodes.data + window->nodes.len, 0,
           (need - window->nodes.len) * sizeof(window->nodes.data[0]));
    window->nodes.len = need;
    return 0;
}

/* What a walk ends with that did not reach the root; 0: it did. */
static enum unwind_end end_of(const struct heap_node *outermost)
{
    switch (outermost->end) {
    case HEAP_END_ROOT:
        return UNWIND_ROOT;
    case HEAP_END_NO_RULE:
        return UNWIND_NO_ROW;
    case HEAP_END_TOO_DEEP:
        return UNWIND_TOO_DEEP;
    default:
        return UNWIND_BAD_CFA;
    }
}

static uint8_t kind_of(const struct heap_node *leaf)
{
    if (!leaf->leaf || leaf->pc < HEAP_MMAP || leaf->pc > HEAP_BRK)
        return HEAP_KIND_HEAP;
    return leaf->pc == HEAP_MUNMAP ? HEAP_KIND_UNMAP : HEAP_KIND_MAP;
}

/* The frame of a node on top of its caller's stack. */
static int node_make(struct collector *c, struct heap_window *window, uint32_t number,
                     const struct heap_node *node, struct heap_seen_node *at)
{
    uint32_t frame;
    int r = 0;
    bool is_somewhere = number == 1;
    if (node->parent == 0) {
        enum unwind_end end = is_somewhere ? UNWIND_NO_STACK : end_of(node);
        *at = (struct heap_seen_node){.epoch = node->epoch, .is_complete = end == UNWIND_ROOT};
        if (end != UNWIND_ROOT) {
            r = stacks_told_end(c->stacks, end, &frame);
            if (r == 0)
                r = sink_stack(c->sink, 0, frame, &at->stack);
        }
    }
    at->kind = kind_of(node);
    if (r < 0 || is_somewhere)
        return r;
    r = node->leaf ? entry_frame(c, node->pc, &frame)
                   : call_frame(c, window, node->pc, at->epoch, &frame);
    return r < 0 ? r : sink_stack(c->sink, at->stack, frame, &at->stack);
}

static int somewhere(struct collector *c, struct heap_seen_node *ret)
{
    uint32_t frame;
    *ret = (struct heap_seen_node){.kind = HEAP_KIND_HEAP};
    int r = stacks_told_end(c->stacks, UNWIND_NO_STACK, &frame);
    return r < 0 ? r : sink_stack(c->sink, 0, frame, &ret->stack);
}

int heap_node_stack(struct collector *c, struct heap_window *window, uint32_t node,
                    struct heap_seen_node *ret)
{
    struct {
        uint32_t number;
        struct heap_node node;
    } chain[HEAP_CHAIN_MAX];
    size_t count = 0;
    struct heap_seen_node at = {0};
    if (node >= window->at.nodes_max) {
        c->malformed++;
        return somewhere(c, ret);
    }
    int r = nodes_reserve(window, node);
    for (uint32_t next = node; r == 0 && next != 0;) {
        if (window->nodes.data[next].stack) {
            at = window->nodes.data[next];
            break;
        }
        if (count == HEAP_CHAIN_MAX)
            break;
        chain[count].number = next;
        chain[count].node = window->at.nodes[next];
        uint32_t parent = chain[count++].node.parent;
        if (parent >= next && parent != 0) {
            c->malformed++;
            return somewhere(c, ret);
        }
        next = parent;
    }
    if (count == HEAP_CHAIN_MAX) {
        c->malformed++;
        return somewhere(c, ret);
    }
    while (r == 0 && count-- > 0) {
        r = node_make(c, window, chain[count].number, &chain[count].node, &at);
        if (r == 0)
            window->nodes.data[chain[count].number] = at;
    }
    if (r < 0)
        return r;
    *ret = at;
    return 0;
}

/* ---- processes and threads ---- */

int heap_process_need(struct collector *c, struct heap_window *window)
{
    if (window->process)
        return 0;
    if (!window->is_foreign)
        return stacks_process(c->stacks, window->start_ns, (int)window->pid, &window->process);
    struct process_info info = {.pid = window->pid, .start_ns = window->start_ns, .exe = STR("")};
    info.command = window->pid == (uint32_t)c->root_pid ? str_from(c->root_command) : STR("");
    return sink_process(c->sink, &info, &window->process);
}

int heap_thread_need(struct collector *c, struct heap_window *window, uint32_t tid,
                     uint32_t *ret_thread)
{
    int r = heap_process_need(c, window);
    if (r < 0)
        return r;
    uint64_t *known = window->threads.len < HEAP_THREADS_KEPT_MAX
                          ? map_u64_at(&window->threads, tid, NULL)
                          : map_u64_find(&window->threads, tid);
    if (known && *known) {
        *ret_thread = (uint32_t)*known;
        return 0;
    }
    /* One that has ended is not to be asked for again: it would be another. */
    bool is_asked = !window->is_foreign && tid <= INT32_MAX &&
                    (tid == window->pid ||
                     stacks_has_thread(c->stacks, (int)window->pid, (int)tid));
    struct thread_info info = {
        .process = window->process, .tid = tid, .start_ns = window->start_ns, .name = STR("")};
    if (r == 0)
        r = is_asked
                ? stacks_thread(c->stacks, window->start_ns, (int)window->pid, (int)tid, ret_thread)
                : sink_thread(c->sink, &info, ret_thread);
    if (r == 0 && known)
        *known = *ret_thread;
    return r;
}

int heap_thread_note(struct collector *c, struct heap_window *window, uint64_t time_ns,
                     uint32_t tid)
{
    uint32_t thread;
    if (!stacks_has_thread(c->stacks, (int)window->pid, (int)tid))
        return 0;
    uint64_t *known = window->threads.len < HEAP_THREADS_KEPT_MAX
                          ? map_u64_at(&window->threads, tid, NULL)
                          : map_u64_find(&window->threads, tid);
    int r = stacks_thread(c->stacks, time_ns, (int)window->pid, (int)tid, &thread);
    if (r == 0 && known)
        *known = thread;
    return r;
}
