"""The corpus of planted trouble: what `whyslow run` must confirm, dismiss, and never say.

For every detector there are a program with the trouble (it must be confirmed and ranked first), a
near miss (the same shape without the trouble: it must be dismissed, with a reason) and a clean
program (nothing may be confirmed). A file of cases calls main() with a table:

    CASES = {"small_io": {"planted": [...], "near": [...], "clean": [...]}}

A command is a list of arguments; a callable makes one in a given folder. `also` names detectors
that may be confirmed beside it because they are true of it, each with the reason in a comment; `options` are
more of them for `whyslow run`.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time


def busy_seconds():
    """Of all CPUs since the machine started, of this test and its children, and what other guests took."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal, *_ = map(int, file.readline().split()[1:])
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = os.sysconf("SC_CLK_TCK")
    return ((user + nice + system + irq + softirq) / ticks, sum(each.ru_utime + each.ru_stime for each in usage),
            steal / ticks)


def is_crowded(before, after, capacity):
    """Others had the CPUs: other programs, or other guests of the same host."""
    busy, own, stolen = (b - a for a, b in zip(before, after))
    print(f"CPU time of others: {busy - own:.1f} s, of other guests: {stolen:.1f} s, ours: {own:.1f} s of {capacity:.1f} s")
    return busy - own > CROWDED * capacity or stolen > CROWDED * (own + stolen)


def run(whyslow, command, folder, *options, env=None):
    """The JSON of `whyslow run` and the artifacts' folder. Its key "crowded" says whether others had the CPUs."""
    started, before = time.monotonic(), busy_seconds()
    done = subprocess.run([whyslow, "run", "--quick", "--json", "--out", "out", *options, "--", *command], cwd=folder,
                          capture_output=True, check=False, env=env, timeout=240)
    sys.stderr.write(done.stderr.decode(errors="replace"))
    # 3: the baseline drifted, as on a busy machine; the ranking is there all the same, and marked.
    assert done.returncode in (0, 3), f"exit status {done.returncode}"
    capacity = (time.monotonic() - started) * os.cpu_count()
    result = json.loads(done.stdout)
    result["crowded"] = is_crowded(before, busy_seconds(), capacity)
    return result, pathlib.Path(folder) / "out" / "latest"


def suspicions(result, verdict=None, detector=None):
    return [row for row in result["suspicions"] if (verdict is None or row["verdict"] == verdict)
            and (detector is None or row["detector"] == detector)]


def show(result):
    for row in suspicions(result, "confirmed"):
        print(f"  confirmed {row['rank']} {row['detector']}: {row['title']} ({row['recoverable_ms']} ms)")


# True of any program while others have the CPUs, and not planted: a test is not alone on its machine. A share of all
# CPUs' time, or of what was asked of them; programs that a command leaves to others (a server outside of it) are such
# others, too.
AROUND = ("cpu_starvation",)
CROWDED = 0.04


def judge(detector, kind, result, also=()):
    """Complaints."""
    confirmed = [row for row in suspicions(result, "confirmed")
                 if row["detector"] == detector or row["detector"] not in AROUND or not result.get("crowded", True)]
    names = [row["detector"] for row in confirmed]
    show(result)
    if kind == "planted":
        if not confirmed or confirmed[0]["detector"] != detector:
            yield f"{detector} is not first: {names}; {suspicions(result, detector=detector)}"
        yield from (f"false: {row['detector']}: {row['title']}" for row in confirmed
                    if row["detector"] != detector and row["detector"] not in also)
    elif kind == "near":
        own = suspicions(result, detector=detector)
        if any(row["verdict"] != "dismissed" or not row["reason"] for row in own) or not own:
            yield f"{detector} is not dismissed with a reason: {own}"
        yield from (f"false: {row['detector']}: {row['title']}" for row in confirmed if row["detector"] not in also)
    else:
        yield from (f"false: {row['detector']}: {row['title']}" for row in confirmed if row["detector"] not in also)


def case(whyslow, detector, kind, table):
    command = table[kind]
    # Beside the build, not in /tmp: an fsync on a RAM disk would cost nothing.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        if callable(command):
            command = command(folder)
        result, _ = run(whyslow, command, folder, *table.get("options", ()))
        complaints = list(judge(detector, kind, result, table.get("also", {}).get(kind, ())))
    for line in complaints:
        print("WRONG", line)
    print("ok" if not complaints else "", detector, kind)
    return 1 if complaints else 0


def main(cases, whyslow, detector, kind):
    return case(os.path.abspath(whyslow), detector, kind, cases[detector])
