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

PATIENCE_S = 120
DENIED, FAILED = 4, 5
WHYSLOW, DENY = (os.path.abspath(path) for path in sys.argv[2:4])

# Copies a file byte by byte, again and again, and says at the end how often: its answer must be
# the same whatever happens to whyslow.
TARGET = """
import os, sys, time
rounds, size = int(sys.argv[1]), 100
for _ in range(rounds):
    source, to = os.open("input", os.O_RDONLY), os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    while byte := os.read(source, 1):
        os.write(to, byte)
    os.close(source), os.close(to)
    time.sleep(0.02)
assert os.path.getsize("output") == size
open("said", "w").write(f"{rounds} rounds")
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
    pathlib.Path("said").unlink(missing_ok=True)
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


def tiers():
    """Those to be had here."""
    done = record("kernel", "probe.whyslow", "true")
    assert done.returncode in (0, DENIED), done
    return ["user"] if done.returncode == DENIED else ["kernel", "user"]


def case_whyslow_killed():
    """kill -9 of whyslow: the target ends as it would, and the recording opens."""
    for tier in tiers():
        path = f"{tier}.whyslow"
        recorder = subprocess.Popen([WHYSLOW, "record", "--io", "--tier", tier, "-o", path, "--", *target(150)],
                                    stderr=subprocess.DEVNULL)
        wait_for(lambda p=path: written(p) > 0 or recorder.poll() is not None, "a commit")
        assert recorder.poll() is None, "too early"
        recorder.kill()
        recorder.wait()
        wait_for(lambda: os.path.exists("said") and os.path.getsize("said") > 0, "the target's end")
        assert pathlib.Path("said").read_text() == "150 rounds"
        assert written(path) > 0, "nothing of what was committed"
        done = subprocess.run([WHYSLOW, "io", "--files", path], capture_output=True, text=True, check=False)
        print(done.stdout.splitlines()[0], done.stderr)
        assert done.returncode == 0 and "/output" in done.stdout and "cut off" in done.stdout, done
        assert f"{tier} tier" in done.stdout, done.stdout


def case_target_killed():
    """kill -9 of the target in the midst of its calls: its status is passed on, its calls count."""
    for tier in tiers():
        path = f"{tier}.whyslow"
        command = target(100000)
        done = record(tier, path, "sh", "-c", "\"$@\" & sleep 1; kill -9 $!; wait $!", "sh", *command)
        print(done.stderr)
        assert done.returncode == 128 + signal.SIGKILL, done
        size = written(path)
        assert size >= 100 and not os.path.exists("said"), size
        done = record(tier, f"self-{path}", "sh", "-c", "dd if=input of=output status=none; kill -11 $$")
        assert done.returncode == 128 + signal.SIGSEGV and written(f"self-{path}") == 100, done


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
        assert done.returncode == 7 and written(path) == 200, done
        assert "user tier" in done.stderr and "BPF" in done.stderr.upper(), done.stderr
        facts = json.loads(ask(path, "SELECT json FROM document WHERE name = 'io'")[0]["json"])
        assert facts["tier"] == "user" and "BPF" in facts["why_not_higher"].upper(), facts
        done = record("kernel", "none.whyslow", "touch", "started", before=before)
        assert done.returncode == DENIED and "try: " in done.stderr, done
        assert not os.path.exists("started") and not os.path.exists("none.whyslow")


with tempfile.TemporaryDirectory(prefix="whyslow-io-fault-") as work:
    os.chdir(work)
    globals()["case_" + sys.argv[1].replace("-", "_")]()
