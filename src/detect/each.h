/* Every detector, by name, for the table. */
#pragma once

#include "detect/detectors.h"

/* A row is a line. */
/* clang-format off */
extern const struct detector detect_allocation_churn; /* allocation_churn.c */
extern const struct detector detect_cgroup_throttling; /* cgroup_throttling.c */
extern const struct detector detect_connection_per_request; /* connection_per_request.c */
extern const struct detector detect_cpu_starvation; /* cpu_starvation.c */
extern const struct detector detect_delayed_ack; /* delayed_ack.c */
extern const struct detector detect_duplicate_query; /* duplicate_query.c */
extern const struct detector detect_event_loop_io; /* event_loop_io.c */
extern const struct detector detect_failed_lookups; /* failed_lookups.c */
extern const struct detector detect_file_reread; /* file_reread.c */
extern const struct detector detect_fsync_per_message; /* fsync_per_message.c */
extern const struct detector detect_hot_lock; /* hot_lock.c */
extern const struct detector detect_io_under_lock; /* io_under_lock.c */
extern const struct detector detect_kernel_dominated; /* kernel_dominated.c */
extern const struct detector detect_lock_convoy; /* lock_convoy.c */
extern const struct detector detect_memory_growth; /* memory_growth.c */
extern const struct detector detect_n_plus_one; /* n_plus_one.c */
extern const struct detector detect_one_function; /* one_function.c */
extern const struct detector detect_one_line; /* one_line.c */
extern const struct detector detect_page_faults; /* page_faults.c */
extern const struct detector detect_poll_loop; /* poll_loop.c */
extern const struct detector detect_realloc_growth; /* realloc_growth.c */
extern const struct detector detect_repeated_dns; /* repeated_dns.c */
extern const struct detector detect_sequential_http; /* sequential_http.c */
extern const struct detector detect_serial_section; /* serial_section.c */
extern const struct detector detect_small_io; /* small_io.c */
extern const struct detector detect_start_up; /* start_up.c */
extern const struct detector detect_temporary_files; /* temporary_files.c */
extern const struct detector detect_thundering_herd; /* thundering_herd.c */
extern const struct detector detect_unoptimized_build; /* unoptimized_build.c */
extern const struct detector detect_unsymbolised_build; /* unsymbolised_build.c */
