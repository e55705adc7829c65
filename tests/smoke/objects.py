#!/usr/bin/python3
"""What threads wait for has its kind, its role and its name, whichever tier looks.

    objects.py kernel|user WHYSLOW WORKLOAD

The workload waits 150 ms or more for each of a dozen things, and says what they are. Without the kernel's help it waits
for each until it was looked at.
"""

import atexit
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import timed  # noqa: E402

tier, whyslow, workload = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
folder = tempfile.mkdtemp(prefix="whyslow-objects-")
os.chdir(folder)
atexit.register(shutil.rmtree, folder, ignore_errors=True)
PATIENCE_S = 600

# Without privileges sockets are found in the kernel's tables, and these are read the less often the longer that takes
# (objects_net.c: not again before 20 times as much): some kernels need tens of ms. So long the waits must last, at least.
begin = time.thread_time()
for table in ("tcp", "tcp6", "udp", "udp6", "unix"):
    with open(f"/proc/net/{table}", "rb") as file:
        file.read()
hold_s = max(0.15, 100 * (time.thread_time() - begin))
done = subprocess.run([whyslow, "record", "--tier", tier, "--cpu", "--offcpu", "-o", "r", "--", "/usr/bin/python3",
                       workload, f"{hold_s:.2f}", *(["seen"] if tier == "user" else [])], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
print(done.stdout, done.stderr, sep="")
if done.returncode == 4 and "verifier" not in done.stderr:  # what that refuses is ours
    print("SKIP: this kernel or user has no such tier:", done.stderr.splitlines()[-1:])
    sys.exit(77)
assert done.returncode == 0, done.returncode
expected = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
assert len(expected) >= 12

db = sqlite3.connect("file:r?mode=ro", uri=True)
found = dict(((kind, flags, name), ns) for kind, flags, name, ns in db.execute(
    "SELECT object.kind, object.flags, object.name, sum(wait.total_ns) FROM wait JOIN object ON object.id = wait.object"
    " WHERE wait.kind = 'blocked' GROUP BY 1, 2, 3"))
for key, ns in found.items():
    print(f"{ns / 1e6:8.1f} ms", *key)
missing = [key for key in expected if key not in found]
assert not missing, missing
short = [(key, found[key]) for key in expected if found[key] < 100e6]
timed("most of the 150 ms of each", not short, str(short))
