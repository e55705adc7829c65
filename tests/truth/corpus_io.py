#!/usr/bin/python3
"""Planted trouble with files, and what mending it really gains.

    corpus_io.py DETECTOR gain WHYSLOW PROGRAMS...

What `whyslow run` says could be saved, beside what the mended mode of the same program
does save, measured by turns in this test. Both are taken as shares of the planted program's wall
time, since a machine that others use is not as fast now as it was then. The cases are those of corpus.py.
"""

import os
import subprocess
import sys
import tempfile

import corpus_tools
import gain_tools

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

    def make(folder):
        program = corpus_tools.PROGRAMS[name]
        if name in ("io-reread", "io-lookups"):
            subprocess.run([program, "make"], cwd=folder, check=True)
        return [program, kind, str(amounts.get(kind, amounts["planted"]))]
    return make


# The same trouble in other clothes.
EXTRA = (("fsync_per_message", "dsync"), ("event_loop_io", "sleeps"))
# True of the program beside what is planted: its 1,200 writes are of 127 bytes, and take 2 to 3% of the time by themselves.
ALSO = {("fsync_per_message", "planted"): ("small_io",)}
# A busy machine needs longer for the same runs.
OPTIONS = ("--budget", "60s")


def cases():
    for detector in AMOUNTS:
        for kind in ("planted", "near", "clean"):
            yield corpus_tools.Case(detector, kind, kind, command_of(detector, kind), options=OPTIONS,
                                    also=ALSO.get((detector, kind), ()))
    for detector, kind in EXTRA:
        yield corpus_tools.Case(detector, kind, "planted", command_of(detector, kind), options=OPTIONS)


def attempt(whyslow, detector, kind):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        planted = command_of(detector, kind)(folder)
        mended = [planted[0], MENDED.get(kind, "mended"), planted[2]]
        pairs, (result, _) = gain_tools.around(
            lambda: (gain_tools.wall(planted, folder), gain_tools.wall(mended, folder)),
            lambda: corpus_tools.run(whyslow, planted, folder, *OPTIONS))
    return gain_tools.compared_by_wall(detector, pairs, result)


def main(detector, _, whyslow, *programs):
    corpus_tools.programs_are(programs)
    return gain_tools.verdict(lambda: attempt(os.path.abspath(whyslow), detector, MEASURED.get(detector, "planted")))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
