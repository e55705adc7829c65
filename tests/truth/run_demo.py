#!/usr/bin/python3
"""What `whyslow run` expects of mending the demo's planted troubles, beside what mending them gains.

    run_demo.py WHYSLOW SLOW FIXED MENDED...

Every trouble has a program of its own in which it alone is mended (ledger-mended-STEP). These run
in turns with the slow one; what one gains is the median difference of its turns (of CPU time where
it only computes), with a 95% interval by order statistics; `all` is the program in which all are
mended. What was expected, of a machine that is as fast as it is now, must lie within 15% of the gain, beyond what the
measurement itself leaves open. On a machine so restless that a gain is not even known to within a quarter, nothing can be
held against it: that is said, and where it is so for all, the test is skipped.
"""

import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

TOLERANCE = 0.15
VAGUE = 0.25
SKIP = 77
ROUNDS_MIN, ROUNDS_MAX = 11, 31
# Which detectors say it, and where.
TROUBLES = {
    "decode": ({"one_function", "one_line"}, "decode_payload"),
    "words": ({"allocation_churn"}, "note_words"),
    "rates": ({"file_reread"}, "order_rate"),
    "totals": ({"hot_lock", "lock_convoy"}, "totals_add"),
    "journal": ({"fsync_per_message"}, "journal_append"),
}


# One thread computes there and nothing else happens: CPU time is as long as wall time, and knows nothing of the disk.
COMPUTES = ("decode", "words", "rates")


def took_ms(program, data):
    """Wall time and CPU time."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, data], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1e3, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def interval(values):
    """The median and the order statistics that enclose it with at least 95%."""
    values = sorted(values)
    n = len(values)
    low = max(k for k in range(n // 2 + 1) if sum(math.comb(n, i) for i in range(k)) / 2 ** n <= 0.025)
    return statistics.median(values), values[low - 1 if low else 0], values[n - max(low, 1)]


def gains(slow, programs, data):
    """By name: median gain in ms and its interval; what the slow one takes meanwhile, wall and CPU. Every round runs all
    of them, beginning elsewhere each time."""
    turns, plain = {name: [] for name in programs}, []
    order = [("", slow), *programs.items()]
    for turn in range(ROUNDS_MAX):
        order = order[1:] + order[:1]
        took = {name: took_ms(program, data) for name, program in order}
        plain.append(took[""])
        for name in programs:
            which = name in COMPUTES
            turns[name].append(took[""][which] - took[name][which])
        found = {name: interval(values) for name, values in turns.items()}
        if turn + 1 >= ROUNDS_MIN and all(high - low < 0.1 * gain for gain, low, high in found.values()):
            break
    print(f"{turn + 1} rounds")
    return found, [statistics.median(column) for column in zip(*plain)]


def expected(whyslow, slow, data, folder):
    done = subprocess.run([whyslow, "run", "--json", "--force", "--budget", "60s", "--out", "out", "--", slow, data],
                          cwd=folder, capture_output=True, check=False)
    sys.stderr.write(done.stderr.decode(errors="replace"))
    assert done.returncode == 0, f"exit status {done.returncode}"
    result = json.loads(done.stdout)
    confirmed = [row for row in result["suspicions"] if row["verdict"] == "confirmed"]
    for row in confirmed:
        print(f"  {row['rank']} {row['detector']}: {row['title']} ({row['recoverable_ms']:.1f} ms, {row['location']})")
    artifacts = pathlib.Path(folder, "out", "latest")
    for name in ("report.html", "flame-cpu.svg", "flame-offcpu.svg", "flame-alloc.svg", "flame-io.svg"):
        assert (artifacts / name).stat().st_size > 5000, name
    medians = {row["metric"]: row["median"] / 1e6 for row in result["metrics"] if row["metric"] in ("wall", "cpu_time")}
    return confirmed, result["together"]["recoverable_ms"], [medians["wall"], medians["cpu_time"]]


def main():
    whyslow, slow, fixed, *mended = map(os.path.abspath, sys.argv[1:])
    programs = {os.path.basename(path).removeprefix("ledger-mended-"): path for path in mended}
    assert set(programs) == set(TROUBLES), programs
    words = []
    # Beside the build, not in /tmp: an fsync on a RAM disk would cost nothing.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        data = os.path.join(folder, "data")
        os.mkdir(data)
        subprocess.run([fixed, "generate", data], check=True)
        confirmed, together, then = expected(whyslow, slow, data, folder)
        measured, now = gains(slow, {**programs, "all": fixed}, data)
    print(f"the slow one: {then[0]:.0f} ms then, {now[0]:.0f} ms now; CPU time {then[1]:.0f} and {now[1]:.0f} ms")
    for name in (*TROUBLES, "all"):
        gain, low, high = measured[name]
        detectors, function = TROUBLES.get(name, ((), ""))
        rows = [row for row in confirmed if row["detector"] in detectors and function in row["location"]]
        ms = together if name == "all" else max((row["recoverable_ms"] for row in rows), default=math.nan)
        ms *= now[name in COMPUTES] / then[name in COMPUTES]
        good = low * (1 - TOLERANCE) <= ms <= high * (1 + TOLERANCE)
        word = "vague" if high - low > 2 * VAGUE * gain else "ok" if good else "WRONG"
        words.append(word)
        print(f"{word:<6} {name:<8} expected {ms:7.1f} ms, mending it gains {gain:7.1f} ms "
              f"({low:.1f} to {high:.1f}): {(ms / gain - 1) * 100:+.0f}%")
    if set(words) == {"vague"}:
        print("SKIP: the machine is too restless to measure gains")
        return SKIP
    return 1 if "WRONG" in words else 0


if __name__ == "__main__":
    sys.exit(main())
