#!/usr/bin/python3
"""Waits seen without privileges: `whyslow record --offcpu --tier user` as a nobody.

    waits_user.py NAME WHYSLOW WAITS-USER [DENY]

The workload measures itself what it waited; whyslow must say the same within 5%: both clocks see
one thing, but for what happens between a system call's entry and the switch. Times are judged in the
suite `truth` only. What has to be looked at lasts until it was (seen.py), so that it is in the recording on every
machine.
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import seen  # noqa: E402
from judged import JUDGED, between, time_between, timed  # noqa: E402

name = sys.argv[1]
whyslow, workload, *more = map(os.path.abspath, sys.argv[2:5])
folder = tempfile.mkdtemp(prefix="whyslow-waits-")
os.chmod(folder, 0o777)
os.chdir(folder)
for file in (whyslow, workload, *more):
    shutil.copy(file, folder)
whyslow, workload = "./whyslow", "./waits-user"
environment = {**os.environ, "HOME": folder, "NO_COLOR": "1", "XDG_CACHE_HOME": folder + "/cache"}
PATIENCE_S = 600
SAMPLED, OPEN, LIMITED, FAULT, BY_LIMIT = 1 << 6, 1 << 7, 1 << 4, 1 << 2, 1 << 3
# A nobody of its own: locked memory is counted by user, and tests run side by side.
USER = 61000 + os.getpid() % 4000
AS_NOBODY = ["setpriv", f"--reuid={USER}", "--regid=65534", "--clear-groups"]


def near(what, value, truth, share=0.05, slack_ns=40e6):
    """The program may lose the CPU after a wait and before it looks at its clock: that is no wait."""
    time_between(what, value, truth * (1 - share) - slack_ns, truth * (1 + share))


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

    def one(self, function):
        """The one wait with this function. Short ones that nobody looked at are taken to be like it, and counted as such."""
        rows = self.with_function(function)
        count, alike = sum(r["count"] for r in rows), self.counters["waits.alike"]
        assert 1 <= count <= 1 + alike, (count, alike)
        return max(rows, key=lambda r: r["total_ns"])

    def of_function(self, function):
        return sum(r["total_ns"] for r in self.with_function(function))

    def series(self, which):
        return sum(w for n, _, _, w in self.totals if n == which)

    def complete(self):
        walked = self.counters["waits.complete"] + self.counters["waits.truncated"] + sum(
            v for k, v in self.counters.items() if k.startswith("waits.end."))
        return self.counters["waits.complete"] / walked


def record(*args, options=(), user=AS_NOBODY, status=0, tier="user", lossless=True, until_seen=True):
    """`until_seen`: its first long sleep lasts until it was looked at."""
    pathlib.Path("r.whyslow").unlink(missing_ok=True)
    command = [*user, whyslow, "record", "--offcpu", "--tier", "user", "-o", "r.whyslow", *options,
               "--", *args]
    if until_seen:
        done = seen.run(command, os.path.basename(args[0]), env=environment, timeout=PATIENCE_S)
    else:
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
    print("$", " ".join(command), "->", done.returncode, "\n", done.stdout[-500:], done.stderr, sep="")
    assert done.returncode == status, f"status {done.returncode}, not {status}"
    waits = Waits("r.whyslow")
    assert waits.facts["tier"] == tier
    assert all(r["flags"] & SAMPLED for r in waits.rows), "a row that claims to be exact"
    if lossless:
        timed("nothing was lost", waits.counters["loss.wait_ring_full"] == 0 == waits.counters.get("waits.broken", 0),
              str(waits.counters))
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
    row = waits.one("sleeps_here")
    assert "main" in waits.names(row["stack"])
    assert row["flags"] & LIMITED, dict(row)
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
    time_between("share with a known owner", row["owned_ns"] / row["total_ns"], 0.5, 1)
    time_between("share with the owner off the CPU", row["owner_off_ns"] / row["owned_ns"], 0.5, 1)
    sums_are_lives(waits)


def case_child():
    waits, truth = record(workload, "child")
    near("for the child", waits.of_function("waits_for_the_child"), truth["wait_ns"])
    row = waits.one("waits_for_the_child")
    child = waits.objects[row["object"]]
    assert child["kind"] == "process" and child["key"] == truth["child"]
    sums_are_lives(waits)


def case_poll():
    waits, truth = record(workload, "poll")
    near("in poll", waits.of_function("polls_here"), truth["wait_ns"])
    row = waits.one("polls_here")
    assert row["flags"] & LIMITED
    assert not row["flags"] & BY_LIMIT, "it was told, long before"
    assert waits.objects[row["object"]]["kind"] == "pipe", "the only fd that was polled"
    # Nobody tells it: then it waits as long as its limit, and that has ended it.
    waits, truth = record(workload, "poll", until_seen=False)
    whole = [r for r in waits.with_function("polls_here") if r["max_ns"] >= 249e6]
    assert all(r["flags"] & BY_LIMIT for r in whole), "ended by its limit"
    timed("seen in its wait", whole)


def case_many():
    """500 threads that sleep: one look each is enough."""
    waits, truth = record(workload, "many", "500", "300", until_seen=not JUDGED)
    assert truth["threads"] == 500
    asleep = waits.with_function("sleeps_here")
    # Each look costs some 25 us; of a CPU that others use, too, only a part can be had.
    between("threads seen asleep", len({r["thread"] for r in asleep}), 1, 500)
    timed("half of them seen", len({r["thread"] for r in asleep}) >= 250)
    # What could not be looked at is there all the same, without a cause.
    total = sum(r["total_ns"] for r in waits.rows if r["kind"] == "blocked")
    time_between("off the CPU in all", total, 500 * 290e6, 500 * 2000e6)


def case_brief():
    """Threads that are gone before anybody can look twice: their time is kept."""
    waits, _ = record(workload, "brief", "200", until_seen=False)
    lives = [r for r in waits.threads.values() if r["end_ns"]]
    lost = waits.counters["loss.wait_ring_full"]
    between("threads", len(lives), 201 - lost, 202)
    for row in waits.rows:
        assert row["stack"] or row["syscall"] == -2, "no stack, but a cause"
    time_between("asleep in all", sum(r["total_ns"] for r in waits.rows
                                      if r["kind"] == "blocked" and r["max_ns"] < 1e9), 200 * 3e6, 1e12)


def case_deep():
    """Stacks deeper than the first look are read deeper."""
    waits, truth = record(workload, "deep", "40")
    row = waits.one("sleeps_here")
    near("asleep", row["total_ns"], truth["wait_ns"])
    names = waits.names(row["stack"])
    assert names.count("deep") == 41 and "main" in names, names
    # A wait of its loader may have ended before it was read deep enough.
    timed("all that was looked at is complete", waits.complete() == 1, str(waits.complete()))


def case_pointer():
    """A frame that hangs on the frame pointer, which is not shown to us."""
    waits, truth = record(workload, "pointer")
    row = waits.one("sleeps_here")
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
        row = waits.one("sleeps_in_a_large_frame")
        near("asleep", row["total_ns"], truth["wait_ns"])
        names = waits.names(row["stack"])
        assert "wrong_path" not in names, names
        if os.uname().machine == "x86_64":
            assert "right_path" in names and "main" in names, names


def case_ping():
    """More switches than anybody can look at: all are counted, the causes are as seen nearby."""
    # On a busy machine we may come too late for what the rings can hold: then that is counted.
    waits, truth = record(workload, "ping", "60000", lossless=False, until_seen=False)
    lost = waits.counters["loss.wait_ring_full"]
    counted = sum(r["count"] for r in waits.rows)
    between("waits and preemptions", counted + lost, truth["switches"], 10 ** 7)
    # Waits of 2 us (both on one CPU) are over before they can be looked at: then nothing is
    # claimed. What is claimed is right.
    blocked = [r for r in waits.rows if r["kind"] == "blocked"]
    known = sum(r["total_ns"] for r in blocked if r["stack"])
    print("share of the time with a cause:", known / sum(r["total_ns"] for r in blocked))
    for row in blocked:
        if row["stack"]:
            names = waits.names(row["stack"])  # its loader waits for pages, before main()
            assert "mode_ping" in names or "main" not in names, names
            assert row["syscall"] >= 0 or row["flags"] & FAULT
        else:
            assert row["syscall"] == -2 and row["object"] == 0
    if not lost:
        sums_are_lives(waits)


def case_small():
    """With little locked memory the rings are small, and nothing else changes."""
    waits, truth = record(workload, "sleep", user=[*AS_NOBODY, "prlimit", "--memlock=65536", "--"])
    near("asleep", waits.of_function("sleeps_here"), truth["wait_ns"])


def wait_for(condition, what):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.02)


def is_asleep(pid, program):
    """As this program, not as what was before its exec."""
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == program and seen.asleep([pid]) is not None


def case_attach():
    """A process that waits already when we come: it has waited since then."""
    target = subprocess.Popen([*AS_NOBODY, workload, "sleep"], stdout=subprocess.DEVNULL)
    sleeper = subprocess.Popen([*AS_NOBODY, "sleep", "600"])
    wait_for(lambda: is_asleep(sleeper.pid, "sleep"), "it to be asleep, and nobody")
    recorder = subprocess.Popen([*AS_NOBODY, whyslow, "record", "--offcpu", "--tier", "user", "-o", "r.whyslow",
                                 "-p", str(sleeper.pid)], env=environment, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: seen.looks_by_now(recorder.pid) or recorder.poll() is not None, "its timer")
    watch = seen.Watch(seconds=0.5)
    wait_for(lambda: watch.look(recorder.pid, [sleeper.pid]) or recorder.poll() is not None, "looks at it")
    recorder.send_signal(signal.SIGINT)
    _, words = recorder.communicate(timeout=PATIENCE_S)
    print(words)
    sleeper.send_signal(signal.SIGTERM)
    sleeper.wait()
    target.wait()
    assert recorder.returncode == 0, recorder.returncode
    waits = Waits("r.whyslow")
    row, = [r for r in waits.rows if r["kind"] == "blocked"]
    assert row["flags"] & OPEN, "it goes on"
    assert row["syscall"] >= 0 and row["stack"]
    time_between("waited", row["total_ns"], 400e6, 60e9)


def case_denied():
    """A program that may not be looked at: its times are there, and the reason for the rest."""
    pathlib.Path("kept.c").write_text(
        "#include <sys/prctl.h>\n#include \"told.h\"\n"
        "int main(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); told_sleep(); return 0; }\n")
    workloads = pathlib.Path(os.environ["SOURCE_ROOT"], "tests/workloads")
    subprocess.run(["cc", "-O1", "-I", workloads, "-o", "kept", "kept.c"], check=True)
    waits, _ = record("./kept")
    row = max((r for r in waits.rows if r["kind"] == "blocked"), key=lambda r: r["total_ns"])
    time_between("asleep", row["total_ns"], 190e6, 60e9)
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
        # noticed; on a busy machine it is later still. Of short waits some are not seen at all.
        least = 0.3 * truth["wait_ns"] if mode == "pipe" else 0.7 * truth["wait_ns"] - 40e6
        time_between(f"{mode}: waited", waits.of_function(function), least, 1.1 * truth["wait_ns"])
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
            waits, _ = record("./variant", *mode, until_seen=mode[0] != "many")
            between(f"complete of {flags} {mode}", waits.complete(), 0.99, 1)
            for row in waits.rows:
                names = waits.names(row["stack"])
                if names:
                    roots = ("main", "start_thread", "_start", "clone3", "__clone3", "__libc_start_main")
                    assert any(n in roots for n in names), names


globals()["case_" + name.replace("-", "_")]()
os.chdir("/")
shutil.rmtree(folder)
