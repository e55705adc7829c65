#!/usr/bin/python3
"""Four troubles of known cost in one program: are they ranked as they are, and is the gain right?

    run_mixed.py WHYSLOW MIXED

What each costs is measured here: all four against all but one, by turns. The order of the ranking must be that
of the gains, and each recoverable time within 15% of its gain. Where the machine is too busy for such a
comparison (the program waits for a CPU, or rounds differ much), it is tried again, and skipped at last: the
bar is about a quiet machine.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import corpus_tools

ROUNDS, ATTEMPTS, TOLERANCE, NOISY = 7, 2, 0.15, 0.20
COMMAND = ["mixed", "100"]
# True of it, too.
ALSO = ("one_line",)
# Argument that mends it: the detector that must see it.
TROUBLES = {"cpu": "one_function", "lock": "io_under_lock", "writes": "small_io", "heap": "allocation_churn"}
SKIPPED = 77


def wall(folder, *mended):
    start = time.monotonic()
    subprocess.run([*corpus_tools.resolved(COMMAND), *mended], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic() - start) * 1e3


def gains_measure(folder):
    """By trouble: the median gain in ms, and half of the spread of the middle half of the rounds."""
    wall(folder)
    rounds = []
    for _ in range(ROUNDS):
        whole = wall(folder)
        rounds.append({trouble: whole - wall(folder, trouble) for trouble in TROUBLES})
    columns = {trouble: sorted(one[trouble] for one in rounds) for trouble in TROUBLES}
    return {trouble: (statistics.median(column), (column[-1 - ROUNDS // 4] - column[ROUNDS // 4]) / 2)
            for trouble, column in columns.items()}


def truth(result):
    """Complaints that need no measuring: all four and no other."""
    names = [row["detector"] for row in corpus_tools.suspicions(result, "confirmed")]
    yield from (f"{detector} is not confirmed: {corpus_tools.suspicions(result, detector=detector)}"
                for detector in TROUBLES.values() if detector not in names)
    yield from (f"false: {name}" for name in names if name not in (*TROUBLES.values(), *ALSO))


def cases():
    yield corpus_tools.Case("mixed", "four", "planted", COMMAND, options=("--budget", "90s", "--runs", "15"), quiet=True,
                            truth=truth)


def attempt(whyslow):
    """(complaints, noisy)"""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        before = gains_measure(folder)
        result, _ = corpus_tools.run(whyslow, corpus_tools.resolved(COMMAND), folder, "--budget", "90s", "--runs", "15")
        after = gains_measure(folder)
    confirmed = corpus_tools.suspicions(result, "confirmed")
    names = [row["detector"] for row in confirmed]
    corpus_tools.show(result)
    complaints, noisy = list(truth(result)), bool(corpus_tools.apart(result, "cpu_starvation", "confirmed"))
    gains = {}
    for trouble, detector in TROUBLES.items():
        gain = (before[trouble][0] + after[trouble][0]) / 2
        spread = max(before[trouble][1], after[trouble][1], abs(before[trouble][0] - after[trouble][0]) / 2) / gain
        gains[detector] = gain
        noisy |= spread > NOISY
        said = next((row["recoverable_ms"] for row in confirmed if row["detector"] == detector), None)
        if said is None:
            continue
        print(f"{detector}: mending it gains {gain:.0f} ms (±{spread * 100:.0f}%), said {said:.0f} ms: "
              f"{(said / gain - 1) * 100:+.1f}%")
        if abs(said / gain - 1) > TOLERANCE:
            complaints.append(f"{detector}: {said:.0f} ms were said, {gain:.0f} ms gained")
    true = sorted(gains, key=gains.get, reverse=True)
    said = [name for name in names if name in gains]
    if said != true:
        complaints.append(f"ranked {said}, but the gains are {gains}")
    return complaints, noisy


def main(whyslow, program):
    corpus_tools.programs_are([program])
    for number in range(ATTEMPTS):
        found, restless = attempt(os.path.abspath(whyslow))
        print(f"attempt {number + 1}: {'a busy machine' if restless else 'a quiet machine'}: {found or 'all right'}")
        if not found or not restless:
            break
    return 0 if not found else SKIPPED if restless else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
