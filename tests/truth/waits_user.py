#!/usr/bin/python3
"""Waits seen without privileges: `whyslow record --offcpu --tier user` as a nobody.

    waits_user.py NAME WHYSLOW WAITS-USER [DENY]

The workload measures itself what it waited; whyslow must say the same within 5%: both clocks see
one thing, but for what happens between a system call's entry and the switch.
"""

import collections
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

name = sys.argv[1]
whyslow, workload, *more = map(os.path.abspath, sys.argv[2:5])
folder = tempfile.mkdtemp(prefix="whyslow-waits-")
os.chmod(folder, 0o777)
os.chdir(folder)
for file in (whyslow, workload, *more):
    shutil.copy(file, folder)
whyslow, workload = "./whyslow", "./waits-user"
environment = {**os.environ, "HOME": folder, "NO_COLOR": "1", "XDG_CACHE_HOME": folder + "/cache"}
PATIENCE_S = 120
SAMPLED, OPEN, LIMITED, FAULT = 1 << 6, 1 << 7, 1 << 4, 1 << 2
# A nobody of its own: locked memory is counted by user, and tests run side by side.
USER = 61000 + os.getpid() % 4000
AS_NOBODY = ["setpriv", f"--reuid={USER}", "--regid=65534", "--clear-groups"]


def between(what, value, low, high):
    print(f"{what}: {value} in {low} to {high}")
    assert low <= value <= high, what


def near(what, value, truth, share=0.05, slack_ns=40e6):
    """The program may lose the CPU after a wait and before it looks at its clock: that is no wait."""
    between(what, value, truth * (1 - share) - slack_ns, truth * (1 + share))


class Waits:
    """What a reader that knows only SQLite sees."""

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row
        self.counters = {r["name"]: r["value"] for r in self.db.execute("SELECT * FROM counter")}
        self.facts = json.loads(self.db.execute(
            "SELECT json FROM document WHERE name = 'waits'").fetchone()[0])
        self.rows = self.db.execute("SELECT * FROM wait").fetchall()
        self.events = self.db.execute("SELECT * FROM wait_event").fetchall()
        self.objects = {r["id"]: r for r in self.db.execute("SELECT * FROM object")}
        self.stacks = {r["id"]: r for r in self.db.execute("SELECT * FROM stack")}
        self.frames = {r["id"]: r for r in self.db.execute("SELECT * FROM frame")}
        self.functions = collections.defaultdict(list)
        for row in self.db.execute(
                "SELECT frame, text.text FROM location JOIN function ON function.id = function "
                "JOIN text ON text.id = function.name ORDER BY frame, depth"):
            self.functions[row[0]].append(row[1])
        self.threads = {r["id"]: r for r in self.db.execute("SELECT * FROM thread")}
        self.totals = self.db.execute(
            "SELECT series.name, thread, stack, weight FROM total "
            "JOIN series ON series.id = total.series").fetchall()
        print({k: v for k, v in self.counters.items() if k.startswith(("waits.", "loss.wait"))})
        print(self.facts)
        for row in self.rows[:40]:
            print(dict(row) | {"buckets": "…"}, self.names(row["stack"]))

    def names(self, stack):
        found = []
        while stack:
            node = self.stacks[stack]
            found += self.functions[node["frame"]]
            stack = node["parent"]
        return found

    def with_function(self, function):
        return [r for r in self.rows if r["kind"] == "blocked" and function in self.names(r["stack"])]

    def of_function(self, function):
        return sum(r["total_ns"] for r in self.with_function(function))

    def series(self, which):
        return sum(w for n, _, _, w in self.totals if n == which)

    def complete(self):
        walked = self.counters["waits.complete"] + self.counters["waits.truncated"] + sum(
            v for k, v in self.counters.items() if k.startswith("waits.end."))
        return self.counters["waits.complete"] / walked


def record(*args, options=(), user=AS_NOBODY, status=0, tier="user", lossless=True):
    pathlib.Path("r.whyslow").unlink(missing_ok=True)
    command = [*user, whyslow, "record", "--offcpu", "--tier", "user", "-o", "r.whyslow", *options,
               "--", *args]
    done = subprocess.run(command, env=environment, capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    print("$", " ".join(command), "->", done.returncode, "\n", done.stdout[-500:], done.stderr, sep="")
    assert done.returncode == status, f"status {done.returncode}, not {status}"
    waits = Waits("r.whyslow")
    assert waits.facts["tier"] == tier
    assert all(r["flags"] & SAMPLED for r in waits.rows), "a row that claims to be exact"
    if lossless:
        assert waits.counters["loss.wait_ring_full"] == 0
        assert waits.counters.get("waits.broken", 0) == 0
    return waits, (json.loads(done.stdout) if done.stdout.startswith("{") else None)


def sums_are_lives(waits):
    """Running, ready and blocked make up each thread's life, but for its first and last steps."""
    parts = collections.Counter()
    for series, thread, _, weight in waits.totals:
        if series == "running":
            parts[thread] += weight
    for row in waits.rows:
        parts[row["thread"]] += row["total_ns"]
    for thread, ns in parts.items():
        row = waits.threads[thread]
        life_ns = row["end_ns"] - row["start_ns"]
        if life_ns > 100e6:
            near(f"parts of thread {row['tid']}'s life", ns, life_ns, 0.02 + 5e6 / life_ns, 0)


def case_sleep():
    waits, truth = record(workload, "sleep")
    near("asleep", waits.of_function("sleeps_here"), truth["wait_ns"])
    row, = waits.with_function("sleeps_here")
    assert "main" in waits.names(row["stack"])
    assert row["flags"] & LIMITED and row["count"] == 1
    assert waits.series("offcpu") == sum(r["total_ns"] for r in waits.rows if r["kind"] == "blocked")
    event = max(waits.events, key=lambda e: e["blocked_ns"])
    near("the event", event["blocked_ns"], truth["wait_ns"])
    assert event["wait"] == row["id"]
    sums_are_lives(waits)


def case_pipe():
    waits, truth = record(workload, "pipe")
    near("behind the pipe", waits.of_function("reads_here"), truth["wait_ns"], slack_ns=100e6)
    objects = [waits.objects[r["object"]] for r in waits.with_function("reads_here") if r["object"]]
    assert objects and all(o["kind"] == "pipe" and "pipe:[" in o["name"] for o in objects), objects
    sums_are_lives(waits)


def case_lock():
    waits, truth = record(workload, "lock")
    near("behind the lock", waits.of_function("waits_for_the_lock"), truth["wait_ns"])
    row = max(waits.with_function("waits_for_the_lock"), key=lambda r: r["total_ns"])
    lock = waits.objects[row["object"]]
    assert lock["kind"] == "futex" and lock["key"] == truth["mutex"]
    assert row["detail"] == 1, "a mutex of glibc is FUTEX_WAIT for 2"
    assert row["waker_thread"] not in (0, row["thread"])
    assert "holds_the_lock" in waits.names(row["waker_stack"]), "the owner was asleep in it"
    between("share with the owner off the CPU", row["owner_off_ns"] / row["owned_ns"], 0.5, 1)
    sums_are_lives(waits)


def case_child():
    waits, truth = record(workload, "child")
    near("for the child", waits.of_function("waits_for_the_child"), truth["wait_ns"])
    row, = waits.with_function("waits_for_the_child")
    child = waits.objects[row["object"]]
    assert child["kind"] == "process" and child["key"] == truth["child"]
    sums_are_lives(waits)


def case_poll():
    waits, truth = record(workload, "poll")
    near("in poll", waits.of_function("polls_here"), truth["wait_ns"])
    row, = waits.with_function("polls_here")
    assert row["flags"] & LIMITED
    assert waits.objects[row["object"]]["kind"] == "pipe", "the only fd that was polled"


def case_many():
    """500 threads that sleep: one look each is enough."""
    waits, truth = record(workload, "many", "500")
    assert truth["threads"] == 500
    asleep = waits.with_function("sleeps_here")
    # Each look costs some 25 us; of a CPU that others use, too, only a part can be had.
    between("threads seen asleep", len({r["thread"] for r in asleep}), 250, 500)
    # What could not be looked at is there all the same, without a cause.
    total = sum(r["total_ns"] for r in waits.rows if r["kind"] == "blocked")
    between("off the CPU in all", total, 500 * 290e6, 500 * 2000e6)


def case_brief():
    """Threads that are gone before anybody can look twice: their time is kept."""
    waits, _ = record(workload, "brief", "200")
    lives = [r for r in waits.threads.values() if r["end_ns"]]
    between("threads", len(lives), 201, 202)
    for row in waits.rows:
        assert row["stack"] or row["syscall"] == -2, "no stack, but a cause"
    between("asleep in all", sum(r["total_ns"] for r in waits.rows
                                 if r["kind"] == "blocked" and r["max_ns"] < 1e9), 200 * 3e6, 1e12)


def case_deep():
    """Stacks deeper than the first look are read deeper."""
    waits, truth = record(workload, "deep", "40")
    row, = waits.with_function("sleeps_here")
    near("asleep", row["total_ns"], truth["wait_ns"])
    names = waits.names(row["stack"])
    assert names.count("deep") == 41 and "main" in names, names
    assert waits.complete() == 1


def case_pointer():
    """A frame that hangs on the frame pointer, which is not shown to us."""
    waits, truth = record(workload, "pointer")
    row, = waits.with_function("sleeps_here")
    near("asleep", row["total_ns"], truth["wait_ns"])
    names = waits.names(row["stack"])
    if os.uname().machine == "x86_64":
        assert "variable_frame" in names and "main" in names, names
        assert waits.counters["waits.frame_pointers_found"] >= 1


def case_stale():
    """What an earlier call of the same function left behind is not taken for its caller."""
    source = pathlib.Path(os.environ["SOURCE_ROOT"], "tests/workloads/waits_user.c")
    for flags in (["-O2"], ["-O2", "-fno-omit-frame-pointer"], ["-O0"]):
        subprocess.run(["cc", "-g", "-pthread", *flags, "-o", "variant", source], check=True)
        waits, truth = record("./variant", "stale")
        row, = waits.with_function("sleeps_in_a_large_frame") or [None]
        near("asleep", row["total_ns"], truth["wait_ns"])
        names = waits.names(row["stack"])
        assert "wrong_path" not in names, names
        if os.uname().machine == "x86_64":
            assert "right_path" in names and "main" in names, names


def case_ping():
    """More switches than anybody can look at: all are counted, the causes are as seen nearby."""
    # On a busy machine we may come too late for what the rings can hold: then that is counted.
    waits, _ = record(workload, "ping", "60000", lossless=False)
    lost = waits.counters["loss.wait_ring_full"]
    counted = sum(r["count"] for r in waits.rows)
    between("waits and preemptions", counted + lost, 60000, 10 ** 7)
    # Waits of 2 us (both on one CPU) are over before they can be looked at: then nothing is
    # claimed. What is claimed is right.
    blocked = [r for r in waits.rows if r["kind"] == "blocked"]
    known = sum(r["total_ns"] for r in blocked if r["stack"])
    print("share of the time with a cause:", known / sum(r["total_ns"] for r in blocked))
    for row in blocked:
        if row["stack"]:
            assert "mode_ping" in waits.names(row["stack"]), waits.names(row["stack"])
            assert row["syscall"] >= 0 or row["flags"] & FAULT
        else:
            assert row["syscall"] == -2 and row["object"] == 0
    if not lost:
        sums_are_lives(waits)


def case_small():
    """With little locked memory the rings are small, and nothing else changes."""
    waits, truth = record(workload, "sleep", user=[*AS_NOBODY, "prlimit", "--memlock=65536", "--"])
    near("asleep", waits.of_function("sleeps_here"), truth["wait_ns"])


def case_attach():
    """A process that waits already when we come: it has waited since then."""
    target = subprocess.Popen([*AS_NOBODY, workload, "sleep"], stdout=subprocess.DEVNULL)
    sleeper = subprocess.Popen([*AS_NOBODY, "sleep", "600"])
    time.sleep(0.2)
    done = subprocess.run([*AS_NOBODY, whyslow, "record", "--offcpu", "--tier", "user", "-o",
                           "r.whyslow", "-p", str(sleeper.pid), "-d", "500ms"], env=environment,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    print(done.stderr)
    sleeper.send_signal(signal.SIGTERM)
    sleeper.wait()
    target.wait()
    assert done.returncode == 0, done.returncode
    waits = Waits("r.whyslow")
    row, = [r for r in waits.rows if r["kind"] == "blocked"]
    assert row["flags"] & OPEN, "it goes on"
    assert row["syscall"] >= 0 and row["stack"]
    between("waited", row["total_ns"], 400e6, 60e9)


def case_denied():
    """A program that may not be looked at: its times are there, and the reason for the rest."""
    pathlib.Path("kept.c").write_text(
        "#include <sys/prctl.h>\n#include <time.h>\n#include <unistd.h>\n"
        "int main(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); usleep(200000); return 0; }\n")
    subprocess.run(["cc", "-O1", "-o", "kept", "kept.c"], check=True)
    waits, _ = record("./kept")
    row = max((r for r in waits.rows if r["kind"] == "blocked"), key=lambda r: r["total_ns"])
    between("asleep", row["total_ns"], 190e6, 60e9)
    assert row["stack"] == 0 and row["syscall"] == -2, "nothing is claimed"
    assert "may not be looked at" in waits.facts["looks_na"], waits.facts


def case_floor():
    """Where perf_event_open() is denied, the looks are all there is; that is said."""
    denied = [*AS_NOBODY, "./deny", "13"]
    for mode, function in (("sleep", "sleeps_here"), ("lock", "waits_for_the_lock"),
                           ("child", "waits_for_the_child"), ("pipe", "reads_here")):
        waits, truth = record(workload, mode, user=denied, tier="floor")
        assert "perf_event_paranoid" in waits.facts["why_not_user"], waits.facts
        assert waits.facts["why_not_kernel"]
        # From the first look to the last: 10 ms at either end, 20 more until the program is
        # noticed; on a busy machine it is later still.
        between(f"{mode}: waited", waits.of_function(function), 0.3 * truth["wait_ns"],
                1.1 * truth["wait_ns"])
        row = max(waits.with_function(function), key=lambda r: r["total_ns"])
        assert "main" in waits.names(row["stack"])
    # Who asks for samples is told that there are none.
    done = subprocess.run([*denied, whyslow, "record", "--cpu", "--offcpu", "-o", "x.whyslow", "--",
                           workload, "sleep"], env=environment, capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    assert done.returncode == 4 and "perf_event_paranoid" in done.stderr, done.stderr


def case_complete():
    """How many stacks are whole: with and without frame pointers, optimised or not."""
    source = pathlib.Path(os.environ["SOURCE_ROOT"], "tests/workloads/waits_user.c")
    for flags in (["-O2"], ["-O2", "-fno-omit-frame-pointer"], ["-O0"], ["-O2", "-static"],
                  ["-O2", "-static", "-fno-omit-frame-pointer"]):
        subprocess.run(["cc", "-g", "-pthread", *flags, "-o", "variant", source], check=True)
        for mode in (["pipe"], ["lock"], ["child"], ["poll"], ["many", "50"], ["pointer"]):
            waits, _ = record("./variant", *mode)
            between(f"complete of {flags} {mode}", waits.complete(), 0.99, 1)
            for row in waits.rows:
                names = waits.names(row["stack"])
                if names:
                    roots = ("main", "start_thread", "_start", "clone3", "__clone3", "__libc_start_main")
                    assert any(n in roots for n in names), names


globals()["case_" + name.replace("-", "_")]()
os.chdir("/")
shutil.rmtree(folder)
