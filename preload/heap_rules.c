/* From a pc to its rule: a cache for the process, and behind it the image's own search table. */
#include "heap_walk.h"

#include "unwind/leb.h"

struct heap_rule_row heap_rule_rows[HEAP_RULES];
uint64_t heap_rules_epoch = UINT64_C(0xd1b54a32d192ed03);
uint32_t heap_rules_opens;

enum { OMITTED = 0xff, TABLE_ENCODING = 0x3b }; /* 0x3b: datarel, sdata4 */
enum { FUNCTION_BITS = 13 };

/* A pointer in one of exception handling's encodings. `base` is what datarel counts from. */
static uint64_t read_pointer(struct heap_program *in, uint8_t encoding, const uint8_t *base)
{
    const uint8_t *here = in->at;
    uint64_t value;
    switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
        value = heap_read_fixed(in, 8);
        break;
    case 0x01:
        value = heap_read_uleb(in);
        break;
    case 0x02:
        value = heap_read_fixed(in, 2);
        break;
    case 0x03:
        value = heap_read_fixed(in, 4);
        break;
    case 0x09:
        value = (uint64_t)heap_read_sleb(in);
        break;
    case 0x0a:
        value = (uint64_t)(int64_t)(int16_t)heap_read_fixed(in, 2);
        break;
    case 0x0b:
        value = (uint64_t)(int64_t)(int32_t)heap_read_fixed(in, 4);
        break;
    default:
        in->bad = true;
        return 0;
    }
    switch (encoding & 0xf0) {
    case 0x00:
        return value;
    case 0x10:
        return value + (uint64_t)here;
    case 0x30:
        return value + (uint64_t)base;
    default: /* textrel, funcrel, aligned, indirect: no linker makes these for code */
        in->bad = true;
        return 0;
    }
}

/* The entry for an address, counted from the header: the last that does not lie behind it. */
static const uint8_t *search_table(const uint8_t *header, const int32_t *table, uint64_t count,
                                   uint64_t pc)
{
    int64_t wanted = (int64_t)(pc - (uint64_t)header);
    if (count == 0 || table[0] > wanted)
        return NULL;
    uint64_t low = 0, high = count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (table[2 * middle] <= wanted)
            low = middle;
        else
            high = middle;
    }
    return header + table[2 * low + 1];
}

/* The entry of the search table that a pc falls to; NULL: there is no table, or it lies before. */
static const uint8_t *search(struct heap_program *in, const uint8_t *header, uint64_t pc)
{
    in->at = header + 4;
    in->end = header + 64;
    if (header[0] != 1 || header[1] == OMITTED || header[2] == OMITTED ||
        header[3] != TABLE_ENCODING)
        return NULL;
    read_pointer(in, header[1], header);
    uint64_t count = read_pointer(in, header[2], header);
    const int32_t *table = (const void *)in->at;
    return in->bad ? NULL : search_table(header, table, count, pc);
}

/* Of the encodings only those that linkers use: without them folding goes by place. */
static uint64_t find_function(uint64_t pc)
{
    enum { POINTER_ENCODING = 0x1b, COUNT_ENCODING = 0x03 };
    struct heap_found found;
    if (!heap_image_find(pc - 1, &found) || !found.header || found.header[0] != 1 ||
        found.header[1] != POINTER_ENCODING || found.header[2] != COUNT_ENCODING ||
        found.header[3] != TABLE_ENCODING)
        return 0;
    const uint32_t *count = (const void *)(found.header + 8);
    return (uint64_t)search_table(found.header, (const void *)(found.header + 12), *count, pc - 1);
}

uint64_t heap_function_of(uint64_t pc)
{
    static struct function_row {
        uint64_t key; /* as that of a rule */
        uint64_t function;
    } rows[1 << FUNCTION_BITS];
    struct function_row *row = &rows[heap_mix(pc) >> (64 - FUNCTION_BITS)];
    uint64_t key = __atomic_load_n(&row->key, __ATOMIC_RELAXED);
    uint64_t function = __atomic_load_n(&row->function, __ATOMIC_RELAXED);
    if (key == heap_rule_key(pc, function))
        return function;
    key = __atomic_load_n(&heap_rules_epoch, __ATOMIC_RELAXED) ^ pc;
    function = find_function(pc);
    __atomic_store_n(&row->key, key ^ heap_mix(function), __ATOMIC_RELAXED);
    __atomic_store_n(&row->function, function, __ATOMIC_RELAXED);
    return function;
}

/* Puts `in` on the inside of an entry; false: it is the terminator. *ret_id is where its id
 * stands. */
static bool open_entry(struct heap_program *in, const uint8_t *entry, const uint8_t **ret_id)
{
    in->at = entry;
    in->end = entry + 12;
    uint64_t len = heap_read_fixed(in, 4);
    if (len == UINT32_MAX)
        len = heap_read_fixed(in, 8);
    if (len < 4 || len > (1u << 24))
        return false;
    in->end = in->at + len;
    *ret_id = in->at;
    return true;
}

struct cie {
    uint8_t encoding;
    bool augmented;
};

static void read_augmentation(struct heap_program *in, const char *letters, struct cie *ret)
{
    uint64_t len = heap_read_uleb(in);
    const uint8_t *behind = in->at + len;
    for (letters++; *letters && !in->bad; letters++) {
        if (*letters == 'R') {
            ret->encoding = (uint8_t)heap_read_fixed(in, 1);
        } else if (*letters == 'L') {
            heap_read_fixed(in, 1);
        } else if (*letters == 'P') {
            uint8_t encoding = (uint8_t)heap_read_fixed(in, 1);
            if (encoding != OMITTED)
                read_pointer(in, encoding & 0x0f, NULL);
        } else if (*letters == 'S') {
            in->now.is_signal = true;
        } else if (*letters != 'B' && *letters != 'G') {
            break;
        }
    }
    if (behind > in->end)
        in->bad = true;
    in->at = behind;
}

/* Reads a CIE and runs its program: what every function of it begins with. */
static void run_cie(struct heap_program *in, const uint8_t *entry, struct cie *ret)
{
    const uint8_t *id;
    if (!open_entry(in, entry, &id) || heap_read_fixed(in, 4) != 0) {
        in->bad = true;
        return;
    }
    uint64_t version = heap_read_fixed(in, 1);
    const char *letters = (const char *)in->at;
    while (in->at < in->end && *in->at)
        in->at++;
    in->at++;
    if ((version != 1 && version != 3) || (letters[0] != 'z' && letters[0] != '\0')) {
        in->bad = true;
        return;
    }
    in->code_align = heap_read_uleb(in);
    in->data_align = heap_read_sleb(in);
    uint64_t column = version == 1 ? heap_read_fixed(in, 1) : heap_read_uleb(in);
    ret->augmented = letters[0] == 'z';
    if (ret->augmented)
        read_augmentation(in, letters, ret);
    in->bad |= column != HEAP_REG_RA;
    in->pc = 0;
    uint64_t stop = in->stop;
    in->stop = UINT64_MAX;
    heap_program_run(in);
    in->stop = stop;
    in->initial = in->now;
}

/* Runs the program of the function at `entry`; false: the pc is not in it. */
static bool run_function(struct heap_program *in, const uint8_t *entry)
{
    const uint8_t *id;
    struct cie cie = {0};
    if (!open_entry(in, entry, &id))
        return false;
    uint64_t distance = heap_read_fixed(in, 4);
    const uint8_t *at = in->at, *end = in->end;
    if (distance == 0)
        return false;
    run_cie(in, id - distance, &cie);
    in->at = at;
    in->end = end;
    uint64_t start = read_pointer(in, cie.encoding, NULL);
    uint64_t size = read_pointer(in, cie.encoding & 0x0f, NULL);
    if (cie.augmented)
        in->at += heap_read_uleb(in);
    if (in->bad || in->stop - start >= size)
        return false;
    in->pc = start;
    heap_program_run(in);
    return !in->bad;
}

/* Whether a handler's return into the kernel stands there. Some have no entry, or lie in no image
 * at all. */
static bool is_restorer(uint64_t pc)
{
#if defined(__x86_64__)
    static const uint8_t bytes[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
#else
    static const uint8_t bytes[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
#endif
    const uint8_t *code = (const uint8_t *)pc; // NOLINT(performance-no-int-to-ptr)
    if (!heap_readable(pc) || !heap_readable(pc + sizeof(bytes) - 8))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        if (code[i] != bytes[i])
            return false;
    return true;
}

/* Called with a return address: the call lies before it. */
static heap_rule make(struct heap_program *scratch, uint64_t pc)
{
    struct heap_found found = {0};
    heap_image_find(pc - 1, &found);
    scratch->bad = false;
    scratch->remembered_count = 0;
    scratch->now = (struct heap_columns){0};
    scratch->stop = pc - 1;
    const uint8_t *entry = found.header ? search(scratch, found.header, pc - 1) : NULL;
    if (entry && run_function(scratch, entry))
        return heap_program_rule(scratch);
    return is_restorer(pc) ? HEAP_RULE_SIGNAL : HEAP_RULE_NONE;
}

heap_rule heap_rule_make(struct heap_program *scratch, uint64_t pc)
{
    uint64_t epoch = __atomic_load_n(&heap_rules_epoch, __ATOMIC_RELAXED);
    uint32_t opens = heap_rules_opens;
    heap_rule rule = make(scratch, pc);
    if (rule == HEAP_RULE_NONE) {
        rule |= (uint64_t)opens << 4;
        __atomic_fetch_add(&heap_process->no_rules, 1, __ATOMIC_RELAXED);
    }
    struct heap_rule_row *row = heap_rule_row(pc);
    __atomic_store_n(&row->key, pc ^ heap_mix(rule) ^ epoch, __ATOMIC_RELAXED);
    __atomic_store_n(&row->rule, rule, __ATOMIC_RELAXED);
    return rule;
}
