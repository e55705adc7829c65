/* Rows of calls added up by call, file, peer, place and name: every call once in each, what is idle
 * among the calls only. */
#include "unit.h"

#include "analyze/io_facts.h"
#include "analyze/io_sums.h"
#include "made_io.h"

#include <errno.h>

static struct arena arena;

static struct io_sums sums_of(struct made_io *made)
{
    struct io_sums sums;
    assert_int_equal(io_sums_build(&arena, &made->io, &sums), 0);
    return sums;
}

static void end(struct made_io *made)
{
    arena_deinit(&arena);
    arena = ARENA_INIT;
    free(made);
}

static const struct io_syscall *call_named(const struct io_sums *sums, const char *name)
{
    for (size_t i = 0; i < sums->syscall_count; i++)
        if (sums->syscalls[i].syscall == made_io_syscall(name))
            return &sums->syscalls[i];
    return NULL;
}

static const struct io_file *file_of(const struct io_sums *sums, uint32_t object)
{
    for (size_t i = 0; i < sums->file_count; i++)
        if (sums->files[i].object == object)
            return &sums->files[i];
    return NULL;
}

static void calls_are_added_up_over_threads_stacks_and_objects_with_errors_by_errno(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    uint32_t a = made_io_object(made, OBJECT_FILE, 0, "/a");
    uint32_t b = made_io_object(made, OBJECT_FILE, 0, "/b");
    made_io_call(made, 1, 1, "read", a, 10, 1, 100);
    made_io_call(made, 2, 2, "read", b, 5, 3, 50);
    made_io_call(made, 1, 1, "read", a, 7, 0.5, 0)->info.error = EAGAIN;
    made_io_call(made, 1, 1, "read", a, 9, 0.5, 0)->info.error = EINTR;
    made_io_call(made, 1, 1, "write", a, 1, 1, 10)->info.error = EAGAIN;
    struct io_sums sums = sums_of(made);
    const struct io_syscall *read = call_named(&sums, "read");
    assert_ptr_equal(read, &sums.syscalls[0]); /* the longest first */
    assert_int_equal(read->tally.count, 31);
    assert_int_equal(read->tally.bytes, 1250);
    assert_int_equal(read->tally.total_ns, made_io_ns(33));
    assert_int_equal(read->tally.max_ns, made_io_ns(3));
    assert_int_equal(read->errors, 16);
    assert_int_equal(read->error_count, 2);
    const struct io_error *errors = &sums.errors[read->error_first];
    assert_int_equal(errors[0].error, EINTR);
    assert_int_equal(errors[0].count, 9);
    assert_int_equal(errors[1].error, EAGAIN);
    assert_int_equal(errors[1].count, 7); /* not the write's */
    assert_int_equal(sums.calls, 32);
    assert_int_equal(sums.calls_ns, made_io_ns(34));
    assert_int_equal(sums.threads, 2);
    end(made);
}

static void a_thread_is_one_whatever_it_was_called(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    uint32_t a = made_io_object(made, OBJECT_FILE, 0, "/a");
    made->threads[1].life = made->threads[3].life = 3;
    for (uint32_t thread = 1; thread <= 3; thread++)
        made_io_call(made, thread, 1, "read", a, 10, 1, 100);
    struct io_sums sums = sums_of(made);
    assert_int_equal(sums.threads, 2);
    assert_int_equal(sums.sites[0].threads, 2);
    end(made);
}

static void what_is_idle_is_a_call_but_ranks_no_file_peer_or_place(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    uint32_t server = made_io_object(made, OBJECT_SOCKET, OBJECT_SERVER, "0.0.0.0:80");
    uint32_t door = made_io_object(made, OBJECT_SOCKET, OBJECT_LISTENING, "0.0.0.0:80");
    uint32_t client = made_io_object(made, OBJECT_SOCKET, OBJECT_CLIENT, "10.0.0.1:80");
    uint32_t pipe = made_io_object(made, OBJECT_PIPE, 0, "pipe:[1]");
    uint32_t terminal = made_io_object(made, OBJECT_CHAR_DEVICE, 0, "/dev/pts/0");
    uint32_t zero = made_io_object(made, OBJECT_CHAR_DEVICE, 0, "/dev/zero");
    made_io_call(made, 1, 1, "futex", 0, 1, 100, 0);
    made_io_call(made, 1, 1, "epoll_wait", 0, 1, 100, 0);
    made_io_call(made, 1, 1, "clock_nanosleep", 0, 1, 100, 0);
    made_io_call(made, 1, 1, "accept4", door, 1, 100, 0);
    made_io_call(made, 1, 1, "recvfrom", server, 1, 100, 10);
    made_io_call(made, 1, 1, "read", pipe, 1, 100, 10);
    made_io_call(made, 1, 1, "read", terminal, 1, 100, 10);
    made_io_call(made, 1, 1, "recvfrom", client, 1, 5, 10);
    made_io_call(made, 1, 1, "read", zero, 1, 4, 10);
    made_io_call(made, 1, 1, "write", pipe, 1, 3, 10);
    made_io_call(made, 1, 1, "sendto", server, 1, 2, 10);
    made_io_call(made, 1, 1, "fcntl", pipe, 1, 0, 0);
    made_io_call(made, 1, 1, "clone", 0, 1, 0, 0);
    struct io_sums sums = sums_of(made);
    assert_int_equal(sums.idle_calls, 7);
    assert_int_equal(sums.idle_ns, made_io_ns(700));
    assert_int_equal(sums.calls, 6);
    assert_int_equal(sums.calls_ns, made_io_ns(14));
    assert_int_equal(call_named(&sums, "futex")->tally.count, 1);
    assert_int_equal(call_named(&sums, "recvfrom")->tally.count, 2);
    assert_int_equal(sums.peers[0].object, client);
    assert_int_equal(file_of(&sums, pipe)->tally.total_ns, made_io_ns(3));
    assert_int_equal(file_of(&sums, pipe)->idle_ns, made_io_ns(100));
    assert_int_equal(sums.files[0].object, zero);
    uint64_t places_ns = 0;
    for (size_t i = 0; i < sums.site_count; i++)
        places_ns += sums.sites[i].tally.total_ns;
    assert_int_equal(places_ns, sums.calls_ns);
    end(made);
}

static void of_a_file_reads_writes_syncs_and_faults_are_told_apart(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    uint32_t file = made_io_object(made, OBJECT_FILE, 0, "/data");
    struct call_row *reads = made_io_call(made, 1, 3, "pread64", file, 10, 1, 4096);
    reads->tally.placed = 10;
    reads->tally.sequential = 2;
    reads->tally.missed = 4;
    reads->tally.missed_bytes = 16384;
    made_io_call(made, 1, 4, "write", file, 6, 1, 100)->info.flags = CALL_SYNC;
    made_io_call(made, 1, 4, "write", file, 3, 1, 100)->info.flags = CALL_DIRECT;
    made_io_call(made, 2, 5, "fsync", file, 4, 10, 0);
    made_io_call(made, 2, 5, "fdatasync", file, 1, 10, 0);
    made_io_call(made, 1, 3, NULL, file, 8, 1, 0);
    made_io_call(made, 1, 3, "openat", file, 2, 1, 0)->info.flags = CALL_CREATES;
    made_io_call(made, 1, 3, "openat", file, 5, 1, 0)->info.error = EACCES;
    made_io_call(made, 1, 3, "sendfile", file, 1, 1, 1000);
    struct io_sums sums = sums_of(made);
    assert_int_equal(sums.file_count, 1);
    const struct io_file *row = &sums.files[0];
    assert_int_equal(row->tally.count, 40);
    assert_int_equal(row->reads.calls, 10);
    assert_int_equal(row->reads.bytes, 40960);
    assert_int_equal(row->writes.calls, 9);
    assert_int_equal(row->writes.bytes, 900);
    assert_int_equal(row->sync_writes.calls, 6);
    assert_int_equal(row->sync_writes.ns, made_io_ns(6));
    assert_int_equal(row->direct, 3);
    assert_int_equal(row->syncs.calls, 5);
    assert_int_equal(row->syncs.ns, made_io_ns(50));
    assert_int_equal(row->faults.calls, 8);
    assert_int_equal(sums.calls, 32); /* faults are no calls */
    assert_int_equal(sums.faults, 8);
    assert_int_equal(sums.busy_ns, sums.calls_ns + made_io_ns(8));
    assert_null(call_named(&sums, NULL));
    assert_int_equal(row->copies.bytes, 1000);
    assert_int_equal(row->opens, 2); /* not those that failed */
    assert_int_equal(row->errors, 5);
    assert_true(row->created);
    assert_false(row->removed);
    assert_int_equal(row->tally.placed, 10);
    assert_int_equal(row->tally.sequential, 2);
    assert_int_equal(row->tally.missed_bytes, 16384);
    /* The heaviest stack over all calls and threads. */
    assert_int_equal(row->stack, 5);
    assert_int_equal(row->stack_ns, made_io_ns(50));
    /* Calls that move nothing by their nature are of no size. */
    uint64_t sized = 0;
    for (unsigned i = 0; i < CALL_SIZES; i++)
        sized += row->tally.sizes[i];
    assert_int_equal(sized, 20);
    assert_int_equal(row->size_bytes, IO_FACT_UNKNOWN);
    end(made);
}

static void sizes_of_files_come_from_the_document_and_only_for_files_that_were_used(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    uint32_t file = made_io_object(made, OBJECT_FILE, 0, "/data");
    uint32_t other = made_io_object(made, OBJECT_FILE, 0, "/other");
    made_io_call(made, 1, 1, "read", file, 1, 1, 10);
    made_io_call(made, 1, 1, "read", other, 1, 1, 10);
    made->io.files_json = STR("{\"files\": [{\"object\": 1, \"size_bytes\": 4711}, {\"object\": "
                              "99}, {\"object\": \"2\", \"size_bytes\": 1}, 7]}");
    struct io_sums sums = sums_of(made);
    assert_int_equal(file_of(&sums, file)->size_bytes, 4711);
    assert_int_equal(file_of(&sums, other)->size_bytes, IO_FACT_UNKNOWN);
    made->io.files_json = STR("{\"files\": [{\"object\"");
    sums = sums_of(made);
    assert_int_equal(file_of(&sums, file)->size_bytes, IO_FACT_UNKNOWN);
    end(made);
}

static void sockets_of_one_name_and_role_are_one_peer(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    for (int i = 0; i < 20; i++) {
        uint32_t socket = made_io_object(made, OBJECT_SOCKET, OBJECT_CLIENT, "10.0.0.1:80");
        made_io_call(made, 1, 7, "connect", socket, 1, 2, 0);
        made_io_call(made, 1, 8, "write", socket, 1, 1, 100);
        made_io_call(made, 1, 8, "read", socket, 2, 1, 300);
    }
    uint32_t own = made_io_object(made, OBJECT_SOCKET, OBJECT_SERVER, "10.0.0.1:80");
    made_io_call(made, 1, 8, "write", own, 1, 1, 5);
    made_io_connection(made, REQUEST_HTTP1, "10.0.0.1:80", 1, 1);
    made->connections[1].info.service = STR("api");
    struct io_sums sums = sums_of(made);
    assert_int_equal(sums.peer_count, 2);
    const struct io_peer *peer = &sums.peers[0];
    assert_int_equal(peer->sockets, 20);
    assert_int_equal(peer->connects.calls, 20);
    assert_int_equal(peer->connects.ns, made_io_ns(40));
    assert_int_equal(peer->sent.bytes, 2000);
    assert_int_equal(peer->received.calls, 40);
    assert_int_equal(peer->received.bytes, 12000);
    assert_int_equal(peer->tally.count, 80);
    assert_int_equal(peer->stack, 8);
    assert_int_equal(peer->connect_stack, 7);
    assert_true(str_is(peer->service, "api"));
    assert_int_equal(peer->protocol, REQUEST_HTTP1);
    assert_int_equal(sums.peers[1].protocol, 0);
    end(made);
}

static void names_that_nothing_has_are_grouped_by_folder_and_call_site(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    uint32_t a = made_io_object(made, OBJECT_PATH, 0, "/lib/a.so");
    uint32_t b = made_io_object(made, OBJECT_PATH, 0, "/lib/b.so");
    uint32_t top = made_io_object(made, OBJECT_PATH, 0, "/x");
    made_io_call(made, 1, 1, "openat", a, 10, 0.1, 0)->info.error = ENOENT;
    made_io_call(made, 2, 1, "openat", a, 20, 0.1, 0)->info.error = ENOENT;
    made_io_call(made, 1, 1, "newfstatat", b, 5, 0.1, 0)->info.error = ENOENT;
    made_io_call(made, 1, 2, "newfstatat", b, 7, 0.1, 0)->info.error = ENOTDIR;
    made_io_call(made, 1, 2, "newfstatat", b, 3, 0.1, 0)->info.error = EACCES;
    made_io_call(made, 1, 2, "unlink", top, 1, 0.1, 0)->info.error = ENOENT;
    made_io_call(made, 1, 2, "newfstatat", b, 4, 0.1, 0);
    made_io_call(made, 1, 2, "read", 0, 4, 0.1, 0)->info.error = ENOENT; /* no name in it */
    struct io_sums sums = sums_of(made);
    const struct io_lookups *lookups = &sums.lookups;
    assert_int_equal(lookups->opens.calls, 30);
    assert_int_equal(lookups->opens_failed, 30);
    assert_int_equal(lookups->stats.calls, 19);
    assert_int_equal(lookups->stats_failed, 15);
    assert_int_equal(lookups->missing, 43);
    assert_int_equal(sums.missing_count, 3);
    assert_true(str_is(sums.missing[0].folder, "/lib"));
    assert_int_equal(sums.missing[0].count, 35);
    assert_int_equal(sums.missing[0].names, 2);
    assert_int_equal(sums.missing[1].count, 7);
    assert_true(str_is(sums.missing[2].folder, "/"));
    end(made);
}

static void a_file_that_was_made_and_whose_name_was_removed_is_temporary(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    uint32_t made_file = made_io_object(made, OBJECT_FILE, 0, "/tmp/a");
    uint32_t kept = made_io_object(made, OBJECT_FILE, 0, "/tmp/b");
    uint32_t gone = made_io_object(made, OBJECT_FILE, 0, "/tmp/c (deleted)");
    made_io_call(made, 1, 1, "openat", made_file, 1, 1, 0)->info.flags = CALL_CREATES;
    made_io_call(made, 1, 1, "openat", kept, 1, 1, 0)->info.flags = CALL_CREATES;
    made_io_call(made, 1, 1, "openat", gone, 1, 1, 0)->info.flags = CALL_CREATES;
    made_io_call(made, 1, 1, "unlink", made_io_object(made, OBJECT_PATH, 0, "/tmp/a"), 1, 1, 0);
    made_io_call(made, 1, 1, "unlink", made_io_object(made, OBJECT_PATH, 0, "/tmp/b"), 1, 1, 0)
        ->info.error = EPERM;
    struct io_sums sums = sums_of(made);
    assert_true(file_of(&sums, made_file)->removed);
    assert_false(file_of(&sums, kept)->removed);
    assert_true(file_of(&sums, gone)->removed);
    assert_int_equal(sums.folder_count, 1);
    assert_int_equal(sums.folders[0].files, 3);
    assert_int_equal(sums.folders[0].temporary, 2);
    end(made);
}

static void a_file_that_is_made_again_and_again_is_one_row(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    for (int i = 0; i < 10; i++) {
        uint32_t file = made_io_object(made, OBJECT_FILE, 0, "/db-journal");
        made_io_call(made, 1, 1, "openat", file, 1, 1, 0)->info.flags = CALL_CREATES;
        made_io_call(made, 1, 2, "fsync", file, 2, 1, 0);
        made_io_call(made, 1, 1, "unlink", made_io_object(made, OBJECT_PATH, 0, "/db-journal"), 1,
                     1, 0);
        made_io_call(made, 1, 1, "write", made_io_object(made, OBJECT_FILE, 0, ""), 1, 1, 1);
    }
    struct io_sums sums = sums_of(made);
    assert_int_equal(sums.file_count, 11); /* what has no name is each for itself */
    assert_int_equal(sums.files[0].objects, 10);
    assert_int_equal(sums.files[0].opens, 10);
    assert_int_equal(sums.files[0].syncs.calls, 20);
    assert_int_equal(sums.files[0].stack, 2);
    assert_true(sums.files[0].removed);
    assert_int_equal(sums.folders[0].temporary, 10);
    end(made);
}

static void the_median_size_is_that_of_calls_that_moved_something(void **state)
{
    (void)state;
    struct call_tally tally = {0};
    assert_int_equal(io_median_size(&tally), 0);
    tally.sizes[call_size(0)] = 1000;
    tally.sizes[call_size(1)] = 3;
    tally.sizes[call_size(4096)] = 2;
    assert_int_equal(io_median_size(&tally), 1);
    tally.sizes[call_size(4096)] = 4;
    assert_int_equal(io_median_size(&tally), 8191);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_added_up_over_threads_stacks_and_objects_with_errors_by_errno),
        cmocka_unit_test(a_thread_is_one_whatever_it_was_called),
        cmocka_unit_test(what_is_idle_is_a_call_but_ranks_no_file_peer_or_place),
        cmocka_unit_test(of_a_file_reads_writes_syncs_and_faults_are_told_apart),
        cmocka_unit_test(sizes_of_files_come_from_the_document_and_only_for_files_that_were_used),
        cmocka_unit_test(sockets_of_one_name_and_role_are_one_peer),
        cmocka_unit_test(names_that_nothing_has_are_grouped_by_folder_and_call_site),
        cmocka_unit_test(a_file_that_was_made_and_whose_name_was_removed_is_temporary),
        cmocka_unit_test(a_file_that_is_made_again_and_again_is_one_row),
        cmocka_unit_test(the_median_size_is_that_of_calls_that_moved_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
