#!/usr/bin/python3
"""The example program and its mended version do the same work, and one is much faster.

    example_same_output.py SLOW FIXED
"""

import os
import subprocess
import sys
import tempfile
import time

slow, fixed = map(os.path.abspath, sys.argv[1:3])
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([fixed, "generate", folder], check=True)
    outputs, times = [], []
    for program in (slow, fixed):
        start = time.monotonic()
        outputs.append(subprocess.run([program, folder], capture_output=True, check=True).stdout)
        times.append(time.monotonic() - start)
        with open(os.path.join(folder, "journal.txt"), "rb") as journal:
            outputs[-1] += journal.read()
assert outputs[0] == outputs[1], "the two versions do not print or journal the same"
assert outputs[0].count(b"\n") > 64
# About ten times on a quiet machine; twice is enough to say that the trouble is there.
assert times[0] > 2 * times[1], times
print(f"same output; {times[0]:.2f} s against {times[1]:.2f} s")
