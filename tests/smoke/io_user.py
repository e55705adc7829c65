#!/usr/bin/python3
"""Calls told by the library in the target: what programs are promised stays so, and what goes
through libc is counted exactly. (io.py has the same tier beside the kernel's.)

    io_user.py CASE DUMP SEMANTICS KNOWN STATIC SANITIZED PLUGIN SCRIBBLES LOCKS WHYSLOW
"""

import difflib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import io_tools  # noqa: E402
from judged import timed  # noqa: E402

case = sys.argv[1]
dump, semantics, known, static, sanitized, plugin, scribbles, locks, whyslow = map(
    os.path.abspath, sys.argv[2:11])
OUT = "out.txt"


def run(*command, options=(), status=0, **more):
    """The rows, the counters and what the program printed."""
    done = subprocess.run([dump, "-u", "-s", *options, "-o", OUT, "--", *command], capture_output=True,
                          text=True, timeout=600, check=False, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == status, (done.returncode, done.stdout[-1000:], done.stderr)
    if status != 0:
        return done.stderr
    counters, *rows = map(json.loads, done.stdout.splitlines())
    with open(OUT, encoding="utf-8", errors="replace") as file:
        said = file.read()
    for row in rows:
        row["call"] = io_tools.NUMBERS.get(row["syscall"], "?")
        assert row["bucketed"] == row["sized"] == row["count"], row
    return rows, counters, said


def total(rows, call, field="count", **more):
    return sum(row[field] for row in rows
               if row["call"] == call and all(row.get(key) == value for key, value in more.items()))


def of(rows, file):
    return [row for row in rows if row.get("name", "").endswith("/" + file)]


def nothing_lost(counters):
    """Of what the target cannot do without whyslow's reading, which never waits for it, it is said how much was lost; all
    else is never lost."""
    lost = {name: value for name, value in counters.items()
            if (name.startswith("io.lost.") or name == "io.folded") and value and "stacks" not in name}
    assert not [name for name in lost if name not in ("io.folded", *BY_TIME)], lost
    timed("nothing is lost", not lost, str(lost))


MOST_BYTES = 5  # that a call moves in what is asked about bytes here
BY_TIME = ("io.lost.objects", "io.lost.ring_full", "io.lost.ring_full_ns")


def exact(rows, counters, got, truth, call, field="count"):
    """All calls, but for what is there without its name, or counted as lost altogether."""
    bare = sum(row[field] for row in rows if row["call"] == call and "name" not in row)
    whole = counters["io.folded"] + counters["io.lost.objects"] + counters["io.lost.ring_full"] == 0
    gone = 0 if whole else bare + counters["io.lost.ring_full"] * (1 if field == "count" else MOST_BYTES)
    assert truth - gone <= got <= truth, (call, field, got, bare, truth, counters)
    timed(f"{call}: all of them", got == truth, f"{got} of {truth}")


def promises_of_calls_are_kept():
    plain = subprocess.run([semantics], capture_output=True, text=True, timeout=600, check=True,
                           stdin=subprocess.DEVNULL)
    for options in ((), ("-q",)):
        rows, counters, said = run(semantics, options=options)
        assert said == plain.stdout, list(difflib.unified_diff(plain.stdout.splitlines(), said.splitlines(), n=0))
        assert total(rows, "openat") >= 3200 and counters["io.processes"] >= 3, counters
        # The handler's own calls may come in the middle of another's being written down.
        counters["io.lost.in_handlers"] = 0
        nothing_lost(counters)
    assert plain.stderr == ""


def ten_thousand_files_are_counted_with_or_without_room():
    rows, counters, _ = run(known, "tiny", "10000")
    truth = {"openat": 20000, "write": 10000, "read": 10000, "unlink": 10000, "close": 20000}
    for call, count in truth.items():
        found = sum(row["count"] for row in rows if row["call"] == call
                    and "/many/tiny-" in row.get("name", ""))
        folded = sum(row["count"] for row in rows if row["call"] == call and "name" not in row)
        # What the program says at its end may have lost its name, too.
        assert count <= found + folded <= count + (10 if call == "write" else 0), (call, found, folded)
    folded = sum(row["count"] for row in rows if "name" not in row)
    # Where whyslow gets no CPU for long, names find no room either: counted as well.
    assert folded == counters["io.folded"] + counters["io.lost.objects"], (folded, counters)
    # What is whole and what is said to have lost its stack or name make up the truth.
    whole = sum(row["count"] for row in rows if "/many/tiny-" in row.get("name", "") and row["stack"])
    assert sum(truth.values()) <= whole + counters["io.unattributed"] <= counters["io.calls"], (whole, counters)
    counters["io.lost.objects"] = 0
    # With room for what one round brings most keep their names; a busy machine has long rounds.
    timed("names that are kept", folded < 0.9 * counters["io.calls"], str(counters))
    nothing_lost(counters)


def two_thousand_threads_are_seen():
    rows, counters, _ = run(known, "threads", "2000", "10")
    assert total(rows, "read") == 20000, total(rows, "read")
    tids = {tuple(row["thread"][:2]) for row in rows if row["call"] == "read"}
    assert len(tids) == 2000, len(tids)
    # One of so many that gets no CPU in the midst of telling a name is not waited for; its calls are counted.
    timed("names that are lost", counters["io.lost.objects"] <= 20, str(counters))
    counters["io.lost.objects"] = 0
    nothing_lost(counters)


def children_are_counted_with_their_parents():
    script = f"i=0; while [ $i -lt 20 ]; do {known} reads 100 > /dev/null; i=$((i+1)); done; exec {known} reads 50"
    rows, counters, _ = run("/bin/sh", "-c", script)
    exact(rows, counters, total(of(rows, "bytes.dat"), "read"), 2050, "read")
    assert counters["io.processes"] >= 21, counters
    nothing_lost(counters)


def libraries_that_come_later_are_seen():
    with open("plugged.dat", "w", encoding="ascii") as file:
        file.write("x")
    # With pauses: whyslow learns its stacks while the program runs, and images take a while to read.
    code = (f"import ctypes, time; reads = ctypes.CDLL('{plugin}').plugin_reads\n"
            "print(sum(reads(b'plugged.dat', 1000) + (time.sleep(0.05) or 0) for _ in range(50)))")
    rows, counters, said = run(sys.executable, "-c", code)
    assert said == "50000\n", said
    whole, rows = rows, of(rows, "plugged.dat")
    exact(whole, counters, total(rows, "pread64"), 50000, "pread64")
    # Its stack is told, and taught, when whyslow gets a CPU; what has none by then is counted.
    bare = sum(row["count"] for row in rows if not row["stack"])
    assert bare <= counters["io.unattributed"], (bare, counters)
    timed("its stack is known", any(row["stack"][:2] == ["pread", "plugin_reads"] for row in rows), str(rows))
    nothing_lost(counters)


def a_number_that_is_given_out_again_is_another_object():
    """Closed through libc, made again by a call that nobody told of."""
    code = """if True:
        import os
        for i in range(100):
            fd = os.open(f'first-{i}.dat', os.O_CREAT | os.O_WRONLY)
            os.write(fd, b'file')
            os.close(fd)
            ends = os.pipe()
            assert fd in ends
            os.write(ends[1], b'pipes')
            assert os.read(ends[0], 100) == b'pipes'
            os.close(ends[0]), os.close(ends[1])"""
    rows, counters, _ = run(sys.executable, "-c", code)
    files = [row for row in rows if "/first-" in row.get("name", "")]
    pipes = [row for row in rows if row.get("name", "").startswith("pipe:")]
    for found, call, size in ((files, "write", 4), (pipes, "write", 5), (pipes, "read", 5)):
        exact(rows, counters, total(found, call), 100, call)
        exact(rows, counters, total(found, call, "bytes"), 100 * size, call, "bytes")
    names = len({row["name"] for row in files})
    lost = sum(counters[name] for name in ("io.folded", "io.lost.objects", "io.lost.ring_full"))
    assert 100 - lost <= names <= 100, (names, counters)
    nothing_lost(counters)


def what_cannot_be_seen_is_an_error():
    words = run(static, "short", status=4)
    assert "no call can be seen" in words and "static" in words, words
    sleeper = subprocess.Popen(["sleep", "60"])
    done = subprocess.run([whyslow, "record", "--io", "--tier", "user", "-o", "none.whyslow", "-d", "1", "-p",
                           str(sleeper.pid)], capture_output=True, text=True, check=False, timeout=600)
    sleeper.kill()
    sleeper.wait()
    assert done.returncode == 4 and "runs already" in done.stderr, (done.returncode, done.stderr)
    assert not os.path.exists("none.whyslow")


def a_program_with_a_sanitizer_runs():
    rows, counters, _ = run(sanitized, "reads", "5000")
    exact(rows, counters, total(of(rows, "bytes.dat"), "read"), 5000, "read")
    nothing_lost(counters)


def nonsense_in_the_shared_memory_is_counted():
    rows, counters, said = run(scribbles, options=("-q",))
    assert said == "scribbled\n", said
    assert counters["io.lost.malformed"] > 0 and len(rows) < 100000, counters


def what_stdio_moves_is_said_to_be_unseen():
    size = 20 << 20
    with open("lines.txt", "w", encoding="ascii") as file:
        file.write("a line of some length, as texts have them\n" * (size // 42))
    size = os.path.getsize("lines.txt")
    path = "unseen.whyslow"
    subprocess.run([whyslow, "record", "--io", "--tier", "user", "-o", path, "--", "sed", "-n", "$p", "lines.txt"],
                   capture_output=True, check=True, timeout=600)
    db = sqlite3.connect(path)
    counters = dict(db.execute("SELECT name, value FROM counter"))
    document = json.loads(db.execute("SELECT json FROM document WHERE name = 'io'").fetchone()[0])
    # The loader reads, too, but not that much.
    assert size <= counters["io.bytes_unseen"] <= size + (1 << 20), (counters, size)
    assert counters["io.calls_unseen"] >= size // (1 << 20), counters
    missing = {entry["what"]: entry["reason"] for entry in document["na"]}
    assert "stdio" in missing["calls inside libc"] and "were seen" in missing["reads and writes"], missing
    assert document["tier"] == "user" and document["why_not_higher"], document


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        seen.append(self.path)
        self.send_response(404 if "none" in self.path else 200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


seen = []


def requests_of_a_client_are_taken_apart():
    if not shutil.which("curl"):
        print("SKIP: curl is not installed")
        sys.exit(77)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    path = "requests.whyslow"
    urls = [f"http://127.0.0.1:{port}/thing/{i}" for i in range(13)] + [f"http://127.0.0.1:{port}/none"]
    subprocess.run([whyslow, "record", "--io", "--tier", "user", "-o", path, "--", "curl", "-s", *urls],
                   capture_output=True, check=True, timeout=600)
    server.shutdown()
    assert len(seen) == 14, seen
    db = sqlite3.connect(path)
    counts = db.execute("SELECT total(count), total(failed), total(unanswered) FROM request").fetchone()
    peers = {row[0] for row in db.execute("SELECT peer FROM connection")}
    on_it = db.execute("SELECT total(requests) FROM connection").fetchone()[0]
    counters = dict(db.execute("SELECT name, value FROM counter"))
    print(counts, peers, on_it, {name: value for name, value in counters.items() if "lost" in name})
    # The library in the target does not wait for whyslow: what is said and finds no room is lost, and counted.
    lost = counters["io.lost.ring_full"] + counters["io.lost.objects"]
    if not lost:
        assert counts == (14, 1, 0) and on_it == 14, (counts, on_it)
        assert peers == {f"127.0.0.1:{port}"}, peers
    assert counts[0] <= 14 and counts[1] <= 1 and peers <= {f"127.0.0.1:{port}"}, (counts, peers)
    timed("all that was said", not lost, str(lost))


def locks_and_calls_are_told_at_the_same_time():
    path = "both.whyslow"
    subprocess.run([whyslow, "record", "--io", "--locks", "--tier", "user", "-o", path, "--", "sh", "-c",
                    f"{locks} convoy; {known} reads 1000"],
                   capture_output=True, check=True, timeout=600)
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM wait").fetchone()[0] > 8
    counters = dict(db.execute("SELECT name, value FROM counter"))
    assert counters["locks.waits"] > 8 and counters["io.calls"] > 1000, counters


def a_target_outlives_whyslow():
    """Killed in the middle: the program goes on, and says what it would have said."""
    process = subprocess.Popen([whyslow, "record", "--io", "--tier", "user", "-o", "killed.whyslow", "--", "sh", "-c",
                                f"echo begun; sleep 0.5; {known} reads 20000 > told.txt; echo $? > done.txt"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(600):
        if os.path.exists("done.txt") and os.path.getsize("done.txt") > 0:
            break
        time.sleep(0.1)
    with open("done.txt", encoding="ascii") as file:
        assert file.read() == "0\n"
    with open("told.txt", encoding="ascii") as file:
        assert json.loads(file.readline())["calls"] == 20000


def calls_of_a_short_program_have_their_stack():
    """It is over before whyslow has read the first."""
    rows, counters, _ = run(known, "reads", "800")
    reads = [row for row in rows if row["call"] == "read" and row["count"] and row["stack"]]
    assert sum(row["count"] for row in reads) == 800, reads
    assert counters["io.unattributed"] == 0 and counters["io.lost.stacks_skipped"] == 0, counters
    nothing_lost(counters)


def unread_while(script):
    """The rows and counters of a script that runs while nobody reads what it tells."""
    os.mkfifo("go")
    process = subprocess.Popen([dump, "-u", "-s", "-o", OUT, "--", "/bin/sh", "-c",
                                f"read x < go; {script}; echo > done"], stdout=subprocess.PIPE,
                               text=True, stdin=subprocess.DEVNULL)
    with open("go", "w", encoding="ascii") as go:  # it has begun, and so has the recording
        process.send_signal(signal.SIGSTOP)
        go.write("x\n")
    while not os.path.exists("done"):
        time.sleep(0.05)
    process.send_signal(signal.SIGCONT)
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, process.returncode
    counters, *rows = map(json.loads, text.splitlines())
    for row in rows:
        row["call"] = io_tools.NUMBERS.get(row["syscall"], "?")
    return rows, counters


def calls_that_nobody_reads_keep_their_file():
    """More than the ring has room for, one by one: of most there is no stack, but what they were on is not lost."""
    rows, counters = unread_while(f"{known} reads 100000")
    reads = [row for row in of(rows, "bytes.dat") if row["call"] == "read"]
    assert sum(row["count"] for row in reads) == 100000, (reads, counters)
    assert counters["io.folded"] == 0 and counters["io.lost.objects"] == 0, counters
    bare = sum(row["count"] for row in reads if not row["stack"])
    assert 0 < bare <= counters["io.unattributed"] <= counters["io.calls"], (bare, counters)


def calls_about_what_found_no_number_are_said_to_lack_it():
    """Numbers run out, and rings of new threads have room."""
    rows, counters = unread_while(f"for i in 1 2 3 4 5 6 7; do {known} lookups 10000; done; {known} lookups 200")
    lookups = [row for row in rows if "/nowhere/" in row.get("name", "")]
    whole = sum(row["count"] for row in lookups if row["stack"])
    print(whole, sum(row["count"] for row in lookups), counters)
    assert counters["io.lost.objects"] > 4000, counters
    assert whole + counters["io.unattributed"] >= 2 * (7 * 10000 + 200), (whole, counters)


CASES = {
    "semantics": promises_of_calls_are_kept,
    "tiny": ten_thousand_files_are_counted_with_or_without_room,
    "threads": two_thousand_threads_are_seen,
    "tree": children_are_counted_with_their_parents,
    "reused": a_number_that_is_given_out_again_is_another_object,
    "plugin": libraries_that_come_later_are_seen,
    "unseen": what_cannot_be_seen_is_an_error,
    "sanitized": a_program_with_a_sanitizer_runs,
    "scribbled": nonsense_in_the_shared_memory_is_counted,
    "stdio": what_stdio_moves_is_said_to_be_unseen,
    "requests": requests_of_a_client_are_taken_apart,
    "locks": locks_and_calls_are_told_at_the_same_time,
    "killed": a_target_outlives_whyslow,
    "unread": calls_that_nobody_reads_keep_their_file,
    "nameless": calls_about_what_found_no_number_are_said_to_lack_it,
    "burst": calls_of_a_short_program_have_their_stack,
}
folder = tempfile.mkdtemp(prefix="whyslow-io-user-")
os.chdir(folder)
try:
    CASES[case]()
finally:
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
print("ok")
