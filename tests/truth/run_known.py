#!/usr/bin/python3
"""`whyslow run` against a program whose costs are known, because it is told them.

    run_known.py WHYSLOW KNOWN

100 ms of CPU, 50 ms of sleep, 64 MiB of memory, 1 MiB written. The program also logs its own
clocks, so that a busy machine, which makes every run longer, does not make the answer wrong.
Tolerances, with their reasons, stand beside each check.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

from judged import Checks

whyslow, known = map(os.path.abspath, sys.argv[1:3])
checks = Checks()

with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run(
        [whyslow, "run", "--json", "--force", "--warmup", "0", "--", known, "burn-ms=100", "sleep-ms=50",
         "alloc-mib=64", "write-mib=1", "file=scratch", "log=log"],
        cwd=folder, capture_output=True, check=False)
    print(done.stderr.decode(errors="replace"))
    result = json.loads(done.stdout)
    runs = json.load(open(os.path.join(folder, result["artifacts"]["baseline"])))["runs"]
    told = [tuple(map(int, line.split())) for line in open(os.path.join(folder, "log"))]
    bytes_logged = os.path.getsize(os.path.join(folder, "log")) / len(told)
median = {row["metric"]: row["median"] for row in result["metrics"]}
assert len(told) >= len(runs) + 3, "20 runs, and one recorded for each axis; a noisy one is made again"

MS = 1e6
# The program's clocks start in main() and stop before _exit(): the loader, the teardown of 64 MiB
# and waiting for a CPU at both ends come on top. The median shrugs off the unlucky ones.
wall_over = statistics.median(run["wall"] - own[0] for run, own in zip(runs, told))
cpu_over = statistics.median(run["cpu_time"] - own[1] for run, own in zip(runs, told))
checks.between("wall beyond the program's own", wall_over, 0, 25 * MS, "loader and exit", time=True)
checks.between("cpu_time beyond the program's own", cpu_over, -1 * MS, 10 * MS, "loader and exit", time=True)
checks.between("cpu_time", median["cpu_time"], 100 * MS, 250 * MS, "100 ms burnt, then 16384 page faults", time=True)
checks.between("waiting", median["wall"] - median["cpu_time"], 48 * MS, 10000 * MS,
               "the sleep; other load makes it longer", time=True)
for run in runs:
    assert abs(run["cpu"] - run["cpu_time"] / run["wall"] * 100) < 1e-6
# 1% and what the program itself needs; the kernel's own figure is rough by some 256 KiB.
checks.between("peak_rss", median["peak_rss"], (64 << 20) * 0.99, (64 << 20) * 1.01 + (4 << 20), "64 MiB")
checks.between("written", median["written"], (1 << 20) + bytes_logged - 4, (1 << 20) + bytes_logged + 4,
               "exact: 1 MiB and its line in the log")
checks.between("faults_minor", median["faults_minor"], 16384, 16384 + 2000,
               "one a page of 4 KiB; huge pages would make it fewer") if os.sysconf(
          "SC_PAGESIZE") == 4096 and "[always]" not in open(
              "/sys/kernel/mm/transparent_hugepage/enabled").read() else None
checks.between("switches_voluntary", median["switches_voluntary"], 1, 50, "it sleeps once", time=True)
checks.between("runs", result["runs"], 20, 20, "the default")
assert done.returncode in (0, 3), done.returncode
checks.check("the baseline does not drift", done.returncode == 0, done.returncode, time=True)
sys.exit(checks.status())
