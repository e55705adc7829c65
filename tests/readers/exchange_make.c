/* Makes a recording with everything that an exporter has to get right, so that what other
 * programs read from the exports can be compared with the recording's own tables:
 *
 *     exchange_make FILE [plain|hostile]
 *
 * Inlined functions, recursion, kernel frames, code without names, samples without a stack,
 * equal names in two images, three threads in two processes, unequal weights. "hostile" adds
 * names that mean something in one of the formats. */
#include "store/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sink *sink;
static uint32_t app, library, kernel_image;

static void must(int r, const char *what)
{
    if (r < 0) {
        fprintf(stderr, "exchange_make: %s: %s\n", what, strerror(-r));
        exit(1);
    }
}

static uint32_t text(struct str s)
{
    uint32_t id = 0;
    if (s.len > 0)
        must(sink_text(sink, s, &id), "text");
    return id;
}

static uint32_t function_at(struct str name, const char *linkage, const char *file, uint32_t line,
                            uint32_t image, uint64_t address)
{
    struct function_info info = {
        .name = text(name),
        .linkage = text(str_from(linkage)),
        .file = text(str_from(file)),
        .line = line,
        .image = image,
        .address = address,
        .size_bytes = address ? 64 : 0,
    };
    uint32_t id;
    must(sink_function(sink, &info, &id), "function");
    return id;
}

static uint32_t frame_at(enum frame_kind kind, uint32_t image, uint64_t address)
{
    struct frame_info info = {.kind = kind, .image = image, .address = address};
    uint32_t id;
    if (kind == FRAME_UNKNOWN)
        info = (struct frame_info){.kind = kind, .reason = 1};
    must(sink_frame(sink, &info, &id), "frame");
    return id;
}

static void place(uint32_t frame, uint32_t depth, uint32_t function, const char *file,
                  uint32_t line)
{
    struct location_info info = {frame, depth, function, text(str_from(file)), line};
    must(sink_location(sink, &info), "location");
}

static uint32_t push(uint32_t parent, uint32_t frame)
{
    uint32_t id;
    must(sink_stack(sink, parent, frame, &id), "stack");
    return id;
}

static uint32_t thread_of(uint32_t process, uint32_t tid, const char *name)
{
    uint32_t id;
    struct thread_info info = {.process = process, .tid = tid, .name = str_from(name)};
    must(sink_thread(sink, &info, &id), "thread");
    return id;
}

static uint64_t now_ns = 5000000000;

static void give(uint32_t series, uint32_t thread, uint32_t stack, unsigned count, uint64_t weight)
{
    for (unsigned i = 0; i < count; i++) {
        now_ns += 1000000;
        struct sample sample = {series, thread, stack, now_ns, weight + i % 3};
        must(sink_sample(sink, &sample), "sample");
    }
}

static uint32_t image_of(enum image_kind kind, const char *path, const char *build_id)
{
    uint32_t id;
    struct image_info info = {kind, str_from(path), str_from(build_id), 4096};
    must(sink_image(sink, &info, &id), "image");
    return id;
}

struct threads {
    uint32_t main, worker, other;
};

static void plain(uint32_t cpu, const struct threads *threads)
{
    uint32_t main_ = function_at(STR("main"), "main", "/src/app.c", 100, app, 0x1000);
    uint32_t parse = function_at(STR("parse(int)"), "_Z5parsei", "/src/parse.cc", 10, app, 0x1100);
    uint32_t step = function_at(STR("step<4>"), "_Z4stepILi4EEvv", "/src/step.h", 5, app, 0);
    uint32_t loop = function_at(STR("loop"), "loop", "/src/app.c", 30, app, 0x1200);
    uint32_t twin = function_at(STR("twin"), "twin", "/src/twin.c", 7, app, 0x1300);
    uint32_t twin2 = function_at(STR("twin"), "twin", "/lib/twin.c", 9, library, 0x700);
    uint32_t enter = function_at(STR("do_syscall_64"), "do_syscall_64", "", 0, kernel_image, 0);

    uint32_t main_frame = frame_at(FRAME_USER, app, 0x1010);
    place(main_frame, 0, main_, "/src/app.c", 104);
    uint32_t parse_frame = frame_at(FRAME_USER, app, 0x1110);
    place(parse_frame, 0, step, "/src/step.h", 6); /* step<4>, inlined into parse */
    place(parse_frame, 1, parse, "/src/parse.cc", 14);
    uint32_t parse_self = frame_at(FRAME_USER, app, 0x1120);
    place(parse_self, 0, parse, "/src/parse.cc", 17);
    uint32_t loop_frame = frame_at(FRAME_USER, app, 0x1210);
    place(loop_frame, 0, loop, "/src/app.c", 33);
    uint32_t twin_frame = frame_at(FRAME_USER, app, 0x1310);
    place(twin_frame, 0, twin, "/src/twin.c", 8);
    uint32_t twin2_frame = frame_at(FRAME_USER, library, 0x710);
    place(twin2_frame, 0, twin2, "/lib/twin.c", 12);
    uint32_t kernel_frame = frame_at(FRAME_KERNEL, kernel_image, 0xffffffff81000010);
    place(kernel_frame, 0, enter, "", 0);
    uint32_t nameless = frame_at(FRAME_USER, library, 0x900);
    uint32_t unknown = frame_at(FRAME_UNKNOWN, 0, 0);

    uint32_t root = push(0, main_frame);
    give(cpu, threads->main, push(root, parse_frame), 50, 1000000);
    give(cpu, threads->worker, push(root, parse_self), 20, 999000);
    /* loop calls loop calls loop, and once more below twin. */
    uint32_t deep = push(push(push(root, loop_frame), loop_frame), loop_frame);
    give(cpu, threads->main, deep, 12, 1000001);
    give(cpu, threads->other, push(push(deep, twin_frame), loop_frame), 8, 500000);
    give(cpu, threads->worker, push(root, twin2_frame), 9, 1100000);
    give(cpu, threads->worker, push(push(root, parse_self), kernel_frame), 7, 1000000);
    give(cpu, threads->other, push(root, nameless), 5, 1000000);
    give(cpu, threads->other, push(push(0, unknown), loop_frame), 4, 1000000);
    give(cpu, 0, 0, 3, 1000000);
}

static void hostile(uint32_t cpu, const struct threads *threads)
{
    char *huge = malloc(100001);
    if (!huge)
        exit(1);
    memset(huge, 'x', 100000);
    huge[100000] = '\0';
    const struct str names[] = {
        STR("<script>alert(1)</script>"),
        STR("semi;colon;[u8; 4]"),
        STR("new\nline\r\n\tand tab"),
        STR("\033[31mred\033[0m"),
        STR("not \xff\xfe utf-8 \xc3"),
        STR("(7)"),
        STR("# comment"),
        STR("fn=(1) evil"),
        STR("ends with a number 12"),
        STR(" leading and trailing "),
        STR("quote\" back\\slash"),
        STR("nul\0inside"),
        STR("\xe2\x80\xae right to left"),
        STR("[main:3 @ foo]"),
        STR("a:1:0"),
        str_from(huge),
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint32_t id = function_at(names[i], "", "/src/\"odd\";\nfile.c", 3, app, 0x4000 + i * 64);
        uint32_t frame = frame_at(FRAME_USER, app, 0x4010 + i * 64);
        place(frame, 0, id, "/src/\"odd\";\nfile.c", 4);
        give(cpu, threads->main, push(push(0, frame), frame), 2, 1000 + i);
    }
    free(huge);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    struct recording_writer *writer = NULL;
    struct recording_opts opts = {.version = "test"};
    struct why why = {0};
    must(recording_create(argv[1], &opts, &writer, &why), why.what);
    sink = recording_writer_sink(writer);
    struct process_info server = {
        .pid = 100, .exe = STR("/opt/app"), .command = STR("app --serve")};
    struct process_info helper = {.pid = 200, .exe = STR("/opt/app"), .command = STR("app --help")};
    uint32_t first, second, cpu;
    must(sink_process(sink, &server, &first), "process");
    must(sink_process(sink, &helper, &second), "process");
    struct threads threads = {thread_of(first, 100, "app"), thread_of(first, 101, "worker-1"),
                              thread_of(second, 200, "worker-2")};
    app = image_of(IMAGE_FILE, "/opt/app", "0123456789abcdef0123456789abcdef01234567");
    library = image_of(IMAGE_FILE, "/opt/lib/libfoo.so.1", "");
    kernel_image = image_of(IMAGE_KERNEL, "[kernel]", "");
    struct series_info info = {"cpu", SERIES_SUM, UNIT_NS, "time on a CPU"};
    must(sink_series(sink, &info, &cpu), "series");
    plain(cpu, &threads);
    if (argc > 2 && strcmp(argv[2], "hostile") == 0)
        hostile(cpu, &threads);
    must(sink_counter(sink, "cpu.samples", UNIT_COUNT, 118), "counter");
    must(recording_writer_finish(writer, &why), why.what);
    recording_writer_close(writer);
    return 0;
}
