/* Prints what build_info says of the binary it is given, as JSON; for truth tests. */
#include "host/build_info.h"
#include "present/json.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct build_info info;
    struct why why;
    if (argc != 2)
        return 2;
    if (build_info_read(&arena, argv[1], &info, &why) < 0) {
        fprintf(stderr, "error: %s\n  try: %s\n", why.what, why.remedy);
        return 1;
    }
    struct value root = build_info_value(&arena, &info);
    struct report report = {.schema = "whyslow.build/1", .root = &root};
    json_draw(&report, &(struct render_opts){0}, stdout);
    return arena_failed(&arena) ? 5 : 0;
}
