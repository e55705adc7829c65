/* Block devices while something is recorded (bpf/block.bpf.c): requests, bytes, how long the
 * device took, how many it had at a time.
 *
 *     devices_open()    it is all there
 *     devices_begin()   from now on requests are added up, in the kernel
 *     devices_drain()   what is new goes to rows of devices (model/call.h)
 *     devices_finish()  programs run no more; the last of it; counters io.device_lost,
 *                       io.device_errors
 *     devices_close()
 *
 * Of the whole machine: below the page cache nobody knows who asked. A device is a whole disk
 * ("vda", "nvme0n1", "dm-0"), never a partition. One stands upon another (dm-0 on nvme0n1, a loop
 * on a disk): what goes through both is in both. A device that was asked for anything has a row
 * DEVICE_READ, be it without a read, since depth_ns and depth_max of all operations together
 * stand there; in other rows they are the operation's own. Requests that were in a device
 * already when we came are not seen; those still there at the end are in depth_ns only.
 * One thread. */
#pragma once

#include "base/why.h"
#include "model/sink.h"

struct devices;

/* `cache_dir` as of bpf_unit_open(). -errno with a reason where the kernel does not let us. */
MUST_USE int devices_open(const char *cache_dir, struct sink *sink, struct devices **ret,
                          struct why *why);
void devices_close(struct devices *devices); /* NULL is fine */

MUST_USE int devices_begin(struct devices *devices, uint64_t start_ns, struct why *why);
MUST_USE int devices_drain(struct devices *devices);
MUST_USE int devices_finish(struct devices *devices);
/* What cannot be seen of devices here, and why; NULL: nothing is missing. */
const char *devices_missing(const struct devices *devices);
/* Of all its maps in the kernel, about. */
uint64_t devices_map_bytes(void);
