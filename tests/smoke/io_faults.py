#!/usr/bin/python3
"""Page faults on mapped files, as the kernel tier sees them, beside the kernel's own count.

    io_faults.py CASE IO_DUMP IO_MAPPED

How many, and what they fetched, is exact. Of time there is only an upper bound: what the program
saw itself.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from wait_tools import need_kernel_tier, skip, timed  # noqa: E402

name, dump, mapped = sys.argv[1:4]
PAGES, PAGE, FAULT = 500, 4096, 8


def rows_of(text, path):
    """The counters, and rows of faults on a file."""
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[0], [row for row in lines[1:] if row.get("name") == path and row["flags"] & FAULT]


def total(rows, what):
    return sum(row[what] for row in rows)


def run(mode, *options):
    with tempfile.TemporaryDirectory(prefix="whyslow-io-faults-") as folder:
        folder = os.path.realpath(folder)
        path, said = f"{folder}/mapped.dat", f"{folder}/said"
        done = subprocess.run([dump, *options, "-o", said, "--", mapped, mode, path, str(PAGES)],
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        with open(said, encoding="utf-8") as file:
            account = json.load(file)
    counters, rows = rows_of(done.stdout, path)
    print(account, [{key: row[key] for key in ("count", "missed", "missed_bytes", "total_ns")} for row in rows])
    assert counters["io.faults"] > 0, "not even the program itself was mapped?"
    assert counters["io.folded"] == 0 and counters["io.lost.refused"] == 0, counters
    for row in rows:
        assert row["syscall"] == -1 and row["error"] == 0 and row["bytes"] == 0, row
    return account, rows


def need_cold(account):
    if account["resident_before"] or account["major"] < PAGES:
        skip("this file system keeps what it was told to let go of")


def case_cold():
    account, rows = run("cold", "-s")
    need_cold(account)
    assert total(rows, "count") == total(rows, "missed") == PAGES, rows
    assert total(rows, "missed_bytes") == PAGES * PAGE, rows
    # Each waited for its page, so that its time is known; and all of them are in the loop that was timed.
    assert total(rows, "bucketed") == PAGES, rows
    assert 0 < total(rows, "total_ns") <= account["took_s"] * 1e9, rows
    # Until the stack has been walked for the first time some have none, and none has another's. That takes
    # milliseconds on a busy machine, and all of it is over in 20.
    named = sum(row["count"] for row in rows if row["stack"][:2] == ["touch_pages", "main"])
    bare = sum(row["count"] for row in rows if not row["stack"])
    assert named + bare == PAGES, [row["stack"] for row in rows]
    timed("walked while it lasted", named >= 1, str(named))


def case_warm():
    account, rows = run("warm", "-s")
    # Pages around one that is touched are mapped with it: fewer faults than pages.
    assert 0 < total(rows, "count") <= account["minor"], (rows, account)
    assert total(rows, "missed") == total(rows, "missed_bytes") == 0, rows
    # Nobody tells when such a fault is over.
    assert total(rows, "total_ns") == total(rows, "bucketed") == 0, rows


def case_private():
    _, rows = run("private")
    assert total(rows, "count") == PAGES, rows
    assert total(rows, "missed") == 0, rows


def case_inside():
    """What a call fetches by faults is the call's."""
    account, rows = run("inside")
    need_cold({**account, "major": PAGES})
    assert total(rows, "count") == 0, rows


def minor_faults(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[7])


def case_attach():
    """Mapped before we came, and without an fd: its name is known all the same."""
    with tempfile.TemporaryDirectory(prefix="whyslow-io-faults-") as folder:
        folder = os.path.realpath(folder)
        path, go, end = (f"{folder}/{name}" for name in ("mapped.dat", "go", "end"))
        with subprocess.Popen([mapped, "again", path, str(PAGES)], stdout=subprocess.PIPE) as target:
            target.stdout.readline()
            with subprocess.Popen([dump, "-s", "-g", go, "-e", end, "-p", str(target.pid)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as recorder:
                while not os.path.exists(go) and recorder.poll() is None:
                    time.sleep(0.02)
                # Until it has been through its pages a few times: one fault stands for sixteen pages at most.
                begun = minor_faults(target.pid)
                while minor_faults(target.pid) < begun + PAGES // 4 and recorder.poll() is None:
                    time.sleep(0.02)
                with open(end, "w", encoding="ascii"):
                    pass
                text, words = recorder.communicate(timeout=600)
            target.send_signal(signal.SIGKILL)
            target.stdout.close()
    assert recorder.returncode == 0, words
    counters, rows = rows_of(text, path)
    assert total(rows, "count") > 0, text


need_kernel_tier()
if [int(part) for part in os.uname().release.split(".")[:2]] < [6, 11]:
    skip("this kernel does not tell of faults on mapped files")
globals()[f"case_{name}"]()
