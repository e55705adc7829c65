#!/usr/bin/python3
"""`whyslow bench` refuses times that drift, and names two kinds of runs and dependence, of programs that sleep so.
(The words, with figures that no other load changes: tests/cli/bench-words.)

    bench_words.py WHYSLOW
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from judged import Checks

KINDS = ("unstable", "two_modes", "dependent")
whyslow = os.path.abspath(sys.argv[1])
checks = Checks()


def bench(runs, naps):
    """The result of a program whose nth run sleeps for as long as the shell makes of $n."""
    script = f"echo x >>count; n=$(wc -l <count); exec sleep 0.$(({naps}))"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([whyslow, "bench", "--json", "-w", "0", "-r", str(runs), "--", "sh", "-c", script],
                              cwd=folder, capture_output=True, check=False)
    print(done.stderr.decode(errors="replace"), end="")
    assert done.returncode in (0, 3), done.returncode
    result = json.loads(done.stdout)["results"][0]
    assert result["n"] == runs and result["stable"] == (done.returncode == 0), result
    kinds = [kind for kind in KINDS if kind in {warning["kind"] for warning in result["warnings"]}]
    return result, kinds


_, said = bench(18, "10 + n * 2")
checks.check("each sleeps for longer", said == ["unstable", "dependent"], str(said), time=True)
result, said = bench(24, "n % 2 ? 18 : 30")
checks.check("by turns", said == ["two_modes", "dependent"], str(said), time=True)
series = result["series"]
checks.check("each unlike the one before", series["two_modes"] and series["lag1"] < -0.5, str(series), time=True)
said = [warning["message"] for warning in result["warnings"] if warning["kind"] == "two_modes"]
share = re.match(r"two kinds of runs: (\d+)% near ", said[0]) if said else None
checks.check("half of them are short", share and share.group(1) == "50", str(said), time=True)
sys.exit(checks.status())
