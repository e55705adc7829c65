#!/usr/bin/python3
"""Planted trouble with files, and what mending it really gains.

    corpus_io.py DETECTOR planted|near|clean|gain WHYSLOW PROGRAMS...

`gain`: what `whyslow run` says could be saved, beside what the mended mode of the same program
does save, measured by turns in this test. Both are taken as shares of the planted program's wall
time, since a machine that others use is not as fast now as it was then.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import corpus_tools
import gain_tools

whyslow = os.path.abspath(sys.argv[3])
programs = {pathlib.Path(path).name: os.path.abspath(path) for path in sys.argv[4:]}

# Detector: program, and how much of its trouble: 0.3 to 1 s on a machine of today.
AMOUNTS = {
    "event_loop_io": ("io-loop", {"planted": 250}),
    "failed_lookups": ("io-lookups", {"planted": 60000, "near": 400, "clean": 20000}),
    "file_reread": ("io-reread", {"planted": 4000, "near": 2, "clean": 2}),
    "fsync_per_message": ("io-fsync", {"planted": 1200, "near": 400, "clean": 1200}),
    "small_io": ("io-small", {"planted": 900000, "near": 150000, "clean": 300000}),
    "temporary_files": ("io-temporary", {"planted": 5000, "near": 80, "clean": 5000}),
}
# The mode that has the trouble no more, and of which program the gain is measured: what a disk takes varies too
# much from run to run where others use it; a sleep does not.
MENDED = {"sleeps": "awake"}
MEASURED = {"event_loop_io": "sleeps"}


def command_of(detector, kind):
    name, amounts = AMOUNTS[detector]
    program = programs[name]

    def make(folder):
        if name in ("io-reread", "io-lookups"):
            subprocess.run([program, "make"], cwd=folder, check=True)
        return [program, kind, str(amounts.get(kind, amounts["planted"]))]
    return make


CASES = {detector: {kind: command_of(detector, kind) for kind in ("planted", "near", "clean")}
         for detector in AMOUNTS}
# A busy machine needs longer for the same runs.
OPTIONS = ["--budget", "60s"]
for cases in CASES.values():
    cases["options"] = OPTIONS
# The same trouble in other clothes.
CASES["fsync_per_message"]["dsync"] = command_of("fsync_per_message", "dsync")
CASES["event_loop_io"]["sleeps"] = command_of("event_loop_io", "sleeps")


def attempt(detector, kind):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        planted = command_of(detector, kind)(folder)
        mended = [planted[0], MENDED.get(kind, "mended"), planted[2]]
        pairs, (result, _) = gain_tools.around(
            lambda: (gain_tools.wall(planted, folder), gain_tools.wall(mended, folder)),
            lambda: corpus_tools.run(whyslow, planted, folder, *OPTIONS))
    return gain_tools.compared_by_wall(detector, pairs, result)


detector, kind = sys.argv[1:3]
if kind == "gain":
    sys.exit(gain_tools.verdict(lambda: attempt(detector, MEASURED.get(detector, "planted"))))
if kind in ("dsync", "sleeps"):
    CASES[detector]["planted"] = CASES[detector][kind]
    kind = "planted"
sys.exit(corpus_tools.main(CASES, whyslow, detector, kind))
