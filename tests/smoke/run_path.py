#!/usr/bin/python3
"""Where the wall time of a run goes, against programs that know.

    run_path.py CASE TIER WHYSLOW DUMP PATH_KNOWN

A program burns CPU time by its thread's own clock, so that a busy machine does not make the answer
wrong; what it has to wait for a CPU stands in a class of its own. Times are those of the recorded
run: nothing is scaled. Tolerances, with their reasons, stand beside each check.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import timed  # noqa: E402

case, tier = sys.argv[1:3]
whyslow, dump, known = map(os.path.abspath, sys.argv[3:6])
# 999 samples a second tell 300 ms to 3% at two standard deviations, and a VM's clock ticks late; 5 ms are the loader,
# the exit and the beginning of the recording. What a hypervisor takes from a thread that runs is in no clock of that
# thread: a window with steal is not judged.
SHARE, SLACK_MS = 0.10, 5


def recorded(command, *options, folder):
    """What is said of one recorded run of it, and what the program said itself."""
    argv = [whyslow, "record", "--cpu", "--offcpu", "--locks", "-o", "r.whyslow", *options, "--", *command]
    as_nobody = {"user": "nobody", "group": "nogroup"} if tier == "nobody" else {}
    done = subprocess.run(argv, cwd=folder, capture_output=True, check=False, timeout=600, **as_nobody)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    own = [json.loads(line) for line in done.stderr.decode().splitlines() if line.startswith("{")]
    return told(folder), own


def told(folder, *options):
    out = subprocess.run([dump, *options, "r.whyslow"], cwd=folder, capture_output=True, check=True, timeout=600)
    answer = json.loads(out.stdout)
    whole = sum(row["ns"] for row in answer["rows"])
    assert abs(whole - answer["ns"]) <= 1e-6 * answer["ns"], "the rows are the path"
    for name, ns in answer["classes"].items():
        assert abs(ns - sum(row["ns"] for row in answer["rows"] if row["class"] == name)) < 1000, name
    return answer


def ms(answer, function=None, what=None, syscall=None):
    return sum(row["ns"] for row in answer["rows"]
               if (function is None or function in row["through"]) and (what is None or row["class"] == what)
               and (syscall is None or row["syscall"] == syscall)) / 1e6


def near(name, value, wanted, below=SHARE, above=SHARE):
    """How long is the machine's affair; that it is on the path at all is ours."""
    assert value > 0, name
    low, high = wanted * (1 - below) - SLACK_MS, wanted * (1 + above) + SLACK_MS
    timed(name, low <= value <= high, f"{value:.1f} ms in {low:.1f} to {high:.1f}")


def hotspot(answer, **wanted):
    rows = [row for row in answer["hotspots"] if all(row[key] == value for key, value in wanted.items())]
    assert rows, (wanted, answer["hotspots"])
    return rows[0]


def shown(answer, row, folder):
    """The command that a row names shows what it is about."""
    out = subprocess.run([whyslow, *row["command"].split()[1:]], cwd=folder, capture_output=True, check=False,
                         timeout=600)
    assert out.returncode == 0, out.stderr
    return out.stdout.decode()


def split(folder):
    answer, _ = recorded([known, "split", "300", "200", "400"], folder=folder)
    near("burn_f", ms(answer, "burn_f", "running"), 300)
    near("burn_g", ms(answer, "burn_g", "running"), 200)
    near("doze", ms(answer, "doze", "timer"), 400)
    near("sampled by itself", answer["sampled_ns"] / 1e6, 500)
    assert not answer["na"] and answer["stretch"] == 0
    first = hotspot(answer, function="burn_f")
    assert first["id"].startswith("f") and first["share_low"] < first["share"] < first["share_high"], first
    assert "burn_f" in shown(answer, first, folder)
    sleep = hotspot(answer, metric="sleep", function="doze")
    assert sleep["category"] == "wait" and sleep["id"].startswith("w"), sleep
    assert "doze" in shown(answer, sleep, folder)
    # As plain runs would have counted on a quiet machine: 0.9 s of wall time, 0.5 s of CPU time, two waits. What a
    # busy one makes of the recorded run is cut.
    quiet = told(folder, "-w", "905e6", "-c", "500e6", "-v", "2")
    timed("stretch", quiet["stretch"] < 0.05, str(quiet["stretch"]))
    ledger = quiet["ledger"]
    # All three sources; confirmed it would be with a finding, which nobody looks for here.
    timed("hot_loop", ledger["hot_loop"]["verdict"] == "supported", str(ledger["hot_loop"]))
    timed("sleep", ledger["sleep"]["verdict"] == "supported", str(ledger["sleep"]))
    for name in "lock", "io_wait", "fsync", "network_wait", "serial_section", "page_faults", "child_processes":
        timed(name, ledger[name]["verdict"] == "rejected", str(ledger[name]))
    # Plain runs that never left the CPU: then the recording is not believed.
    ledger = told(folder, "-w", "900e6", "-c", "895e6", "-v", "0")["ledger"]
    timed("sleep that plain runs do not have", ledger["sleep"]["verdict"] == "disputed", str(ledger["sleep"]))
    scaled = told(folder, "-w", "450e6")
    near("burn_f of a run of half the time", ms(scaled, "burn_f", "running"), 150, 0.15)
    timed("stretch of a run of half the time", scaled["stretch"] > 0.5, str(scaled["stretch"]))


def threads(folder):
    answer, _ = recorded([known, "threads", "500", "200"], folder=folder)
    near("burn_f, which is waited for", ms(answer, "burn_f", "running"), 500)
    # What is done meanwhile is not on the path.
    timed("burn_g, done meanwhile", ms(answer, "burn_g") < 40, str(ms(answer, "burn_g")))


def lock(folder):
    answer, _ = recorded([known, "lock", "300"], folder=folder)
    near("burn_g, which holds it", ms(answer, "burn_g", "running"), 300)
    timed("a wait is charged to whom it waits for", ms(answer, what="lock") < 20, str(ms(answer, what="lock")))


def sync(folder):
    answer, own = recorded([known, "sync", "200"], folder=folder)
    # The program's clock runs on while it waits for a CPU; unless a wait came before, that is in no place.
    elsewhere = ms(answer, what="runq") - ms(answer, "commit", "runq")
    near("commit", ms(answer, "commit"), own[0]["sum_ms"], SHARE + elsewhere / own[0]["sum_ms"])
    in_calls = ms(answer, "commit", syscall="fsync") + ms(answer, "commit", syscall="write")
    print(f"in calls: {in_calls:.1f} ms")
    timed("in calls", in_calls > 0.8 * ms(answer, "commit"), str(in_calls))
    # A disk may be faster than the kernel's way to it; but it is waited for, and nowhere else.
    timed("the disk is waited for in fsync", ms(answer, syscall="fsync", what="disk") > 0.9 * ms(answer, what="disk") > 0,
          str(answer["classes"]))
    disk = hotspot(answer, metric="wait on disk", function="commit")
    assert disk["category"] == "I/O" and "fsync" in disk["location"], disk
    assert "commit" in shown(answer, disk, folder)


def children(folder):
    answer, _ = recorded([known, "children", "300", "200"], folder=folder)
    near("burn_f of the first child", ms(answer, "burn_f", "running"), 300)
    near("burn_g of the second", ms(answer, "burn_g", "running"), 200)
    timed("child_processes", answer["ledger"]["child_processes"]["verdict"] == "supported",
          str(answer["ledger"]["child_processes"]))


def pipeline(folder):
    answer, _ = recorded(["sh", "-c", f"{known} feed 300 | {known} take 200"], folder=folder)
    near("burn_g, after all was read", ms(answer, "burn_g", "running"), 200)
    if tier == "nobody":  # who wrote into a pipe is not known: the wait stays
        waited = ms(answer, "take") - ms(answer, "burn_g")
        timed("the wait stays", waited > 300 * (1 - SHARE), str(waited))  # and what the writer had to wait for a CPU
    else:
        near("burn_f, before there is anything to read", ms(answer, "burn_f", "running"), 300)


def make(folder):
    pathlib.Path(folder, "Makefile").write_text(
        f"all: one two\none:\n\t@{known} split 300 0 0\ntwo:\n\t@{known} split 0 100 0\n")
    answer, _ = recorded(["make", "-s", "-j2", "all"], folder=folder)
    near("burn_f of the longer job", ms(answer, "burn_f", "running"), 300)
    timed("the shorter one is hardly on the path", ms(answer, "burn_g") < 60, str(ms(answer, "burn_g")))


def starve(folder):
    answer, _ = recorded([known, "starve", "300"], folder=folder)
    near("burn_f", ms(answer, "burn_f", "running"), 300, 0.15, 0.20)  # or in the end the child's
    timed("two want one CPU", ms(answer, what="runq") > 200, str(ms(answer, what="runq")))
    # No place in the program: the path has it, and no hotspot is made of it.
    assert not [row for row in answer["hotspots"] if row["id"] == "runq" or "for a CPU" in row["metric"]], answer["hotspots"]
    ledger = told(folder, "-w", "600e6", "-c", "600e6", "-v", "1")["ledger"]
    timed("starvation", ledger["starvation"]["tracing"] == "supports", str(ledger["starvation"]))


CASES = {check.__name__: check for check in (split, threads, lock, sync, children, pipeline, make, starve)}

if os.geteuid() != 0:
    print("SKIP: the kernel tier needs root, and so does becoming nobody")
    sys.exit(77)
if case == "make" and not shutil.which("make"):
    print("SKIP: no make")
    sys.exit(77)
# Beside the build: an fsync on a RAM disk would cost nothing. For nobody where nobody may write.
beside = None if tier == "nobody" else os.path.dirname(whyslow)
with tempfile.TemporaryDirectory(dir=beside) as made:
    os.chmod(made, 0o777)
    CASES[case](made)
print("ok")
