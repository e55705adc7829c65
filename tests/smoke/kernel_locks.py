#!/usr/bin/python3
"""Locks of the kernel itself: `whyslow record --offcpu --locks` against a program that says how long
it must have waited for one (tests/workloads/kernel_locks.c).

    kernel_locks.py file|pipe|mapping WHYSLOW WORKLOAD
"""

import atexit
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import timed  # noqa: E402

what, whyslow, workload = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
folder = tempfile.mkdtemp(prefix="whyslow-kernel-locks-")
os.chdir(folder)
atexit.register(shutil.rmtree, folder, ignore_errors=True)
PATIENCE_S = 600

if os.geteuid() != 0:
    print("SKIP: only the kernel tier sees locks of the kernel: run as root")
    sys.exit(77)
done = subprocess.run([whyslow, "record", "--tier", "kernel", "--cpu", "--offcpu", "--locks", "-o", "r", "--", workload,
                       what], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
print(done.stdout, done.stderr, sep="")
if done.returncode in (4, 77) and "verifier" not in done.stderr:  # what that refuses is ours
    print("SKIP: no kernel tier here, or nothing to hold a lock of the kernel with:", done.stderr.splitlines()[-1:])
    sys.exit(77)
assert done.returncode == 0, done.returncode
calls_ns, calls = map(int, re.findall(r"calls(?:_ns)?=(\d+)", done.stdout))

db = sqlite3.connect("file:r?mode=ro", uri=True)
counters = dict(db.execute("SELECT name, value FROM counter"))
rows = db.execute("SELECT object.name, thread.tid, process.pid, wait.syscall, wait.detail, wait.count, wait.total_ns,"
                  " wait.stack FROM wait JOIN object ON object.id = wait.object JOIN thread ON thread.id = wait.thread"
                  " JOIN process ON process.id = thread.process WHERE object.kind = 'kernel_lock'").fetchall()
for row in sorted(rows, key=lambda row: -row[6])[:10]:
    print(*row)
name = {"file": r"rwsem \(write\) in \w+_file_write_iter$",
        "pipe": r"mutex in \w*pipe_write$",
        "mapping": r"rwsem \((read|write)\) mmap_lock in \w+"}[what]
found = [row for row in rows if re.match(name, row[0])]
assert found, "the lock has not this name"
assert all(row[7] for row in found), "no stack"
waited_ns = sum(row[6] for row in found)
print(f"waited {waited_ns / 1e6:.1f} ms, in calls {calls_ns / 1e6:.1f} ms")
assert 0 < waited_ns <= calls_ns
assert counters["waits.lost.kernel_locks"] == 0
assert counters["locks.kernel_waits"] >= sum(row[5] for row in found)
if what != "mapping":
    # One lock, one thread that waits, in one call, as often as it was made to. Nearly all of the call
    # is the wait; the rest is the way to the lock and back, on which a busy machine may stop it.
    assert len({row[0] for row in found}) == len({row[1:4] for row in found}) == 1, found
    assert sum(row[5] for row in found) == calls
    timed("nearly all of the calls", waited_ns >= 0.95 * calls_ns)
