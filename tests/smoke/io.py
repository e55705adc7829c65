#!/usr/bin/python3
"""`whyslow record --io` beside what a program knows of its own calls.

    io.py CASE kernel|user|nobody WHYSLOW IO_KNOWN

Calls and bytes of each file are exact; times may be no longer than what the program's own clock
says around the call, and not much shorter: those are judged in the suite `truth` only.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import io_tools  # noqa: E402
from io_tools import CREATES, FAULT, SYNC, total  # noqa: E402
from wait_tools import between, need_kernel_tier, skip, time_between, timed  # noqa: E402

name, tier = sys.argv[1], sys.argv[2]
lab = io_tools.Lab(sys.argv[3], [sys.argv[4]], "whyslow-io-")
known = lab.io_known

# Around a call lie two looks at the clock, in the kernel tier our programs, and what preempts in between.
EACH_CALL_MS = 0.003
PREEMPTED_MS = 10
LONG_MS = 0.05


def look(*command, **more):
    path, said, words = lab.record_io(known, *command, tier=tier, **more)
    answer = lab.io(path)
    honesty = answer["honesty"]
    assert honesty["tier"] == ("kernel" if tier == "kernel" else "user"), honesty
    assert honesty["calls"] > 0, honesty
    rows = lab.rows(path)
    # Where whyslow gets no CPU for long a call is told by its name alone (folded), or its object is lost.
    counters = lab.counters(path)
    rows.nameless = counters["io.lost.objects"] + counters["io.folded"]
    return rows, io_tools.accounts(said), answer, words


def check(rows, account, found=None, bytes_too=True, times=True):
    """Exact in calls, errors and bytes; in time as near as the program's clock allows."""
    if found is None:
        found = rows.of(call=account["call"], end="/" + account["file"])
    calls, errors = total(found), total([row for row in found if row["error"]])
    ms = total(found, "ms")
    print(f"{account['call']} of {account['file']}: {calls} calls, {errors} errors, {total(found, 'bytes')} bytes, "
          f"{ms:.3f} ms; it says {account}")
    # What a call was on may be lost where whyslow gets no CPU for long: such calls are there without it, and counted.
    bare = rows.of(call=account["call"], name="", kind="") if rows.nameless else []
    for what, got, missing in (("calls", calls, total(bare)), ("errors", errors, total([row for row in bare if row["error"]])),
                               *((("bytes", total(found, "bytes"), total(bare, "bytes")),) if bytes_too else ())):
        assert account[what] - missing <= got <= account[what], (what, got, missing, account)
    timed("nothing has lost its name", not rows.nameless, str(rows.nameless))
    if times:
        slack = EACH_CALL_MS * account["calls"]
        timed(f"{account['call']}: no longer than the program saw", ms <= account["ms"] * 1.05 + 0.1)
        # Whoever is preempted between its look at the clock and the call sees more than the call took:
        # of many short calls the program knows only an upper bound.
        if account["ms"] >= LONG_MS * account["calls"]:
            timed(f"{account['call']}: no shorter", ms >= account["ms"] * 0.95 - slack - PREEMPTED_MS)


def of_answer(rows, answer, file):
    """The row of a file in what people read; None: no call on it has kept its name."""
    found = [row for row in answer["files"] if row["name"].endswith("/" + file)]
    assert len(found) == 1 or (rows.nameless and not found), (file, [row["name"] for row in answer["files"]][:50])
    return found[0] if found else None


def nameless(rows, call, field="calls", **more):
    """What of such calls has lost what it was on, and is said to have."""
    return total(rows.of(call=call, name="", kind="", **more), field) if rows.nameless else 0


def exact(rows, what, got, truth, call, field="calls", **more):
    """All of it, but for what is there without its object."""
    between(what, got, truth - nameless(rows, call, field, **more), truth)


def case_reads():
    rows, said, answer, _ = look("reads", 100000)
    check(rows, said[0])
    table = {row["name"]: row for row in answer["syscalls"]}
    # The loader reads, too: the table has all of it, and the file its own part.
    reads = rows.of(call="read")
    assert table["read"]["calls"] == total(reads) and table["read"]["bytes"] == total(reads, "bytes"), table["read"]
    between("ms of the table", table["read"]["total_ms"], total(reads, "ms") * 0.999, total(reads, "ms") * 1.001)
    between("mean in us", table["read"]["mean_us"], table["read"]["total_ms"] * 999 / table["read"]["calls"],
            table["read"]["total_ms"] * 1001 / table["read"]["calls"])
    between("max in us", table["read"]["max_us"], table["read"]["mean_us"], table["read"]["total_ms"] * 1e3)
    # Of those that kept their name each says where in the file it was; what was told without it cannot.
    found = rows.of(call="read", end="/bytes.dat")
    assert total(found, "placed") == total(found) and total(found, "sequential") >= total(found) - 2, found


def case_strace():
    """The same table as strace -c makes of the same program, call by call."""
    import shutil
    if not shutil.which("strace"):
        skip("not installed: strace")
    rows, _, answer, _ = look("passed")
    done = lab.run("strace", "-c", "-f", "-U", "calls,errors,name", "-o", "strace.txt", known, "passed")
    theirs = {}
    for line in open("strace.txt").read().splitlines():
        fields = line.split()
        if len(fields) >= 2 and fields[0].isdigit() and fields[-1] != "total":
            theirs[fields[-1]] = (int(fields[0]), int(fields[1]) if len(fields) == 3 else 0)
    ours = {row["name"]: (row["calls"], sum(row["errors_by"].values())) for row in answer["syscalls"]}
    print("theirs", theirs, "\nours", ours, done.returncode)
    # Where a thread of the child blocks and restarts is not the same in two runs.
    for call in sorted(set(theirs) - {"restart_syscall", "execve", "wait4", "brk", "getrandom"}):
        assert ours.get(call) == theirs[call], (call, ours.get(call), theirs[call])


def case_fsyncs():
    rows, said, answer, _ = look("fsyncs", 100)
    for account in said:
        check(rows, account)
    row = of_answer(rows, answer, "synced.dat")
    exact(rows, "syncs", row["syncs"] if row else 0, 100, "fsync")
    time_between("ms in fsync", row["sync_ms"] if row else 0, said[1]["ms"] * 0.9 - 1, said[1]["ms"] * 1.05 + 0.1)


def case_syncs():
    rows, said, _, _ = look("syncs")
    for account in said:
        check(rows, account)
    for file, count in (("osync.dat", 11), ("odsync.dat", 13)):
        exact(rows, f"synchronous writes to {file}", total(rows.of(call="write", end="/" + file, flag=SYNC)), count, "write")
    assert not rows.of(call="write", end="/data.dat", flag=SYNC)


def case_tiny():
    count = 10000
    rows, said, answer, _ = look("tiny", count)
    for account in said:
        kinds = (account["call"], "unlinkat") if account["call"] == "unlink" else account["call"]
        found = [row for row in rows.of(call=kinds) if "/many/tiny-" in row["name"]]
        check(rows, account, found, times=False)
    names = {row["name"] for row in rows.of(call="read") if "/many/tiny-" in row["name"]}
    assert len(names) == count, len(names)
    created = [row for row in rows.of(call="openat", flag=CREATES) if "/many/tiny-" in row["name"]]
    assert total(created) == count, total(created)
    print(answer["notes"])


def case_lookups():
    rows, said, answer, _ = look("lookups", 1000)
    for account in said:
        kinds = ("newfstatat", "stat") if account["call"] == "newfstatat" else account["call"]
        found = [row for row in rows.of(call=kinds) if "/nowhere/missing-" in row["name"]]
        check(rows, account, found, times=False)
    table = {row["name"]: row for row in answer["syscalls"]}
    assert table["openat"]["errors_by"]["ENOENT"] >= 1000, table["openat"]
    print(json.dumps(answer.get("lookups"))[:2000])


def case_again():
    rows, said, answer, _ = look("again", 1000, 5)
    check(rows, said[0])
    row = of_answer(rows, answer, "again.dat")
    lost = nameless(rows, "read", "bytes") / (1000 << 10)
    between("times it was read", row["read_times"] if row else 0, 4.99 - lost, 5.01)


def case_cold():
    rows, said, _, _ = look("cold", 4096)
    for account in said:
        check(rows, account, times=False)
    cold, warm = (rows.of(call="read", end=f"/{file}.dat") for file in ("cold", "warm"))
    if total(cold, "missed") == 0 and os.popen("stat -f -c %T .").read().strip() in ("tmpfs", "overlayfs"):
        skip("this file system does not let go of its cache")
    between("bytes fetched, cold", total(cold, "missed_bytes"), 4096 << 10, (4096 << 10) * 1.1)
    assert total(warm, "missed_bytes") == 0, warm


def case_random():
    rows, said, answer, _ = look("random", 2000)
    for account in said:
        check(rows, account)
    for file, low, high in (("random.dat", 0, 5), ("sequential.dat", 99, 100)):
        row, found = of_answer(rows, answer, file), rows.of(call="pread64", end="/" + file)
        if not rows.nameless:
            between(f"{file}, one after the other", row["sequential_pct"], low, high)
        # Of however many have kept their name.
        between(f"{file}, one after the other", total(found, "sequential"), total(found, "placed") - 2000 * (100 - low) / 100,
                2000 * high / 100)


def case_partial():
    rows, said, _, _ = look("partial")
    check(rows, said[0])
    found = rows.of(call="read", end="/partial.dat")
    exact(rows, "asked for", total(found, "asked"), 40000, "read", "asked")
    exact(rows, "partial", total(found, "partial"), 20, "read", "partial")
    # What it says goes through a pipe, too.
    refused = rows.of(call="write", kind="pipe", error=11)
    assert refused or rows.nameless, rows.rows
    pipe = refused[0]["name"] if refused else "none has kept it"
    for account in said[1:]:
        found = rows.of(call=account["call"], name=pipe)
        if refused:
            check(rows, account, found)
        exact(rows, "EAGAIN", total([row for row in found if row["error"] == 11]), 5, account["call"], error=11)
    exact(rows, "partial", total(rows.of(call="write", name=pipe), "partial"), 5, "write", "partial")


def case_vectors():
    rows, said, _, _ = look("vectors")
    for account in said:
        check(rows, account)


def case_messages():
    rows, said, _, _ = look("messages")
    for account in said:
        if account["file"] == "socket":
            check(rows, account, rows.of(call=account["call"], kind="socket"))
        else:  # two files: the bytes are of the one they come from, or of the one they go to
            found = rows.of(call=account["call"])
            assert total(found) == account["calls"] and total(found, "bytes") == account["bytes"], (account, found)


def case_passed():
    rows, said, _, _ = look("passed")
    for account in said:
        check(rows, account)


def case_inherited():
    file = lab.folder / "before.dat"
    file.write_bytes(bytes(1234))
    file.chmod(0o644)
    rows, said, _, _ = look("inherited", "before.dat", before=["sh", "-c", f'exec 3<{file}; exec "$@"', "sh"])
    check(rows, said[0])


def case_threads():
    rows, said, _, _ = look("threads", 8, 20000)
    assert len(said) == 8
    for account in said:  # eight on few CPUs: their own clocks count waiting for one
        check(rows, account, times=False)


def case_mapped():
    rows, _, _, _ = look("mapped", 4096)
    cold, warm = rows.of(end="/mapped.dat", flag=FAULT), rows.of(end="/mapped-warm.dat", flag=FAULT)
    if not cold:
        skip("this kernel does not tell of faults on mapped files")
    between("bytes fetched, cold", total(cold, "missed_bytes"), 4096 << 10, (4096 << 10) * 1.1)
    assert total(warm, "missed") == 0, warm


def case_errors():
    rows, said, _, _ = look("errors")
    bad, folder, denied = said
    assert total(rows.of(call="read", error=9, kind="")) == bad["calls"]
    exact(rows, "of a folder", total(rows.of(call="read", error=21, kind="directory")), folder["calls"], "read", error=21)
    check(rows, denied, rows.of(call="write", end="/closed.dat", error=9))


def case_sites():
    path, words, _ = lab.record_io(known, "sites", 200000, tier=tier)
    accounts = io_tools.accounts(words)
    assert sum(account["calls"] for account in accounts) == 800000
    answer = lab.io(path, "--stacks")
    # A row is a call and a stack. Where whyslow gets no CPU for long, calls lose what they are on with their stack.
    reads = [row for row in answer["stacks"] if row["call"] == "read"
             and (row["object"].endswith("/sites.dat") or not row["stack"])]
    # Before a stack is known for the first time, calls go without one, and each says so; how many these are depends
    # on when whyslow gets a CPU.
    bare = sum(row["calls"] for row in reads if not row["stack"])
    said, others = answer["honesty"]["unattributed"], answer["honesty"]["calls"] - 800000
    between("said to be without a stack or object", said, bare, bare + others)
    timed("without a stack", bare <= 200000, f"{bare} of 800000")
    seen = 0
    for account in accounts:
        found = [row for row in reads if account["file"] in row["stack"]]
        calls = sum(row["calls"] for row in found)
        seen += calls
        between(account["file"], calls, account["calls"] - bare, account["calls"])
        # Of ten rounds with pauses between them the last at least is known where whyslow gets a CPU meanwhile.
        timed(f"{account['file']}: the last round", calls >= account["calls"] / 10, str(calls))
        assert all(row["stack"][-1] == "_start" and "main" in row["stack"] for row in found), found
    # The loader reads as well, and may have lost its stack.
    between("with a stack or counted without", seen + bare, 800000, 800000 + others)


def case_slow():
    rows, said, _, _ = look("slow", 200)
    check(rows, said[0], rows.of(call="read", kind="pipe"))


try:
    if tier == "kernel":
        need_kernel_tier()
    elif tier == "nobody" and os.geteuid() != 0:
        skip("to be somebody else needs root")
    globals()["case_" + name.replace("-", "_")]()
    print("ok")
finally:
    lab.close()
