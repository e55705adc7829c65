/* Catches what is written to a FILE, for tests of printers. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

struct capture {
    FILE *out;
    char *text;
    size_t len;
};

static inline void capture_begin(struct capture *capture)
{
    *capture = (struct capture){0};
    capture->out = open_memstream(&capture->text, &capture->len);
}

/* The text so far; valid until capture_end(). */
static inline const char *capture_text(struct capture *capture)
{
    fflush(capture->out);
    return capture->text;
}

static inline void capture_end(struct capture *capture)
{
    fclose(capture->out);
    free(capture->text);
}
