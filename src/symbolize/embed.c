/* The hottest functions of an image, into the sink. */
#include "symbolize/embed.h"

#include "symbolize/embed_parts.h"

#include <errno.h>
#include <stdlib.h>

static int by_weight(const void *left, const void *right)
{
    const struct embed_function *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    if (a->image != b->image)
        return a->image < b->image ? -1 : 1;
    return (a->start > b->start) - (a->start < b->start);
}

size_t embed_choose(struct embed_function *functions, size_t count, uint64_t whole, size_t max)
{
    if (count > 1)
        qsort(functions, count, sizeof(*functions), by_weight);
    double covered = 0;
    size_t chosen = 0;
    while (chosen < MIN(count, max) && functions[chosen].weight > 0 &&
           (double)functions[chosen].weight >= EMBED_SHARE_MIN * (double)whole &&
           covered < 0.95 * (double)whole)
        covered += (double)functions[chosen++].weight;
    return chosen;
}

int embed_hot(struct symbols *symbols, int fd, uint32_t image,
              const struct embed_function *functions, size_t count, const struct embed_opts *opts,
              struct sink *sink, struct embed_counts *ret)
{
    static const struct embed_opts none = {0};
    struct embedding embedding = {
        .symbols = symbols,
        .fd = fd,
        .image = image,
        .opts = opts ? opts : &none,
        .sink = sink,
    };
    int r = embed_code(&embedding, functions, count);
    if (r == 0 && !embedding.opts->no_source)
        r = embed_source(&embedding);
    VEC_FREE(&embedding.wanted);
    if (r == 0 && ret)
        *ret = embedding.counts;
    return r;
}
