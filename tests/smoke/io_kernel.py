#!/usr/bin/env python3
"""Known answers of the kernel tier of calls, row by row: io_kernel.py CASE io_dump io-rows.

Counts, bytes and errors are exact, since every call is seen. Times are compared with each other
only: the machine may be busy."""
import collections
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import seen  # noqa: E402
from judged import JUDGED, between, has_no_bpf, timed  # noqa: E402

SKIPPED = 77
FAULT = -1
FILE, CHAR_DEVICE, PIPE, SOCKET, PATH = 1, 4, 5, 6, 14
SYNC, NONBLOCK, CREATES = 1, 4, 16
NUMBERS = {"x86_64": {"read": 0, "write": 1, "close": 3, "pread64": 17, "pwrite64": 18,
                      "writev": 20, "recvfrom": 45, "execve": 59, "fsync": 74, "fdatasync": 75,
                      "unlink": 87, "exit_group": 231, "exit": 60, "openat": 257, "vfork": 58},
           "aarch64": {"read": 63, "write": 64, "close": 57, "pread64": 67, "pwrite64": 68,
                       "writev": 66, "recvfrom": 207, "execve": 221, "fsync": 82,
                       "fdatasync": 83, "unlink": 35, "exit_group": 94, "exit": 93,
                       "openat": 56}}[os.uname().machine]


def dump(options, command=()):
    """Facts and rows."""
    done = subprocess.run([TOOL, *options, "--", *command], capture_output=True, text=True,
                          timeout=600)
    if has_no_bpf(done.returncode, done.stderr):
        print("SKIP: no BPF here:", done.stderr)
        sys.exit(SKIPPED)
    assert done.returncode == 0, (done.returncode, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    # Page faults are rows as well; io_faults.py looks at them.
    facts, rows = lines[0], [line for line in lines[1:] if line["syscall"] != FAULT]
    for row in rows:
        same("calls in buckets", row["bucketed"], row["count"])
        assert row["sized"] <= row["count"], row  # one that is under way has moved nothing yet
        assert row["max_ns"] <= row["total_ns"] <= row["max_ns"] * row["count"], row
    same("calls in rows", sum(r["count"] for r in rows), facts["io.calls"])
    same("time in rows", sum(r["total_ns"] for r in lines[1:]), facts["io_ns"])
    return facts, rows


def same(what, got, want):
    assert got == want, f"{what}: {got}, not {want}"


def lost_nothing(facts):
    lost = {k: v for k, v in facts.items() if (k.startswith("io.lost.") or k == "io.folded") and v
            and k not in ("io.lost.stacks_spared",)}
    same("lost", lost, {})


def of(rows, call, name=None, error=0, **more):
    return [r for r in rows if r["syscall"] == NUMBERS[call] and r["error"] == error
            and (name is None or name(r.get("name", "")) if callable(name)
                 else name is None or r.get("name") == name)
            and all(r[k] == v for k, v in more.items())]


def total(rows, what="count"):
    return sum(r[what] for r in rows)


def case_threads(folder):
    """Many threads at once: each has its own row, and none has a call too many or too few."""
    facts, rows = dump([], [WORK, "threads", "40", "5000", folder])
    lost_nothing(facts)
    for i in range(40):
        reads = of(rows, "pread64", f"{folder}/thread-{i}")
        same("threads of a file", len({tuple(r["thread"]) for r in reads}), 1)
        same("calls", total(reads), 5000)
        same("bytes", total(reads, "bytes"), 5000)
        # Nine of ten begin where the one before ended.
        same("placed", total(reads, "placed"), 5000)
        same("in order", total(reads, "sequential"), 4500)
        opened = of(rows, "openat", f"{folder}/thread-{i}", flags=CREATES)
        same("opened", total(opened), 1)
        same("closed", total(of(rows, "close", f"{folder}/thread-{i}")), 1)
    # 40 end by exit(), the first by exit_group().
    same("ends", total(of(rows, "exit")) + total(of(rows, "exit_group")), 41)


def case_storm(_):
    """Children that live for a moment: all their calls are theirs."""
    facts, rows = dump([], [WORK, "storm", "200", "50"])
    lost_nothing(facts)
    writes = of(rows, "write", "/dev/null")
    same("writes", total(writes), 200 * 50)
    same("processes", len({r["thread"][0] for r in writes}), 200)
    same("each", {r["count"] for r in writes}, {50})
    same("exec", total(of(rows, "execve")), 201)
    same("ends", total(of(rows, "exit_group")), 201)


def case_files(folder):
    """Many files: each by its name, with what was done with it."""
    facts, rows = dump([], [WORK, "files", "3000", folder])
    lost_nothing(facts)
    files_are_right(rows, folder, 3000)


def files_are_right(rows, folder, count):
    reads, writes = collections.Counter(), collections.Counter()
    for row in of(rows, "pread64", lambda n: n.startswith(f"{folder}/file-")):
        reads[row["name"]] += row["bytes"]
    for row in of(rows, "write", lambda n: n.startswith(f"{folder}/file-")):
        writes[row["name"]] += row["bytes"]
    names = {f"{folder}/file-{i}" for i in range(count)}
    same("read", dict(reads), {n: 300 for n in names})
    same("written", dict(writes), {n: 1000 for n in names})
    gone = of(rows, "unlink", lambda n: n.startswith(folder))
    same("removed", ({r["name"] for r in gone}, total(gone)), (names, count))


def case_full(folder):
    """No room: rows are folded, and said to be; not a call, byte or error is missing."""
    facts, rows = dump(["-r", "65536"], [WORK, "files", "3000", folder])
    assert facts["io.folded"] > 0, facts
    for call, count, size in (("openat", 3000, 0), ("write", 3000, 3000000),
                              ("pread64", 6000, 900000), ("close", 3000, 0), ("unlink", 3000, 0)):
        found = [r for r in of(rows, call) if r["error"] == 0]
        # The dynamic loader opens, reads and closes a little as well.
        assert 0 <= total(found) - count <= 8, (call, total(found))
        assert 0 <= total(found, "bytes") - size <= 4096, (call, total(found, "bytes"))


def case_begin(folder):
    """Many calls from many places on many files as soon as the program begins: they are held back until their stack has
    been walked, and none is without its stack or name, however late we come to it."""
    ways, files = 14, 40
    for i in range(ways * files):
        with open(f"{folder}/begin-{i}", "w", encoding="ascii") as file:
            file.write("x" * 10)
    facts, rows = dump(["-s"], [WORK, "begin", str(ways), str(files), folder])
    for call in ("openat", "read", "close"):
        found = of(rows, call, lambda n: n.startswith(f"{folder}/begin-"))
        same("calls", total(found), ways * files)
        same("files", len({row["name"] for row in found}), ways * files)
        depths = collections.Counter()
        for row in found:
            depths[row["stack"].count("way_go")] += row["count"]
        same("stacks", dict(depths), {depth: files for depth in range(1, ways + 1)})
    lost_nothing(facts)
    same("spared", facts["io.lost.stacks_spared"], 0)
    same("unattributed", facts["io.unattributed"], 0)


def case_begin_full(folder):
    """Without room: what lost its file or stack is said to have, each once."""
    facts, rows = dump(["-s", "-r", "65536"], [WORK, "files", "3000", folder])
    known = [r for r in rows if r.get("name", "").startswith(f"{folder}/") and r["stack"]]
    seen, lost, truth = total(known), facts["io.unattributed"], 6 * 3000
    assert lost >= facts["io.folded"] > 0, facts
    # What is not ours are the loader's calls: some 60, any of which may be among the lost.
    beside = facts["io.calls"] - truth
    assert 0 <= beside < 200 and truth <= seen + lost <= truth + beside, (seen, lost, truth, facts)


def case_burst(_):
    """A short program that calls from one place is over before anybody has walked its stack: its calls have it."""
    facts, rows = dump(["-s"], [WORK, "storm", "1", "1500"])
    writes = of(rows, "write", "/dev/null")
    same("calls", total(writes), 1500)
    same("with a stack", total([row for row in writes if row["stack"]]), 1500)
    lost_nothing(facts)
    same("spared", facts["io.lost.stacks_spared"], 0)
    same("unattributed", facts["io.unattributed"], 0)


FOLDERS = """
import os, sys
os.chdir(sys.argv[1])
for i in range(200):
    os.mkdir(f"a{i}")
    at = os.open(f"a{i}", os.O_RDONLY)
    for name in ("before", "after"):
        try:
            os.stat(f"{name}-{i}", dir_fd=at)
        except FileNotFoundError:
            pass
        if name == "before":
            os.rename(f"a{i}", f"b{i}")
    os.close(at)
"""


def case_folders(folder):
    """What is asked for in a folder stands behind the name that it has then: other folders come between, and it is renamed."""
    facts, rows = dump([], [sys.executable, "-c", FOLDERS, folder])
    lost_nothing(facts)
    names = {row["name"] for row in rows if row.get("object_kind") == PATH and row["error"] == errno.ENOENT
             and row["name"].startswith(f"{folder}/")}
    same("names", names, {f"{folder}/{at}{i}/{name}-{i}" for i in range(200)
                          for at, name in (("a", "before"), ("b", "after"))})


def case_reuse(folder):
    """An fd is what it is at that moment, also where another thread changed it."""
    facts, rows = dump([], [WORK, "reuse", "400", folder])
    lost_nothing(facts)
    reads = collections.Counter()
    for row in of(rows, "pread64", lambda n: n.startswith(f"{folder}/reuse-")):
        reads[row["name"]] += row["bytes"]
        same("length", row["bytes"], row["count"] * (int(row["name"][-1]) + 1))
    same("read", dict(reads), {f"{folder}/reuse-{i}": 50 * (i + 1) for i in range(8)})


def case_errors(_):
    facts, rows = dump([], [WORK, "errors", "300"])
    lost_nothing(facts)
    same("EBADF", total(of(rows, "read", error=errno.EBADF)), 300)
    lookups = of(rows, "openat", "/none/such", error=errno.ENOENT, object_kind=PATH)
    same("ENOENT", total(lookups), 300)
    same("EAGAIN", total(of(rows, "read", error=errno.EAGAIN, flags=NONBLOCK,
                            object_kind=SOCKET)), 300)
    same("EAGAIN", total(of(rows, "recvfrom", error=errno.EAGAIN, flags=NONBLOCK,
                            object_kind=SOCKET)), 300)


def case_modes(folder):
    facts, rows = dump([], [WORK, "modes", folder])
    lost_nothing(facts)
    name = f"{folder}/modes"
    written = of(rows, "write", name, flags=0)
    same("written", (total(written), total(written, "bytes")), (17, 10000 + 7 * 20))
    # Appending is in order by itself.
    same("in order", total(written, "sequential"), 17)
    vectors = of(rows, "writev", name)
    same("buffers", (total(vectors, "bytes"), total(vectors, "asked_bytes")), (600, 600))
    same("in order", total(vectors, "sequential"), 1)
    same("synced", total(of(rows, "pwrite64", name, flags=SYNC), "bytes"), 50)
    reads = of(rows, "pread64", name)
    same("backwards", (total(reads), total(reads, "sequential")), (6, 0))
    partial = of(rows, "read", name)
    same("partial", (total(partial, "bytes"), total(partial, "asked_bytes"),
                     total(partial, "partial")), (50, 1000, 1))
    same("fsync", total(of(rows, "fsync", name)), 1)
    same("fdatasync", total(of(rows, "fdatasync", name)), 1)


def case_attach(folder):
    """Opened before we came; in a call when we left, and when we came."""
    go, end = f"{folder}/go", f"{folder}/end"
    with subprocess.Popen([WORK, "wait"], stdout=subprocess.PIPE) as work:
        work.stdout.readline()
        while not seen.asleep([work.pid]):
            time.sleep(0.01)
        stopper = subprocess.Popen(["sh", "-c", f"{wait_for(go)} kill -STOP {work.pid}; {wait_state(work.pid, 'T')} "
                                    f"kill -CONT {work.pid}; {wait_state(work.pid, 'S')} sleep {3 if JUDGED else 0}; "
                                    f"touch {end}"])
        facts, rows = dump(["-g", go, "-p", str(work.pid), "-e", end])
        stopper.wait()
        work.send_signal(signal.SIGKILL)
    # Stopped and gone on, read() begins anew: that one has not returned.
    reads = of(rows, "read", object_kind=PIPE)
    assert facts["io.open_calls"] == 1 and total(reads) == 1, (facts, rows)
    timed("most of 3 s", reads[0]["total_ns"] > 500_000_000, str(reads))


def case_thread_exec(_):
    """A thread that is not the first becomes another program, and has the first one's id."""
    facts, rows = dump([], [WORK, "thread-exec", "1000"])
    lost_nothing(facts)
    writes = of(rows, "write", "/dev/null")
    same("writes", total(writes), 1000)
    assert writes[0]["thread"][0] == writes[0]["thread"][1], writes
    same("exec", total(of(rows, "execve")), 2)


def ways(rows, name):
    """Calls by which of the workload's two ways they came; "none": without a stack."""
    counts = collections.Counter()
    for row in rows:
        counts["two" if f"{name}_two" in row["stack"] else
               "one" if f"{name}_one" in row["stack"] else "none"] += row["count"]
    return counts


def stacks_lost(facts):
    return facts["io.lost.stacks_spared"] + facts["io.lost.ring_full"]


def case_stacks(_):
    facts, rows = dump(["-s"], [WORK, "places"])
    reads = of(rows, "read", "/dev/zero")
    same("reads", total(reads), 120000)
    paths = ways(reads, "place")
    # Until the first are learnt, a thread's stacks are copied only so often, and as far as there is room.
    same("without a stack", paths["none"], stacks_lost(facts))
    assert paths["one"] <= 50000 and paths["two"] <= 70000, paths
    timed("learnt soon", paths["one"] + paths["two"] > 60000, str(paths))
    same("complete", facts["io.stacks_truncated"], 0)


def case_depths(_):
    """Stacks that differ only far up: not one call of the second way passes for the first's."""
    facts, rows = dump(["-s"], [WORK, "depths"])
    reads, before = of(rows, "read", "/dev/zero"), of(rows, "read", "/dev/full")
    same("reads", (total(reads), total(before)), (750000, 10000))
    paths = ways(reads, "far")
    # How soon either is learnt depends on when whyslow gets a CPU; what has no stack until then is counted, each call
    # once, with those of its pauses.
    assert paths["one"] <= 50000 and paths["two"] <= 700000, paths
    bare = paths["none"] + ways(before, "far")["none"]
    between("calls that are said to be without a stack", stacks_lost(facts), bare, bare + 101)
    timed("the second way is learnt", paths["two"] > 0, str(paths))
    timed("all but those before it was learnt", paths["one"] == 50000 and paths["two"] > 350000, str(paths))


def wait_state(pid, state):
    return f"until grep -q '^State:.{state}' /proc/{pid}/status; do sleep 0.01; done;"


def wait_for(go):
    """Not for ever: the other side may have failed."""
    return f"for i in $(seq 6000); do [ -e {go} ] && break; sleep 0.1; done;"


def case_machine(folder):
    """The whole machine: this one's calls are among them, ours are not."""
    go = f"{folder}/go"
    work = subprocess.Popen(["sh", "-c", f"{wait_for(go)} exec {WORK} files 50 {folder}"])
    facts, rows = dump(["-g", go, "-a", "-d", "5"])
    work.wait()
    files_are_right([r for r in rows if r.get("name", "").startswith(folder)], folder, 50)
    assert not [r for r in rows if r["thread"][0] == facts["own_pid"]], "our own calls"


CASES = {name[5:].replace("_", "-"): run for name, run in list(globals().items())
         if name.startswith("case_")}

if __name__ == "__main__":
    TOOL, WORK = sys.argv[2:4]
    with tempfile.TemporaryDirectory() as made:
        CASES[sys.argv[1]](os.path.realpath(made))
