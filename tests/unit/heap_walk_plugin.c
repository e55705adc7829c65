/* An image that comes and goes (test_heap_walk.c). */
void walk_plugin(int (*call)(const void *, const void *));

__attribute__((visibility("default"))) void walk_plugin(int (*call)(const void *, const void *))
{
    volatile int keeps_the_frame = call(0, 0);
    (void)keeps_the_frame;
}
