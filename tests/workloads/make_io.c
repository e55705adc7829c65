/* Writes a recording of calls and requests whose every figure is known, the same on every machine.
 *
 *     make-io KIND FILE
 *
 * plain    ten seconds of a shop: files read in order and at random, synced, made and removed,
 *          looked for in vain, mapped; peers, devices; statements, HTTP calls one after another,
 *          a connection for every request
 * machine  the same as seen from the whole machine: no root
 * user     the same as the user tier sees it: no device, no place in files, nothing fetched
 * calls    without requests
 * empty    recorded with --io, but nothing was called
 * bare     one call without stack, object or name
 * hostile  names with markup, escapes and newlines */
#include "world.h"

#include "model/call_book.h"
#include "model/wait_book.h"
#include "store/writer.h"

#include <errno.h>
#include <inttypes.h>

enum { SPAN_MS = 10000, PAGE = 4096, BLOCK = 65536 };

static uint64_t clock_zero(void)
{
    return 1;
}

struct scene {
    struct world world;
    uint32_t shop, main_thread, worker;
    bool blind; /* the user tier */
};

/* Calls that are alike; times in ms since the start of the recording. */
struct put {
    uint32_t thread, stack, object;
    const char *call;      /* NULL: page faults */
    double start, every;   /* of the first, and from one to the next */
    double ms;             /* each */
    uint64_t count, bytes; /* bytes of each */
    uint64_t asked;        /* 0: as many as were moved */
    uint32_t error, flags;
    uint64_t placed, sequential;   /* all together */
    uint64_t missed, missed_bytes; /* the same */
    double max_ms;                 /* of the last; 0: as all */
};

static void put(struct scene *scene, const struct put *put)
{
    struct sink *sink = scene->world.made.sink;
    struct call_info info = {
        .thread = put->thread,
        .stack = put->stack,
        .object = put->object,
        .syscall = put->call ? world_call(put->call) : CALL_NO_SYSCALL,
        .error = put->error,
        .flags = put->flags | (put->call ? 0 : CALL_FAULT),
    };
    struct call_tally all = {0};
    uint32_t row;
    made_check(sink_call(sink, &info, &row), "call");
    for (uint64_t i = 0; i < put->count; i++) {
        double ms = i + 1 == put->count && put->max_ms > 0 ? put->max_ms : put->ms;
        uint64_t ns = (uint64_t)(ms * MS + 0.5),
                 start = world_ns(put->start + (double)i * put->every);
        uint64_t asked = put->asked ? put->asked : put->bytes;
        struct call_tally tally = {.count = 1,
                                   .total_ns = ns,
                                   .max_ns = ns,
                                   .first_ns = start,
                                   .last_ns = start + ns,
                                   .bytes = put->bytes,
                                   .asked_bytes = asked,
                                   .partial = put->bytes > 0 && put->bytes < asked};
        tally.buckets[wait_bucket(ns)] = 1;
        tally.sizes[call_size(put->bytes)] = 1;
        call_tally_add(&all, &tally);
        struct sample sample = {scene->world.made.series, put->thread, put->stack, start + ns, ns};
        made_check(sink_sample(sink, &sample), "sample");
    }
    if (!scene->blind) {
        all.placed = put->placed;
        all.sequential = put->sequential;
        all.missed = put->missed;
        all.missed_bytes = put->missed_bytes;
    }
    made_check(sink_call_add(sink, row, &all), "tally");
}

static void put_all(struct scene *scene, const struct put *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(scene, &calls[i]);
}

static uint32_t object(struct scene *scene, enum object_kind kind, uint32_t flags, uint64_t key,
                       const char *name)
{
    struct object_info info = {kind, flags, 0, key, str_from(name)};
    uint32_t id;
    made_check(sink_object(scene->world.made.sink, &info, &id), "object");
    return id;
}

static uint32_t stack(struct scene *scene, const char *names)
{
    return world_stack(&scene->world, names);
}

/* ---- files ---- */

/* Read in order, at random, five times over, and through a mapping. */
static void files_read(struct scene *scene)
{
    uint32_t thread = scene->main_thread;
    uint32_t catalog = object(scene, OBJECT_FILE, 0, 101, "/var/lib/shop/catalog.bin");
    uint32_t table = object(scene, OBJECT_FILE, 0, 102, "/var/lib/shop/orders.db");
    uint32_t rules = object(scene, OBJECT_FILE, 0, 103, "/etc/shop/rules.json");
    uint32_t index = object(scene, OBJECT_FILE, 0, 104, "/var/lib/shop/index.map");
    uint32_t order = stack(scene, "_start main load_catalog libc:fread libc:__GI___libc_read");
    uint32_t random = stack(scene, "_start main find_order read_page libc:__libc_pread64");
    uint32_t again = stack(scene, "_start main apply_rules parse_rules libc:__GI___libc_read");
    struct put calls[] = {
        {thread, order, catalog, "read", 100, 0.5, 0.05, 1024, BLOCK, 0, 0, 0, 1024, 1023, 64,
         (uint64_t)BLOCK * 1024},
        {thread, order, catalog, "read", 612, 1, 0.001, 1, 0, BLOCK, 0, 0, 1, 1},
        {thread, random, table, "pread64", 700, 0.8, 0.4, 2000, PAGE, 0, 0, 0, 2000, 12, 1800,
         (uint64_t)PAGE * 1800, 25},
        {thread, again, rules, "read", 2400, 10, 0.02, 5, 12000, BLOCK, 0, 0, 5, 5},
        {thread, stack(scene, "_start main search"), index, NULL, 2500, 0.1, 0.03, 900, PAGE, 0, 0,
         0, 0, 0, 300, (uint64_t)PAGE * 4800},
        {thread, again, rules, "openat", 2399, 10, 0.01, 5},
        {thread, order, catalog, "openat", 99, 1, 0.015, 1},
    };
    put_all(scene, calls, ARRAY_SIZE(calls));
}

/* A log that is synced a hundred times, a journal opened with O_DSYNC, files made and removed. */
static void files_written(struct scene *scene)
{
    uint32_t thread = scene->worker;
    uint32_t log = object(scene, OBJECT_FILE, 0, 105, "/var/log/shop.log");
    uint32_t journal = object(scene, OBJECT_FILE, 0, 106, "/var/lib/shop/journal");
    uint32_t temporary = object(scene, OBJECT_FILE, 0, 107, "/tmp/shop-8f2a.tmp");
    uint32_t append = stack(scene, "libc:start_thread log_order libc:__GI___libc_write");
    uint32_t commit = stack(scene, "libc:start_thread log_order libc:fdatasync");
    uint32_t record = stack(scene, "libc:start_thread journal_put libc:__libc_pwrite64");
    uint32_t make = stack(scene, "libc:start_thread render libc:mkstemp64 libc:open64");
    uint32_t fill = stack(scene, "libc:start_thread render libc:__GI___libc_write");
    uint32_t drop = stack(scene, "libc:start_thread render libc:unlink");
    struct put calls[] = {
        {thread, append, log, "write", 3000, 20, 0.02, 100, 180, 0, 0, 0, 100, 100},
        {thread, commit, log, "fdatasync", 3001, 20, 8, 100, 0, 0, 0, 0, 0, 0, 0, 0, 61},
        {thread, record, journal, "pwrite64", 5100, 10, 4, 50, 512, 0, 0, CALL_SYNC, 50, 50},
        {thread, make, temporary, "openat", 5700, 2, 0.03, 40, 0, 0, 0, CALL_CREATES},
        {thread, fill, temporary, "write", 5700.2, 2, 0.015, 40, 900, 900},
        {thread, drop, object(scene, OBJECT_PATH, 0, 0xabc, "/tmp/shop-8f2a.tmp"), "unlink", 5700.4,
         2, 0.02, 40},
        {thread, fill, log, "write", 5900, 1, 0.01, 3, 0, 180, ENOSPC},
    };
    put_all(scene, calls, ARRAY_SIZE(calls));
}

/* A module that is looked for in four folders, 250 times: a thousand lookups in vain. */
static void lookups(struct scene *scene)
{
    static const char *const folders[] = {"/opt/shop/plugins", "/usr/local/lib/shop",
                                          "/usr/lib/shop", "/home/shop/.cache"};
    uint32_t search = stack(scene, "_start main find_plugin try_path libc:stat64");
    uint32_t open = stack(scene, "_start main find_plugin libc:open64");
    for (uint32_t i = 0; i < ARRAY_SIZE(folders); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/tax.so", folders[i]);
        struct put missing = {
            .thread = scene->main_thread,
            .stack = i < 3 ? search : open,
            .object = object(scene, OBJECT_PATH, 0, 0x1000 + i, path),
            .call = i < 3 ? "newfstatat" : "openat",
            .error = ENOENT,
            .start = 2700 + i * 0.1,
            .every = 1,
            .ms = 0.004,
            .count = 250,
        };
        put(scene, &missing);
    }
    struct put found = {.thread = scene->main_thread,
                        .stack = search,
                        .object = object(scene, OBJECT_PATH, 0, 0x2000, "/etc/shop/rules.json"),
                        .call = "newfstatat",
                        .start = 2390,
                        .every = 1,
                        .ms = 0.003,
                        .count = 20};
    put(scene, &found);
}

/* ---- peers ---- */

#define LOCAL_CLIENT (OBJECT_CLIENT | OBJECT_LOCAL)

static void peers(struct scene *scene)
{
    uint32_t thread = scene->main_thread;
    uint32_t database = object(scene, OBJECT_SOCKET, OBJECT_CLIENT, 201, "10.0.0.5:5432");
    uint32_t api = object(scene, OBJECT_SOCKET, OBJECT_CLIENT, 202, "93.184.216.34:80");
    uint32_t door = object(scene, OBJECT_SOCKET, OBJECT_LISTENING, 203, "0.0.0.0:8080");
    uint32_t set = object(scene, OBJECT_POLL_SET, 0, 204, "[eventpoll]");
    uint32_t cache = object(scene, OBJECT_SOCKET, LOCAL_CLIENT, 205, "127.0.0.1:6379");
    uint32_t ask = stack(scene, "_start main list_orders load_user PQexec libc:__libc_send");
    uint32_t hear = stack(scene, "_start main list_orders load_user PQexec libc:__libc_recv");
    uint32_t get = stack(scene, "_start main price_all fetch_price curl_perform libc:__libc_recv");
    uint32_t connect = stack(scene, "libc:start_thread warm_cache redis_connect libc:connect");
    uint32_t loop = stack(scene, "libc:start_thread serve libc:epoll_wait");
    struct put calls[] = {
        {thread, ask, database, "sendto", 6000, 1.2, 0.01, 412, 61},
        {thread, hear, database, "recvfrom", 6000.02, 1.2, 0.9, 412, 140, 16384},
        {thread, get, api, "recvfrom", 6500.1, 270, 260, 13, 800, 16384},
        {thread, get, api, "recvfrom", 6500, 270, 0.002, 13, 0, 16384, EAGAIN, CALL_NONBLOCK},
        {scene->worker, connect, cache, "connect", 6000, 5, 0.08, 40},
        {scene->worker, loop, set, "epoll_wait", 6300, 360, 350, 10},
        {scene->worker, loop, door, "accept4", 6650, 360, 0.01, 9},
        {scene->worker, loop, 0, "futex", 0, 300, 290, 10},
    };
    put_all(scene, calls, ARRAY_SIZE(calls));
}

static void device(struct scene *scene, enum device_op op, uint64_t count, uint64_t bytes,
                   double ms, double max_ms)
{
    struct device_info info = {254u << 20, op, STR("vda")};
    struct device_tally all = {.depth_max = op == DEVICE_READ ? 8 : 0,
                               .depth_ns = op == DEVICE_READ ? 3200u * (uint64_t)MS : 0};
    uint32_t id;
    made_check(sink_device(scene->world.made.sink, &info, &id), "device");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ns = (uint64_t)((i + 1 == count ? max_ms : ms) * MS),
                 start = world_ns(100 + (double)i);
        struct device_tally one = {1, bytes, ns, ns, start, start + ns, 0, 0, {0}, {0}};
        one.buckets[wait_bucket(ns)] = 1;
        one.sizes[call_size(bytes)] = 1;
        device_tally_add(&all, &one);
    }
    made_check(sink_device_add(scene->world.made.sink, id, &all), "device");
}

/* ---- requests ---- */

struct ask {
    enum request_protocol protocol;
    enum request_role role;
    uint32_t thread, stack;
    const char *peer, *text, *result;
    uint32_t connection;
    double start, every; /* of the first, and from one to the next */
    double first_byte_ms, ms;
    uint64_t count, bytes_out, bytes_in;
    uint32_t flags;   /* enum request_flag */
    bool different;   /* other parameters every time */
    bool each_anew;   /* a connection for each: `connection` is the first of them */
    bool first_fresh; /* the first was the connection's first */
};

static void ask(struct scene *scene, const struct ask *ask)
{
    struct made *made = &scene->world.made;
    struct request_info info = {ask->protocol,
                                ask->role,
                                ask->thread,
                                ask->stack,
                                made_text(made, ask->peer),
                                made_text(made, ask->text),
                                made_text(made, ask->result)};
    uint32_t row;
    made_check(sink_request(made->sink, &info, &row), "request");
    for (uint64_t i = 0; i < ask->count; i++) {
        bool reused = !ask->each_anew && (i > 0 || !ask->first_fresh);
        uint64_t start = world_ns(ask->start + (double)i * ask->every);
        uint64_t ns = (uint64_t)(ask->ms * MS + 0.5),
                 first = (uint64_t)(ask->first_byte_ms * MS + 0.5);
        struct request_event event = {
            .request = row,
            .connection = ask->connection + (ask->each_anew ? (uint32_t)i : 0),
            .start_ns = start,
            .first_byte_ns = start + first,
            .end_ns = start + ns,
            .bytes_out = ask->bytes_out,
            .bytes_in = ask->bytes_in,
            .parameters = ask->different ? 0x9e3779b97f4a7c15u * (i + 1) : 0,
            .flags = ask->flags | (reused ? REQUEST_REUSED : 0),
        };
        struct request_tally tally = {
            .count = 1,
            .total_ns = ns,
            .max_ns = ns,
            .first_byte_ns = first,
            .first_ns = start,
            .last_ns = start + ns,
            .bytes_out = ask->bytes_out,
            .bytes_in = ask->bytes_in,
            .failed = (ask->flags & REQUEST_FAILED) != 0,
            .reused = reused,
            .unanswered = (ask->flags & REQUEST_UNANSWERED) != 0,
            .parameters = ask->different,
        };
        tally.buckets[wait_bucket(ns)] = 1;
        made_check(sink_request_add(made->sink, row, &tally), "tally");
        made_check(sink_request_event(made->sink, &event), "event");
    }
}

static uint32_t connection(struct scene *scene, enum request_protocol protocol,
                           enum request_role role, const char *peer, const char *service,
                           double opened_ms, double closed_ms, uint64_t requests)
{
    struct connection_info info = {
        .process = scene->shop,
        .protocol = protocol,
        .role = role,
        .flags = opened_ms > 0 ? CONNECTION_FROM_START : 0,
        .opened_ns = opened_ms > 0 ? world_ns(opened_ms) : 0,
        .peer = str_from(peer),
        .service = str_from(service),
    };
    struct connection_end end = {.closed_ns = closed_ms > 0 ? world_ns(closed_ms) : 0,
                                 .flags = info.flags,
                                 .requests = requests,
                                 .bytes_out = requests * 60,
                                 .bytes_in = requests * 140};
    uint32_t id;
    made_check(sink_connection(scene->world.made.sink, &info, &id), "connection");
    made_check(sink_connection_end(scene->world.made.sink, id, &end), "end");
    return id;
}

/* The same statement 412 times, each with another parameter, and one that fails. */
static void statements(struct scene *scene)
{
    uint32_t database = connection(scene, REQUEST_POSTGRESQL, REQUEST_CLIENT, "10.0.0.5:5432",
                                   "shop", 0, 0, 415);
    struct ask user = {
        .protocol = REQUEST_POSTGRESQL,
        .role = REQUEST_CLIENT,
        .thread = scene->main_thread,
        .stack = stack(scene, "_start main list_orders load_user PQexec libc:__libc_send"),
        .peer = "10.0.0.5:5432",
        .text = "SELECT name, city FROM users WHERE id = ?",
        .result = "SELECT 1",
        .connection = database,
        .start = 6000,
        .every = 1.2,
        .first_byte_ms = 0.88,
        .ms = 0.92,
        .count = 412,
        .bytes_out = 61,
        .bytes_in = 140,
        .different = true,
    };
    ask(scene, &user);
    struct ask all = user;
    all.stack = stack(scene, "_start main list_orders PQexec libc:__libc_send");
    all.text = "SELECT * FROM orders WHERE state IN (?) ORDER BY id";
    all.result = "SELECT 412";
    all.start = 5995;
    all.first_byte_ms = 3;
    all.ms = 4.5;
    all.count = 2;
    all.every = 1000;
    all.bytes_in = 48000;
    ask(scene, &all);
    struct ask failed = user;
    failed.text = "INSERT INTO log VALUES (?, ?)";
    failed.result = "ERROR 23505";
    failed.flags = REQUEST_FAILED;
    failed.start = 6499;
    failed.count = 1;
    ask(scene, &failed);
}

/* 13 calls to one host, one after another, 3.5 s; one that fails, one that nobody answered. */
static void web_calls(struct scene *scene)
{
    uint32_t api = connection(scene, REQUEST_HTTP1, REQUEST_CLIENT, "93.184.216.34:80",
                              "api.example.org", 6499, 0, 15);
    struct ask price = {
        .protocol = REQUEST_HTTP1,
        .role = REQUEST_CLIENT,
        .thread = scene->main_thread,
        .stack = stack(scene, "_start main price_all fetch_price curl_perform libc:__libc_send"),
        .peer = "93.184.216.34:80",
        .text = "GET /prices/?",
        .result = "200",
        .connection = api,
        .start = 6500,
        .every = 270,
        .first_byte_ms = 255,
        .ms = 269,
        .count = 13,
        .bytes_out = 210,
        .bytes_in = 800,
        .different = true,
        .first_fresh = true,
    };
    ask(scene, &price);
    struct ask failed = price;
    failed.text = "POST /orders";
    failed.result = "503";
    failed.flags = REQUEST_FAILED;
    failed.start = 6500 + 13 * 270;
    failed.ms = 12;
    failed.first_byte_ms = 11;
    failed.count = 1;
    failed.different = failed.first_fresh = false;
    ask(scene, &failed);
    struct ask open = failed;
    open.text = "GET /stock";
    open.result = "";
    open.flags = REQUEST_UNANSWERED;
    open.start = 9950;
    open.ms = open.first_byte_ms = 50;
    open.bytes_in = 0;
    ask(scene, &open);
}

/* A connection for every request, statements of a library, and what the shop itself answers. */
static void other_requests(struct scene *scene)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t id = connection(scene, REQUEST_REDIS, REQUEST_CLIENT, "127.0.0.1:6379", "",
                                 6000 + i * 5, 6001 + i * 5, 1);
        first = first ? first : id;
    }
    struct ask cached = {
        .protocol = REQUEST_REDIS,
        .role = REQUEST_CLIENT,
        .thread = scene->worker,
        .stack = stack(scene, "libc:start_thread warm_cache redis_get libc:__libc_send"),
        .peer = "127.0.0.1:6379",
        .text = "GET ?",
        .connection = first,
        .start = 6000.2,
        .every = 5,
        .first_byte_ms = 0.25,
        .ms = 0.3,
        .count = 40,
        .bytes_out = 30,
        .bytes_in = 90,
        .different = true,
        .each_anew = true,
    };
    ask(scene, &cached);
    uint32_t library = connection(scene, REQUEST_SQLITE, REQUEST_INSIDE, "/var/lib/shop/orders.db",
                                  "", 0, 0, 25);
    struct ask inside = {
        .protocol = REQUEST_SQLITE,
        .role = REQUEST_INSIDE,
        .thread = scene->main_thread,
        .stack = stack(scene, "_start main find_order sqlite3_step"),
        .peer = "/var/lib/shop/orders.db",
        .text = "SELECT total FROM orders WHERE id = ?",
        .connection = library,
        .start = 700,
        .every = 64,
        .first_byte_ms = 30,
        .ms = 31,
        .count = 25,
        .different = true,
    };
    ask(scene, &inside);
    uint32_t door = connection(scene, REQUEST_HTTP1, REQUEST_SERVER, "0.0.0.0:8080", "shop.test",
                               6650, 9900, 9);
    struct ask served = {
        .protocol = REQUEST_HTTP1,
        .role = REQUEST_SERVER,
        .thread = scene->worker,
        .stack = stack(scene, "libc:start_thread serve handle libc:__libc_recv"),
        .peer = "0.0.0.0:8080",
        .text = "GET /cart/?",
        .result = "200",
        .connection = door,
        .start = 6650.1,
        .every = 360,
        .first_byte_ms = 8,
        .ms = 9,
        .count = 9,
        .bytes_out = 5000,
        .bytes_in = 300,
        .different = true,
        .first_fresh = true,
    };
    ask(scene, &served);
}

/* ---- the recording ---- */

static void documents(struct scene *scene, const char *scope)
{
    char target[160];
    snprintf(target, sizeof(target),
             "{\"scope\": \"%s\", \"pid\": 4711, \"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
             "}",
             scope, world_ns(0), world_ns(SPAN_MS));
    world_document(&scene->world, "target", target);
    world_document(&scene->world, "fingerprint", "{\"kernel\": {\"arch\": \"x86_64\"}}");
    world_document(
        &scene->world, "io",
        scene->blind
            ? "{\"tier\": \"user\", \"why_not_higher\": \"not root\", \"stacks\": true,"
              " \"requests\": true, \"na\": [{\"what\": \"devices\", \"reason\": \"the user tier"
              " sees calls only\"}, {\"what\": \"page cache\", \"reason\": \"only the kernel"
              " knows\"}]}"
            : "{\"tier\": \"kernel\", \"stacks\": true, \"requests\": true, \"na\": [{\"what\":"
              " \"bytes of sendfile and splice by peer\", \"reason\": \"they do not pass through"
              " the program\"}]}");
}

static void files_document(struct scene *scene)
{
    world_document(
        &scene->world, "files",
        "{\"schema\": 1, \"files\": ["
        "{\"object\": 1, \"path\": \"/var/lib/shop/catalog.bin\", \"size_bytes\": 67108864,"
        " \"filesystem\": \"ext4\", \"mount\": \"/\", \"free_pct\": 4.5, \"extents\": 3,"
        " \"shared_extents\": 0, \"cow\": false, \"folder_entries\": 6},"
        "{\"object\": 2, \"path\": \"/var/lib/shop/orders.db\", \"size_bytes\": 1073741824,"
        " \"filesystem\": \"btrfs\", \"mount\": \"/var\", \"free_pct\": 40, \"extents\": 21840,"
        " \"shared_extents\": 12, \"cow\": true, \"folder_entries\": 6},"
        "{\"object\": 3, \"path\": \"/etc/shop/rules.json\", \"size_bytes\": 12000,"
        " \"filesystem\": \"ext4\", \"mount\": \"/\", \"free_pct\": 4.5, \"extents\": 1,"
        " \"cow\": false, \"folder_entries\": 10001, \"na\": {\"shared_extents\": \"not told\"}}"
        "]}");
}

static void counters(struct scene *scene)
{
    static const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } rows[] = {
        {"io.calls", UNIT_COUNT, 5348},
        {"io.stacks_recognised", UNIT_COUNT, 6209},
        {"io.stacks_copied", UNIT_COUNT, 39},
        {"io.stacks_walked", UNIT_COUNT, 39},
        {"io.stacks_complete", UNIT_COUNT, 38},
        {"io.folded", UNIT_COUNT, 0},
        {"io.own_ns", UNIT_NS, 31 * (uint64_t)MS},
        {"io.kernel_ns", UNIT_NS, 12 * (uint64_t)MS},
        {"io.requests", UNIT_COUNT, 504},
        {"io.requests.unanswered", UNIT_COUNT, 1},
        {"io.requests.events_left_out", UNIT_COUNT, 0},
        {"io.requests.hopped", UNIT_COUNT, 2},
        {"io.connections", UNIT_COUNT, 44},
        {"io.connections.unknown", UNIT_COUNT, 1},
        {"io.connections.broken", UNIT_COUNT, 0},
        {"loss.io_ring_full", UNIT_COUNT, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        made_check(sink_counter(scene->world.made.sink, rows[i].name, rows[i].unit, rows[i].value),
                   "counter");
}

static void program(struct scene *scene)
{
    struct made *made = &scene->world.made;
    scene->shop = made_process(made, 4711, "/opt/shop/bin/shop", "shop --port 8080");
    scene->main_thread = world_thread(&scene->world, scene->shop, 4711, "shop", 0, 0);
    scene->worker = world_thread(&scene->world, scene->shop, 4712, "worker", 0, 0);
    world_images(&scene->world, "/opt/shop/bin/shop", "0123456789abcdef");
    made_series(made, "io", SERIES_SUM, UNIT_NS);
}

static void plain_make(struct scene *scene, const char *scope, bool requests)
{
    program(scene);
    files_read(scene);
    files_written(scene);
    lookups(scene);
    peers(scene);
    if (!scene->blind) {
        device(scene, DEVICE_READ, 1864, 40000, 0.3, 25);
        device(scene, DEVICE_WRITE, 190, 6000, 1.5, 30);
        device(scene, DEVICE_FLUSH, 150, 0, 5, 60);
    }
    if (requests) {
        statements(scene);
        web_calls(scene);
        other_requests(scene);
    }
    documents(scene, scope);
    files_document(scene);
    counters(scene);
}

static void empty_make(struct scene *scene)
{
    program(scene);
    documents(scene, "command");
}

static void bare_make(struct scene *scene)
{
    struct thread_info nameless = {.tid = 1, .start_ns = world_ns(0)};
    struct put call = {.start = 1, .ms = 2, .count = 1, .call = "sync"};
    made_check(
        sink_process(scene->world.made.sink, &(struct process_info){.pid = 1}, &nameless.process),
        "process");
    made_check(sink_thread(scene->world.made.sink, &nameless, &call.thread), "thread");
    made_series(&scene->world.made, "io", SERIES_SUM, UNIT_NS);
    put(scene, &call);
}

static void hostile_make(struct scene *scene)
{
    static const char *const names[] = {
        "</script><script>alert(1)</script>", "\x1b[31mred\x1b[0m\x1b]0;title\x07",
        "two\nlines\r|_cell_|_`code`_]]>",    "\xff\xfe_not_UTF-8_\xc3",
        "--stack=w1;_rm_-rf_$HOME",
    };
    program(scene);
    for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint32_t owner = world_thread(&scene->world, scene->shop, 5000 + i, names[i], 0, 0);
        uint32_t at = stack(scene, names[i]);
        enum object_kind kind = i % 2 ? OBJECT_SOCKET : OBJECT_FILE;
        struct put calls[] = {
            {owner, at, object(scene, kind, 0, 50 + i, names[i]), "read", i * 10, 0, 5 - i, 3, 100},
            {owner, at, object(scene, OBJECT_PATH, 0, 90 + i, names[i]), "openat", i * 10 + 6, 0,
             0.01, 3, 0, 0, ENOENT},
        };
        put_all(scene, calls, ARRAY_SIZE(calls));
        struct ask asked = {.protocol = REQUEST_HTTP1,
                            .role = REQUEST_CLIENT,
                            .thread = owner,
                            .stack = at,
                            .peer = names[i],
                            .text = names[i],
                            .result = names[i],
                            .connection = connection(scene, REQUEST_HTTP1, REQUEST_CLIENT, names[i],
                                                     names[i], 1, 0, 4),
                            .start = 100 + i * 50,
                            .every = 10,
                            .first_byte_ms = 5,
                            .ms = 9,
                            .count = 4};
        ask(scene, &asked);
    }
    documents(scene, "command");
}

int main(int argc, char **argv)
{
    struct why why = {0};
    struct recording_writer *writer = NULL;
    struct recording_opts opts = {.version = "test", .clock_ns = clock_zero};
    if (argc != 3 || recording_create(argv[2], &opts, &writer, &why) < 0) {
        fprintf(stderr, "make-io KIND FILE: %s\n", why.what);
        return 2;
    }
    struct scene scene = {.world.made = {.sink = recording_writer_sink(writer)}};
    scene.blind = strcmp(argv[1], "user") == 0;
    if (strcmp(argv[1], "machine") == 0)
        plain_make(&scene, "system", true);
    else if (strcmp(argv[1], "calls") == 0)
        plain_make(&scene, "command", false);
    else if (strcmp(argv[1], "empty") == 0)
        empty_make(&scene);
    else if (strcmp(argv[1], "bare") == 0)
        bare_make(&scene);
    else if (strcmp(argv[1], "hostile") == 0)
        hostile_make(&scene);
    else
        plain_make(&scene, "command", true);
    int r = recording_writer_finish(writer, &why);
    recording_writer_close(writer);
    if (r < 0)
        fprintf(stderr, "make-io: %s\n", why.what);
    return r < 0;
}
