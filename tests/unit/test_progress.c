/* Promises of base/progress.h and base/log.h. */
#include "unit.h"

#include "base/log.h"
#include "base/progress.h"
#include "capture.h"

#include <pty.h>
#include <unistd.h>

static void a_pipe_sees_no_progress(void **state)
{
    (void)state;
    FILE *out = tmpfile();
    assert_non_null(out);
    struct progress progress;
    progress_begin(&progress, out, "baseline", 10);
    progress_update(&progress, 5, "note");
    progress_end(&progress);
    assert_int_equal(ftell(out), 0);
    fclose(out);
}

static void a_terminal_sees_a_bar_that_clears_itself(void **state)
{
    (void)state;
    int master, slave;
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    setenv("TERM", "xterm", 1);
    FILE *out = fdopen(slave, "w");
    struct progress progress;
    progress_begin(&progress, out, "baseline", 4);
    progress.drawn_ns = 0; /* as if the redraw pause were over */
    progress_update(&progress, 2, "median 1 ms");
    progress_end(&progress);
    /* The kernel hands a terminal's bytes over in its own time: read until they are all there. */
    char text[4096] = {0};
    size_t len = 0;
    fclose(out);
    for (ssize_t n = 1; n > 0 && len + 1 < sizeof(text); len += n > 0 ? (size_t)n : 0)
        n = read(master, text + len, sizeof(text) - 1 - len);
    assert_non_null(strstr(text, "baseline [############............] 2/4"));
    assert_non_null(strstr(text, "median 1 ms"));
    assert_string_equal(text + strlen(text) - 4, "\r\033[K");
    close(master);
}

static char logged[64];

static void remember(enum log_level level, const char *text)
{
    snprintf(logged, sizeof(logged), "%d %s", (int)level, text);
}

static void messages_reach_the_handler_and_only_it(void **state)
{
    (void)state;
    log_warning("nobody %s", "listens");
    log_set_handler(remember);
    log_info("%d runs", 3);
    log_set_handler(NULL);
    assert_string_equal(logged, "1 3 runs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_sees_no_progress),
        cmocka_unit_test(a_terminal_sees_a_bar_that_clears_itself),
        cmocka_unit_test(messages_reach_the_handler_and_only_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
