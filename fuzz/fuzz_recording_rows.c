/* A sound database with any values in the tables of a recording: ids out of range, circles,
 * impossible counts and times, values of the wrong type. What damaged pages hardly ever bring
 * about, somebody who means harm does with one UPDATE.
 *
 * The input is a list of rows: a byte for the table, then a value a column, each a byte that
 * says what it is and what belongs to it. A chunk comes in two kinds: columns packed as the
 * writer would, so that its checksum is right, and any values as for other tables. */
#include "fuzz_recording.h"

#include "store/chunk.h"
#include "store/db.h"
#include "store/schema.h"

#include <endian.h>

enum { ROWS_MAX = 400, LONG_TEXT = 100000, CHUNK_PACKED = 15 };

static const struct {
    const char *name;
    int columns;
} tables[] = {
    {"meta", 2},        {"text", 2},           {"process", 8},  {"thread", 6},
    {"image", 5},       {"mapping", 8},        {"frame", 6},    {"function", 8},
    {"stack", 3},       {"series", 5},         {"location", 5}, {"total", 5},
    {"counter", 3},     {"chunk", 7},          {"document", 2}, {NULL, 7}, /* CHUNK_PACKED */
    {"instruction", 4}, {"source_line", 3},    {"object", 6},   {"wait", 18},
    {"wait_event", 5},  {"call", 21},          {"device", 14},  {"connection", 13},
    {"request", 21},    {"request_event", 11},
};

static const char *const words[] = {
    "file", "kernel", "user", "named", "unknown", "jit",         "managed",     "vdso",
    "sum",  "level",  "ns",   "count", "cpu",     "cpu.samples", "fingerprint", "import"};

static const char *const wait_words[] = {"blocked", "runq",    "hold",        "futex",
                                         "pipe",    "socket",  "kernel_lock", "process",
                                         "offcpu",  "running", "waits",       "waits.seen"};

static const char *const io_words[] = {"io",     "files",      "read",   "flush",  "path",
                                       "http",   "postgresql", "sqlite", "client", "server",
                                       "inside", "io.calls",   "x86_64"};

static const int64_t numbers[] = {-1,        INT64_MAX,  INT64_MIN,
                                  INT32_MAX, UINT32_MAX, (int64_t)1 << 40};

struct input {
    const uint8_t *data;
    size_t len;
};

static uint8_t take(struct input *input)
{
    if (input->len == 0)
        return 0;
    input->len--;
    return *input->data++;
}

static uint64_t take_number(struct input *input, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++)
        number |= (uint64_t)take(input) << (8 * i);
    return number;
}

static int bind_long(sqlite3_stmt *stmt, int column, uint8_t letter)
{
    char *text = malloc(LONG_TEXT);
    if (!text)
        abort();
    memset(text, letter, LONG_TEXT);
    int rc = sqlite3_bind_text(stmt, column, text, LONG_TEXT, SQLITE_TRANSIENT);
    free(text);
    return rc;
}

static int bind_value(sqlite3_stmt *stmt, int column, struct input *input)
{
    uint8_t what = take(input);
    if (what < 128) /* most columns are small ids and counts */
        return sqlite3_bind_int64(stmt, column, what);
    if (what < 160)
        return sqlite3_bind_int64(stmt, column, (int64_t)take_number(input, 2));
    if (what < 176)
        return sqlite3_bind_int64(stmt, column, (int64_t)take_number(input, 8));
    if (what < 208) {
        size_t len = MIN((size_t)(what - 176), input->len);
        const char *text = (const char *)input->data;
        input->data += len;
        input->len -= len;
        return (what & 1) ? sqlite3_bind_text(stmt, column, text, (int)len, SQLITE_TRANSIENT)
                          : sqlite3_bind_blob(stmt, column, text, (int)len, SQLITE_TRANSIENT);
    }
    if (what < 208 + ARRAY_SIZE(words))
        return sqlite3_bind_text(stmt, column, words[what - 208], -1, SQLITE_STATIC);
    if (what < 224 + ARRAY_SIZE(numbers))
        return sqlite3_bind_int64(stmt, column, numbers[what - 224]);
    if (what >= 236 && what < 240)
        return sqlite3_bind_text(stmt, column, wait_words[take(input) % ARRAY_SIZE(wait_words)], -1,
                                 SQLITE_STATIC);
    if (what >= 232 && what < 236)
        return sqlite3_bind_text(stmt, column, io_words[take(input) % ARRAY_SIZE(io_words)], -1,
                                 SQLITE_STATIC);
    if (what < 240)
        return sqlite3_bind_double(stmt, column, (double)take_number(input, 2) / 3);
    return what < 248 ? sqlite3_bind_null(stmt, column) : bind_long(stmt, column, what);
}

static void row_put(sqlite3 *db, const char *table, int columns, struct input *input)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    char sql[128];
    snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO %s VALUES(%.*s)", table, 2 * columns - 1,
             "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?");
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        abort();
    for (int i = 1; i <= columns; i++)
        if (bind_value(stmt, i, input) != SQLITE_OK)
            abort();
    (void)sqlite3_step(stmt); /* NOT NULL may refuse it */
}

/* Its row is right as well, unless the first byte says otherwise. */
static void chunk_put(sqlite3 *db, struct chunk_encoder *encoder, struct input *input)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    struct chunk_columns columns;
    uint8_t wrong = take(input);
    uint8_t series = take(input);
    const void *data;
    size_t size;
    uint64_t start_ns, end_ns;
    if (chunk_columns_init(&columns, 256) < 0)
        abort();
    columns.samples = 1 + take(input);
    for (uint32_t i = 0; i < columns.samples; i++) {
        bool wide = wrong & 1;
        columns.time_ns[i] = take_number(input, wide ? 8 : 1);
        columns.thread[i] = (uint32_t)take_number(input, wide ? 4 : 1);
        columns.stack[i] = (uint32_t)take_number(input, wide ? 4 : 1);
        columns.weight[i] = take_number(input, wide ? 8 : 1);
    }
    if (chunk_encode(encoder, &columns, &data, &size, &start_ns, &end_ns) < 0 ||
        sqlite3_prepare_v2(db, "INSERT INTO chunk VALUES(NULL, ?, ?, ?, ?, ?, ?)", -1, &stmt,
                           NULL) != SQLITE_OK)
        abort();
    sqlite3_bind_int64(stmt, 1, series);
    sqlite3_bind_int64(stmt, 2, (int64_t)start_ns + ((wrong & 2) != 0));
    sqlite3_bind_int64(stmt, 3, (int64_t)end_ns);
    sqlite3_bind_int64(stmt, 4, (int64_t)columns.samples + ((wrong & 4) != 0));
    sqlite3_bind_int64(stmt, 5, CHUNK_CODEC);
    sqlite3_bind_blob(stmt, 6, data, (int)size, SQLITE_TRANSIENT);
    (void)sqlite3_step(stmt);
    chunk_columns_deinit(&columns);
}

static sqlite3 *database_make(void)
{
    sqlite3 *db = NULL;
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", SCHEMA_APPLICATION_ID);
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || db_exec(db, sql) != SQLITE_OK ||
        schema_migrate(db, schema_steps, schema_version, NULL) < 0)
        abort();
    return db;
}

static void database_save(sqlite3 *db)
{
    sqlite3_int64 size = 0;
    unsigned char *bytes = sqlite3_serialize(db, "main", &size, 0);
    if (!bytes)
        abort();
    /* The header counts pages as of the last commit. */
    uint32_t page_bytes = (uint32_t)bytes[16] << 8 | bytes[17];
    uint32_t pages = htobe32((uint32_t)((uint64_t)size / page_bytes));
    memcpy(bytes + 28, &pages, sizeof(pages));
    fuzz_file_write(FUZZ_RECORDING, bytes, (size_t)size);
    sqlite3_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct chunk_encoder encoder;
    static sqlite3 *db; /* as it was before every input: making the tables is what costs */
    if (!db)
        db = database_make();
    if (chunk_encoder_init(&encoder) < 0 || db_exec(db, "BEGIN") != SQLITE_OK)
        abort();
    for (unsigned i = 0; i < ROWS_MAX && input.len > 0; i++) {
        size_t table = take(&input) % ARRAY_SIZE(tables);
        if (table == CHUNK_PACKED)
            chunk_put(db, &encoder, &input);
        else
            row_put(db, tables[table].name, tables[table].columns, &input);
    }
    chunk_encoder_deinit(&encoder);
    database_save(db); /* with what the transaction has changed */
    if (db_exec(db, "ROLLBACK") != SQLITE_OK)
        abort();
    fuzz_recording_ask(data, size);
    return 0;
}
