/* Rows of calls, devices, connections and requests, added up in memory. Shared by every
 * implementation of model/sink.h, as wait_book.h is. Ids count from 1. */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"
#include "model/call.h"
#include "model/request.h"

/* Bounds, so that a target cannot make us eat the machine: some 1.2 GiB at worst. */
enum {
    CALL_BOOK_CALLS_MAX = 1 << 20,
    CALL_BOOK_DEVICES_MAX = 1 << 12,
    CALL_BOOK_CONNECTIONS_MAX = 1 << 20,
    CALL_BOOK_REQUESTS_MAX = 1 << 18,
};

struct call_row {
    struct call_info info;
    struct call_tally tally;
    bool dirty; /* for whoever writes it down */
};
struct device_row {
    struct device_info info;
    struct device_tally tally;
    bool dirty;
};
struct connection_row {
    struct connection_info info; /* flags and service as of its end */
    uint64_t closed_ns;          /* 0: not, or not yet */
    uint64_t requests, bytes_out, bytes_in;
    bool dirty;
};
struct request_row {
    struct request_info info;
    struct request_tally tally;
    bool dirty;
};

struct call_book {
    struct intern call_keys, device_keys, request_keys;
    struct arena names;
    VEC(struct call_row) calls; /* calls.data[id - 1] */
    VEC(struct device_row) devices;
    VEC(struct connection_row) connections;
    VEC(struct request_row) requests;
};

/* Each returns 0, -ENOMEM, -EINVAL when an id in it was never given out, or -E2BIG beyond the
 * bounds. Ids of others (threads, stacks, objects, texts) are the caller's to check. */
MUST_USE int call_book_call(struct call_book *book, const struct call_info *info, uint32_t *ret_id);
MUST_USE int call_book_call_add(struct call_book *book, uint32_t call,
                                const struct call_tally *tally);
MUST_USE int call_book_device(struct call_book *book, const struct device_info *info,
                              uint32_t *ret_id);
MUST_USE int call_book_device_add(struct call_book *book, uint32_t device,
                                  const struct device_tally *tally);
MUST_USE int call_book_connection(struct call_book *book, const struct connection_info *info,
                                  uint32_t *ret_id);
MUST_USE int call_book_connection_end(struct call_book *book, uint32_t connection,
                                      const struct connection_end *end);
MUST_USE int call_book_request(struct call_book *book, const struct request_info *info,
                               uint32_t *ret_id);
MUST_USE int call_book_request_add(struct call_book *book, uint32_t request,
                                   const struct request_tally *tally);
void call_tally_add(struct call_tally *to, const struct call_tally *tally);
void device_tally_add(struct device_tally *to, const struct device_tally *tally);
void request_tally_add(struct request_tally *to, const struct request_tally *tally);
/* False for an event with a row or connection that was never given out, or that ends before it
 * begins or after 2^63 ns. An answer whose first byte was not seen meanwhile counts as begun when
 * it ended. */
MUST_USE bool call_book_event_settle(const struct call_book *book, struct request_event *event);
void call_book_deinit(struct call_book *book);
