#!/usr/bin/python3
"""Locks of the kernel itself: `whyslow record --offcpu --locks` against a program that says how long
it must have waited for one (tests/workloads/kernel_locks.c).

    kernel_locks.py file|mapping WHYSLOW WORKLOAD
"""

import os
import re
import sqlite3
import subprocess
import sys
import tempfile

what, whyslow, workload = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
folder = tempfile.mkdtemp(prefix="whyslow-kernel-locks-")
os.chdir(folder)
PATIENCE_S = 120

if os.geteuid() != 0:
    print("only the kernel tier sees locks of the kernel: run as root")
    sys.exit(77)
done = subprocess.run([whyslow, "record", "--tier", "kernel", "--cpu", "--offcpu", "--locks", "-o", "r", "--", workload,
                       what], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
print(done.stdout, done.stderr, sep="")
if "needs" in done.stderr and done.returncode == 4:
    sys.exit(77)
assert done.returncode == 0, done.returncode
wall_ns, calls_ns = map(int, re.findall(r"_ns=(\d+)", done.stdout))

db = sqlite3.connect("file:r?mode=ro", uri=True)
counters = dict(db.execute("SELECT name, value FROM counter"))
rows = db.execute("SELECT object.name, thread.tid, process.pid, wait.syscall, wait.detail, wait.count, wait.total_ns,"
                  " wait.stack FROM wait JOIN object ON object.id = wait.object JOIN thread ON thread.id = wait.thread"
                  " JOIN process ON process.id = thread.process WHERE object.kind = 'kernel_lock'").fetchall()
for row in sorted(rows, key=lambda row: -row[6])[:10]:
    print(*row)
name = {"file": r"rwsem \(write\) in \w+_file_write_iter$",
        "mapping": r"rwsem \((read|write)\) mmap_lock in \w+"}[what]
found = [row for row in rows if re.match(name, row[0])]
assert found, "the lock has not this name"
assert len({row[0] for row in found}) == 1, "one lock, one name"

# Both sides wait, in the call that needs the lock, at a place that is known.
sides = {row[2] if what == "file" else row[1] for row in found}
assert len(sides) == 2, sides
assert all(row[7] for row in found), "no stack"
if what == "file":
    assert len({row[3] for row in found}) == 1

# One writes at a time: what both spent in calls beyond the time there was, they have waited. At
# least half, since on a busy machine both may be kept from a CPU outside of the lock. The lock of an
# address space may be held by several that only read: there is no such bound.
waited_ns = sum(row[6] for row in found)
print(f"waited {waited_ns / 1e6:.1f} ms, in calls {calls_ns / 1e6:.1f} ms of {wall_ns / 1e6:.1f} ms")
assert waited_ns <= calls_ns
assert waited_ns >= (calls_ns - wall_ns) / 2 if what == "file" else waited_ns > 0

assert counters["locks.kernel_lost"] == 0
assert counters["locks.kernel_waits"] >= sum(row[5] for row in found)
