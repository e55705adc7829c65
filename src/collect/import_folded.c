/* Folded stacks: "main;decode;inner 1234", one stack a line, as stackcollapse-*.pl, inferno,
 * py-spy, async-profiler and whyslow itself write them.
 *
 * Neighbouring lines share their beginnings (most writers sort): the stack ids of the line
 * before are kept, and only what differs is looked up. Writers that do not merge repeat whole
 * stacks: those are remembered too, as far as memory is given to it. */
#include "collect/import_common.h"

#include <errno.h>

enum { KNOWN_BYTES_MAX = 64 << 20 };

struct folded {
    struct import import;
    uint32_t series;
    char *before; /* the line before, as far as its stacks are known */
    size_t before_cap;
    VEC(size_t) ends; /* of its frames in `before` */
    VEC(uint32_t) stacks;
    struct intern known;    /* whole stacks, as text */
    VEC(uint32_t) known_as; /* beside them */
};

/* Takes the number off the end of a line; false when there is none. */
static bool take_count(struct str *line, uint64_t *ret)
{
    size_t at = line->len;
    while (at > 0 && line->data[at - 1] >= '0' && line->data[at - 1] <= '9')
        at--;
    struct str number = {line->data + at, line->len - at};
    if (number.len == 0 || at == 0 || (line->data[at - 1] != ' ' && line->data[at - 1] != '\t') ||
        str_to_u64(number, 10, ret) < 0)
        return false;
    *line = str_trim((struct str){line->data, at});
    return true;
}

static bool looks_folded(struct str line)
{
    uint64_t count;
    return take_count(&line, &count) && line.len > 0;
}

static bool folded_detect(struct str head)
{
    /* A text whose lines end in a number, and somewhere there is more than one frame. */
    unsigned good = 0, bad = 0;
    bool whole = head.len < IMPORT_HEAD_BYTES, stacks = false;
    while (head.len > 0) {
        bool last = memchr(head.data, '\n', head.len) == NULL;
        struct str line = str_trim(str_cut(&head, '\n'));
        if ((last && !whole) || line.len == 0 || line.data[0] == '#')
            continue;
        if (memchr(line.data, '\0', line.len))
            return false;
        stacks = stacks || memchr(line.data, ';', line.len);
        if (looks_folded(line))
            good++;
        else
            bad++;
    }
    return good > bad && (stacks || bad == 0);
}

/* How many frames of this stack are those of the line before. */
static size_t shared_frames(const struct folded *folded, struct str line)
{
    size_t low = 0, high = folded->ends.len;
    /* The longest common head first, then the frames that end inside it. */
    size_t known = high > 0 ? folded->ends.data[high - 1] : 0;
    size_t common = 0, limit = MIN(known, line.len);
    while (common < limit && folded->before[common] == line.data[common])
        common++;
    while (low < high) {
        size_t middle = (low + high) / 2, end = folded->ends.data[middle];
        bool inside = end <= common &&
                      (end == line.len || (end < line.len && line.data[end] == ';'));
        /* A frame that ends where the heads part may go on in this line. */
        if (end < common || inside)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int remember(struct folded *folded, struct str line)
{
    if (line.len > folded->before_cap) {
        char *before = realloc(folded->before, 2 * line.len);
        if (!before)
            return -ENOMEM;
        folded->before = before;
        folded->before_cap = 2 * line.len;
    }
    memcpy(folded->before, line.data, line.len);
    return 0;
}

/* The stack of a line; frames that the line before had too keep their ids. */
static int stack_build(struct folded *folded, struct str line, uint32_t *ret)
{
    struct sink *sink = folded->import.sink;
    size_t shared = shared_frames(folded, line);
    folded->ends.len = folded->stacks.len = shared;
    size_t at = shared > 0 ? folded->ends.data[shared - 1] + 1 : 0;
    int r = remember(folded, line);
    while (r == 0 && at < line.len) {
        const char *semicolon = memchr(line.data + at, ';', line.len - at);
        size_t end = semicolon ? (size_t)(semicolon - line.data) : line.len;
        struct str name = {line.data + at, end - at};
        uint32_t frame,
            stack = folded->stacks.len ? folded->stacks.data[folded->stacks.len - 1] : 0;
        if (folded->stacks.len >= IMPORT_DEPTH_MAX)
            return -E2BIG;
        r = import_frame(&folded->import, 0, name.len ? name : STR("[unnamed]"), &frame);
        if (r == 0)
            r = sink_stack(sink, stack, frame, &stack);
        if (r == 0 && (VEC_PUSH(&folded->ends, end) < 0 || VEC_PUSH(&folded->stacks, stack) < 0))
            r = -ENOMEM;
        at = end + 1;
    }
    if (r < 0) {
        folded->ends.len = folded->stacks.len = 0;
        return r;
    }
    *ret = folded->stacks.len ? folded->stacks.data[folded->stacks.len - 1] : 0;
    return 0;
}

static int stack_of(struct folded *folded, struct str line, uint32_t *ret)
{
    uint32_t known = intern_find(&folded->known, line);
    if (known != 0) {
        *ret = folded->known_as.data[known - 1];
        return 0;
    }
    uint32_t stack = 0;
    int r = stack_build(folded, line, &stack);
    if (r == 0 && folded->known.arena.used_bytes + line.len < KNOWN_BYTES_MAX &&
        (VEC_PUSH(&folded->known_as, stack) < 0 ||
         intern_add(&folded->known, line, &known, NULL) < 0))
        r = -ENOMEM;
    if (r == 0)
        *ret = stack;
    return r;
}

static int line_add(void *context, struct str line)
{
    struct folded *folded = context;
    struct import *import = &folded->import;
    uint64_t weight;
    line = str_trim(line);
    if (line.len == 0)
        return 0;
    if (!take_count(&line, &weight) || line.len == 0) {
        /* Some writers begin with a comment; but a function may be called "#" too. */
        if (line.data[0] != '#')
            import_skip(import, "no_count");
        return 0;
    }
    if (weight == 0) {
        import_skip(import, "zero_count");
        return 0;
    }
    struct sample sample = {.series = folded->series, .weight = weight};
    bool skipped;
    int r = import_settle(import, stack_of(folded, line, &sample.stack), "too_deep_or_too_many",
                          &skipped);
    if (r < 0 || skipped)
        return r;
    bool counts = import->opts->unit == UNIT_COUNT;
    return import_settle(import, import_samples(import, &sample, counts ? weight : 1),
                         "weight_too_large", &skipped);
}

static int folded_import(struct import_source *source, struct sink *sink,
                         const struct import_opts *opts, struct arena *arena,
                         struct import_result *ret, struct why *why)
{
    struct folded folded = {.import = {.source = source,
                                       .sink = sink,
                                       .opts = opts,
                                       .arena = arena,
                                       .result = ret,
                                       .why = why,
                                       .format = "folded"}};
    struct import *import = &folded.import;
    bool counts = opts->unit == UNIT_COUNT;
    int r = import_series(import, "cpu", opts->unit,
                          counts ? "samples of a folded file, which does not tell their unit"
                                 : "weights of a folded file, unit as told at import",
                          &folded.series);
    if (r < 0)
        r = import_sink_failed(import, r);
    if (r == 0)
        r = import_lines(import, line_add, &folded);
    if (r == 0) {
        import_note(import, counts ? "weights are counts: a folded file does not tell their unit "
                                     "(--unit says it)"
                                   : "weights have the unit given with --unit");
        import_note(import, "a folded file has no times, threads or source lines");
        r = import_finish(import);
    }
    free(folded.before);
    VEC_FREE(&folded.ends);
    VEC_FREE(&folded.stacks);
    VEC_FREE(&folded.known_as);
    intern_deinit(&folded.known);
    import_deinit(import);
    return r;
}

extern const struct importer importer_folded;
const struct importer importer_folded = {
    .name = "folded",
    .about = "folded stacks: stackcollapse-*.pl, inferno, py-spy, async-profiler",
    .detect = folded_detect,
    .import = folded_import,
};
