#!/usr/bin/python3
"""Recording calls while things go wrong: the target is not harmed, nothing stays in the kernel,
and what could not be had is said.

    record_io.py CASE WHYSLOW DENY
"""

import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from judged import timed  # noqa: E402

PATIENCE_S = 600
DENIED, FAILED = 4, 5
WHYSLOW, DENY = (os.path.abspath(path) for path in sys.argv[2:4])

# Copies a file byte by byte, again and again, and says at the end how often: its answer must be
# the same whatever happens to whyslow. With 0 it goes on until there is a file "enough".
TARGET = """
import itertools, os, sys, time
rounds, size = int(sys.argv[1]), 100
for i in itertools.count(1):
    source, to = os.open("input", os.O_RDONLY), os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    while byte := os.read(source, 1):
        os.write(to, byte)
    os.close(source), os.close(to)
    time.sleep(0.02)
    if os.path.exists("enough") if rounds == 0 else i == rounds:
        break
assert os.path.getsize("output") == size
open("said", "w").write(f"{rounds or 'enough'} rounds")
sys.exit(7)
"""


def skip(text):
    print("SKIP:", text)
    sys.exit(77)


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


def target(rounds):
    pathlib.Path("input").write_text("x" * 100)
    for name in ("said", "enough"):
        pathlib.Path(name).unlink(missing_ok=True)
    return [sys.executable, "-c", TARGET, str(rounds)]


def record(tier, path, *command, before=(), **more):
    return subprocess.run([*before, WHYSLOW, "record", "--io", "--tier", tier, "-o", path, "--", *command],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False, **more)


def ask(path, sql):
    done = subprocess.run([WHYSLOW, "query", "--json", path, sql], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["rows"] if done.returncode == 0 else None


def written(path):
    """Bytes written to the output, as the recording has them by now; 0: nothing yet."""
    rows = ask(path, "SELECT ifnull(sum(bytes), 0) AS n FROM call JOIN object ON object.id = call.object"
                     " WHERE object.name LIKE '%/output'") if os.path.exists(path) else None
    return rows[0]["n"] if rows else 0


def by_name(path, size, calls):
    """All that was written, in so many calls of one size. Whose file it was may be lost on a busy machine: then it is
    counted as that."""
    got, each = written(path), size // calls
    nameless = ask(path, "SELECT ifnull(sum(bytes), 0) AS n FROM call WHERE object = 0")[0]["n"]
    lost = ask(path, "SELECT value AS n FROM counter WHERE name = 'io.unattributed'")[0]["n"]
    timed("all of it by name", got == size, f"{got} of {size}, {nameless} nameless, {lost} calls lost that")
    assert size - min(nameless, lost * each) <= got <= size, (got, nameless, lost)


def tiers():
    """Those to be had here."""
    done = record("kernel", "probe.whyslow", "true")
    assert done.returncode in (0, DENIED), done
    return ["user"] if done.returncode == DENIED else ["kernel", "user"]


def case_whyslow_killed():
    """kill -9 of whyslow: the target ends as it would, and the recording opens."""
    for tier in tiers():
        path = f"{tier}.whyslow"
        recorder = subprocess.Popen([WHYSLOW, "record", "--io", "--tier", tier, "-o", path, "--", *target(0)],
                                    stderr=subprocess.DEVNULL)
        wait_for(lambda p=path: written(p) > 0 or recorder.poll() is not None, "a commit")
        assert recorder.poll() is None, "too early"
        recorder.kill()
        recorder.wait()
        pathlib.Path("enough").touch()
        wait_for(lambda: os.path.exists("said") and os.path.getsize("said") > 0, "the target's end")
        assert pathlib.Path("said").read_text() == "enough rounds"
        assert written(path) > 0, "nothing of what was committed"
        done = subprocess.run([WHYSLOW, "io", "--files", path], capture_output=True, text=True, check=False)
        print(done.stdout.splitlines()[0], done.stderr)
        assert done.returncode == 0 and "/output" in done.stdout and "cut off" in done.stdout, done
        assert f"{tier} tier" in done.stdout, done.stdout


def case_target_killed():
    """kill -9 of the target in the midst of its calls: its status is passed on, its calls count."""
    for tier in tiers():
        path = f"{tier}.whyslow"
        command = target(0)
        recorder = subprocess.Popen([WHYSLOW, "record", "--io", "--tier", tier, "-o", path, "--", "sh", "-c",
                                     "\"$@\" & echo $! >pid; wait $!", "sh", *command], stderr=subprocess.PIPE, text=True)
        # A round is 100 bytes, and ends with a rest: the next look finds all of it.
        wait_for(lambda p=path: written(p) >= 100 or recorder.poll() is not None, "a round in the recording")
        os.kill(int(pathlib.Path("pid").read_text()), signal.SIGKILL)
        _, words = recorder.communicate(timeout=PATIENCE_S)
        print(words)
        assert recorder.returncode == 128 + signal.SIGKILL, recorder.returncode
        size = written(path)
        assert size >= 100 and not os.path.exists("said"), size
        done = record(tier, f"self-{path}", "sh", "-c", "dd if=input of=output status=none; kill -11 $$")
        assert done.returncode == 128 + signal.SIGSEGV, done
        by_name(f"self-{path}", 100, 1)


def case_disk_full():
    """No room for the recording: an error in words, and the target runs on to its end."""
    small = pathlib.Path("small")
    small.mkdir()
    # Every file is an object with rows of its own, until no more fit.
    names = ("import os\nfor i in range(6000): os.close(os.open(f'files/{i}', os.O_CREAT))\n"
             "open('said', 'w').write('all')")
    pathlib.Path("files").mkdir()
    for tier in tiers():
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", small], check=False).returncode != 0:
            skip("no permission to mount a small disk")
        try:
            pathlib.Path("said").unlink(missing_ok=True)
            done = record(tier, "small/r.whyslow", sys.executable, "-c", names)
            print(done.returncode, done.stderr)
            assert done.returncode == FAILED and "No space left" in done.stderr and "try: " in done.stderr, done
            assert pathlib.Path("said").read_text() == "all" and len(os.listdir("files")) == 6000
            assert ask("small/r.whyslow", "SELECT count(*) AS n FROM call") is not None, "it does not open"
        finally:
            subprocess.run(["umount", small], check=True)


def case_denied():
    """Without BPF the user tier, with the reason; asked for the kernel's, an error before anything runs."""
    if os.geteuid() != 0:
        skip("only root has something to be denied")
    for before in ([DENY, "--bpf", str(errno.EPERM)], ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"]):
        path = f"{len(before)}.whyslow"
        done = record("auto", path, *target(2), before=before)
        print(done.stderr)
        assert done.returncode == 7, done
        by_name(path, 200, 200)
        assert "user tier" in done.stderr and "BPF" in done.stderr.upper(), done.stderr
        facts = json.loads(ask(path, "SELECT json FROM document WHERE name = 'io'")[0]["json"])
        assert facts["tier"] == "user" and "BPF" in facts["why_not_higher"].upper(), facts
        done = record("kernel", "none.whyslow", "touch", "started", before=before)
        assert done.returncode == DENIED and "try: " in done.stderr, done
        assert not os.path.exists("started") and not os.path.exists("none.whyslow")


def case_small_ring():
    """Where there is no room for a large buffer it is a small one, with the reason: neither an error nor a lower tier."""
    if "kernel" not in tiers():
        skip("no BPF here")
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 4 << 30:
        skip("a machine with less memory has the small buffer anyway")
    for before, small in ((), False), ([DENY, "--map-from", str(100 << 20), str(errno.ENOMEM)], True):
        path = f"{small}.whyslow"
        done = record("kernel", path, *target(2), before=before)
        assert done.returncode == 7 and written(path) == 200, (done, written(path))
        facts = json.loads(ask(path, "SELECT json FROM document WHERE name = 'io'")[0]["json"])
        assert facts["tier"] == "kernel", facts
        said = [row["reason"] for row in facts["na"] if row["what"] == "room for calls"]
        print(small, said)
        assert len(said) == small and all("Cannot allocate memory" in reason for reason in said), facts
        done = subprocess.run([WHYSLOW, "io", path], capture_output=True, text=True, check=True)
        assert ("room for calls" in done.stdout) == small, done.stdout


def memory_group(limit):
    """A cgroup of our own with a limit of memory; skips where there can be none."""
    for mount, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(mount, f"whyslow-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(str(limit))
            return group
        except OSError:
            group.rmdir()
    return skip("no cgroup can be made that limits memory")


def case_limited():
    """A cgroup's limit counts as the machine's memory does: what is left of it is the program's."""
    if "kernel" not in tiers():
        skip("no BPF here")
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 4 << 30:
        skip("a machine with less memory has the small buffer anyway")
    group, maps = memory_group(1 << 30), {}
    try:
        for inside in (False, True):
            path = f"{inside}.whyslow"
            enter = (lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) if inside else None
            done = record("kernel", path, *target(2), preexec_fn=enter)
            assert done.returncode == 7 and written(path) == 200, (done, written(path))
            maps[inside] = ask(path, "SELECT value FROM counter WHERE name = 'io.map_bytes'")[0]["value"]
    finally:
        group.rmdir()
    print(maps)
    assert maps[False] - maps[True] == 48 << 20, maps


with tempfile.TemporaryDirectory(prefix="whyslow-io-fault-") as work:
    os.chdir(work)
    globals()["case_" + sys.argv[1].replace("-", "_")]()
