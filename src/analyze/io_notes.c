/* Sums against bounds: what passes them becomes a sentence. One function a kind; a new kind is a
 * row of bounds, a function and its call. */
#include "analyze/io_notes.h"

#include "base/map.h"
#include "base/vec.h"
#include "protocol/protocol.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000u

const struct io_note_bound io_note_bounds[NOTE_KINDS] = {
    /* Time that all but the longest take: at least 100 ms and a fifth of the recording. */
    [NOTE_SEQUENTIAL_REQUESTS] = {"sequential_requests", .count = 3, .ns = 100 * MS, .wall_pct = 20,
                                  .both = true},
    [NOTE_REPEATED_STATEMENT] = {"repeated_statement", .count = 5, .ns = 50 * MS, .wall_pct = 5},
    [NOTE_DUPLICATE_STATEMENT] = {"duplicate_statement", .count = 5, .ns = 50 * MS, .wall_pct = 5},
    [NOTE_REPEATED_NAME] = {"repeated_name", .count = 5, .wall_pct = 1},
    /* Ratio: requests on a connection, at most. */
    [NOTE_CONNECTIONS] = {"connection_per_request", .count = 20, .ratio = 1.5},
    /* Ratio: sequential ones among those of which it is known, at least. */
    [NOTE_SMALL_CALLS] = {"small_calls", .count = 1000, .wall_pct = 2, .bytes_most = 512,
                          .ratio = 0.8},
    /* Ratio: syncs to writes, at least; bytes: written between two. */
    [NOTE_SYNCS] = {"syncs", .count = 20, .wall_pct = 5, .bytes_most = 64 << 10, .ratio = 0.5},
    /* Count: opens, with at least its size read; ratio: bytes read to its size. One is enough. */
    [NOTE_READ_AGAIN] = {"read_again", .count = 5, .wall_pct = 1, .ratio = 3},
    [NOTE_MISSING_NAMES] = {"missing_names", .count = 500, .wall_pct = 1},
    /* Files that were used in one folder; bytes: moved with each, on average. */
    [NOTE_TINY_FILES] = {"tiny_files", .count = 1000, .wall_pct = 1, .bytes_most = 4096},
    [NOTE_TEMPORARY_FILES] = {"temporary_files", .count = 100},
    /* Pieces of a file; bytes: of each, on average. */
    [NOTE_FRAGMENTED] = {"fragmented", .count = 100, .bytes_most = 1 << 20},
    /* Ratio: free space in percent, at most. */
    [NOTE_NEARLY_FULL] = {"nearly_full", .ratio = 10},
    /* Writes to a file that is copied on write; ratio: of those at places out of order. */
    [NOTE_COPY_ON_WRITE] = {"copy_on_write", .count = 1000, .ratio = 0.5},
};

const char *io_note_name(enum io_note_kind kind)
{
    return io_note_bounds[kind].name;
}

struct noting {
    struct arena *arena;
    const struct io_sums *sums;
    const struct io_request_groups *groups;
    struct map_u64 file_at; /* object to an index into sums->files, plus one */
    VEC(struct io_note) notes;
    size_t of_kind[NOTE_KINDS];
    size_t left_out;
    int r;
};

static bool enough_time(const struct noting *noting, enum io_note_kind kind, uint64_t ns)
{
    const struct io_note_bound *bound = &io_note_bounds[kind];
    double pct = 100.0 * (double)ns / (double)MAX(noting->sums->wall_ns, 1u);
    bool long_enough = bound->ns == 0 || ns >= bound->ns;
    bool share_enough = bound->wall_pct == 0 || pct >= bound->wall_pct;
    if (bound->both || bound->ns == 0 || bound->wall_pct == 0)
        return long_enough && share_enough;
    return long_enough || share_enough;
}

static void note_add(struct noting *noting, struct io_note note)
{
    if (noting->of_kind[note.kind]++ >= IO_NOTES_MAX) {
        noting->left_out++;
        return;
    }
    if (noting->r == 0)
        noting->r = VEC_PUSH(&noting->notes, note);
}

static const char *time_text(struct noting *noting, uint64_t ns)
{
    char text[48];
    return arena_dup(noting->arena, units_format((double)ns, UNIT_NS, text, sizeof(text)));
}

static const char *count_text(struct noting *noting, uint64_t count)
{
    char text[48];
    return arena_dup(noting->arena, units_format((double)count, UNIT_COUNT, text, sizeof(text)));
}

static const char *bytes_text(struct noting *noting, uint64_t bytes)
{
    char text[48];
    return arena_dup(noting->arena, units_format((double)bytes, UNIT_BYTES, text, sizeof(text)));
}

static struct str text_of(const struct noting *noting, uint32_t id)
{
    const struct io *io = noting->sums->io;
    return id < io->text_count ? io->texts[id] : STR("");
}

/* Cut between characters. */
const char *io_text_short(struct arena *arena, struct str text)
{
    size_t len = IO_TEXT_SHOWN_BYTES;
    if (text.len <= len)
        return arena_dup_len(arena, text.data, text.len);
    while (len > 0 && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--;
    return arena_printf(arena, "%.*s…", (int)len, text.data);
}

static struct str object_name(const struct noting *noting, uint32_t object)
{
    struct str name = noting->sums->io->objects[object].name;
    return name.len > 0 ? name : STR("[no name]");
}

static bool is_sql(enum request_protocol protocol)
{
    return protocol == REQUEST_POSTGRESQL || protocol == REQUEST_MYSQL ||
           protocol == REQUEST_SQLITE;
}

/* Some are called by their address: that is said once. */
static struct str service_beside(struct str peer, struct str service)
{
    return str_eq(peer, service) ? STR("") : service;
}

/* "13 sequential http requests to api.example.org, 3.50 s; the longest alone took 269 ms" */
static void note_chains(struct noting *noting)
{
    const struct io_note_bound *bound = &io_note_bounds[NOTE_SEQUENTIAL_REQUESTS];
    for (size_t i = 0; i < noting->groups->chain_count; i++) {
        const struct io_chain *chain = &noting->groups->chains[i];
        bool http = chain->protocol == REQUEST_HTTP1 || chain->protocol == REQUEST_HTTP2;
        if (!http || chain->count < bound->count ||
            !enough_time(noting, NOTE_SEQUENTIAL_REQUESTS, io_chain_spare_ns(chain)))
            continue;
        const struct request_event *first = &noting->sums->io->events[chain->events[0]];
        struct str service = service_beside(
            text_of(noting, chain->peer),
            noting->sums->io->connections[first->connection].info.service);
        const char *text = arena_printf(
            noting->arena, "%s sequential %s requests to %.*s%s%.*s, %s; the longest alone took %s",
            count_text(noting, chain->count), protocol_name(chain->protocol),
            STR_FMT(text_of(noting, chain->peer)), service.len > 0 ? " " : "", STR_FMT(service),
            time_text(noting, chain->sum_ns), time_text(noting, chain->max_ns));
        note_add(noting, (struct io_note){NOTE_SEQUENTIAL_REQUESTS, text, chain->count,
                                          chain->sum_ns, chain->stack});
    }
}

static const char *statement_text(struct noting *noting, const struct io_request_group *group,
                                  enum io_note_kind kind)
{
    const char *differ = "";
    if (kind == NOTE_DUPLICATE_STATEMENT)
        differ = group->parameters == 0 ? " without parameters" : " with the same parameters";
    else if (kind == NOTE_REPEATED_STATEMENT)
        differ = arena_printf(noting->arena, " with %s%s different parameters",
                              group->parameters_more ? "at least " : "",
                              count_text(noting, group->parameters));
    return arena_printf(noting->arena, "the same %s %s times%s, %s: %s",
                        kind == NOTE_REPEATED_NAME ? "name asked for" : "statement",
                        count_text(noting, group->tally.count), differ,
                        time_text(noting, group->tally.total_ns),
                        io_text_short(noting->arena, text_of(noting, group->text)));
}

static void note_groups(struct noting *noting)
{
    for (size_t i = 0; i < noting->groups->count; i++) {
        const struct io_request_group *group = &noting->groups->groups[i];
        enum io_note_kind kind = group->protocol == REQUEST_DNS ? NOTE_REPEATED_NAME
                                 : group->parameters > 1        ? NOTE_REPEATED_STATEMENT
                                                                : NOTE_DUPLICATE_STATEMENT;
        bool asked = group->role != REQUEST_SERVER &&
                     (is_sql(group->protocol) || group->protocol == REQUEST_DNS);
        if (!asked || group->tally.count < io_note_bounds[kind].count ||
            !enough_time(noting, kind, group->tally.total_ns))
            continue;
        note_add(noting, (struct io_note){kind, statement_text(noting, group, kind),
                                          group->tally.count, group->tally.total_ns, group->stack});
    }
}

/* What it takes to connect to a peer, from the calls on its sockets. */
static const struct io_peer *peer_named(const struct noting *noting, struct str name)
{
    for (size_t i = 0; i < noting->sums->peer_count; i++) {
        const struct io_peer *peer = &noting->sums->peers[i];
        if (str_eq(noting->sums->io->objects[peer->object].name, name) && peer->connects.calls > 0)
            return peer;
    }
    return NULL;
}

static void note_connections(struct noting *noting)
{
    const struct io_note_bound *bound = &io_note_bounds[NOTE_CONNECTIONS];
    for (size_t i = 0; i < noting->groups->dialled_count; i++) {
        const struct io_dialled *to = &noting->groups->dialled[i];
        if (to->role != REQUEST_CLIENT || to->connections < bound->count ||
            (double)to->requests > bound->ratio * (double)to->connections)
            continue;
        const struct io_peer *peer = peer_named(noting, to->peer);
        struct str service = service_beside(to->peer, to->service);
        const char *text = arena_printf(
            noting->arena,
            "a connection opened for every request: %s connections to %.*s%s%.*s, %s requests%s%s",
            count_text(noting, to->connections), STR_FMT(to->peer), service.len > 0 ? " " : "",
            STR_FMT(service), count_text(noting, to->requests), peer ? "; connecting took " : "",
            peer ? time_text(noting, peer->connects.ns) : "");
        note_add(noting, (struct io_note){NOTE_CONNECTIONS, text, to->connections,
                                          peer ? peer->connects.ns : UINT64_MAX,
                                          peer ? peer->connect_stack : 0});
    }
}

static void note_small(struct noting *noting, const struct io_file *file)
{
    const struct io_note_bound *bound = &io_note_bounds[NOTE_SMALL_CALLS];
    const struct object_info *object = &noting->sums->io->objects[file->object];
    const struct call_tally *tally = &file->tally;
    uint64_t moving = file->reads.calls + file->writes.calls;
    uint64_t ns = file->reads.ns + file->writes.ns, median = io_median_size(tally);
    bool plain = object->kind == OBJECT_FILE || object->kind == OBJECT_PIPE;
    bool random = tally->placed > 0 &&
                  (double)tally->sequential < bound->ratio * (double)tally->placed;
    if (!plain || moving < bound->count || file->direct > 0 || random || median == 0 ||
        median > bound->bytes_most || !enough_time(noting, NOTE_SMALL_CALLS, ns))
        return;
    const char *text = arena_printf(
        noting->arena, "%s reads and writes of %.*s, half of them of %s or less, %s",
        count_text(noting, moving), STR_FMT(object_name(noting, file->object)),
        bytes_text(noting, median), time_text(noting, ns));
    note_add(noting, (struct io_note){NOTE_SMALL_CALLS, text, moving, ns, file->stack});
}

static void note_syncs(struct noting *noting, const struct io_file *file)
{
    const struct io_note_bound *bound = &io_note_bounds[NOTE_SYNCS];
    uint64_t syncs = file->syncs.calls + file->sync_writes.calls;
    uint64_t ns = file->syncs.ns + file->sync_writes.ns;
    if (syncs < bound->count || (double)syncs < bound->ratio * (double)file->writes.calls ||
        file->writes.bytes / syncs > bound->bytes_most || !enough_time(noting, NOTE_SYNCS, ns))
        return;
    const char *text = arena_printf(
        noting->arena,
        "%.*s was made durable %s times (%s fsync and the like, %s synchronous writes), %s; %s "
        "written between two of them",
        STR_FMT(object_name(noting, file->object)), count_text(noting, syncs),
        count_text(noting, file->syncs.calls), count_text(noting, file->sync_writes.calls),
        time_text(noting, ns), bytes_text(noting, file->writes.bytes / syncs));
    note_add(noting, (struct io_note){NOTE_SYNCS, text, syncs, ns, file->stack});
}

/* Made up by the kernel when asked: reading them again gives another answer. */
static bool is_made_up(struct str name)
{
    return str_starts(name, "/proc/") || str_starts(name, "/sys/") || str_starts(name, "/dev/");
}

static void note_read_again(struct noting *noting, const struct io_file *file)
{
    const struct io_note_bound *bound = &io_note_bounds[NOTE_READ_AGAIN];
    const struct object_info *object = &noting->sums->io->objects[file->object];
    bool sized = file->size_bytes != IO_FACT_UNKNOWN && file->size_bytes > 0;
    double times = sized ? (double)file->reads.bytes / (double)file->size_bytes : 0;
    bool opened = file->opens >= bound->count && file->reads.bytes > 0 && (!sized || times >= 1);
    if (object->kind != OBJECT_FILE || is_made_up(object->name) || file->writes.calls > 0 ||
        file->objects > 1 || (times < bound->ratio && !opened) ||
        !enough_time(noting, NOTE_READ_AGAIN, file->tally.total_ns))
        return;
    const char *text = arena_printf(
        noting->arena, "%.*s was opened %s times and %s read%s",
        STR_FMT(object_name(noting, file->object)), count_text(noting, file->opens),
        bytes_text(noting, file->reads.bytes),
        sized ? arena_printf(noting->arena, ": %.1f times its size", times) : "");
    note_add(noting, (struct io_note){NOTE_READ_AGAIN, text, MAX(file->opens, (uint64_t)times),
                                      file->tally.total_ns, file->stack});
}

static void note_missing(struct noting *noting)
{
    const struct io_lookups *lookups = &noting->sums->lookups;
    if (lookups->missing < io_note_bounds[NOTE_MISSING_NAMES].count ||
        noting->sums->missing_count == 0 ||
        !enough_time(noting, NOTE_MISSING_NAMES, lookups->missing_ns))
        return;
    const struct io_missing *most = &noting->sums->missing[0];
    const char *text = arena_printf(
        noting->arena, "%s lookups found nothing, %s; %s of them in %.*s from one call site",
        count_text(noting, lookups->missing), time_text(noting, lookups->missing_ns),
        count_text(noting, most->count), STR_FMT(most->folder));
    note_add(noting, (struct io_note){NOTE_MISSING_NAMES, text, lookups->missing,
                                      lookups->missing_ns, most->stack});
}

static void note_tiny(struct noting *noting, const struct io_folder *folder)
{
    const struct io_note_bound *bound = &io_note_bounds[NOTE_TINY_FILES];
    if (folder->files < bound->count || folder->bytes / folder->files > bound->bytes_most ||
        !enough_time(noting, NOTE_TINY_FILES, folder->ns))
        return;
    const char *text = arena_printf(
        noting->arena, "%s files of %.*s were used, %s of each on average, %s",
        count_text(noting, folder->files), STR_FMT(folder->folder),
        bytes_text(noting, folder->bytes / folder->files), time_text(noting, folder->ns));
    note_add(noting, (struct io_note){NOTE_TINY_FILES, text, folder->files, folder->ns, 0});
}

static void note_temporary(struct noting *noting, const struct io_folder *folder)
{
    if (folder->temporary < io_note_bounds[NOTE_TEMPORARY_FILES].count)
        return;
    const char *text = arena_printf(noting->arena, "%s files were made in %.*s and removed again",
                                    count_text(noting, folder->temporary), STR_FMT(folder->folder));
    note_add(noting,
             (struct io_note){NOTE_TEMPORARY_FILES, text, folder->temporary, UINT64_MAX, 0});
}

static const struct io_file *file_of(const struct noting *noting, uint32_t object)
{
    const uint64_t *at = map_u64_find(&noting->file_at, object);
    return at ? &noting->sums->files[*at - 1] : NULL;
}

static int files_find(struct noting *noting)
{
    for (size_t i = 0; i < noting->sums->file_count; i++) {
        uint64_t *at = map_u64_at(&noting->file_at, noting->sums->files[i].object, NULL);
        if (!at)
            return -ENOMEM;
        *at = i + 1;
    }
    return 0;
}

static void note_fragments(struct noting *noting, const struct io_file_fact *fact)
{
    const struct io_note_bound *bound = &io_note_bounds[NOTE_FRAGMENTED];
    if (fact->extents == IO_FACT_UNKNOWN || fact->size_bytes == IO_FACT_UNKNOWN ||
        fact->extents < bound->count || fact->size_bytes / fact->extents > bound->bytes_most)
        return;
    const char *text = arena_printf(noting->arena, "%s lies in %s pieces on its device (%s)",
                                    fact->path ? fact->path : "a file",
                                    count_text(noting, fact->extents),
                                    bytes_text(noting, fact->size_bytes));
    note_add(noting, (struct io_note){NOTE_FRAGMENTED, text, fact->extents, UINT64_MAX, 0});
}

static void note_cow(struct noting *noting, const struct io_file_fact *fact)
{
    const struct io_note_bound *bound = &io_note_bounds[NOTE_COPY_ON_WRITE];
    const struct io_file *file = file_of(noting, fact->object);
    if (!file || !fact->cow || file->writes.calls < bound->count || file->tally.placed == 0)
        return;
    uint64_t random = file->tally.placed - file->tally.sequential;
    if ((double)random < bound->ratio * (double)file->tally.placed)
        return;
    const char *text = arena_printf(
        noting->arena,
        "%s writes to %s, %s of its calls out of order, on %s, which copies what is written over",
        count_text(noting, file->writes.calls), fact->path ? fact->path : "a file",
        count_text(noting, random), fact->filesystem ? fact->filesystem : "a file system");
    note_add(noting, (struct io_note){NOTE_COPY_ON_WRITE, text, file->writes.calls, file->writes.ns,
                                      file->stack});
}

/* Each file system once, as far as something was written to it. */
static void note_full(struct noting *noting, const struct io_file_facts *facts, size_t index)
{
    const struct io_file_fact *fact = &facts->facts[index];
    const struct io_file *file = file_of(noting, fact->object);
    double most = io_note_bounds[NOTE_NEARLY_FULL].ratio;
    if (isnan(fact->free_pct) || fact->free_pct > most || !file || file->writes.calls == 0 ||
        !fact->mount)
        return;
    for (size_t i = 0; i < index; i++) {
        const struct io_file_fact *other = &facts->facts[i];
        const struct io_file *written = file_of(noting, other->object);
        if (other->mount && strcmp(other->mount, fact->mount) == 0 && written &&
            written->writes.calls > 0)
            return;
    }
    const char *text = arena_printf(noting->arena, "%s has %.1f%% free; %s is written there",
                                    fact->mount, fact->free_pct,
                                    fact->path ? fact->path : "a file");
    note_add(noting, (struct io_note){NOTE_NEARLY_FULL, text, 1, UINT64_MAX, 0});
}

/* The longest first; what has no time after them, as it came. */
static int by_time(const void *left, const void *right)
{
    const struct io_note *a = left, *b = right;
    uint64_t a_ns = a->ns == UINT64_MAX ? 0 : a->ns, b_ns = b->ns == UINT64_MAX ? 0 : b->ns;
    if (a_ns != b_ns)
        return a_ns > b_ns ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->count < b->count) - (a->count > b->count);
}

int io_notes_build(struct arena *arena, const struct io_sums *sums,
                   const struct io_request_groups *groups, struct io_notes *ret)
{
    struct noting noting = {.arena = arena, .sums = sums, .groups = groups};
    struct io_file_facts facts;
    int r = io_file_facts_read(arena, sums->io->files_json, &facts);
    if (r == 0)
        r = files_find(&noting);
    if (r < 0) {
        map_u64_deinit(&noting.file_at);
        return r;
    }
    note_chains(&noting);
    note_groups(&noting);
    note_connections(&noting);
    for (size_t i = 0; i < sums->file_count; i++) {
        note_small(&noting, &sums->files[i]);
        note_syncs(&noting, &sums->files[i]);
        note_read_again(&noting, &sums->files[i]);
    }
    note_missing(&noting);
    for (size_t i = 0; i < sums->folder_count; i++) {
        note_tiny(&noting, &sums->folders[i]);
        note_temporary(&noting, &sums->folders[i]);
    }
    for (size_t i = 0; i < facts.count; i++) {
        note_fragments(&noting, &facts.facts[i]);
        note_cow(&noting, &facts.facts[i]);
        note_full(&noting, &facts, i);
    }
    struct io_notes notes = {.count = noting.notes.len, .left_out = noting.left_out};
    notes.notes = arena_alloc(arena, (notes.count + 1) * sizeof(*notes.notes));
    r = noting.r < 0 || !notes.notes || arena_failed(arena) ? -ENOMEM : 0;
    if (r == 0 && notes.count > 0)
        memcpy(notes.notes, noting.notes.data, notes.count * sizeof(*notes.notes));
    if (r == 0 && notes.count > 1)
        qsort(notes.notes, notes.count, sizeof(*notes.notes), by_time);
    VEC_FREE(&noting.notes);
    map_u64_deinit(&noting.file_at);
    if (r == 0)
        *ret = notes;
    return r;
}
