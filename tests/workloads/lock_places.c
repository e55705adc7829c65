/* Prints "PLACE ADDRESS" for locks in every place, then sleeps until its input ends. */
#include "lock_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

pthread_mutex_t global_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t static_mutex;
static struct lock_places_state states[2];
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

int main(void)
{
    pthread_mutex_t *heap = malloc(sizeof(*heap));
    char byte;
    if (!heap)
        return 1;
    printf("global_mutex %p\n", (void *)&global_mutex);
    printf("static_mutex %p\n", (void *)&static_mutex);
    printf("states+0x%zx %p\n", sizeof(states[0]) + 256, (void *)&states[1].mutex);
    printf("condition %p\n", (void *)((char *)&condition + 40)); /* a word within it */
    printf("library_mutex %p\n", lock_places_library_global());
    printf("library_state+0x100 %p\n", lock_places_library_member());
    printf("- %p\n", (void *)heap);
    printf("- %p\n", (void *)&byte);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    free(heap);
    return 0;
}
