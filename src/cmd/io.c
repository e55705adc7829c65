/* `whyslow io`: what threads ask of the kernel, of files, devices and peers.
 *
 * record or open → rows → sums, groups of requests, notes → one report → pictures → draw */
#include "cmd/io_parts.h"

#include "present/wait_tables.h"

#include <errno.h>
#include <string.h>

enum {
    BRIEF_ROWS = 5,       /* of each table, where all of them share a screen */
    MACHINE_ROWS = 10000, /* of each table, in JSON */
    STACKS_DRAWN = 3,     /* frame by frame */
};

static const struct opt io_options[] = {
    {"syscalls", 0, OPT_FLAG, offsetof(struct io_cmd_opts, syscalls), NULL,
     "the whole table of system calls", NULL, NULL, false},
    {"files", 0, OPT_FLAG, offsetof(struct io_cmd_opts, files), NULL,
     "every file, and names that were looked up", NULL, NULL, false},
    {"peers", 0, OPT_FLAG, offsetof(struct io_cmd_opts, peers), NULL, "every peer of a socket",
     NULL, NULL, false},
    {"devices", 0, OPT_FLAG, offsetof(struct io_cmd_opts, devices), NULL,
     "block devices, of the whole machine", NULL, NULL, false},
    {"stacks", 0, OPT_FLAG, offsetof(struct io_cmd_opts, stacks), NULL,
     "calls by their place in the program", NULL, NULL, false},
    {"requests", 0, OPT_FLAG, offsetof(struct io_cmd_opts, requests), NULL,
     "requests by text and call site, with a waterfall", NULL, NULL, false},
    {"limit", 'n', OPT_U64, offsetof(struct io_cmd_opts, limit), "ROWS",
     "print at most this many rows of a table; 0 prints all; JSON has up to 10,000", "20", NULL,
     false},
    {"no-stacks", 0, OPT_FLAG, offsetof(struct io_cmd_opts, no_stacks), NULL,
     "record without the stack of every call: cheaper", NULL, NULL, false},
    {"no-requests", 0, OPT_FLAG, offsetof(struct io_cmd_opts, no_requests), NULL,
     "record without looking at what is said on sockets", NULL, NULL, false},
    {"keep-payloads", 0, OPT_FLAG, offsetof(struct io_cmd_opts, payloads), NULL,
     "keep what requests say, without secrets", NULL, NULL, false},
    PICTURE_OPTIONS(struct io_cmd_opts, pictures),
    AXIS_OPTIONS(struct io_cmd_opts, axis),
    OUTPUT_OPTIONS(struct io_cmd_opts, output),
    {0},
};

static bool is_narrowed(const struct io_cmd_opts *opts)
{
    return opts->syscalls || opts->files || opts->peers || opts->devices || opts->stacks ||
           opts->requests;
}

static const char *cache_na(const struct io_honesty *honesty)
{
    const char *tier = honesty->facts.tier;
    if (tier && strcmp(tier, "kernel") == 0)
        return NULL;
    return "what came from the page cache is told by the kernel only";
}

static int load(struct io_run *run, struct why *why)
{
    int r = io_honesty_load(run->arena, run->recording, &run->honesty, why);
    if (r == 0)
        r = io_load(run->arena, run->recording, &run->io, why);
    if (r < 0)
        return r;
    if (io_sums_build(run->arena, &run->io, &run->sums) < 0 ||
        io_request_groups_build(run->arena, &run->io, &run->groups) < 0 ||
        io_notes_build(run->arena, &run->sums, &run->groups, &run->notes) < 0)
        return why_nomem(why);
    bool narrowed = is_narrowed(run->opts);
    run->tables = (struct io_tables){
        .arena = run->arena,
        .sums = &run->sums,
        .groups = &run->groups,
        .notes = &run->notes,
        .limit = narrowed ? run->opts->limit : MIN(run->opts->limit, (uint64_t)BRIEF_ROWS),
        .machine_rows = run->opts->output.json ? MACHINE_ROWS : 0,
        .brief = !narrowed,
        .cache_na = cache_na(&run->honesty),
    };
    if (!narrowed && run->opts->limit == 0)
        run->tables.limit = 0;
    return 0;
}

static const char *amount(struct io_run *run, double number, enum unit unit)
{
    char text[48];
    return arena_dup(run->arena, units_format(number, unit, text, sizeof(text)));
}

static const char *calls_text(struct io_run *run, uint64_t count)
{
    return arena_printf(run->arena, "%s call%s", amount(run, (double)count, UNIT_COUNT),
                        count == 1 ? "" : "s");
}

static void put_time_lines(struct io_run *run, struct value *root)
{
    const struct io_sums *sums = &run->sums;
    const struct io_lookups *lookups = &sums->lookups;
    double share = 100.0 * (double)sums->calls_ns / (double)MAX(sums->wall_ns, 1u);
    value_put_for(
        root, SHOW_PEOPLE, "in_calls", "in calls",
        value_text(arena_printf(run->arena, "%s in %s of %u thread%s, %s of the time recorded",
                                amount(run, (double)sums->calls_ns, UNIT_NS),
                                calls_text(run, sums->calls), sums->threads,
                                sums->threads == 1 ? "" : "s", amount(run, share, UNIT_PERCENT))));
    value_put_for(
        root, SHOW_PEOPLE, "idle_line", "idle",
        sums->idle_calls == 0
            ? value_text("none")
            : value_text(arena_printf(
                  run->arena, "%s in %s with nothing to do: among the calls, not ranked elsewhere",
                  amount(run, (double)sums->idle_ns, UNIT_NS), calls_text(run, sums->idle_calls))));
    if (lookups->missing > 0)
        value_put_for(
            root, SHOW_PEOPLE, "missing_line", "in vain",
            value_text(arena_printf(run->arena, "%s lookups of names that nothing has, %s%s",
                                    amount(run, (double)lookups->missing, UNIT_COUNT),
                                    amount(run, (double)lookups->missing_ns, UNIT_NS),
                                    run->opts->files ? "" : "; --files lists them")));
}

/* Time in calls beside what else there is: the span, the threads' CPU time. */
static void put_time(struct io_run *run, struct value *root)
{
    const struct io_sums *sums = &run->sums;
    struct honesty_figure cpu = run->honesty.cpu_ns;
    struct value time = value_map(run->arena);
    struct value cpu_ms = cpu.known ? value_real((double)cpu.value / 1e6, UNIT_MS)
                                    : value_na("the CPU time of what was recorded is not known");
    value_put(&time, "wall_ms", NULL, value_real((double)sums->wall_ns / 1e6, UNIT_MS));
    value_put(&time, "cpu_ms", NULL, cpu_ms);
    value_put(&time, "threads", NULL, value_uint(sums->threads, UNIT_COUNT));
    value_put(&time, "calls", NULL, value_uint(sums->calls, UNIT_COUNT));
    value_put(&time, "calls_ms", NULL, value_real((double)sums->calls_ns / 1e6, UNIT_MS));
    value_put(&time, "faults", NULL, value_uint(sums->faults, UNIT_COUNT));
    value_put(&time, "faults_ms", NULL, value_real((double)sums->faults_ns / 1e6, UNIT_MS));
    value_put(&time, "idle_calls", NULL, value_uint(sums->idle_calls, UNIT_COUNT));
    value_put(&time, "idle_ms", NULL, value_real((double)sums->idle_ns / 1e6, UNIT_MS));
    value_put_machine(root, "time", time);
    put_time_lines(run, root);
    value_put_for(root, SHOW_PEOPLE, "cpu", "CPU time", cpu_ms);
}

static void put_head(struct io_run *run, struct value *root)
{
    const struct io *io = &run->io;
    io_honesty_put(run->arena, root, &run->honesty);
    if (run->kept)
        value_put_machine(root, "recording", value_text(recording_path(run->recording)));
    value_put_machine(root, "finished", value_bool(recording_finished(run->recording)));
    if (io->profile.command.len > 0)
        value_put(root, "command", NULL, value_str(io->profile.command));
    value_put(root, "span_ms", "recorded for",
              value_real((double)(io->end_ns - io->start_ns) / 1e6, UNIT_MS));
    put_time(run, root);
}

/* A table, and for people its title with how many more there are. `all` rows are people's, `rows`
 * those of machines. */
static void put_table(struct io_run *run, struct value *root, const char *key, const char *title,
                      struct value table, size_t all, size_t rows)
{
    size_t shown = run->tables.limit == 0 ? all : MIN(all, run->tables.limit);
    if (shown < all)
        title = arena_printf(
            run->arena, "%s (%zu of %s%s%s)", title, shown, amount(run, (double)all, UNIT_COUNT),
            run->tables.brief ? "; --" : "; --limit 0: all", run->tables.brief ? key : "");
    value_put(root, key, title, table);
    if (run->opts->output.json && table.table && table.table->row_count < rows)
        value_put_machine(root, arena_printf(run->arena, "%s_left_out", key),
                          value_uint(rows - table.table->row_count, UNIT_COUNT));
}

static void put_syscalls(struct io_run *run, struct value *root)
{
    put_table(run, root, "syscalls", "System calls", io_tables_syscalls(&run->tables),
              run->sums.syscall_count, run->sums.syscall_count);
}

static void put_files(struct io_run *run, struct value *root)
{
    put_table(run, root, "files", "Files", io_tables_files(&run->tables),
              io_tables_file_count(&run->tables), run->sums.file_count);
}

static void put_lookups(struct io_run *run, struct value *root)
{
    value_put(root, "lookups", "Names that were looked up", io_tables_lookups(&run->tables));
    value_put_machine(root, "missing_count", value_uint(run->sums.lookups.missing, UNIT_COUNT));
    value_put_machine(root, "missing_ms",
                      value_real((double)run->sums.lookups.missing_ns / 1e6, UNIT_MS));
    put_table(run, root, "missing", "Nothing has these names", io_tables_missing(&run->tables),
              run->sums.missing_count, run->sums.missing_count);
}

static void put_peers(struct io_run *run, struct value *root)
{
    put_table(run, root, "peers", "Peers", io_tables_peers(&run->tables), run->sums.peer_count,
              run->sums.peer_count);
}

static void put_devices(struct io_run *run, struct value *root)
{
    put_table(run, root, "devices", "Block devices, of the whole machine",
              io_tables_devices(&run->tables), io_tables_device_count(&run->tables),
              io_tables_device_count(&run->tables));
}

static void put_stacks(struct io_run *run, struct value *root)
{
    put_table(run, root, "stacks", "Calls by place, the longest first",
              io_tables_sites(&run->tables), run->sums.site_count, run->sums.site_count);
    if (!run->opts->stacks)
        return;
    size_t drawn = MIN(run->sums.site_count, (size_t)STACKS_DRAWN);
    for (size_t i = 0; i < drawn; i++) {
        const struct io_site *site = &run->sums.sites[i];
        if (site->stack != 0)
            value_put_for(root, SHOW_PEOPLE, arena_printf(run->arena, "stack_%zu", i + 1),
                          arena_printf(run->arena, "Stack %zu: %s", i + 1,
                                       io_call_name(run->arena, &run->sums.kinds, site->syscall)),
                          wait_tables_stack(run->arena, &run->io.profile, site->stack));
    }
}

static void put_requests(struct io_run *run, struct value *root)
{
    put_table(run, root, "requests", "Requests", io_tables_requests(&run->tables),
              run->groups.count, run->groups.count);
    value_put_machine(root, "request_count", value_uint(run->groups.requests, UNIT_COUNT));
    const char *title = NULL;
    struct value waterfall = io_tables_waterfall(&run->tables, &title);
    value_put_for(root, run->opts->requests && run->groups.events > 0 ? SHOW_ALWAYS : SHOW_MACHINE,
                  "waterfall", title, waterfall);
}

static void put_notes(struct io_run *run, struct value *root)
{
    bool any = run->notes.count > 0;
    value_put_for(root, any ? SHOW_ALWAYS : SHOW_MACHINE, "notes", "Worth a look",
                  io_tables_notes(&run->tables));
    value_put_machine(root, "notes_left_out", value_uint(run->notes.left_out, UNIT_COUNT));
    struct value unseen = io_honesty_unseen(run->arena, &run->honesty);
    if (unseen.table && unseen.table->row_count > 0)
        value_put_for(root, SHOW_PEOPLE, "unseen", "What was not seen", unseen);
}

static void put_next(struct io_run *run, struct value *root)
{
    struct value next = value_list(run->arena);
    const char *path = recording_path(run->recording);
    const char *view = run->groups.count > 0      ? "--requests"
                       : run->sums.peer_count > 0 ? "--peers"
                       : run->sums.file_count > 0 ? "--files"
                                                  : "--syscalls";
    if (!run->kept)
        value_append(&next, value_text("keep the recording to look closer: whyslow io -o FILE …"));
    else {
        value_append(&next, value_text(arena_printf(run->arena, "whyslow io %s %s", path, view)));
        value_append(&next, value_text(arena_printf(run->arena, "whyslow io %s --stacks", path)));
    }
    if (run->honesty.cpu_ns.known && run->honesty.cpu_ns.value * 2 > run->sums.wall_ns &&
        run->sums.calls_ns * 4 < run->sums.wall_ns)
        value_append(&next, value_text("most of the time is computing: whyslow record -- COMMAND"));
    value_put(root, "next", "Next", next);
}

/* Only what was asked for; several views may be. */
static void put_views(struct io_run *run, struct value *root)
{
    const struct io_cmd_opts *opts = run->opts;
    if (opts->syscalls)
        put_syscalls(run, root);
    if (opts->files) {
        put_files(run, root);
        put_lookups(run, root);
    }
    if (opts->peers)
        put_peers(run, root);
    if (opts->devices)
        put_devices(run, root);
    if (opts->stacks)
        put_stacks(run, root);
    if (opts->requests)
        put_requests(run, root);
}

/* People are spared what is empty. */
static void put_overview(struct io_run *run, struct value *root)
{
    const struct io_sums *sums = &run->sums;
    bool people = !run->opts->output.json;
    put_syscalls(run, root);
    if (!people || io_tables_file_count(&run->tables) > 0)
        put_files(run, root);
    if (!people || sums->peer_count > 0)
        put_peers(run, root);
    if (!people || io_tables_device_count(&run->tables) > 0)
        put_devices(run, root);
    if (!people || run->groups.count > 0)
        put_requests(run, root);
    if (!people) {
        put_stacks(run, root);
        put_lookups(run, root);
    }
    put_notes(run, root);
    put_next(run, root);
}

static int io_draw(const struct cmd_call *call, struct io_run *run, struct why *why)
{
    struct value root = value_map(run->arena);
    put_head(run, &root);
    if (is_narrowed(run->opts))
        put_views(run, &root);
    else
        put_overview(run, &root);
    int r = io_pictures(run, &root, why);
    if (r == 0 && arena_failed(run->arena))
        r = why_nomem(why);
    if (r < 0)
        return r;
    struct report report = {.schema = "whyslow.io/1", .root = &root};
    return cmd_render(call, &run->opts->output, &report, why);
}

static int io_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io_run run = {.opts = call->opts, .arena = &arena};
    struct record_run_opts record = {.cpu = {.no_samples = true},
                                     .io = {.calls = true,
                                            .stacks = !run.opts->no_stacks,
                                            .requests = !run.opts->no_requests,
                                            .payloads = run.opts->payloads}};
    struct record_run_result result = {0};
    int r = axis_recording(call, &run.opts->axis, &record,
                           run.opts->output.json || run.opts->output.markdown, &run.recording,
                           &result, why);
    if (r < 0)
        return r;
    run.kept = axis_is_kept(&run.opts->axis, &result);
    r = load(&run, why);
    if (r < 0)
        axis_load_failed(&result, why);
    else
        r = io_draw(call, &run, why);
    return axis_end(&run.opts->axis, run.recording, &result, r);
}

static const struct cmd_example examples[] = {
    {"whyslow io -- ./app input", "run it, and say what it asked the kernel for"},
    {"whyslow io -p 1234 -d 10 --requests", "requests of a running process for ten seconds"},
    {"whyslow io recording.whyslow --files", "every file: bytes, latency, syncs, how it was read"},
    {"whyslow io recording.whyslow --flame io.svg", "time in calls as a picture"},
    {NULL, NULL},
};

const struct command cmd_io = {
    .name = "io",
    .group = "Measure",
    .operands = "[REC | -- COMMAND [ARGUMENT...]]",
    .summary = "system calls, files, peers, devices, and the requests inside them",
    .about =
        "Counts every system call with its errors, times and bytes, and tells for which file, "
        "socket and place in the program it was: how it was read, what was made durable, what came "
        "from the device, which names nothing has. On sockets it recognises HTTP, PostgreSQL, "
        "MySQL, "
        "Redis and DNS, through OpenSSL too, and SQLite in the process: requests with their text, "
        "literals taken out, from where they were made, how long the first byte and the answer "
        "took, and which were made one after another. Calls that wait for something to do (accept, "
        "epoll, futex) are in the table of calls; they rank no file, peer or place.\n\n"
        "Parameters and bodies are not stored, only a hash of them, unless --keep-payloads is "
        "given; passwords and authorization never are.\n\n"
        "A recording made with 'whyslow record --io' is read; a command, -p, -a or --cgroup is "
        "recorded first, and the recording thrown away unless -o keeps it. The exit status is the "
        "command's. With --json or --markdown the command's stdout goes to stderr.",
    .options = io_options,
    .options_size = sizeof(struct io_cmd_opts),
    .stop = OPT_MIXED,
    .operands_min = 0,
    .operands_max = -1,
    .examples = examples,
    .run = io_run,
};
