#!/usr/bin/python3
"""`whyslow compare` and `gate` on a program whose costs are known, because it is told them.

    compare_known.py WHYSLOW KNOWN

Judged by CPU time and memory, which other load on the machine does not change much; the
differences are large and few trials are made, so that noise has no say in the outcome.
"""

import json
import os
import subprocess
import sys

from judged import Checks

whyslow, known = map(os.path.abspath, sys.argv[1:3])
checks = Checks()


def compare(a, b, *options):
    done = subprocess.run([whyslow, "compare", "--json", *options, f"{known} {a}", f"{known} {b}"],
                          capture_output=True, check=False)
    if done.returncode != 0:
        print(done.stderr.decode(errors="replace"))
        sys.exit(1)
    r = json.loads(done.stdout)
    return r["verdict"], r["ratio"], f"{r['verdict']}, ratio {r['ratio']}, interval {r['ci95']}, p {r['p']}"


# 40 and 60 ms of CPU and a loader of about 1 ms on both: 1.5, less a little. A busy machine adds
# cache misses and faults to either.
verdict, ratio, text = compare("burn-ms=40", "burn-ms=60", "--metric", "cpu", "--blocks", "10")
checks.check("half as much again is slower", verdict == "slower" and 1.35 < ratio < 1.65, text, time=True)
verdict, ratio, text = compare("burn-ms=60", "burn-ms=40", "--metric", "cpu", "--blocks", "10")
checks.check("a third less is faster", verdict == "faster" and 0.6 < ratio < 0.75, text, time=True)
verdict, ratio, text = compare("burn-ms=40", "burn-ms=60", "--metric", "cpu", "--blocks", "10", "--duet")
checks.check("also in a duet", verdict == "slower" and 1.3 < ratio < 1.7, text, time=True)
for trial in range(3):
    verdict, ratio, text = compare("burn-ms=40", "burn-ms=40", "--metric", "cpu", "--blocks", "10", "--margin", "30%")
    checks.check("A/A is neither slower nor faster", verdict in ("equivalent", "unknown"), text, time=True)
# Touched pages are counted by the kernel, whatever else is running.
verdict, ratio, text = compare("alloc-mib=32", "alloc-mib=48", "--metric", "peak_rss", "--blocks", "8")
checks.check("16 MiB more are more", verdict == "slower" and 1.3 < ratio < 1.6, text)
verdict, ratio, text = compare("sleep-ms=20", "sleep-ms=80", "--blocks", "10")
checks.check("60 ms more sleep are more wall time", verdict == "slower" and ratio > 1.2, text, time=True)

gates = [("burn-ms=30", "burn-ms=90", 1, "three times the CPU time fails"),
         ("burn-ms=60", "burn-ms=30", 0, "half the CPU time passes")]
for a, b, status, name in gates:
    done = subprocess.run([whyslow, "gate", "--metric", "cpu", "--max-regression", "20%", "--budget", "12s",
                           "--baseline", f"{known} {a}", "--candidate", f"{known} {b}"],
                          capture_output=True, check=False)
    checks.check(name, done.returncode == status, done.stdout.decode().splitlines()[0] if done.stdout else done.stderr, time=True)
sys.exit(checks.status())
