/* Calls as the program sees them: the library's places are read while the cpu collector tells
 * what is mapped; at the end what the library saw is held against the kernel's own count. */
#include "collect/io_user.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "collect/io_user_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#define TICK_NS      (10 * NS_PER_MS)
#define HURRY_NS     (NS_PER_MS / 2) /* a short program is to be told its stacks while it runs, */
#define BEGINNING_NS NS_PER_SEC /* and every program when it begins, where all of them are new */

enum { PROC_IO_BYTES_MAX = 4096 };

static int record_take(void *context, struct preload_place *place,
                       const struct preload_taken *taken)
{
    struct collector *c = context;
    c->places.hurry = true;
    if (taken->record.kind == PRELOAD_CALL)
        return io_user_call_take(c, place, &taken->call);
    if (taken->record.kind == PRELOAD_PIECE && c->requests)
        return io_user_piece_take(c, place, taken);
    return -EBADMSG;
}

static int sums_take(void *context, struct preload_place *place)
{
    return io_user_sums_take(context, place);
}

/* The thread's own counts go on for ever: what is new of them is ours. */
static void place_count(struct collector *c, const struct preload_place *place)
{
    size_t index = (size_t)(place - c->places.places);
    const struct preload_io_thread *shared = preload_io_place(c->preload, index);
    c->calls_unseen += shared->unseen - c->unseen[index];
    c->calls_folded += shared->folded - c->folded[index];
    c->unseen[index] = shared->unseen;
    c->folded[index] = shared->folded;
}

static void moved_out(void *context, struct preload_place *place)
{
    struct collector *c = context;
    place_count(c, place);
    io_user_sums_clear(c, place);
}

static const struct preload_places_ops places_ops = {
    .record = record_take,
    .sums = sums_take,
    .moved_out = moved_out,
};

static int io_until(void *context, uint64_t time_ns)
{
    struct collector *c = context;
    uint64_t start_ns = clock_mono_ns();
    int r = io_user_objects_take(c);
    if (r == 0)
        r = preload_places_until(&c->places, time_ns);
    if (r == 0)
        r = io_user_pieces_say(c);
    c->own_ns += clock_mono_ns() - start_ns;
    return r;
}

static void timer_set(const struct collector *c)
{
    struct itimerspec next = {.it_value.tv_nsec = c->places.hurry ? HURRY_NS : TICK_NS};
    timerfd_settime(c->timer_fd, 0, &next, NULL);
}

static int io_user_drain(struct collector *c, struct why *why)
{
    (void)why; /* what is told is read by io_until(), whose failures the cpu collector has */
    if (c->stopped)
        return 0;
    uint64_t now_ns = clock_mono_ns();
    preload_places_tick(&c->places, now_ns);
    c->places.hurry |= now_ns < c->hurry_ns;
    timer_set(c);
    c->places.hurry = false;
    return 0;
}

/* The kernel's own count of the target and all it has waited for. The first process is kept as a
 * zombie until we are done. */
static void proc_io_read(struct collector *c)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    char path[64];
    struct str text;
    snprintf(path, sizeof(path), "/proc/%d/io", c->pid);
    if (file_read(&arena, path, PROC_IO_BYTES_MAX, &text, NULL) < 0)
        return;
    c->proc_known = str_to_u64(str_field(text, "syscr"), 10, &c->proc_reads) == 0 &&
                    str_to_u64(str_field(text, "syscw"), 10, &c->proc_writes) == 0 &&
                    str_to_u64(str_field(text, "rchar"), 10, &c->proc_read_bytes) == 0 &&
                    str_to_u64(str_field(text, "wchar"), 10, &c->proc_write_bytes) == 0;
}

static int io_user_stop(struct collector *c, struct why *why)
{
    if (c->stopped)
        return 0;
    /* The rings are read to their end when the cpu collector stops, after us. */
    struct preload_header *header = preload_header(c->preload);
    __atomic_store_n(&header->over, 1, __ATOMIC_RELEASE);
    int r = io_until(c, clock_mono_ns());
    c->stopped = true;
    c->homeless = header->families[PRELOAD_IO_HOOKS].homeless;
    proc_io_read(c);
    if (header->processes == 0)
        snprintf(c->na, sizeof(c->na),
                 "the library was not loaded by any process: the program is static, set-user-ID, "
                 "or of another libc than whyslow's");
    return r < 0 ? why_errno(why, -r, NULL, "the calls could not be recorded") : 0;
}

static uint64_t beyond(uint64_t all, uint64_t seen)
{
    return all > seen ? all - seen : 0;
}

static int counters_put(struct collector *c)
{
    struct objects_counts objects = objects_counts(c->objects);
    const struct preload_places *places = &c->places;
    const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } counters[] = {
        {"io.calls", UNIT_COUNT, c->calls},
        {"io.processes", UNIT_COUNT, preload_header(c->preload)->processes},
        {"io.folded", UNIT_COUNT, c->calls_folded},
        {"io.unattributed", UNIT_COUNT, c->unattributed},
        {"io.stacks_recognised", UNIT_COUNT, places->recognised},
        {"io.stacks_walked", UNIT_COUNT, places->stacks_walked},
        {"io.stacks_complete", UNIT_COUNT, places->complete},
        {"io.stacks_truncated", UNIT_COUNT, places->stacks_walked - places->complete},
        {"io.stacks_walked_again", UNIT_COUNT, places->walked_again},
        {"io.pieces", UNIT_COUNT, c->pieces_seen},
        {"io.sockets_let_go", UNIT_COUNT, c->sockets_beyond},
        {"io.lost.stacks_skipped", UNIT_COUNT, places->skipped},
        {"io.lost.ring_full", UNIT_COUNT, places->dropped},
        {"io.lost.ring_full_ns", UNIT_NS, places->dropped_ns},
        {"io.lost.no_place", UNIT_COUNT, c->homeless},
        {"io.lost.in_handlers", UNIT_COUNT, c->calls_unseen},
        {"io.lost.refused", UNIT_COUNT, places->refused},
        {"io.lost.malformed", UNIT_COUNT, places->broken},
        {"io.lost.objects", UNIT_COUNT,
         objects.beyond + objects.refused + preload_io_objects(c->preload)->nameless +
             c->objects_skipped},
        {"io.own_ns", UNIT_NS, c->own_ns},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    if (r < 0 || !c->proc_known)
        return r;
    r = sink_counter(c->sink, "io.calls_unseen", UNIT_COUNT,
                     beyond(c->proc_reads, c->reads) + beyond(c->proc_writes, c->writes));
    return r < 0 ? r
                 : sink_counter(c->sink, "io.bytes_unseen", UNIT_BYTES,
                                beyond(c->proc_read_bytes, c->read_bytes) +
                                    beyond(c->proc_write_bytes, c->write_bytes));
}

static void text_put(struct jsonw *json, const char *key, const char *text)
{
    jsonw_key(json, key);
    if (text && text[0])
        jsonw_text(json, str_from(text));
    else
        jsonw_null(json);
}

static void na_put(struct jsonw *json, const char *what, const char *reason)
{
    jsonw_object_begin(json);
    text_put(json, "what", what);
    text_put(json, "reason", reason);
    jsonw_object_end(json);
}

static void missing_put(const struct collector *c, struct jsonw *json)
{
    char share[256];
    jsonw_key(json, "na");
    jsonw_array_begin(json);
    if (c->na[0])
        na_put(json, "calls", c->na);
    snprintf(share, sizeof(share),
             "calls that libc makes inside its own functions are not seen: stdio's reads and "
             "writes, readdir, name lookups; nor are those that programs make without libc");
    na_put(json, "calls inside libc", share);
    if (c->proc_known) {
        uint64_t seen = c->reads + c->writes;
        uint64_t all = MAX(c->proc_reads, c->reads) + MAX(c->proc_writes, c->writes);
        snprintf(share, sizeof(share),
                 "of %llu reads and writes that the kernel counted, %llu were seen",
                 (unsigned long long)all, (unsigned long long)seen);
        if (all > seen)
            na_put(json, "reads and writes", share);
    } else {
        na_put(json, "share of calls seen", "the kernel's own count could not be read");
    }
    na_put(json, "page cache", "only the kernel tier can tell what came from the disk");
    na_put(json, "devices", "only the kernel tier sees them");
    na_put(json, "TLS", "only the kernel tier sees what is said inside");
    if (c->calls_folded > 0)
        na_put(json, "some rows",
               "more different calls than there is room for: some are added up by their name only");
    jsonw_array_end(json);
}

static int document_put(struct collector *c)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    text_put(&json, "tier", tier_name(TIER_USER));
    text_put(&json, "why_not_higher", c->not_higher);
    text_put(&json, "scope", "tree");
    jsonw_key(&json, "stacks");
    jsonw_bool(&json, true);
    jsonw_key(&json, "requests");
    jsonw_bool(&json, c->requests != NULL);
    missing_put(c, &json);
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? sink_document(c->sink, "io", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

static int io_user_finish(struct collector *c, struct why *why)
{
    struct cpu_counts counts;
    preload_places_count(&c->places);
    for (size_t i = 0; i < PRELOAD_THREADS_MAX; i++)
        if (c->places.places[i].lived)
            place_count(c, &c->places.places[i]);
    int r = c->requests ? io_requests_finish(c->requests, clock_mono_ns()) : 0;
    if (r == 0)
        r = files_look_finish(c->look, FILES_LOOK_NS, c->sink);
    if (r == 0)
        r = counters_put(c);
    if (r == 0)
        r = document_put(c);
    if (r < 0)
        return why_errno(why, -r, NULL, "the calls could not be recorded");
    cpu_counts(c->cpu, &counts);
    if (c->na[0] && counts.samples == 0)
        return why_set(why, WHY_DENIED, ENOTSUP,
                       "run whyslow as root or with CAP_BPF and CAP_PERFMON, so that the kernel "
                       "tells what is called",
                       "no call can be seen: %s", c->na);
    return 0;
}

static void io_user_close(struct collector *c)
{
    if (!c)
        return;
    io_user_sums_deinit(c);
    preload_places_deinit(&c->places);
    io_user_objects_deinit(c);
    io_requests_close(c->requests);
    objects_close(c->objects);
    files_look_close(c->look);
    fd_close(&c->timer_fd);
    free(c);
}

static int parts_open(struct collector *c, struct why *why)
{
    struct series_info series = {
        .name = "io",
        .kind = SERIES_SUM,
        .unit = UNIT_NS,
        .about = "time in calls, from their beginning to their end",
    };
    struct io_requests_opts requests = {.payloads = c->opts.payloads};
    c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->timer_fd < 0)
        return why_errno(why, errno, "raise 'ulimit -n'", "cannot make a timer");
    c->sums = calloc(PRELOAD_THREADS_MAX, sizeof(struct io_user_sum *));
    int r = c->sums ? objects_open(c->sink, &c->objects) : -ENOMEM;
    if (r == 0)
        r = files_look_open(&c->look);
    if (r == 0 && c->opts.requests)
        r = io_requests_open(&requests, c->sink, &c->requests);
    if (r == 0)
        r = preload_places_init(&c->places, c->preload, c->stacks, PRELOAD_IO_HOOKS, &places_ops,
                                c);
    if (r == 0)
        r = sink_series(c->sink, &series, &c->series);
    if (r < 0)
        return why_errno(why, -r, NULL, "calls cannot be recorded");
    preload_io_objects(c->preload)->pieces = c->requests != NULL;
    return 0;
}

int io_user_start(const struct io_opts *opts, const struct collector_target *target,
                  struct sink *sink, struct collector **ret, struct why *why)
{
    if (target->scope != TARGET_SPAWNED)
        return why_set(why, WHY_DENIED, ENOTSUP,
                       "let whyslow start the program, or run whyslow as root",
                       "calls of a program that runs already can only be seen with the kernel's "
                       "help");
    if (!target->preload)
        return why_set(why, WHY_DENIED, ENOTSUP, "run 'whyslow doctor'",
                       "calls cannot be seen: our library could not be put into the target");
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    c->opts = *opts;
    c->preload = target->preload;
    c->sink = sink;
    c->cpu = target->cpu;
    c->pid = target->pid;
    c->stacks = cpu_stacks(target->cpu);
    int r = parts_open(c, why);
    if (r < 0) {
        io_user_close(c);
        return r;
    }
    struct cpu_follower follower = {.context = c, .until = io_until};
    cpu_follow(target->cpu, &follower);
    c->hurry_ns = clock_mono_ns() + BEGINNING_NS;
    c->places.hurry = true;
    timer_set(c);
    *ret = c;
    return 0;
}

size_t io_user_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    if (max == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = c->timer_fd, .events = POLLIN};
    return 1;
}

void io_user_why_not(struct collector *c, const char *reason)
{
    snprintf(c->not_higher, sizeof(c->not_higher), "%s", reason ? reason : "");
}

const struct collector_ops io_user_ops = {
    .name = "io",
    .summary = "bytes, calls and latency, by file and stack",
    .built = true,
    .drain = io_user_drain,
    .stop = io_user_stop,
    .finish = io_user_finish,
    .close = io_user_close,
};
