/* The calls, devices, connections and requests of a recording, whole in memory (model/call.h,
 * model/request.h), with threads, stacks and names.
 *
 * Arrays are indexed by the recording's ids; entry 0 exists and stands for "none". */
#pragma once

#include "base/arena.h"
#include "model/call_book.h"
#include "model/profile.h"
#include "store/reader.h"

struct io {
    struct profile profile; /* series "io": ns in calls by thread and stack; may have no sample */
    struct str *texts;      /* what request_info and request_event name by id; the 0th is empty */
    size_t text_count;      /* of each array: entries, the 0th included */
    struct object_info *objects;
    size_t object_count;
    struct call_row *calls;
    size_t call_count;
    struct device_row *devices;
    size_t device_count;
    struct connection_row *connections;
    size_t connection_count;
    struct request_row *requests;
    size_t request_count;
    struct request_event *events; /* a plain list in the order of start_ns */
    size_t event_count;
    uint64_t start_ns, end_ns; /* of the recording */
    uint32_t root_process;     /* the command's or the pid's; 0: the whole machine */
    uint32_t root_thread;      /* its main thread */
    struct str facts_json;     /* document "io": tier and what could not be seen; empty: none */
    struct str files_json;     /* document "files": notes on file systems; empty: none */
};

/* A recording without calls is an error with the reason and the command that records them. */
MUST_USE int io_load(struct arena *arena, struct recording *recording, struct io *ret,
                     struct why *why);
