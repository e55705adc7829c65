/* Trouble with memory: cpu-heap KIND ROUNDS.
 *
 *     churn        pieces that live for a moment, two at a time
 *     churn-large  buffers of 1 MiB that go back to the kernel each time
 *     churn-rare   the same pieces, few beside the work
 *     reused       one piece for all: the mended program
 *     long-lived   as many pieces, freed at the end
 *     realloc      two arrays that grow by a few elements at a time
 *     realloc-twice  that double: the mended program
 *     realloc-once   whose size is known
 *     leak         pieces that are kept and never needed again
 *     bounded      the same with a bound
 *     filled       a table that is filled at the start and then used */
#include "flat.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 1;

static NOINLINE void touch(char *piece, size_t size)
{
    piece[0] = (char)state;
    piece[size - 1] = (char)(state >> 8);
    state = state * 6364136223846793005 + 1442695040888963407;
}

static NOINLINE void message_parse(size_t size)
{
    char *key = malloc(size), *value = malloc(size * 3);
    if (!key || !value)
        abort();
    touch(key, size);
    touch(value, size * 3);
    free(value);
    free(key);
}

static NOINLINE void message_parse_reused(size_t size)
{
    static char key[4096], value[4096];
    touch(key, size);
    touch(value, size * 3);
}

static void churn(const char *kind, unsigned rounds)
{
    bool reused = strcmp(kind, "reused") == 0, rare = strcmp(kind, "churn-rare") == 0;
    for (unsigned i = 0; i < rounds; i++) {
        for (unsigned k = 0; k < (rare ? 3 : 500); k++)
            if (reused)
                message_parse_reused(600 + (k * 37) % 600);
            else
                message_parse(600 + (k * 37) % 600);
        state = flat_round(state);
    }
}

/* Apart, or the compiler sees that nobody reads it. */
static NOINLINE void fill(char *buffer, size_t size)
{
    memset(buffer, (int)state, size);
    __asm__ volatile("" : : "r"(buffer) : "memory");
}

static NOINLINE void frame_render(void)
{
    size_t size = 1 << 20;
    char *buffer = malloc(size);
    if (!buffer)
        abort();
    fill(buffer, size);
    touch(buffer, size);
    free(buffer);
}

static NOINLINE void frame_render_reused(void)
{
    static char *buffer;
    size_t size = 1 << 20;
    if (!buffer)
        buffer = malloc(size);
    fill(buffer, size);
    touch(buffer, size);
}

static void large(const char *kind, unsigned rounds)
{
    bool reused = strcmp(kind, "churn-large-reused") == 0;
    mallopt(M_MMAP_THRESHOLD, 128 * 1024); /* and no adapting: each goes back at once */
    for (unsigned i = 0; i < rounds; i++) {
        if (reused)
            frame_render_reused();
        else
            frame_render();
        state = flat_round(state);
    }
}

struct piece {
    struct piece *next;
    char bytes[1000];
};

static NOINLINE struct piece *piece_keep(struct piece *next)
{
    struct piece *piece = malloc(sizeof(*piece));
    if (!piece)
        abort();
    piece->next = next;
    touch(piece->bytes, sizeof(piece->bytes));
    return piece;
}

static void pieces_free(struct piece *piece)
{
    while (piece) {
        struct piece *next = piece->next;
        free(piece);
        piece = next;
    }
}

static void long_lived(unsigned rounds)
{
    struct piece *all = NULL;
    for (unsigned i = 0; i < rounds; i++) {
        for (unsigned k = 0; k < 5; k++)
            all = piece_keep(all);
        for (unsigned k = 0; k < 20; k++)
            state = flat_round(state);
    }
    pieces_free(all);
}

struct list {
    char *data;
    size_t used, room;
};

static NOINLINE void list_grow(struct list *list, size_t room)
{
    list->data = realloc(list->data, room);
    if (!list->data)
        abort();
    list->room = room;
}

static void list_add(struct list *list, size_t size, const char *kind)
{
    if (list->used + size > list->room)
        list_grow(list, strcmp(kind, "realloc") == 0 ? list->used + size : (list->used + size) * 2);
    memset(list->data + list->used, (int)state, size);
    list->used += size;
}

/* Two at a time, so that neither can grow in place. */
static void grow(const char *kind, unsigned rounds)
{
    struct list lists[2] = {{0}};
    for (unsigned i = 0; i < 2 && strcmp(kind, "realloc-once") == 0; i++)
        list_grow(&lists[i], 300 * 400);
    for (unsigned round = 0; round < rounds; round++) {
        lists[0].used = lists[1].used = 0;
        for (unsigned i = 0; i < 2 && strcmp(kind, "realloc-once") != 0; i++) {
            free(lists[i].data);
            lists[i] = (struct list){0};
        }
        for (unsigned i = 0; i < 3000; i++)
            for (unsigned k = 0; k < 2; k++)
                list_add(&lists[k], 40, kind);
        for (unsigned k = 0; k < 20; k++)
            state = flat_round(state);
    }
    free(lists[0].data);
    free(lists[1].data);
}

static NOINLINE void event_keep(char **slot, size_t size)
{
    free(*slot);
    *slot = malloc(size);
    if (!*slot)
        abort();
    fill(*slot, size);
}

static void leak(const char *kind, unsigned rounds)
{
    bool leaks = strcmp(kind, "leak") == 0, filled = strcmp(kind, "filled") == 0;
    static char **all; /* nobody lets go of it */
    unsigned part = rounds / 8 > 0 ? rounds / 8 : 1;
    all = calloc(rounds + 1, sizeof(void *));
    for (unsigned i = 0; i < rounds && all; i++) {
        if (filled && i >= part)
            touch(all[i % part], 16384);
        else
            event_keep(&all[leaks || filled ? i : i % 64], 16384);
        for (unsigned k = 0; k < 2; k++)
            state = flat_round(state);
    }
    printf("%p\n", all ? (void *)0 : (void *)1);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "reused";
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
    if (strncmp(kind, "churn-large", 11) == 0)
        large(kind, rounds);
    else if (strncmp(kind, "churn", 5) == 0 || strcmp(kind, "reused") == 0)
        churn(kind, rounds);
    else if (strcmp(kind, "long-lived") == 0)
        long_lived(rounds);
    else if (strncmp(kind, "realloc", 7) == 0)
        grow(kind, rounds);
    else
        leak(kind, rounds);
    printf("%s\n", state == 42 ? "42" : "done");
    return 0;
}
