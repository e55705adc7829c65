#!/usr/bin/python3
"""What threads wait for has its kind, its role and its name, whichever tier looks.

    objects.py kernel|user WHYSLOW WORKLOAD

The workload waits 150 ms for each of a dozen things, and says what they are.
"""

import atexit
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

tier, whyslow, workload = sys.argv[1], *map(os.path.abspath, sys.argv[2:4])
folder = tempfile.mkdtemp(prefix="whyslow-objects-")
os.chdir(folder)
atexit.register(shutil.rmtree, folder, ignore_errors=True)
PATIENCE_S = 120

done = subprocess.run([whyslow, "record", "--tier", tier, "--cpu", "--offcpu", "-o", "r", "--", "/usr/bin/python3",
                       workload], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
print(done.stdout, done.stderr, sep="")
if done.returncode == 4:
    sys.exit(77)  # not to be had here
assert done.returncode == 0, done.returncode
expected = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
assert len(expected) >= 12

db = sqlite3.connect("file:r?mode=ro", uri=True)
found = dict(((kind, flags, name), ns) for kind, flags, name, ns in db.execute(
    "SELECT object.kind, object.flags, object.name, sum(wait.total_ns) FROM wait JOIN object ON object.id = wait.object"
    " WHERE wait.kind = 'blocked' GROUP BY 1, 2, 3"))
for key, ns in found.items():
    print(f"{ns / 1e6:8.1f} ms", *key)
missing = [key for key in expected if found.get(key, 0) < 100e6]  # most of the 150 ms of each
assert not missing, missing
