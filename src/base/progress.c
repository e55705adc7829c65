/* The progress line: drawn with a carriage return, erased when done. */
#include "base/progress.h"

#include "base/clock.h"
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REDRAW_NS = 100 * 1000 * 1000, BAR_COLUMNS = 24 };

static bool is_terminal(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && !(term && strcmp(term, "dumb") == 0);
}

void progress_begin(struct progress *progress, FILE *out, const char *label, uint64_t total)
{
    *progress = (struct progress){
        .out = out,
        .label = label,
        .total = total,
        .start_ns = clock_mono_ns(),
        .shown = is_terminal(out),
    };
    progress_update(progress, 0, NULL);
}

void progress_prepare(struct progress *progress, FILE *out, const char *label)
{
    *progress = (struct progress){.out = out, .label = label, .shown = is_terminal(out)};
    if (!progress->shown)
        return;
    fprintf(out, "\r\033[K%s …", label);
    fflush(out);
}

void progress_update(struct progress *progress, uint64_t done, const char *note)
{
    if (!progress->shown)
        return;
    uint64_t now_ns = clock_mono_ns();
    if (progress->drawn_ns != 0 && now_ns - progress->drawn_ns < REDRAW_NS)
        return;
    progress->drawn_ns = now_ns;
    fprintf(progress->out, "\r\033[K%s ", progress->label);
    if (progress->total > 0) {
        uint64_t filled = MIN(done, progress->total) * BAR_COLUMNS / progress->total;
        fputc('[', progress->out);
        for (uint64_t i = 0; i < BAR_COLUMNS; i++)
            fputc(i < filled ? '#' : '.', progress->out);
        fprintf(progress->out, "] %llu/%llu", (unsigned long long)done,
                (unsigned long long)progress->total);
    } else {
        fprintf(progress->out, "%llu", (unsigned long long)done);
    }
    fprintf(progress->out, "  %.0f s  %s", (double)(now_ns - progress->start_ns) / 1e9,
            note ? note : "");
    fflush(progress->out);
}

void progress_end(struct progress *progress)
{
    if (progress->shown) {
        fputs("\r\033[K", progress->out);
        fflush(progress->out);
    }
    progress->shown = false;
}
