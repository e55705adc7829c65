#!/usr/bin/python3
"""Threads that live for less than a sampling period are not sampled; `whyslow run` sees that by itself and samples faster.

    run_brief.py WHYSLOW PATH_KNOWN

How long a child lives is CPU time, which does not depend on what else the machine does.
"""

import json
import os
import subprocess
import sys
import tempfile

whyslow, path_known = map(os.path.abspath, sys.argv[1:3])
CAUSE = "are not sampled"


def told(*argv):
    """What the run says of its samples."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([whyslow, "run", "--runs", "3", "--force", "--json", "--out", "out", "--", path_known, *argv],
                              cwd=folder, capture_output=True, check=False, timeout=240)
    assert done.returncode in (0, 3), (done.returncode, done.stderr)  # 3: the baseline drifted, as on a busy machine
    return [line for line in json.loads(done.stdout)["honesty"] if CAUSE in line]


brief, plain = told("brief", "0.5", "400"), told("split", "200", "0", "0")
print(brief, plain)
assert len(brief) == 1, brief
# With 20 periods in each child nearly all is seen.
assert any(word in brief[0] for word in ("recorded again, 9990 times", "no better when sampled 9990 times", "no time")), brief
assert not plain, plain
