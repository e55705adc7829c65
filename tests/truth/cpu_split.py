#!/usr/bin/python3
"""Shares of CPU time against a program that burns a known split, 50/30/15/5.

    cpu_split.py WHYSLOW SPLIT LIBRARY

Plain, inlined, recursive, across a PLT, in a dlopened library, under a signal handler, in four
threads: every share within 1 percentage point at 10,000 samples and more, the sum within 2% of
what the kernel's books say. The program goes by its own CPU clock, so that a busy machine makes
it slower but not different.
"""

import collections
import os
import sqlite3
import subprocess
import sys
import tempfile

from judged import Checks

whyslow, split, library = map(os.path.abspath, sys.argv[1:4])
SHARES = (50, 30, 15, 5)
KINDS = ("plain", "inlined", "recursive", "plt", "dlopen", "handled", "threaded")
checks = Checks()

with tempfile.TemporaryDirectory() as folder:
    recording = os.path.join(folder, "a.whyslow")
    done = subprocess.run(
        [whyslow, "record", "-F", "4999", "-o", recording, "--", split, "100", "24", library],
        cwd=folder, env={**os.environ, "HOME": folder}, capture_output=True, text=True, check=False)
    print(done.stderr)
    assert done.returncode == 0, done.returncode
    db = sqlite3.connect(recording)
    counters = dict(db.execute("SELECT name, value FROM counter"))
    functions = collections.defaultdict(set)
    for frame, name in db.execute(
            "SELECT frame, text.text FROM location JOIN function ON function.id = function "
            "JOIN text ON text.id = function.name"):
        functions[frame].add(name)
    parents = {row[0]: row[1:] for row in db.execute("SELECT id, parent, frame FROM stack")}
    weights, counts, roots = collections.Counter(), collections.Counter(), collections.Counter()
    threads = set()
    for thread, stack, count, weight in db.execute(
            "SELECT thread, stack, count, weight FROM total WHERE series = "
            "(SELECT id FROM series WHERE name = 'cpu')"):
        names, at = set(), stack
        while at:
            at, frame = parents[at]
            names |= functions[frame]
        for name in names:
            weights[name] += weight
            counts[name] += count
        if "threaded_50" in names:
            threads.add(thread)
        roots["_start" if "_start" in names else "clone3" if "clone3" in names else "?"] += count

for kind in KINDS:
    whole = sum(weights[f"{kind}_{share}"] for share in SHARES)
    samples = sum(counts[f"{kind}_{share}"] for share in SHARES)
    checks.between(f"{kind}: samples", samples, 10000, 1000000, time=True)
    for share in SHARES:
        # 1 percentage point: at 10,000 samples one sigma of the largest share is half of it.
        checks.between(f"{kind}_{share}", weights[f"{kind}_{share}"] / max(whole, 1) * 100, share - 1, share + 1, time=True)
# 2%: what runs with interrupts off is charged where they come on, perhaps to another task.
checks.between("sampled of rusage, %", counters["cpu.sampled_ns"] / counters["cpu.rusage_ns"] * 100, 98, 102, time=True)
checks.between("complete, %", counters["cpu.complete"] / counters["cpu.samples"] * 100, 99.5, 100)
checks.between("threads with samples", len(threads), 4, 4)
checks.between("stacks with an unnamed root, %", roots["?"] / counters["cpu.samples"] * 100, 0, 0.5)
checks.between("lost", counters["loss.ring_full"], 0, 0.01 * counters["cpu.samples"], time=True)
sys.exit(checks.status())
