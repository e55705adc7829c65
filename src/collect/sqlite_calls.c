/* From addresses of statements to their texts, and from runs to requests. */
#include "collect/sqlite_calls.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/bpf_unit.h"
#include "format/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

extern const unsigned char sqlite_bpf[];
extern const size_t sqlite_bpf_bytes;

static const struct {
    const char *function, *program;
    bool at_return;
} table[] = {
    {"sqlite3_step", "sqlite_step", false},
    {"sqlite3_step", "sqlite_step_done", true},
    {"sqlite3_prepare_v2", "sqlite_prepare", false},
    {"sqlite3_prepare_v2", "sqlite_prepare_done", true},
    {"sqlite3_prepare_v3", "sqlite_prepare_v3", false},
    {"sqlite3_prepare_v3", "sqlite_prepare_done", true},
    {"sqlite3_open", "sqlite_open", false},
    {"sqlite3_open", "sqlite_open_done", true},
    {"sqlite3_open_v2", "sqlite_open", false},
    {"sqlite3_open_v2", "sqlite_open_done", true},
    {"sqlite3_reset", "sqlite_reset", false},
    {"sqlite3_finalize", "sqlite_finalize", false},
    {"sqlite3_bind_int", "sqlite_bind_int", false},
    {"sqlite3_bind_int64", "sqlite_bind_int", false},
    {"sqlite3_bind_text", "sqlite_bind_text", false},
    {"sqlite3_bind_blob", "sqlite_bind_text", false},
};

struct statement {
    char *text;
    size_t len;
    uint32_t database; /* its path */
    uint32_t next;     /* of the free ones, index + 1 */
};

struct sqlite_calls {
    struct sqlite_calls_opts opts;
    struct bpf_unit *unit;
    struct uprobe_function functions[ARRAY_SIZE(table)];
    struct intern paths;
    struct map_u64 databases;  /* process and address, by hash, to a path */
    struct map_u64 statements; /* the same to index + 1, 0: it is gone */
    VEC(struct statement) known;
    uint32_t free;
    uint64_t unknown, malformed;
};

static int maps_share(struct bpf_unit *unit, const struct sqlite_calls_opts *opts, struct why *why)
{
    const struct {
        const char *name;
        int fd;
    } maps[] = {
        {"told", opts->told_fd},       {"threads", opts->threads_fd},
        {"control", opts->control_fd}, {"deep", opts->deep_fd},
        {"known", opts->known_fd},     {"known_long", opts->known_long_fd},
        {"begun", opts->begun_fd},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(maps) && r == 0; i++)
        r = bpf_unit_map_share(unit, maps[i].name, maps[i].fd, why);
    return r;
}

static int unit_load(struct sqlite_calls *calls, const char *cache_dir, struct why *why)
{
    const struct bpf_blob blob = {"sqlite", sqlite_bpf, sqlite_bpf_bytes};
    const struct sqlite_config config = {
        .ring_bytes = calls->opts.ring_bytes,
        .stacks = calls->opts.stacks,
    };
    bpf_unit_close(calls->unit);
    calls->unit = NULL;
    int r = bpf_unit_open(&blob, cache_dir, &calls->unit, why);
    if (r == 0)
        r = bpf_unit_config(calls->unit, &config, sizeof(config), why);
    if (r == 0)
        r = maps_share(calls->unit, &calls->opts, why);
    if (r == 0 && bpf_unit_uprobes_multi(calls->unit) < 0)
        r = why_set(why, WHY_FAILED, EINVAL, NULL, "libbpf does not take uprobes of a newer kind");
    return r < 0 ? r : bpf_unit_load(calls->unit, why);
}

int sqlite_calls_open(const struct sqlite_calls_opts *opts, struct uprobes *uprobes,
                      struct sqlite_calls **ret, struct why *why)
{
    struct sqlite_calls *calls = calloc(1, sizeof(*calls));
    if (!calls)
        return why_nomem(why);
    calls->opts = *opts;
    int r = unit_load(calls, opts->cache_dir, why);
    if (r < 0 && r != -EPERM && r != -EACCES && opts->cache_dir)
        r = unit_load(calls, NULL, why);
    for (size_t i = 0; i < ARRAY_SIZE(table) && r == 0; i++) {
        int fd = bpf_unit_program_fd(calls->unit, table[i].program);
        calls->functions[i] = (struct uprobe_function){table[i].function, fd, table[i].at_return};
        if (fd < 0)
            r = why_set(why, WHY_FAILED, -fd, NULL, "the BPF program 'sqlite' has lost a part");
    }
    if (r == 0)
        r = uprobes_add(uprobes, "libsqlite3.so", calls->functions, ARRAY_SIZE(table));
    if (r < 0) {
        sqlite_calls_close(calls);
        return r;
    }
    *ret = calls;
    return 0;
}

void sqlite_calls_close(struct sqlite_calls *calls)
{
    if (!calls)
        return;
    bpf_unit_close(calls->unit);
    intern_deinit(&calls->paths);
    map_u64_deinit(&calls->databases);
    map_u64_deinit(&calls->statements);
    for (size_t i = 0; i < calls->known.len; i++)
        free(calls->known.data[i].text);
    VEC_FREE(&calls->known);
    free(calls);
}

/* ---- what is where ---- */

static uint64_t place_of(const struct offcpu_head *head, uint64_t address)
{
    return hash_u64(address ^ hash_u64((uint64_t)head->tgid << 32 | head->exec));
}

/* Addresses are given again after a while; a map that has seen very many begins anew. */
static void bound_keep(struct map_u64 *map, size_t max)
{
    if (map->len >= max)
        map_u64_clear(map);
}

static int opened_take(struct sqlite_calls *calls, const struct sqlite_opened *opened)
{
    uint32_t path;
    struct str text = {opened->path, MIN((size_t)opened->len, sizeof(opened->path))};
    if (text.len == 0)
        text = STR("(temporary)");
    if (calls->paths.len >= SQLITE_DATABASES_MAX && intern_find(&calls->paths, text) == 0)
        text = STR("(further databases)");
    int r = intern_add(&calls->paths, text, &path, NULL);
    if (r < 0)
        return r;
    bound_keep(&calls->databases, SQLITE_STATEMENTS_MAX);
    uint64_t *slot = map_u64_at(&calls->databases, place_of(&opened->head, opened->database), NULL);
    if (!slot)
        return -ENOMEM;
    *slot = path;
    return 0;
}

static void statement_forget(struct sqlite_calls *calls, uint64_t *slot)
{
    if (!slot || *slot == 0)
        return;
    struct statement *statement = &calls->known.data[*slot - 1];
    free(statement->text);
    *statement = (struct statement){.next = calls->free};
    calls->free = (uint32_t)*slot;
    *slot = 0;
}

static void statements_bound(struct sqlite_calls *calls)
{
    if (calls->statements.len < 4 * SQLITE_STATEMENTS_MAX &&
        (calls->free != 0 || calls->known.len < SQLITE_STATEMENTS_MAX))
        return;
    for (size_t i = 0; i < calls->known.len; i++)
        free(calls->known.data[i].text);
    calls->known.len = 0;
    calls->free = 0;
    map_u64_clear(&calls->statements);
}

static int prepared_take(struct sqlite_calls *calls, const struct sqlite_prepared *prepared)
{
    const uint64_t *path = map_u64_find(&calls->databases,
                                        place_of(&prepared->head, prepared->database));
    size_t len = MIN((size_t)prepared->len, sizeof(prepared->text));
    struct statement statement = {
        .text = strndup(prepared->text, len),
        .database = path ? (uint32_t)*path : 0,
    };
    if (!statement.text)
        return -ENOMEM;
    statement.len = strlen(statement.text);
    statements_bound(calls);
    uint64_t *slot = map_u64_at(&calls->statements, place_of(&prepared->head, prepared->statement),
                                NULL);
    if (!slot || VEC_RESERVE(&calls->known, calls->known.len + 1) < 0) {
        free(statement.text);
        return -ENOMEM;
    }
    statement_forget(calls, slot);
    if (calls->free == 0) {
        calls->known.data[calls->known.len++] = statement;
        *slot = calls->known.len;
        return 0;
    }
    *slot = calls->free;
    calls->free = calls->known.data[*slot - 1].next;
    calls->known.data[*slot - 1] = statement;
    return 0;
}

static int ran_take(struct sqlite_calls *calls, const struct sqlite_ran *ran)
{
    const struct sqlite_calls_opts *opts = &calls->opts;
    const uint64_t *slot = map_u64_find(&calls->statements, place_of(&ran->head, ran->statement));
    char result[32] = "";
    if (!slot || *slot == 0) {
        calls->unknown++;
        return 0;
    }
    const struct statement *known = &calls->known.data[*slot - 1];
    if (ran->error != 0)
        snprintf(result, sizeof(result), "ERROR %d", ran->error);
    struct io_statement statement = {
        .protocol = REQUEST_SQLITE,
        .database = known->database ? intern_get(&calls->paths, known->database)
                                    : STR("(opened before)"),
        .sql = {known->text, known->len},
        .parameters = ran->run.parameters,
        .start_ns = ran->run.start_ns,
        .end_ns = ran->head.time_ns,
        .rows = ran->run.rows,
        .result = str_from(result),
    };
    int r = opts->thread(opts->context, ran->head.tid, ran->head.tgid, ran->head.exec,
                         ran->head.time_ns, &statement.process, &statement.thread);
    if (r == 0 && ran->run.stack != 0)
        r = opts->stack(opts->context, ran->run.stack, ran->head.time_ns, &statement.stack);
    return r < 0 ? r : io_requests_told(opts->requests, &statement);
}

static size_t record_bytes(uint32_t record)
{
    switch ((enum sqlite_record)record) {
    case SQLITE_OPENED:
        return sizeof(struct sqlite_opened);
    case SQLITE_PREPARED:
        return sizeof(struct sqlite_prepared);
    case SQLITE_RAN:
    case SQLITE_GONE:
        return sizeof(struct sqlite_ran);
    }
    return 0;
}

int sqlite_calls_take(struct sqlite_calls *calls, const void *record, size_t bytes)
{
    const struct offcpu_head *head = record;
    size_t need = bytes >= sizeof(*head) ? record_bytes(head->record) : 0;
    int r = 0;
    if (need == 0)
        return 0;
    if (bytes < need) {
        calls->malformed++;
        return 1;
    }
    switch ((enum sqlite_record)head->record) {
    case SQLITE_OPENED:
        r = opened_take(calls, record);
        break;
    case SQLITE_PREPARED:
        r = prepared_take(calls, record);
        break;
    case SQLITE_RAN:
        r = ran_take(calls, record);
        break;
    case SQLITE_GONE:
        statement_forget(
            calls, map_u64_find(&calls->statements,
                                place_of(head, ((const struct sqlite_ran *)record)->statement)));
        break;
    }
    return r < 0 ? r : 1;
}

int sqlite_calls_finish(struct sqlite_calls *calls, struct sink *sink)
{
    uint64_t counts[SQLITE_COUNTS];
    int r = bpf_counts_read(bpf_unit_map_fd(calls->unit, "sqlite_counts"), counts, SQLITE_COUNTS);
    if (r == 0)
        r = sink_counter(sink, "io.sqlite", UNIT_COUNT, counts[SQLITE_TOLD]);
    if (r == 0)
        r = sink_counter(sink, "io.sqlite_lost", UNIT_COUNT, counts[SQLITE_LOST]);
    return r < 0 ? r
                 : sink_counter(sink, "io.sqlite_unknown", UNIT_COUNT,
                                calls->unknown + calls->malformed);
}
