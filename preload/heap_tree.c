/* The tree of stacks, in the window: nodes in a hash by parent and pc. Any thread adds to it at
 * any time; none waits, and nothing is ever taken out. */
#include "heap_walk.h"

static bool same(const struct heap_node *node, const struct heap_node *wanted)
{
    return node->pc == wanted->pc && node->parent == wanted->parent &&
           (wanted->parent != 0 || (node->end == wanted->end && node->epoch == wanted->epoch));
}

/* 0: it is not among those from `first` to before `last`. */
static uint32_t find(uint32_t first, uint32_t last, const struct heap_node *wanted)
{
    for (uint32_t at = first; at != last && at != 0; at = heap_nodes[at].next)
        if (same(&heap_nodes[at], wanted))
            return at;
    return 0;
}

/* 0: there is no room. */
static uint32_t take(void)
{
    struct heap_process *process = heap_process;
    uint32_t last = process->nodes_max - 1; /* stays empty: heap_tree_is_next() */
    if (__atomic_load_n(&process->nodes, __ATOMIC_RELAXED) >= last)
        return 0;
    uint32_t at = __atomic_fetch_add(&process->nodes, 1, __ATOMIC_RELAXED);
    return at < last ? at : 0;
}

/* The node like `wanted`, added when it is not there yet; 0: no room. */
static uint32_t add(const struct heap_node *wanted)
{
    uint32_t *head = heap_tree_bucket(wanted->parent, wanted->pc);
    uint32_t first = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    uint32_t at = find(first, 0, wanted);
    if (at != 0)
        return at;
    uint32_t mine = take();
    if (mine == 0)
        return 0;
    struct heap_node *node = &heap_nodes[mine];
    node->parent = wanted->parent;
    node->folded = wanted->folded;
    node->leaf = wanted->leaf;
    node->end = wanted->end;
    node->epoch = wanted->epoch;
    node->next = first;
    __atomic_store_n(&node->pc, wanted->pc, __ATOMIC_RELEASE);
    uint32_t seen = first;
    while (!__atomic_compare_exchange_n(head, &first, mine, false, __ATOMIC_RELEASE,
                                        __ATOMIC_ACQUIRE)) {
        at = find(first, seen, wanted);
        if (at != 0) /* another thread was faster: this one means the same, and stays */
            return at;
        node->next = seen = first;
    }
    return mine;
}

void heap_tree_begin(void)
{
    uint32_t none = 0;
    __atomic_compare_exchange_n(&heap_process->nodes, &none, HEAP_SOMEWHERE + 1, false,
                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    heap_nodes[HEAP_SOMEWHERE].end = HEAP_END_NO_RULE;
}

uint32_t heap_tree_root(uint64_t pc, enum heap_end end)
{
    uint32_t node = add(&(struct heap_node){
        .pc = pc, .end = (uint8_t)end, .epoch = (uint16_t)heap_process->image_epoch});
    return node != 0 ? node : HEAP_SOMEWHERE;
}

/* The nearest caller that the same function made; 0: none. By function and not by the place of the
 * call: a compiler that inlines a function into itself gives it dozens of those. */
static uint32_t ancestor(uint32_t node, uint64_t pc)
{
    uint64_t function = heap_function_of(pc);
    for (unsigned i = 0; i < HEAP_FRAMES_MAX && node != 0; i++, node = heap_nodes[node].parent)
        if (heap_nodes[node].pc == pc ||
            (function != 0 && heap_function_of(heap_nodes[node].pc) == function))
            return node;
    return 0;
}

uint32_t heap_tree_step(uint32_t parent, uint64_t pc, bool leaf)
{
    struct heap_node wanted = {.pc = pc, .parent = parent, .leaf = leaf};
    uint32_t *head = heap_tree_bucket(parent, pc);
    uint32_t node = find(__atomic_load_n(head, __ATOMIC_ACQUIRE), 0, &wanted);
    if (node == 0) {
        if (!leaf && __atomic_load_n(&heap_process->nodes, __ATOMIC_RELAXED) >= HEAP_FOLD_FROM)
            wanted.folded = ancestor(parent, pc);
        node = add(&wanted);
    }
    if (node == 0)
        return wanted.folded != 0 ? wanted.folded : parent;
    return heap_nodes[node].folded != 0 ? heap_nodes[node].folded : node;
}
