#!/usr/bin/python3
"""`whyslow record` on programs, users and limits that make it hard; the answers are known.

    record.py NAME WHYSLOW FOLLOW KNOWN LIBRARY-A LIBRARY-B

What share of the CPU time was sampled is judged in the suite `truth` only; counts, stacks and
structure everywhere, with what is said to be lost.
"""

import collections
import json
import os
import pathlib
import pty
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import between, time_between, timed  # noqa: E402

name = sys.argv[1]
whyslow, follow, known, library_a, library_b = map(os.path.abspath, sys.argv[2:7])
folder = tempfile.mkdtemp(prefix="whyslow-record-")
os.chmod(folder, 0o777)
os.chdir(folder)
environment = {**os.environ, "HOME": folder, "NO_COLOR": "1"}
PATIENCE_S = 600


def run(*args, status=0, **more):
    done = subprocess.run(args, env=environment, capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False, **more)
    print("$", " ".join(args), "->", done.returncode, "\n", done.stderr, sep="")
    assert done.returncode == status, f"status {done.returncode}, not {status}"
    return done


class Recording:
    """What a reader that knows only SQLite sees."""

    def __init__(self, path="recording.whyslow"):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.counters = dict(self.db.execute("SELECT name, value FROM counter"))
        self.functions = collections.defaultdict(list)
        for frame, function in self.db.execute(
                "SELECT frame, text.text FROM location JOIN function ON function.id = function "
                "JOIN text ON text.id = function.name ORDER BY frame, depth"):
            self.functions[frame].append(function)
        self.frames = {row[0]: row[1:] for row in self.db.execute(
            "SELECT id, kind, reason, image FROM frame")}
        self.images = dict(self.db.execute("SELECT id, path FROM image"))
        self.stacks = {row[0]: row[1:] for row in self.db.execute("SELECT id, parent, frame FROM stack")}
        self.processes = {row[0]: row[1:] for row in self.db.execute(
            "SELECT id, pid, exe, command FROM process")}
        self.threads = {row[0]: row[1:] for row in self.db.execute(
            "SELECT id, process, tid, name FROM thread")}
        self.totals = self.db.execute(
            "SELECT thread, stack, count, weight FROM total WHERE series = "
            "(SELECT id FROM series WHERE name = 'cpu')").fetchall()

    def document(self, which):
        return json.loads(self.db.execute("SELECT json FROM document WHERE name = ?", (which,)).fetchone()[0])

    def names(self, stack):
        found = []
        while stack:
            stack, frame = self.stacks[stack]
            found += self.functions[frame]
        return found

    def images_of(self, stack):
        found = set()
        while stack:
            stack, frame = self.stacks[stack]
            found.add(self.images.get(self.frames[frame][2]))
        return found

    def weight(self, function):
        return sum(w for _, s, _, w in self.totals if function in self.names(s))

    def exe(self, thread):
        return self.processes[self.threads[thread][0]][1]

    def share_of_rusage(self):
        return self.counters["cpu.sampled_ns"] / self.counters["cpu.rusage_ns"]

    def complete(self):
        return self.counters["cpu.complete"] / self.counters["cpu.samples"]


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def committed(path):
    """Samples that are safe in a recording that is still being made."""
    if not os.path.exists(path):
        return False
    done = subprocess.run([whyslow, "query", "--json", path, "SELECT count(*) AS n FROM total"],
                          capture_output=True, check=False)
    return done.returncode == 0 and json.loads(done.stdout)["rows"][0]["n"] > 0


def as_nobody(*args, **more):
    home = pathlib.Path(folder, "nobody")
    home.mkdir(exist_ok=True)
    home.chmod(0o777)
    for file in (whyslow, follow, known):
        shutil.copy(file, home)
    moved = [str(home / pathlib.Path(a).name) if a in (whyslow, follow, known) else a for a in args]
    # A nobody of its own: locked memory is counted by user, and tests run side by side.
    nobody = 61000 + os.getpid() % 4000
    return run("setpriv", f"--reuid={nobody}", "--regid=65534", "--clear-groups", *moved,
               cwd=home, **more), home


def case_status():
    run(whyslow, "record", "--", known, "exit=7", status=7)
    run(whyslow, "record", "--", "sh", "-c", "kill -TERM $$", status=128 + 15)
    run(whyslow, "record", "--", "sh", "-c", "kill -KILL $$", status=128 + 9)
    # A free name each time, never over another.
    assert sorted(p.name for p in pathlib.Path().glob("*.whyslow")) == [
        "recording-2.whyslow", "recording-3.whyslow", "recording.whyslow"]
    done = run(whyslow, "record", "-o", "x.whyslow", "--", "sh", "-c", "echo out; echo err >&2; cat",
               input="typed")
    assert done.stdout == "out\ntyped", done.stdout
    assert "err\n" in done.stderr


def case_refused():
    def refused(*args, status, words):
        done = run(whyslow, "record", *args, status=status)
        for word in words:
            assert word in done.stderr, (word, done.stderr)
        assert "try: " in done.stderr
        assert not list(pathlib.Path().glob("*.whyslow*")), "a recording of nothing"

    refused(status=2, words=["nothing to record"])
    refused("-p", "1", "-a", status=2, words=["exclude each other"])
    refused("-p", "4000000000", status=2, words=["no process"])
    refused("-p", "2147483646", status=2, words=["2147483646"])
    refused("-F", "0", "--", "true", status=2, words=["rate"])
    refused("-F", "1000000", "--", "true", status=2, words=["rate"])
    refused("--", "no-such-program", status=2, words=["no-such-program"])
    refused("--cgroup", "no/such/cgroup", status=2, words=["cgroup"])
    pathlib.Path("there").write_text("mine")
    done = run(whyslow, "record", "-o", "there", "--", "true", status=2)
    assert pathlib.Path("there").read_text() == "mine" and "there" in done.stderr
    done, _ = as_nobody(whyslow, "record", "-p", str(os.getpid()), status=4)
    assert "another user" in done.stderr and "try: " in done.stderr
    done, _ = as_nobody(whyslow, "record", "-a", "-d", "1", status=4)
    assert "perf_event_paranoid" in done.stderr


def case_no_cpu():
    done = run(whyslow, "record", "-F", "10", "--", "sleep", "0.1")
    r = Recording()
    assert r.counters["cpu.samples"] == 0
    assert "no sample" in done.stderr and "raise it with -F" in done.stderr


def case_exec():
    run(whyslow, "record", "--", follow, "exec", known, "burn-ms=700")
    r = Recording()
    seen = collections.defaultdict(set)
    for thread, stack, _, _ in r.totals:
        names = r.names(stack)
        for function in ("burn_before_exec", "burn"):
            if function in names:
                seen[function].add(r.exe(thread))
    assert seen["burn_before_exec"] == {follow}, seen
    assert seen["burn"] == {known}, seen
    for process, (_, exe, command) in r.processes.items():
        assert "burn-ms=700" in command and exe in (follow, known), (process, exe, command)
    # No frame of the first program after the exec, none of the second before.
    for thread, stack, _, _ in r.totals:
        other = known if r.exe(thread) == follow else follow
        assert other not in r.images_of(stack)
    time_between("sampled", r.share_of_rusage(), 0.95, 1.05)


def case_fork():
    run(whyslow, "record", "--", follow, "fork", "400")
    r = Recording()
    pids = {f: {r.processes[r.threads[t][0]][0] for t, s, _, _ in r.totals if f in r.names(s)}
            for f in ("burn_in_parent", "burn_in_child")}
    assert len(pids["burn_in_parent"]) == len(pids["burn_in_child"]) == 1, pids
    assert pids["burn_in_parent"] != pids["burn_in_child"]
    # Lost or counted twice it would be half or twice as much; a stolen CPU alone makes 5%.
    time_between("of the child", r.weight("burn_in_child") / r.weight("burn_in_parent"), 0.85, 1.15)
    time_between("sampled", r.share_of_rusage(), 0.95, 1.05)


def case_reload():
    run(whyslow, "record", "--", follow, "reload", library_a, library_b, "200")
    r = Recording()
    for function, library in (("plt_50", library_a), ("dlopen_50", library_b)):
        stacks = [s for _, s, _, _ in r.totals if function in r.names(s)]
        assert stacks, function
        for stack in stacks:
            assert library in r.images_of(stack)
            assert (library_b if library == library_a else library_a) not in r.images_of(stack)
        time_between(function, r.weight(function) / 1e6, 180, 240)
    between("complete", r.complete(), 0.99, 1)


def case_many():
    run(whyslow, "record", "-o", "t.whyslow", "--", follow, "threads", "10000")
    r = Recording("t.whyslow")
    lost = r.counters["loss.ring_full"]
    print("lost", lost)
    between("threads", len(r.threads), 10001 - lost, 10001)
    assert len(r.processes) == 1 and {t[2] for t in r.threads.values()} == {"follow"}
    # So often that samples fall between fork and exec, and inside exec.
    run(whyslow, "record", "-F", "9999", "-o", "p.whyslow", "--", follow, "processes", "1000")
    r = Recording("p.whyslow")
    lost = r.counters["loss.ring_full"]
    print("lost", lost)
    pids = collections.defaultdict(set)
    for pid, exe, _ in r.processes.values():
        pids[exe].add(pid)
    true = os.path.realpath("/bin/true")
    # What was sampled before its exec is two rows: a fork, and the program it became.
    # What was lost of another may have been its exec: then nobody knows what it has become.
    between("forks", len(pids[follow] - pids[true]), 501 - lost, 501 + lost)
    between("execs", len(pids[true]), 500 - lost, 500)
    assert set(pids) <= {follow, true, *([""] if lost else [])} and len(pids.get("", ())) <= lost, pids.keys()
    for thread, stack, _, _ in r.totals:
        other = follow if r.exe(thread) == true else true
        assert lost or other not in r.images_of(stack), "a stack of another program"


def case_attach():
    target = subprocess.Popen([follow, "growing", "600000"])
    try:
        run(whyslow, "record", "-p", str(target.pid), "-d", "2")
        assert target.poll() is None
    finally:
        target.kill()
        target.wait()
    r = Recording()
    tids = {r.threads[t][1] for t, s, _, _ in r.totals if "burn_in_thread" in r.names(s)}
    # 64 threads are made in the first half second; a busy machine may not run all of them.
    between("threads with samples", len(tids), 1, 64)
    timed("most threads", len(tids) >= 10, str(len(tids)))
    assert {p[0] for p in r.processes.values()} == {target.pid}
    # Counted twice would be 200%. Of each thread the last part of a period is not seen, once
    # for each of the three sets of events: at most 3.3 ms, half of that on average.
    unseen = 64 * 3.3e6 / r.counters["cpu.rusage_ns"]
    time_between("sampled", r.share_of_rusage(), 0.95 - unseen, 1.03)
    between("complete", r.complete(), 0.98, 1)


def case_attach_ends():
    # It burns on until a sample of it is in the recording.
    target = subprocess.Popen([known, "burn-ms=600000"])
    recorder = subprocess.Popen([whyslow, "record", "-p", str(target.pid), "-o", "r.whyslow"], env=environment,
                                stderr=subprocess.PIPE, text=True)
    wait_for(lambda: recorder.poll() is not None or committed("r.whyslow"), "a sample")
    target.kill()
    target.wait()
    _, words = recorder.communicate(timeout=PATIENCE_S)  # ends with the process
    print(words)
    assert recorder.returncode == 0, recorder.returncode
    r = Recording("r.whyslow")
    assert r.weight("burn") > 0


def case_system():
    target = subprocess.Popen([known, "burn-ms=20000"])
    try:
        run(whyslow, "record", "-a", "-d", "2")
    finally:
        target.kill()
        target.wait()
    r = Recording()
    mine = sum(w for t, _, _, w in r.totals if r.processes[r.threads[t][0]][0] == target.pid)
    print("of the burner", mine / 1e6, "ms")
    assert mine > 0 and r.weight("burn") > 0  # how much depends on who else is busy
    assert known in {exe for _, exe, _ in r.processes.values()}


def cgroup_make():
    """A cgroup below our own, whose time is ours for tests/truth/judge.py; skips where there can be none."""
    mounts = [line.split() for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    places = [m[4] for m in mounts if "cgroup2" in m[m.index("-"):] and m[4].startswith("/sys/fs/cgroup")]
    if not places:
        print("SKIP: no cgroup v2 below /sys/fs/cgroup")
        sys.exit(77)
    mine = [line.split(":", 2)[2] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
            if line.startswith("0::")]
    path = pathlib.Path(places[0], mine[0].lstrip("/"), f"whyslow-test-{os.getpid()}")
    try:
        path.mkdir()
    except OSError as error:
        print("SKIP: no cgroup can be made:", error)
        sys.exit(77)
    return path


def case_cgroup():
    """Processes of the cgroup and no others: there before, and come later."""
    group = cgroup_make()
    burners = []

    def burn(inside):
        def enter():
            (group / "cgroup.procs").write_text(str(os.getpid()))

        burners.append(subprocess.Popen([known, "burn-ms=120000"], preexec_fn=enter if inside else None))
        return burners[-1].pid

    def seen(pid):
        done = subprocess.run(
            [whyslow, "query", "--json", "c.whyslow", "SELECT count(*) AS n FROM total JOIN thread "
             f"ON thread.id = total.thread JOIN process ON process.id = process WHERE pid = {pid}"],
            capture_output=True, check=False)
        return done.returncode == 0 and json.loads(done.stdout)["rows"][0]["n"] > 0

    try:
        first, outside = burn(True), burn(False)
        recorder = subprocess.Popen(
            [whyslow, "record", "--cgroup", str(group.relative_to("/sys/fs/cgroup")), "-d", "110",
             "-o", "c.whyslow"], env=environment, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: recorder.poll() is not None or seen(first), "a sample of the first")
        second = burn(True)
        wait_for(lambda: recorder.poll() is not None or seen(second), "a sample of the second")
        recorder.send_signal(signal.SIGINT)
        _, stderr = recorder.communicate(timeout=PATIENCE_S)
        print(stderr)
        assert recorder.returncode == 0
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
        group.rmdir()
    r = Recording("c.whyslow")
    pids = {r.processes[r.threads[t][0]][0] for t, _, _, _ in r.totals}
    # The python that becomes the burner is inside for a moment, under the same pid.
    assert pids == {first, second} and outside not in {p[0] for p in r.processes.values()}, pids
    time_between("burn", r.weight("burn") / r.counters["cpu.sampled_ns"], 0.8, 1)
    time_between("sampled", r.share_of_rusage(), 0.9, 1.05)


def case_hostile():
    """Symbols of a real program that are markup, escapes, lines and 100 KB long."""
    names = {"burn_a": "<script>alert(1)</script>", "burn_b": "\x1b[31mred\x1b]0;title\x07",
             "burn_c": "two\nlines | `cell`", "burn_d": "X" * 100000}
    lines = ["#include <time.h>"]
    lines += [f"__attribute__((noinline, noipa)) void {f}(int ms) {{ clock_t end = clock() + ms * "
              "(CLOCKS_PER_SEC / 1000); while (clock() < end) for (volatile int i = 0; i < 9999; i++); }"
              for f in names]
    lines.append("int main(void) { " + " ".join(f"{f}(200);" for f in names) + " return 0; }")
    pathlib.Path("h.c").write_text("\n".join(lines))
    run("gcc", "-O1", "-c", "h.c")
    for plain, odd in names.items():
        subprocess.run(["objcopy", "--redefine-sym", f"{plain}={odd}", "h.o"], check=True)
    run("gcc", "-o", "hostile", "h.o")
    run(whyslow, "record", "--", "./hostile")
    r = Recording()
    for odd in names.values():
        time_between(f"share of {odd[:30]!r}", r.weight(odd) / r.counters["cpu.sampled_ns"], 0.2, 0.3)

    def no_control(what, text):
        found = [c for c in text if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160]
        assert not found, (what, found[:5])

    for view in ([], ["--tree"], ["--lines"], ["--annotate", "f1"], ["--markdown"], ["--json"]):
        done = subprocess.run([whyslow, "report", "recording.whyslow", "--limit", "0", *view],
                              capture_output=True, text=True, check=True)
        no_control(view, done.stdout + done.stderr)
    rows = json.loads(done.stdout)["hotspots"]  # the last one is --json
    assert set(names.values()) <= {row["function"] for row in rows}
    for form, ending in (("folded", ""), ("callgrind", ""), ("flame", "svg"), ("html", "html"),
                         ("speedscope", "json"), ("firefox", "json")):
        done = subprocess.run([whyslow, "export", "recording.whyslow", "--format", form],
                              capture_output=True, text=True, check=True)
        no_control(form, done.stdout.replace("\t", ""))
        if ending in ("svg", "html"):
            assert "<script>alert" not in done.stdout
        if ending == "json":
            said = json.dumps(json.loads(done.stdout), ensure_ascii=False)
            assert "<script>alert(1)" in said and "X" * 100000 in said


def case_nobody():
    path = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    before = path.read_text()
    try:
        path.write_text("2\n")
    except OSError:
        if int(before) != 2:
            print("SKIP: perf_event_paranoid cannot be set")
            sys.exit(77)
    try:
        done, home = as_nobody(whyslow, "record", "--", known, "burn-ms=500")
    finally:
        if path.read_text() != before:
            path.write_text(before)
    assert "kernel frames: n/a: kernel.perf_event_paranoid is 2" in done.stderr
    r = Recording(home / "recording.whyslow")
    assert all(kind != "kernel" for kind, _, _ in r.frames.values())
    assert r.document("cpu")["event"].endswith("u")
    time_between("burn", r.weight("burn") / r.counters["cpu.sampled_ns"], 0.9, 1)
    between("complete", r.complete(), 0.99, 1)


def case_mlock():
    def tiny():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))

    done, home = as_nobody(whyslow, "record", "--", known, "burn-ms=500", preexec_fn=tiny)
    r = Recording(home / "recording.whyslow")
    about = r.document("cpu")
    between("ring", about["ring_bytes"], 1, 1 << 20)
    assert "limit on locked memory" in done.stderr
    assert r.counters["cpu.samples"] > 0
    time_between("sampled", r.share_of_rusage(), 0.9, 1.05)


def case_grow():
    """Small rings begin with a small slice; stacks that do not fit make it grow."""
    def tiny():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))

    _, home = as_nobody(whyslow, "record", "--", follow, "deep", "24000", "2000", preexec_fn=tiny)
    r = Recording(home / "recording.whyslow")
    between("slice", r.document("cpu")["slice_bytes"], 32 << 10, 1 << 16)
    # Cut off until it has grown; 100 ms and more may pass between two looks.
    time_between("complete", r.complete(), 0.5, 1)
    # Small rings lose samples on a busy machine: what is missing must have been counted. The
    # kernel's share of the CPU time is not sampled here, and copying deep slices adds to it.
    lost = r.counters["loss.ring_full"]
    time_between("sampled", r.share_of_rusage(), 0.8 - lost / (lost + r.counters["cpu.samples"]), 1.05)
    assert r.counters["cpu.truncated"] > 0


def copied(r):
    """Deep stacks are copied here, or the test has no answer: it is not about privileges."""
    about = r.document("cpu")["deep_stacks"]
    if about != "copied":
        print("SKIP:", about)
        sys.exit(77)


def deep_missing(r):
    """Of a busy machine: stacks for which there was no room or no time, as the program counted."""
    return (r.counters["cpu.deep_cut"] + r.counters["cpu.deep_spared"]) / r.counters["cpu.samples"]


def case_deep():
    """Stacks deeper than what perf copies are complete."""
    for size in ("200000", "400000"):
        run(whyslow, "record", "-o", size, "--", follow, "deep", size, "1000")
        r = Recording(size)
        copied(r)
        between("complete", r.complete(), 0.99 - deep_missing(r), 1)
        between("thanks to the copy", r.counters["cpu.deep_complete"] / r.counters["cpu.complete"],
                0.99, 1)
        frames = int(size) // 1024 + 2
        for _, stack, _, _ in r.totals:
            names = r.names(stack)
            if "burn_below" in names and "_start" in names:
                assert names.count("go_deep") == frames, (names.count("go_deep"), frames)
    # 512 KiB is the most that is copied: what lies deeper is counted, and not called complete.
    run(whyslow, "record", "-o", "700000", "--", follow, "deep", "700000", "500")
    r = Recording("700000")
    between("complete", r.complete(), 0, 0.05)
    between("truncated", r.counters["cpu.truncated"] / r.counters["cpu.samples"], 0.95, 1)
    between("beyond", r.counters["cpu.deep_beyond"], 1, r.counters["cpu.samples"])


def case_deep_hole():
    """Pages of a stack that were never touched hide nothing above them."""
    for above in ("10000", "100000"):
        run(whyslow, "record", "-o", above, "--", follow, "hole", above, "500")
        r = Recording(above)
        copied(r)
        between("complete", r.complete(), 0.98 - deep_missing(r), 1)


def case_deep_thread():
    """Threads, and what they fork: the first stacks teach where the thread's stack begins."""
    def check(path):
        r = Recording(path)
        copied(r)
        print(r.counters)
        # Cut off until it is learned: 100 ms and more may pass between two looks, for each of
        # the two processes, of 2 s in all.
        time_between("complete", r.complete(), 0.5, 1)
        assert r.counters["cpu.deep_complete"] > 0
        timed("deep stacks", r.counters["cpu.deep_complete"] > 100, str(r.counters["cpu.deep_complete"]))
        for thread, stack, _, _ in r.totals:
            if "burn_below" in r.names(stack):
                assert r.exe(thread) == follow

    run(whyslow, "record", "-o", "t.whyslow", "--", follow, "deep-thread", "200000", "1000")
    check("t.whyslow")
    # Where processes have other numbers than those the kernel counts with.
    run("unshare", "--pid", "--fork", "--mount-proc", whyslow, "record", "-o", "n.whyslow", "--",
        follow, "deep-thread", "200000", "1000")
    check("n.whyslow")
    target = subprocess.Popen([follow, "deep", "200000", "600000"])
    try:
        run(whyslow, "record", "-p", str(target.pid), "-d", "1", "-o", "p.whyslow")
        run(whyslow, "record", "-a", "-d", "1", "-o", "a.whyslow")
    finally:
        target.kill()
        target.wait()
    r = Recording("p.whyslow")
    between("complete", r.complete(), 0.98 - deep_missing(r), 1)
    assert Recording("a.whyslow").counters["cpu.deep_complete"] > 0


def case_deep_alternate():
    """No stack is put together from two: each recursion leaves its frames where the other runs."""
    run(whyslow, "record", "--", follow, "alternate", "4000")
    r = Recording()
    copied(r)
    whole = collections.Counter()
    for _, stack, count, _ in r.totals:
        names = r.names(stack)
        left, right = names.count("left"), names.count("right")
        assert not (left and right), (left, right)
        if "burn_below" in names and "_start" in names:
            whole[left, right] += count
    print(whole)
    # One frame for each KiB and one that burns: no other depth may be seen.
    assert set(whole) == {(201, 0), (0, 301)}, whole
    between("complete", r.complete(), 0.98 - deep_missing(r), 1)


def case_deep_nobody():
    """Without privileges a deep stack ends as truncated, and the recording says why."""
    done, home = as_nobody(whyslow, "record", "--", follow, "deep", "200000", "500")
    r = Recording(home / "recording.whyslow")
    assert "CAP_BPF" in r.document("cpu")["deep_stacks"], r.document("cpu")
    assert "deeper than" in done.stderr and "n/a: " in done.stderr and "CAP_BPF" in done.stderr
    assert "cpu.deep_complete" not in r.counters
    between("truncated", r.counters["cpu.truncated"] / r.counters["cpu.samples"], 0.9, 1)
    # Shallow ones are none of its business.
    done, home = as_nobody(whyslow, "record", "-o", "s.whyslow", "--", known, "burn-ms=300")
    assert "deeper than" not in done.stderr


def case_step():
    """A program in step with the rate asked for is not sampled in step."""
    run(whyslow, "record", "--", follow, "step", str(1000000000 // 999), "4000")
    r = Recording()
    whole = r.weight("burn_tenth") + r.weight("burn_rest")
    time_between("share of a tenth", r.weight("burn_tenth") / whole, 0.05, 0.2)
    # On a busy machine being taken off the CPU breaks the step, too; so see that periods change.
    done = run(whyslow, "query", "--json", "recording.whyslow",
               "SELECT DISTINCT weight FROM sample WHERE series = "
               "(SELECT id FROM series WHERE name = 'cpu')")
    periods = sorted(row["weight"] for row in json.loads(done.stdout)["rows"])
    between("periods used", len(periods), 2, 3)
    between("apart", periods[-1] / periods[0], 1.009, 1.25)


def case_interrupt():
    burner = subprocess.Popen([known, "burn-ms=60000"])
    recorder = subprocess.Popen([whyslow, "record", "-p", str(burner.pid), "-o", "i.whyslow"],
                                env=environment, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: committed("i.whyslow"), "a sample")
    recorder.send_signal(signal.SIGINT)
    _, stderr = recorder.communicate(timeout=PATIENCE_S)
    print(stderr)
    assert recorder.returncode == 0 and burner.poll() is None
    burner.kill()
    burner.wait()
    assert Recording("i.whyslow").counters["cpu.samples"] > 0


def case_held_back():
    """whyslow gets no CPU for a while, as on a crowded machine: the rings bridge it."""
    if os.geteuid() != 0 or os.cpu_count() > 8:
        print("SKIP: so much memory is locked for root only, and for few CPUs")
        sys.exit(77)
    recorder = subprocess.Popen([whyslow, "record", "-o", "h.whyslow", "--", known, "burn-ms=3000"], env=environment,
                                stderr=subprocess.PIPE, text=True)
    wait_for(lambda: committed("h.whyslow"), "a commit")
    for _ in range(3):
        recorder.send_signal(signal.SIGSTOP)
        time.sleep(0.25)
        recorder.send_signal(signal.SIGCONT)
        time.sleep(0.1)
    _, stderr = recorder.communicate(timeout=PATIENCE_S)
    print(stderr)
    recording = Recording("h.whyslow")
    assert recorder.returncode == 0, recorder.returncode
    timed("the rings bridge it", recording.counters["loss.ring_full"] == 0, str(recording.counters))
    time_between("sampled against rusage", recording.share_of_rusage(), 0.9, 1.1)


def case_killed():
    """kill -9 of whyslow: the target runs on, and what was committed can be read."""
    recorder = subprocess.Popen(
        [whyslow, "record", "-o", "k.whyslow", "--", known, "burn-ms=4000", "log=log", "exit=5"],
        env=environment, stderr=subprocess.DEVNULL)
    wait_for(lambda: committed("k.whyslow"), "a commit")
    recorder.kill()
    recorder.wait()
    wait_for(lambda: os.path.exists("log") and os.path.getsize("log") > 0, "the target's end")
    assert committed("k.whyslow")


def case_terminated():
    """SIGTERM for whyslow is meant for the target, whose end is passed on."""
    recorder = subprocess.Popen([whyslow, "record", "-o", "t.whyslow", "--", known, "burn-ms=60000"],
                                env=environment, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: committed("t.whyslow"), "a sample")
    recorder.terminate()
    _, stderr = recorder.communicate(timeout=PATIENCE_S)
    print(stderr)
    assert recorder.returncode == 128 + 15, recorder.returncode
    assert Recording("t.whyslow").counters["cpu.samples"] > 0


def case_terminal():
    """The target has the terminal: it reads what is typed, and Ctrl-C is its own."""
    pid, master = pty.fork()
    if pid == 0:
        os.execve(whyslow, [whyslow, "record", "-o", "y.whyslow", "--", "sh", "-c",
                            "test -t 0 && test -t 1 && test -t 2 && echo terminal; read line; "
                            "echo got $line; trap 'echo interrupted; exit 9' INT; echo ready; "
                            "while :; do sleep 0.1; done"], environment)
    text = b""

    def until(what):
        nonlocal text
        end = time.monotonic() + PATIENCE_S
        while what not in text:
            assert time.monotonic() < end, text
            if select.select([master], [], [], 1)[0]:
                text += os.read(master, 4096)

    until(b"terminal\r\n")
    os.write(master, b"typed\n")
    until(b"got typed")
    until(b"ready")
    os.write(master, b"\x03")
    until(b"interrupted")
    until(b"next: whyslow report")
    _, status = os.waitpid(pid, 0)
    print(text.decode(errors="replace"))
    assert os.waitstatus_to_exitcode(status) == 9
    assert b"\x1b" not in text  # no progress line into the target's terminal


def case_modes():
    run(whyslow, "record", "-g", "none", "-o", "n.whyslow", "--", known, "burn-ms=300")
    r = Recording("n.whyslow")
    assert all(not r.stacks[s][0] for _, s, _, _ in r.totals), "a caller"
    assert "cpu.complete" not in r.counters and r.weight("burn") > 0
    run(whyslow, "record", "-g", "fp", "-o", "f.whyslow", "--", known, "burn-ms=300")
    assert Recording("f.whyslow").weight("burn") > 0
    run(whyslow, "record", "--no-symbols", "-o", "s.whyslow", "--", known, "burn-ms=300")
    r = Recording("s.whyslow")
    assert not r.functions and r.complete() > 0.98
    done = run(whyslow, "record", "-d", "1", "-o", "d.whyslow", "--", known, "burn-ms=300",
               "sleep-ms=2000", "exit=6", status=6)  # it runs on to its end
    assert "of n/a CPU time" in done.stderr


def case_limits():
    """Few file descriptors: one set of events, and the target keeps its own limit."""
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    run(whyslow, "record", "--", known, "burn-ms=300", preexec_fn=few)
    r = Recording()
    assert len(r.document("cpu")["periods_ns"]) == 1 and r.weight("burn") > 0

    def soft():
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 4000))

    done = run(whyslow, "record", "-o", "u.whyslow", "--", "sh", "-c", "ulimit -n", preexec_fn=soft)
    assert done.stdout == "60\n", done.stdout


def case_disk_full():
    """A recording that cannot grow is an error with words; the target does not notice."""
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))

    done = run(whyslow, "record", "-F", "10000", "--", "sh", "-c",
               f"trap 'echo xfsz' XFSZ; {known} burn-ms=100; {follow} fork 1500; echo done; exit 3",
               preexec_fn=small, status=5)
    assert done.stdout == "done\n" and "try: " in done.stderr, done


try:
    globals()["case_" + name.replace("-", "_")]()
    print("ok")
finally:
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
