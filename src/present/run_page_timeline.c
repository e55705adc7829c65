/* Where the time goes, as a bar, and when it goes there, as lanes.
 *
 * A lane is cut into columns; in each stand the shares of its classes, one upon the other. Waits
 * that are too short to be told one by one are known by their sums only: they are spread over the
 * time of their thread that no longer wait explains. */
#include "base/text.h"
#include "present/html_parts.h"
#include "present/markup.h"
#include "present/run_page_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 480,
    LANE_HEIGHT = 20,
    THREADS_MAX = 8,
    CLASSES = WAIT_CLASS_UNKNOWN + 1, /* what was not seen is the last */
    MEMORY_HEIGHT = 48,
};

static const char *const class_titles[CLASSES] = {
    [WAIT_CLASS_RUNNING] = "running",   [WAIT_CLASS_RUNQ] = "run queue",
    [WAIT_CLASS_LOCK] = "lock",         [WAIT_CLASS_DISK] = "disk",
    [WAIT_CLASS_NET] = "network",       [WAIT_CLASS_PAGEFAULT] = "page fault",
    [WAIT_CLASS_CHILD] = "child",       [WAIT_CLASS_PIPE] = "pipe",
    [WAIT_CLASS_TIMER] = "timer",       [WAIT_CLASS_IDLE] = "idle",
    [WAIT_CLASS_UNKNOWN] = "not known",
};

struct lane {
    double ns[COLUMNS][CLASSES];
    double sums[CLASSES];
};

struct timeline {
    const struct evidence *evidence;
    FILE *out;
    uint64_t start_ns, end_ns;
    double column_ns;
};

static void put_swatch(FILE *out, int class)
{
    fprintf(out, "<svg class=\"w%d\" aria-hidden=\"true\"><rect width=\"14\" height=\"12\"/></svg>",
            class);
}

static void put_class(FILE *out, int class, const char *title, double ns, double all_ns)
{
    char time[48];
    if (!(ns > 0))
        return;
    fputs("<span>", out);
    put_swatch(out, class);
    fprintf(out, "%s <b>%s</b> %.0f%%</span>\n", title,
            units_format(ns, UNIT_NS, time, sizeof(time)), ns / all_ns * 100);
}

void page_split(FILE *out, const struct path_costs *costs)
{
    double left = 0, unseen_ns = costs->ns;
    if (!(costs->ns > 0))
        return;
    /* What is in no class was not seen: the parts add up to the wall time. */
    for (int i = 0; i < CLASSES; i++)
        unseen_ns -= costs->classes[i];
    unseen_ns = unseen_ns > costs->ns * 1e-6 ? unseen_ns : 0;
    fputs("<svg class=\"split\" viewBox=\"0 0 1000 24\" preserveAspectRatio=\"none\" role=\"img\" "
          "aria-label=\"Where the wall time goes; the same in words below\">\n",
          out);
    for (int i = 0; i < CLASSES; i++) {
        double ns = costs->classes[i] + (i == WAIT_CLASS_UNKNOWN ? unseen_ns : 0);
        double width = ns / costs->ns * 1000;
        if (!(width > 0))
            continue;
        fprintf(out, "<rect class=\"w%d\" x=\"%.2f\" width=\"%.2f\" height=\"24\"/>", i, left,
                width);
        left += width;
    }
    fputs("</svg>\n<p class=\"legend\">", out);
    for (int i = 0; i < WAIT_CLASS_UNKNOWN; i++)
        put_class(out, i, class_titles[i], costs->classes[i], costs->ns);
    put_class(out, WAIT_CLASS_UNKNOWN, class_titles[WAIT_CLASS_UNKNOWN],
              costs->classes[WAIT_CLASS_UNKNOWN], costs->ns);
    put_class(out, WAIT_CLASS_UNKNOWN, "not seen", unseen_ns, costs->ns);
    fputs("</p>\n", out);
    page_text(out, "p", "dim", costs->na);
}

static void lane_add(struct lane *lane, const struct timeline *line, uint64_t from_ns,
                     uint64_t to_ns, int class, double factor)
{
    from_ns = MAX(from_ns, line->start_ns);
    to_ns = MIN(to_ns, line->end_ns);
    if (to_ns <= from_ns)
        return;
    double from = (double)(from_ns - line->start_ns) / line->column_ns;
    double to = (double)(to_ns - line->start_ns) / line->column_ns;
    lane->sums[class] += (to - from) * line->column_ns * factor;
    for (int i = (int)from; i < COLUMNS && (double)i < to; i++)
        lane->ns[i][class] += (fmin(to, i + 1) - fmax(from, i)) * line->column_ns * factor;
}

/* One path of rectangles a class; columns that look alike are one. */
static void put_class_path(const struct timeline *line, const struct lane *lane, int class)
{
    bool open = false;
    double scale = LANE_HEIGHT / line->column_ns;
    for (int i = 0; i < COLUMNS;) {
        double below = 0;
        for (int j = 0; j < class; j++)
            below += lane->ns[i][j];
        int height = (int)lround(lane->ns[i][class] * scale * 10);
        int top = (int)lround((LANE_HEIGHT - (below + lane->ns[i][class]) * scale) * 10);
        int end = i + 1;
        for (; end < COLUMNS; end++) {
            double next_below = 0;
            for (int j = 0; j < class; j++)
                next_below += lane->ns[end][j];
            if ((int)lround(lane->ns[end][class] * scale * 10) != height ||
                (int)lround((LANE_HEIGHT - (next_below + lane->ns[end][class]) * scale) * 10) !=
                    top)
                break;
        }
        if (height > 0) {
            if (!open)
                fprintf(line->out, "<path class=\"w%d\" d=\"", class);
            open = true;
            fprintf(line->out, "M%d %.4gh%dv%.4gh-%dz", i, top / 10.0, end - i, height / 10.0,
                    end - i);
        }
        i = end;
    }
    if (open)
        fputs("\"/>", line->out);
}

/* "main 4711, running 52%, disk 48%". */
static void put_lane_words(FILE *out, const struct lane *lane, struct str name)
{
    double all = 0;
    for (int i = 0; i < CLASSES; i++)
        all += lane->sums[i];
    markup_short(out, name, 64);
    for (int i = 0; i < CLASSES; i++)
        if (all > 0 && lane->sums[i] / all >= 0.005)
            fprintf(out, ", %s %.0f%%", class_titles[i], lane->sums[i] / all * 100);
}

static void put_lane(const struct timeline *line, const struct lane *lane, struct str name)
{
    FILE *out = line->out;
    fputs("<div class=\"lane\"><span class=\"lane-name\">", out);
    markup_short(out, name, 64);
    fprintf(out,
            "</span><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
            "aria-label=\"",
            COLUMNS, LANE_HEIGHT);
    put_lane_words(out, lane, name);
    fputs("\"><title>", out); /* shown to a pointer */
    put_lane_words(out, lane, name);
    fputs("</title>", out);
    for (int i = 0; i < CLASSES; i++)
        put_class_path(line, lane, i);
    fputs("</svg></div>\n", out);
}

static void lane_fill_path(struct lane *lane, const struct timeline *line)
{
    const struct critical_path *path = &line->evidence->path;
    for (size_t i = 0; i < path->step_count; i++) {
        const struct path_step *step = &path->steps[i];
        int class = step->what == PATH_RUNNING ? WAIT_CLASS_RUNNING
                    : step->what == PATH_RUNQ  ? WAIT_CLASS_RUNQ
                                               : (int)line->evidence->classes.rows[step->wait];
        lane_add(lane, line, step->start_ns, step->end_ns, class, 1);
    }
}

/* First what was told one by one, then the rest in the proportion of the sums. */
static void lane_fill_thread(struct lane *lane, const struct timeline *line, uint32_t thread)
{
    const struct evidence *evidence = line->evidence;
    const struct waits *waits = &evidence->waits;
    const struct waits_thread *life = &waits->threads[thread];
    for (size_t i = 0; i < waits->event_count; i++) {
        const struct wait_event *event = &waits->events[i];
        const struct wait_row *row = &waits->rows[event->wait];
        if (row->info.thread != thread || row->info.kind != WAIT_BLOCKED)
            continue;
        lane_add(lane, line, event->start_ns, event->wake_ns,
                 (int)evidence->classes.rows[event->wait], 1);
        lane_add(lane, line, event->wake_ns, event->run_ns, WAIT_CLASS_RUNQ, 1);
    }
    double rest[CLASSES] = {0}, rests = 0;
    for (int i = 0; i < WAIT_CLASSES; i++) {
        rest[i] = fmax((double)evidence->classes.threads[thread][i] - lane->sums[i], 0);
        rests += rest[i];
    }
    rest[WAIT_CLASS_UNKNOWN] = (double)evidence->classes.unaccounted[thread];
    rests += rest[WAIT_CLASS_UNKNOWN];
    for (int i = 0; i < COLUMNS && rests > 0; i++) {
        double told = 0;
        for (int j = 0; j < CLASSES; j++)
            told += lane->ns[i][j];
        double from = (double)line->start_ns + i * line->column_ns;
        double alive = fmin((double)life->end_ns, from + line->column_ns) -
                       fmax((double)life->start_ns, from);
        double free_ns = fmax(alive - told, 0);
        for (int j = 0; j < CLASSES; j++) {
            lane->ns[i][j] += free_ns * rest[j] / rests;
            lane->sums[j] += free_ns * rest[j] / rests;
        }
    }
}

struct chosen {
    uint32_t thread;
    uint64_t ns;
};

static int chosen_compare(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns)
                          : (x->thread > y->thread) - (x->thread < y->thread);
}

/* Threads that ran the longest; at most THREADS_MAX of them are drawn. */
static struct chosen *threads_choose(struct arena *arena, const struct waits *waits, size_t *ret)
{
    size_t count = waits->profile.thread_count;
    struct chosen *chosen = arena_alloc(arena, (count + 1) * sizeof(*chosen));
    size_t kept = 0;
    for (size_t i = 1; chosen && i < count; i++)
        if (waits->threads[i].end_ns > waits->threads[i].start_ns)
            chosen[kept++] = (struct chosen){(uint32_t)i, waits->threads[i].running_ns};
    if (chosen)
        qsort(chosen, kept, sizeof(*chosen), chosen_compare);
    *ret = kept;
    return chosen;
}

static void put_axis(FILE *out, double ns)
{
    char text[48];
    fputs("<div class=\"lane axis\" aria-hidden=\"true\"><span></span><span class=\"ticks\">", out);
    for (int i = 0; i <= 4; i++)
        fprintf(out, "<span>%s</span>", units_format(ns * i / 4, UNIT_NS, text, sizeof(text)));
    fputs("</span></div>\n", out);
}

static int put_lanes(struct arena *arena, struct timeline *line)
{
    const struct waits *waits = &line->evidence->waits;
    size_t threads;
    struct chosen *chosen = threads_choose(arena, waits, &threads);
    struct lane *lane = ARENA_NEW(arena, struct lane);
    if (!chosen || !lane)
        return -ENOMEM;
    if (!line->evidence->path.na) {
        lane_fill_path(lane, line);
        put_lane(line, lane, STR("critical path"));
    }
    for (size_t i = 0; i < MIN(threads, (size_t)THREADS_MAX); i++) {
        const struct profile_thread *thread = &waits->profile.threads[chosen[i].thread];
        memset(lane, 0, sizeof(*lane));
        lane_fill_thread(lane, line, chosen[i].thread);
        const char *name = arena_printf(arena, "%.*s %u", STR_FMT(thread->name), thread->tid);
        if (!name)
            return -ENOMEM;
        put_lane(line, lane, str_from(name));
    }
    put_axis(line->out, (double)(line->end_ns - line->start_ns));
    if (threads > THREADS_MAX)
        fprintf(line->out, "<p class=\"dim\">The %d threads that ran the longest, of %zu.</p>\n",
                THREADS_MAX, threads);
    return 0;
}

static void put_legend(FILE *out)
{
    fputs("<p class=\"legend\">", out);
    for (int i = 0; i < CLASSES; i++) {
        fputs("<span>", out);
        put_swatch(out, i);
        fprintf(out, "%s</span>\n", class_titles[i]);
    }
    fputs("</p>\n", out);
}

/* Of the process that held the most. */
static void put_memory(FILE *out, const struct heap *heap, bool sampled)
{
    uint64_t most = 0;
    uint32_t process = 0;
    char bytes[48], time[48];
    for (size_t i = 0; i < heap->moment_count; i++)
        if (heap->moments[i].live_bytes > most) {
            most = heap->moments[i].live_bytes;
            process = heap->moments[i].process;
        }
    double all_ns = (double)(heap->end_ns - heap->start_ns);
    if (most == 0 || !(all_ns > 0))
        return;
    units_format((double)most, UNIT_BYTES, bytes, sizeof(bytes));
    units_format(all_ns, UNIT_NS, time, sizeof(time));
    const char *about = sampled ? "~" : "";
    fprintf(out,
            "<div class=\"lane\"><span class=\"lane-name\">heap, up to %s%s</span><svg "
            "class=\"memory\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
            "aria-label=\"Memory held on the heap over %s, up to %s%s\"><path d=\"M0 %d",
            about, bytes, COLUMNS, MEMORY_HEIGHT, time, about, bytes, MEMORY_HEIGHT);
    int last = -1;
    for (size_t i = 0; i < heap->moment_count; i++) {
        const struct heap_moment *moment = &heap->moments[i];
        int x = moment->time_ns < heap->start_ns
                    ? 0
                    : (int)((double)(moment->time_ns - heap->start_ns) / all_ns * COLUMNS);
        if (moment->process != process || x <= last || x > COLUMNS)
            continue;
        last = x;
        fprintf(out, "L%d %.4g", x,
                MEMORY_HEIGHT - (double)moment->live_bytes / (double)most * MEMORY_HEIGHT);
    }
    fprintf(out, "L%d %dz\"/></svg></div>\n", MAX(last, 0), MEMORY_HEIGHT);
    put_axis(out, all_ns);
    fputs("<p class=\"dim\">Memory is of another run, the one recorded for the heap.</p>\n", out);
}

int page_timeline(FILE *out, const struct evidence *evidence)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    int r = 0;
    fputs("<section id=\"timeline\" aria-labelledby=\"timeline-title\">\n"
          "<h2 id=\"timeline-title\">Timeline</h2>\n",
          out);
    if (!evidence_has(evidence, AXIS_WAITS)) {
        fputs("<p class=\"na\">n/a: ", out);
        markup_text(out, str_from(evidence->axes[AXIS_WAITS].na));
        fputs("</p>\n", out);
    } else {
        const struct waits *waits = &evidence->waits;
        struct timeline line = {
            .evidence = evidence, .out = out, .start_ns = waits->start_ns, .end_ns = waits->end_ns};
        const struct waits_thread *root = &waits->threads[waits->root_thread];
        if (waits->root_thread && root->end_ns > root->start_ns) {
            line.start_ns = root->start_ns;
            line.end_ns = MAX(root->end_ns, root->start_ns + 1);
        }
        line.column_ns = (double)(line.end_ns - line.start_ns) / COLUMNS;
        fputs("<p class=\"dim\">The recorded run, from its start to its end. Waits too short to be "
              "told one by one are spread over the time between.</p>\n",
              out);
        put_legend(out);
        if (line.column_ns > 0)
            r = put_lanes(&arena, &line);
        if (r == 0)
            r = page_path(out, evidence);
        page_text(out, "p", "dim", evidence->path.na);
    }
    if (evidence_has(evidence, AXIS_HEAP))
        put_memory(out, &evidence->heap, evidence->axes[AXIS_HEAP].sampled);
    fputs("</section>\n", out);
    return r;
}
