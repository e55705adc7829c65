/* Writes a picture of a tree made by hand, for readers that nobody here wrote:
 *
 *     picture TREE FORMAT        TREE: plain, hostile, diff, work, large, deep, wordy, empty
 *                                FORMAT: flame, icicle, html, or tree: what is in it, as JSON */
#include "base/jsonw.h"
#include "made_tree.h"
#include "model/value.h"
#include "present/flame.h"
#include "present/html.h"

#include <stdio.h>
#include <string.h>

enum { MS = 1000000, LARGE_NODES = 1000000, DEEP_LEVELS = 6000 };

struct row {
    int depth; /* below the row before it that is one less deep */
    struct made_node node;
};

static const char lib[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
static const char z[] = "/usr/lib/x86_64-linux-gnu/libz.so.1";

static const struct row plain[] = {
    {1, {.name = "_start", .file = "../sysdeps/x86_64/start.S", .line = 115}},
    {2, {.name = "__libc_start_main", .image = lib}},
    {3, {.name = "main", .file = "src/main.cc", .line = 41, .self = 12 * MS}},
    {4,
     {.name = "ledger::Book::parse(std::string_view)",
      .file = "src/book.cc",
      .line = 88,
      .self = 90 * MS}},
    {5,
     {.name = "ledger::Tokenizer::next()",
      .file = "src/tokens.cc",
      .line = 17,
      .inlined = true,
      .self = 310 * MS}},
    {6, {.name = "__memchr_avx2", .image = lib, .self = 140 * MS}},
    {5,
     {.name = "std::__cxx11::basic_string<char>::_M_append(char const*, unsigned long)",
      .image = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
      .self = 60 * MS}},
    {6, {.name = "malloc", .image = lib, .self = 55 * MS}},
    {7, {.name = "_int_malloc", .image = lib, .self = 80 * MS}},
    {8, {.name = "asm_exc_page_fault", .kind = MADE_KERNEL, .self = 4 * MS}},
    {9, {.name = "exc_page_fault", .kind = MADE_KERNEL, .self = 6 * MS}},
    {10, {.name = "handle_mm_fault", .kind = MADE_KERNEL, .self = 31 * MS}},
    {11, {.name = "clear_page_erms", .kind = MADE_KERNEL, .self = 44 * MS}},
    {4,
     {.name = "ledger::Book::balance(ledger::Account const&)",
      .file = "src/balance.cc",
      .line = 203,
      .self = 420 * MS}},
    {5, {.name = "std::map<std::string, ledger::Money>::find", .inlined = true, .self = 260 * MS}},
    {6, {.name = "__memcmp_avx2_movbe", .image = lib, .self = 190 * MS}},
    {5,
     {.name = "round_half_even",
      .file = "src/money.cc",
      .line = 9,
      .inlined = true,
      .self = 75 * MS}},
    {4, {.name = "script_run", .image = "/usr/lib/libvm.so", .self = 20 * MS}},
    {5, {.name = "py::report.render", .kind = MADE_JIT, .self = 110 * MS}},
    {6, {.name = "py::report.row", .kind = MADE_JIT, .self = 130 * MS}},
    {7, {.name = "[unknown: no symbol]", .kind = MADE_UNKNOWN, .self = 66 * MS}},
    {4, {.name = "deflate_stored", .image = z, .self = 35 * MS}},
    {5, {.name = "longest_match", .image = z, .self = 97 * MS}},
    {4, {.name = "write", .image = lib, .self = 2 * MS}},
    {5, {.name = "entry_SYSCALL_64_after_hwframe", .kind = MADE_KERNEL, .self = 3 * MS}},
    {6, {.name = "do_syscall_64", .kind = MADE_KERNEL, .self = 2 * MS}},
    {7, {.name = "ksys_write", .kind = MADE_KERNEL, .self = 9 * MS}},
    {8, {.name = "ext4_file_write_iter", .kind = MADE_KERNEL, .self = 38 * MS}},
    {1, {.name = "clone3", .image = lib}},
    {2, {.name = "start_thread", .image = lib}},
    {3, {.name = "worker_main", .file = "src/pool.cc", .line = 30, .self = 18 * MS}},
    {4, {.name = "crc32_z", .image = z, .self = 210 * MS}},
    {4, {.name = "sleepy", .file = "src/pool.cc", .line = 77, .self = 1}},
};

static const struct row earlier[] = {
    {1, {.name = "_start"}},
    {2, {.name = "__libc_start_main", .image = lib}},
    {3, {.name = "main", .self = 12 * MS}},
    {4, {.name = "ledger::Book::parse(std::string_view)", .self = 90 * MS}},
    {5, {.name = "ledger::Tokenizer::next()", .inlined = true, .self = 120 * MS}},
    {6, {.name = "__memchr_avx2", .image = lib, .self = 150 * MS}},
    {5, {.name = "lookup<slow>", .self = 77 * MS}},
    {4, {.name = "ledger::Book::balance(ledger::Account const&)", .self = 800 * MS}},
    {5, {.name = "std::map<std::string, ledger::Money>::find", .inlined = true, .self = 300 * MS}},
    {6, {.name = "__memcmp_avx2_movbe", .image = lib, .self = 170 * MS}},
    {1, {.name = "clone3", .image = lib}},
    {2, {.name = "start_thread", .image = lib}},
    {3, {.name = "worker_main", .self = 18 * MS}},
    {4, {.name = "crc32_z", .image = z, .self = 200 * MS}},
};

static char huge[100000];

static const struct row hostile[] = {
    {1, {.name = "<script>alert(1)</script>", .self = 40 * MS, .file = "</script><!--", .line = 1}},
    {2, {.name = "]]>", .self = 30 * MS, .image = "\"><svg onload=alert(1)>"}},
    {2, {.name = "\"quotes\" 'and' &amp; entities", .self = 30 * MS}},
    {3, {.name = "\033[31mred\033[0m", .self = 10 * MS}},
    {3, {.name = "\001\002\037\177", .self = 10 * MS}},
    {1, {.name = "\xff\xfe\xc0\xaf bytes", .self = 30 * MS, .file = "\xed\xa0\x80.c", .line = 2}},
    {2, {.name = "\xef\xbf\xbf\xef\xbf\xbe not characters", .self = 20 * MS}},
    {2, {.name = "line one\nline two\r\n\ttabbed", .self = 20 * MS}},
    {1, {.name = "\xe2\x80\xa8separators\xe2\x80\xa9\xe2\x80\xaereversed", .self = 40 * MS}},
    {2, {.name = "</title></g></svg><script>alert(2)</script>", .self = 20 * MS}},
    {2, {.name = "<!-- comment -- >", .self = 20 * MS}},
    {1, {.name = "数字の関数はとても長い名前を持っています", .self = 30 * MS}},
    {2, {.name = huge, .name_len = sizeof(huge), .self = 25 * MS, .image = "x\0y"}},
    {2, {.name = "", .self = 15 * MS}},
    {2, {.name = "nul\0inside", .name_len = 10, .self = 15 * MS}},
    {1, {.name = "${alert(3)} `x` \\u003c \\", .self = 30 * MS}},
};

static void add_rows(struct made_tree *made, const struct row *rows, size_t count)
{
    uint32_t at[16] = {0};
    for (size_t i = 0; i < count; i++)
        at[rows[i].depth] = made_tree_add(made, at[rows[i].depth - 1], rows[i].node);
}

/* A million nodes with a few heavy ones, as a busy machine gives them: each node hangs below
 * one a third of its number, so that there are about a dozen levels. */
static void add_large(struct made_tree *made)
{
    static char names[4096][24];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        snprintf(names[i], sizeof(names[i]), "function_%zu", i);
    uint64_t random = 88172645463325252u;
    for (uint32_t i = 1; i < LARGE_NODES; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t self = random % 1000 < 3 ? random % (1000 * MS) : random % 1000;
        made_tree_add(made, i / 3,
                      (struct made_node){.name = names[random % ARRAY_SIZE(names)], .self = self});
    }
}

static void add_deep(struct made_tree *made)
{
    uint32_t at = 0;
    for (int i = 0; i < DEEP_LEVELS; i++)
        at = made_tree_add(made, at, (struct made_node){.name = "recurse"});
    made_tree_add(made, at, (struct made_node){.name = "bottom", .self = 100 * MS});
}

/* Long names that are all different, with what grows most when it is escaped. */
static void add_wordy(struct made_tree *made)
{
    memset(huge, '<', sizeof(huge));
    for (size_t i = 0; i < 9999; i++)
        made_tree_add(made, 0,
                      (struct made_node){.name = huge + i,
                                         .name_len = 5000 + i,
                                         .file = "src/wordy.cc",
                                         .line = (uint32_t)i,
                                         .self = MS});
}

static struct value hotspots(struct arena *arena, const struct call_tree *tree)
{
    static const struct column columns[] = {
        {"id", "id", SHOW_ALWAYS, false, false},
        {"self_ms", "self", SHOW_ALWAYS, true, false},
        {"self_pct", "self %", SHOW_ALWAYS, true, false},
        {"total_ms", "total", SHOW_ALWAYS, true, false},
        {"function", "function", SHOW_ALWAYS, false, true},
        {"file", "file", SHOW_ALWAYS, false, false},
        {"raw", "raw", SHOW_MACHINE, false, false},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 1; i < MIN(tree->count, (size_t)200); i++) {
        const struct call_node *node = &tree->nodes[i];
        const struct profile_function *function = &tree->profile->functions[node->function];
        struct table_row *row = table_add(&table);
        if (!row)
            abort();
        row->cells[0] = value_str(str_from(arena_printf(arena, "f%zu", i)));
        row->cells[1] = value_real((double)node->self_weight / MS, UNIT_MS);
        row->cells[2] = value_real(
            (double)node->self_weight / (double)tree->nodes[0].total_weight * 100, UNIT_PERCENT);
        row->cells[3] = value_real((double)node->total_weight / MS, UNIT_MS);
        row->cells[4] = value_str(function->name);
        row->cells[5] = function->file.len > 0 ? value_str(function->file)
                                               : value_na("no debug information");
        row->cells[6] = value_uint(i, UNIT_NONE);
    }
    return table;
}

static void put_tree(const struct call_tree *tree, FILE *out)
{
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_array_begin(&json);
    for (size_t i = 0; i < tree->count; i++) {
        const struct call_node *node = &tree->nodes[i];
        jsonw_object_begin(&json);
        jsonw_key(&json, "parent");
        jsonw_u64(&json, node->parent);
        jsonw_key(&json, "depth");
        jsonw_u64(&json, node->depth);
        jsonw_key(&json, "total");
        jsonw_u64(&json, node->total_weight);
        jsonw_key(&json, "self");
        jsonw_u64(&json, node->self_weight);
        jsonw_key(&json, "count");
        jsonw_u64(&json, node->total_count);
        jsonw_key(&json, "name");
        struct str name = tree->profile->functions[node->function].name;
        jsonw_text(&json, (struct str){name.data, MIN(name.len, (size_t)2000)});
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
}

static int write_picture(const char *format, const struct call_tree *tree,
                         const struct call_tree *before, double scale, struct why *why)
{
    static const char honesty_line[] =
        "2,841 samples, 99.6% complete, 0.4% truncated, 0 lost, 0 throttled; sampled CPU time "
        "2.84 s of 2.86 s by rusage; overhead 0.6%";
    const char *title = strcmp(format, "html") == 0 ? "ledger --year 2026 <books>"
                                                    : "ledger --year 2026 <books>: CPU time";
    if (strcmp(format, "html") == 0) {
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct value table = hotspots(&arena, tree);
        struct value honesty = value_text(honesty_line);
        struct html_opts opts = {title, &honesty, &table, NULL, tree, before, scale};
        return html_write(&opts, stdout, why);
    }
    struct flame_opts opts = {
        .title = title, .subtitle = honesty_line, .icicle = strcmp(format, "icicle") == 0};
    return flame_svg(&opts, tree, before, scale, stdout, why);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    bool compares = strcmp(argv[1], "diff") == 0 || strcmp(argv[1], "work") == 0;
    AUTO(made_tree_deinit) struct made_tree made;
    AUTO(made_tree_deinit) struct made_tree made_before;
    made_tree_init(&made);
    made_tree_init(&made_before);
    memset(huge, 'h', sizeof(huge));
    if (strcmp(argv[1], "plain") == 0 || compares)
        add_rows(&made, plain, ARRAY_SIZE(plain));
    else if (strcmp(argv[1], "hostile") == 0)
        add_rows(&made, hostile, ARRAY_SIZE(hostile));
    else if (strcmp(argv[1], "large") == 0)
        add_large(&made);
    else if (strcmp(argv[1], "deep") == 0)
        add_deep(&made);
    else if (strcmp(argv[1], "wordy") == 0)
        add_wordy(&made);
    else if (strcmp(argv[1], "empty") != 0)
        return 2;
    if (compares)
        add_rows(&made_before, earlier, ARRAY_SIZE(earlier));
    struct call_tree tree = made_tree_finish(&made);
    struct call_tree before = made_tree_finish(&made_before);
    if (strcmp(argv[2], "tree") == 0) {
        put_tree(&tree, stdout);
        return 0;
    }
    struct why why = {0};
    int r = write_picture(argv[2], &tree, compares ? &before : NULL,
                          strcmp(argv[1], "work") == 0 ? 1.0 : 0, &why);
    if (r < 0)
        fprintf(stderr, "%s (%s)\n", why.what, why.remedy);
    return r < 0 ? 1 : 0;
}
