#!/usr/bin/python3
"""`whyslow scale` against programs whose law is known, because they are told their cost.

    scale_known.py WHYSLOW KNOWN

CPU time is fitted, not wall time: a busy machine makes the wall time anything.
"""

import json
import os
import subprocess
import sys
import tempfile

from judged import Checks

whyslow, known = map(os.path.abspath, sys.argv[1:3])
checks = Checks()

for argument, units, laws in (
        ("burn-ms={n}", "2,4,8,16,32,64", ("linear",)),
        ("burn-square={n}", "20,40,80,160,240,300", ("quadratic",)),
        ("burn-ms=8 exit=0 ignored={n}", "1,10,100,1000,10000", ("constant", "log n")),
):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [whyslow, "scale", "--json", "--metric", "cpu", "-r", "7", "--units", units,
             f"{known} {argument}"], cwd=folder, capture_output=True, check=False)
    print(done.stderr.decode(errors="replace"), end="")
    result = json.loads(done.stdout)
    # The constant program may be bent a little by noise: log n with next to no growth is the same.
    best = result["laws"][0]
    good = best["law"] in laws
    if best["law"] == "log n" and "constant" in laws:
        good = result["steps"][-1]["fitted"] < 1.15 * result["steps"][0]["fitted"]
    checks.check(argument, good, best, time=True)
sys.exit(checks.status())
