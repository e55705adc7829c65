/* Stacks that threads of the target tell: walked here, recognised there from then on. */
#include "collect/preload_places.h"

#include <errno.h>
#include <string.h>

static const uint8_t register_numbers[] = PRELOAD_REGISTER_NUMBERS;

static unsigned stack_pointer(void)
{
    return unwind_machine_here() == UNWIND_X86_64 ? 7 : 31;
}

static void registers_make(const struct preload_registers *at, struct unwind_registers *ret)
{
    *ret = (struct unwind_registers){.pc = at->pc};
    ret->reg[stack_pointer()] = at->sp;
    ret->known = 1u << stack_pointer();
    for (size_t i = 0; i < ARRAY_SIZE(register_numbers); i++) {
        ret->reg[register_numbers[i]] = at->reg[i];
        ret->known |= 1u << register_numbers[i];
    }
}

static int stack_walk(struct preload_places *places, const struct preload_place *place,
                      const struct preload_stack *stack, const uint8_t *slice, uint64_t time_ns,
                      struct stacks_found *ret)
{
    struct unwind_registers registers;
    registers_make(&stack->at, &registers);
    struct stacks_sample sample = {
        .time_ns = time_ns,
        .pid = (int)place->pid,
        .tid = (int)place->tid,
        .registers = &registers,
        .slice = {.address = stack->at.sp, .bytes = slice, .len = stack->slice_bytes},
        .trace = &places->trace,
    };
    places->trace.usable = false;
    return stacks_sample(places->from, &sample, ret);
}

/* What the walk hung on, in the target's terms. False: it cannot be said there. */
static bool known_make(const struct unwind_trace *trace, const struct preload_stack *stack,
                       struct preload_known *ret)
{
    uint32_t left = trace->registers_used;
    if (!trace->usable || trace->count > PRELOAD_KNOWN_SLOTS)
        return false;
    ret->at = stack->at;
    ret->number = stack->number;
    ret->registers = 0;
    for (size_t i = 0; i < ARRAY_SIZE(register_numbers); i++)
        if (left >> register_numbers[i] & 1) {
            ret->registers |= 1u << i;
            left &= ~(1u << register_numbers[i]);
        }
    ret->slots = trace->count;
    for (uint32_t i = 0; i < trace->count; i++) {
        uint64_t offset = trace->slots[i].address - stack->at.sp;
        if (offset + 8 > stack->slice_bytes || offset + 8 < 8)
            return false;
        ret->offsets[i] = (uint32_t)offset;
        ret->values[i] = trace->slots[i].value;
    }
    return left == 0;
}

/* The thread reads it at any time: odd means that it must not believe what it finds. */
static void known_write(struct preload_thread *shared, unsigned index,
                        const struct preload_known *from)
{
    struct preload_known *to = &shared->known[index];
    uint32_t sequence = __atomic_load_n(&to->sequence, __ATOMIC_RELAXED) | 1;
    __atomic_store_n(&to->sequence, sequence, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    to->number = from->number;
    to->registers = from->registers;
    to->slots = from->slots;
    to->at = from->at;
    memcpy(to->values, from->values, sizeof(to->values));
    memcpy(to->offsets, from->offsets, sizeof(to->offsets));
    __atomic_store_n(&to->sequence, sequence + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&shared->known_tags[index],
                     from->number ? preload_known_tag(from->at.pc, from->at.sp) : 0,
                     __ATOMIC_RELEASE);
}

static void kept_drop(struct preload_places *places, struct preload_told_stack *stack)
{
    if (!stack->kept)
        return;
    places->kept_bytes -= stack->kept->record.bytes;
    free(stack->kept);
    stack->kept = NULL;
}

static bool known_is(const struct preload_known *a, const struct preload_known *b)
{
    if (a->at.pc != b->at.pc || a->at.sp != b->at.sp || a->registers != b->registers ||
        a->slots != b->slots || a->slots > PRELOAD_KNOWN_SLOTS)
        return false;
    for (size_t i = 0; i < PRELOAD_REGISTERS; i++)
        if ((a->registers >> i & 1) && a->at.reg[i] != b->at.reg[i])
            return false;
    return memcmp(a->values, b->values, a->slots * sizeof(a->values[0])) == 0 &&
           memcmp(a->offsets, b->offsets, a->slots * sizeof(a->offsets[0])) == 0;
}

/* A stack is told several times before the thread knows it: once is enough to be taught. */
static bool is_taught(const struct preload_place *place, const struct preload_known *known)
{
    const struct preload_thread *shared = place->ring.shared;
    unsigned first = preload_known_set(preload_known_tag(known->at.pc, known->at.sp));
    for (unsigned i = 0; i < PRELOAD_KNOWN_WAYS; i++)
        if (shared->known_tags[first + i] != 0 && known_is(known, &shared->known[first + i]))
            return true;
    return false;
}

/* Where the thread will look for it: a free place there, else in turn. */
static unsigned known_room(struct preload_place *place, const struct preload_known *known)
{
    unsigned first = preload_known_set(preload_known_tag(known->at.pc, known->at.sp));
    for (unsigned i = 0; i < PRELOAD_KNOWN_WAYS; i++)
        if (__atomic_load_n(&place->ring.shared->known_tags[first + i], __ATOMIC_RELAXED) == 0)
            return first + i;
    return first + place->known_next++ % PRELOAD_KNOWN_WAYS;
}

/* Records that name the stack may still be in the ring, so it is only no longer recognised. */
static void stack_teach(struct preload_places *places, struct preload_place *place,
                        struct preload_told_stack *stack, const struct preload_taken *taken)
{
    struct preload_known known;
    uint32_t bytes = taken->record.bytes;
    if (!known_make(&places->trace, &taken->stack, &known) || is_taught(place, &known) ||
        places->kept_bytes + bytes > PRELOAD_KEPT_BYTES_MAX)
        return;
    stack->kept = malloc(bytes);
    if (!stack->kept)
        return; /* it will be told again */
    memcpy(stack->kept, &taken->stack, sizeof(taken->stack));
    memcpy(stack->kept + 1, taken->slice, taken->stack.slice_bytes);
    places->kept_bytes += bytes;
    stack->known = known_room(place, &known);
    known_write(place->ring.shared, stack->known, &known);
}

static struct preload_told_stack *stack_find(struct preload_place *place, uint32_t number)
{
    /* In the order of their numbers, and mostly one of the last. */
    size_t low = 0, high = place->stacks.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (place->stacks.data[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < place->stacks.len && place->stacks.data[low].number == number
               ? &place->stacks.data[low]
               : NULL;
}

int preload_stack_take(struct preload_places *places, struct preload_place *place,
                       const struct preload_taken *taken)
{
    struct preload_told_stack stack = {.number = taken->stack.number};
    struct stacks_found found;
    if (place->stacks.len >= PRELOAD_STACKS_MAX || stack.number <= place->last_number)
        return -EINVAL;
    place->last_number = stack.number;
    int r = stack_walk(places, place, &taken->stack, taken->slice, taken->stack.time_ns, &found);
    if (r < 0)
        return r;
    places->stacks_walked++;
    places->complete += found.end == UNWIND_ROOT;
    stack.id = found.stack;
    stack.generation = stacks_generation(places->from, (int)place->pid);
    stack_teach(places, place, &stack, taken);
    places->hurry = true;
    if (VEC_PUSH(&place->stacks, stack) < 0) {
        kept_drop(places, &stack);
        return -ENOMEM;
    }
    return 0;
}

/* What is mapped has changed since it was walked: the same slots may mean other code now. */
static int stack_again(struct preload_places *places, struct preload_place *place,
                       struct preload_told_stack *stack, uint64_t time_ns, uint64_t generation)
{
    struct stacks_found found;
    int r = stack_walk(places, place, stack->kept, (const uint8_t *)(stack->kept + 1), time_ns,
                       &found);
    if (r < 0)
        return r;
    places->walked_again++;
    stack->id = found.stack;
    stack->generation = generation;
    struct preload_known known = {0};
    struct preload_thread *shared = place->ring.shared;
    if (__atomic_load_n(&shared->known[stack->known].number, __ATOMIC_RELAXED) != stack->number)
        return 0; /* another has its place */
    if (!known_make(&places->trace, stack->kept, &known))
        known = (struct preload_known){0};
    known_write(shared, stack->known, &known);
    return 0;
}

int preload_stack_id(struct preload_places *places, struct preload_place *place, uint32_t number,
                     uint64_t time_ns, uint32_t *ret_stack)
{
    struct preload_told_stack *stack = number > 0 ? stack_find(place, number) : NULL;
    if (!stack) {
        *ret_stack = 0;
        return 0;
    }
    uint64_t generation = stacks_generation(places->from, (int)place->pid);
    if (stack->kept && stack->generation != generation && generation != 0) {
        int r = stack_again(places, place, stack, time_ns, generation);
        if (r < 0)
            return r;
    }
    *ret_stack = stack->id;
    return 0;
}

bool preload_stack_is_coming(const struct preload_place *place, uint32_t number)
{
    return number > place->last_number && preload_ring_used(&place->ring) > 0 &&
           !place->ring.broken;
}

void preload_stacks_deinit(struct preload_places *places, struct preload_place *place)
{
    for (size_t i = 0; i < place->stacks.len; i++)
        kept_drop(places, &place->stacks.data[i]);
    VEC_FREE(&place->stacks);
    place->known_next = 0;
    place->last_number = 0;
}
