/* An image that comes and goes (test_heap_walk.c). */
void walk_plugin(int (*call)(const void *, const void *));

__attribute__((visibility("default"))) void walk_plugin(int (*call)(const void *, const void *))
{
    static volatile int sink;
    sink += call(0, 0);
}
