#!/usr/bin/python3
"""Threads that live for less than a sampling period are not sampled; `whyslow run` sees that by itself and samples faster.

    run_brief.py WHYSLOW PATH_KNOWN

What share of the CPU time was sampled is a matter of times, and judged in the suite `truth` only: a machine whose host
takes its CPUs books for a child what that one never had, and calls nobody to sample it.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import timed  # noqa: E402

PATIENCE_S = 600
whyslow, path_known = map(os.path.abspath, sys.argv[1:3])
CAUSE = "are not sampled"


def told(*argv):
    """What the run says of its samples."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([whyslow, "run", "--runs", "3", "--force", "--json", "--out", "out", "--", path_known, *argv],
                              cwd=folder, capture_output=True, check=False, timeout=PATIENCE_S)
    assert done.returncode in (0, 3), (done.returncode, done.stderr)  # 3: the baseline drifted, as on a busy machine
    return [line for line in json.loads(done.stdout)["honesty"] if CAUSE in line]


brief, plain = told("brief", "0.5", "400"), told("split", "200", "0", "0")
print(brief, plain)
assert len(brief) <= 1 and len(plain) <= 1, (brief, plain)
for line in brief + plain:
    assert any(word in line for word in ("recorded again, 9990 times", "no better when sampled 9990 times", "no time")), line
timed("children of half a period are not sampled, and with 20 periods in each nearly all is seen", len(brief) == 1)
timed("one that lives for long is sampled", not plain)
