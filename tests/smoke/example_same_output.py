#!/usr/bin/python3
"""The example program and its mended versions do the same work, and the whole one is much faster.

    example_same_output.py SLOW FIXED MENDED...
"""

import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import timed  # noqa: E402

slow, fixed, *mended = map(os.path.abspath, sys.argv[1:])
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([fixed, "generate", folder], check=True)
    outputs, times = [], []
    for program in (slow, fixed, *mended):
        start = time.monotonic()
        outputs.append(subprocess.run([program, folder], capture_output=True, check=True).stdout)
        times.append(time.monotonic() - start)
        with open(os.path.join(folder, "journal.txt"), "rb") as journal:
            outputs[-1] += journal.read()
assert len(set(outputs)) == 1, "the versions do not print or journal the same"
assert outputs[0].count(b"\n") > 64
# Three times on a quiet machine; half as much is enough to say that the trouble is there.
timed("much faster", times[0] > 1.5 * times[1], f"{times[0]:.2f} s against {times[1]:.2f} s")
