/* A bounded list of pointers. */
#include "protocol/waiting.h"

#include "protocol/protocol.h"

#include <errno.h>
#include <stdlib.h>

int waiting_push(struct waiting *waiting, void *row, size_t memory, size_t memory_max)
{
    if (waiting->count >= PROTOCOL_PENDING_MAX || waiting->memory + memory > memory_max)
        return PROTOCOL_BROKEN;
    if (waiting->count == waiting->room) {
        uint32_t room = waiting->room ? waiting->room * 4 : 4;
        void **rows = realloc((void *)waiting->rows, room * sizeof(void *));
        if (!rows)
            return -ENOMEM;
        waiting->rows = rows;
        waiting->room = room;
    }
    waiting->memory += memory;
    waiting->rows[waiting->count++] = row;
    return 0;
}

void waiting_pull(struct waiting *waiting, uint32_t at, size_t memory)
{
    waiting->memory -= memory;
    waiting->count--;
    memmove((void *)(waiting->rows + at), (void *)(waiting->rows + at + 1),
            (waiting->count - at) * sizeof(void *));
}

void waiting_deinit(struct waiting *waiting)
{
    free((void *)waiting->rows);
    *waiting = (struct waiting){0};
}
