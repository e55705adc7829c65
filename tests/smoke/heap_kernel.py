#!/usr/bin/env python3
"""Known answers of the kernel tier of the heap: heap_kernel.py CASE heap_dump FOLDER_OF_WORKLOADS.

Every call is told, so every figure is equal, not close. Programs are built here, in the ways that
the library cannot be put into them: static, with an allocator of their own, with jemalloc."""
import atexit
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import seen  # noqa: E402
from judged import JUDGED, timed  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import has_no_bpf  # noqa: E402

SKIPPED = 77
SIZES = [64, 128, 256, 64, 128, 256, 64, 128, 256, 64]
MAKERS = ("malloc", "calloc", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc")


def build(folder, name, *arguments, source="heap_told.c", compiler="cc"):
    path = os.path.join(folder, name)
    done = subprocess.run([compiler, "-O1", "-g", "-pthread", "-o", path,
                           os.path.join(SOURCES, source), *arguments],
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        print("SKIP: cannot be built here:", done.stderr)
        sys.exit(SKIPPED)
    return path


def dump(options, command, **more):
    done = subprocess.run([TOOL, *options, "--", *command], capture_output=True, text=True,
                          timeout=600, **more)
    return result(done.returncode, done.stdout, done.stderr)


def result(status, stdout, stderr):
    if has_no_bpf(status, stderr):
        print("SKIP: no BPF here:", stderr)
        sys.exit(SKIPPED)
    assert status == 0, (status, stderr)
    told = json.loads(stdout)
    told["document"] = json.loads(told["document"])
    return told


def same(what, got, want):
    assert got == want, f"{what}: {got}, not {want}"


def lost_nothing(told, but=()):
    same("lost", {k: v for k, v in told["counters"].items() if k.startswith("heap.lost.") and v and k not in but}, {})
    same("lost calls", told["document"]["lost_calls"], 0)
    same("missed frees", told["counters"]["heap.missed_frees"], 0)


def by_function(told, process=None):
    """Sums of sites by the known_ function in their stacks, which all begin in main or a thread."""
    sums = collections.defaultdict(collections.Counter)
    for site in told["sites"]:
        if process is not None and site["process"] != process:
            continue
        known = [f for f in site["stack"] if "known_" in f]
        if not known:
            continue
        name = known[0].split("known_")[1].split("(")[0]
        assert site["stack"][-1] in ("_start", "clone3", "__clone3", "clone", "__clone"), site
        assert len(site["stack"]) >= 3 and site["stack"].index(known[0]) >= 1, site
        for key, value in site.items():
            if isinstance(value, int) and key not in ("process", "pid", "tid"):
                if key in ("chain_max", "size_max"):
                    sums[name][key] = max(sums[name][key], value)
                else:
                    sums[name][key] += value
    return sums


def figures(sums, name):
    s = sums[name]
    return (s["allocations"], s["allocated_bytes"], s["frees"], s["freed_bytes"])


def entries_are(told, process=None, own=False, makers=MAKERS):
    sums = by_function(told, process)
    for name in makers:
        same(name, figures(sums, name), (10, sum(SIZES), 7, sum(SIZES[:7])))
        same(name + " largest", sums[name]["size_max"], 256)
        same(name + " at the peak", (sums[name]["peak_count"], sums[name]["peak_bytes"]),
             (3, sum(SIZES[7:])))
    grown = sum(1000 * i for i in range(1, 51))
    same("realloc", figures(sums, "realloc"), (51, grown + 80, 51, grown + 80))
    same("reallocarray", figures(sums, "reallocarray"), (2, 100040, 2, 100040))
    same("realloc grew", (sums["realloc"]["grown"], sums["realloc"]["grown_bytes"]),
         (50, 49 * 1000 + 40))
    same("reallocarray grew", (sums["reallocarray"]["grown"], sums["reallocarray"]["grown_bytes"]),
         (1, 50000))
    same("in turn", sums["reallocarray"]["chain_max"], 50)
    same("other", figures(sums, "other"), (500, 12000, 500, 12000))
    same("temporary", sums["other"]["temporary"], 500)
    same("peak of reallocarray", sums["reallocarray"]["peak_bytes"], 100000)
    if own:
        same("moved", sums["realloc"]["moved"], 50)
    rows = [p for p in told["processes"] if process in (None, p["process"])]
    same("processes", len(rows), 1)
    sites = [s for s in told["sites"] if process in (None, s["process"])]
    same("peak is what it is made of", rows[0]["peak_bytes"], sum(s["peak_bytes"] for s in sites))
    same("peak count", rows[0]["peak_count"], sum(s["peak_count"] for s in sites))
    same("sizes", rows[0]["sizes"], sum(s["allocations"] for s in sites))
    same("lives", rows[0]["lives"], sum(s["frees"] for s in sites))
    same("unseen", rows[0]["unseen_frees"], 0)


def case_static(folder):
    program = build(folder, "told", "-static")
    told = dump(["-l"], [program, "entries"])
    lost_nothing(told)
    entries_are(told)
    same("events", told["events"], told["counters"]["heap.allocations"] +
         told["counters"]["heap.frees"])
    cost = told["document"]["cost_ns_per_call"]
    assert cost > 0, told["document"]
    timed("ns a call", 50 < cost < 1000000, str(cost))


def case_shared(folder):
    told = dump([], [build(folder, "told"), "entries"])
    lost_nothing(told)
    entries_are(told)


def case_stripped(folder):
    program = build(folder, "told", "-static", "-s")
    told = dump([], [program, "entries"])
    same("allocations", told["counters"]["heap.allocations"], 0)
    assert "symbols" in told["na"] and "malloc()" in told["na"], told["na"]


def case_own(folder):
    program = build(folder, "told", os.path.join(SOURCES, "heap_told_own.c"), "-fno-builtin")
    told = dump([], [program, "entries"])
    lost_nothing(told)
    entries_are(told, own=True)
    assert told["counters"]["heap.calls_nested"] >= 103, "realloc() calls malloc() and free()"


def case_jemalloc(folder):
    program = build(folder, "told", "-Wl,--no-as-needed", "-l:libjemalloc.so.2")
    told = dump([], [program, "entries-without-pvalloc"]) # which it leaves to the C library
    lost_nothing(told)
    entries_are(told, makers=MAKERS[:-1])


def with_stacks(told, truth):
    """Eight threads make more stacks than the ring has room for: where whyslow gets no CPU for so long, calls are told
    without their stack, and counted. Whether none has lost it; what has one is right all the same, and no more is missing."""
    lost_nothing(told, but=("heap.lost.stacks",))
    sums, lost = by_function(told), told["counters"]["heap.lost.stacks"]
    bare = sum(site["allocations"] for site in told["sites"] if not site["stack"])
    same("without a stack", bare, lost)
    known = {name: sums[name]["allocations"] for name in truth}
    assert all(known[name] <= truth[name] for name in truth), (known, truth)
    assert sum(truth.values()) - lost <= sum(known.values()), (known, truth, lost)
    timed("all stacks are there", lost == 0, str(lost))
    return lost == 0


def case_threads(folder):
    truth = {"malloc": 8000, "other": 16000, "calloc": 32}
    told = dump([], [build(folder, "told", "-static"), "threads", "1000"])
    sums = by_function(told)
    if with_stacks(told, truth):
        same("malloc", figures(sums, "malloc"), (8000, 800000, 8000, 800000))
        same("other", figures(sums, "other"), (16000, 704000, 16000, 704000))
        same("calloc", figures(sums, "calloc"), (32, 25600, 0, 0))
        same("temporary", sums["malloc"]["temporary"], 8000)
        # The second of the two is freed after the first: before the thread's next allocation.
        same("temporary of two", sums["other"]["temporary"], 8000)
    # Of the first thread only what has lost its stack.
    threads = {s["tid"] for s in told["sites"] if any("known_" in f for f in s["stack"])}
    bare = {s["tid"] for s in told["sites"] if not s["stack"]}
    assert len(threads) <= 8 <= len(threads | bare) <= 9, (threads, bare)
    # A thread that ends gives up what the C library had spared for it: freed already. And one
    # piece that it had by an inner way: the list of those.
    assert told["processes"][0]["unseen_frees"] in (0, 8), told["processes"]
    assert told["counters"]["heap.frees_again"] > 0
    sites = told["sites"]
    same("peak", told["processes"][0]["peak_bytes"], sum(s["peak_bytes"] for s in sites))
    wide = dump(["-w", "2"], [build(folder, "told", "-static"), "threads", "1000"])
    if with_stacks(wide, truth):
        same("temporary within two", by_function(wide)["other"]["temporary"], 16000)


def case_hand_over(folder):
    told = dump([], [build(folder, "told"), "hand-over"])
    lost_nothing(told)
    sums = by_function(told)
    same("malloc", figures(sums, "malloc"), (1, 4000, 1, 4000))
    same("temporary", sums["malloc"]["temporary"], 0)
    sites = [s for s in told["sites"] if any("known_malloc" in f for f in s["stack"])]
    same("threads", len({s["tid"] for s in sites}), 2)


def case_fork(folder):
    for arguments in ([], ["-static"]):
        told = dump([], [build(folder, "told", *arguments), "fork"])
        lost_nothing(told)
        by_process = {p["process"]: p for p in told["processes"]}
        same("processes", len(by_process), 2)
        children = [p for p, row in by_process.items() if row["inherited_frees"] > 0]
        same("children", len(children), 1)
        child = children[0]
        parent = next(p for p in by_process if p != child)
        same("inherited", (by_process[child]["inherited_frees"],
                           by_process[child]["inherited_bytes"]), (41, 41 * 50))
        same("unseen", by_process[child]["unseen_frees"] + by_process[parent]["unseen_frees"], 0)
        sums = by_function(told, parent)
        same("parent", figures(sums, "malloc"), (100, 5000, 60, 3000))
        sums = by_function(told, child)
        same("child's", figures(sums, "other"), (10, 700, 4, 280))
        same("reallocated", figures(sums, "realloc"), (1, 60, 0, 0))
        same("child's peak", by_process[child]["peak_bytes"], 700)


def case_exec(folder):
    told = dump([], [build(folder, "told", "-static"), "exec"])
    lost_nothing(told)
    same("processes", len(told["processes"]), 2)
    first = [p["process"] for p in told["processes"]
             if figures(by_function(told, p["process"]), "malloc") == (1, 12345, 0, 0)]
    same("the first program", len(first), 1)
    second = next(p["process"] for p in told["processes"] if p["process"] != first[0])
    entries_are(told, second)


def case_failing(folder):
    told = dump([], [build(folder, "told", "-static"), "failing"])
    lost_nothing(told)
    sums = by_function(told)
    same("failed", told["processes"][0]["failed"], 2)
    same("malloc", figures(sums, "malloc"), (1, 1000, 1, 1000))
    same("realloc", figures(sums, "realloc"), (1, 2000, 1, 2000))
    same("other", figures(sums, "other"), (0, 0, 0, 0))


def cxx_is(folder, *arguments, options=()):
    program = build(folder, "told", *arguments, source="heap_told_cxx.cpp", compiler="c++")
    with tempfile.NamedTemporaryFile("r") as printed:
        told = dump(["-o", printed.name], [program, *options])
        # An exception must find its way past us.
        same("printed", printed.read(), "whole\n")
    lost_nothing(told)
    sums = by_function(told)
    same("new[]", figures(sums, "new"), (37, 3700, 27, 2700))
    same("aligned new", figures(sums, "wide"), (10, 1920, 10, 1920))
    same("new", figures(sums, "one"), (50, 200, 50, 200))
    same("nothrow new", figures(sums, "nothrow"), (1, 300, 1, 300))
    same("unseen", told["processes"][0]["unseen_frees"], 0)


def case_cxx(folder):
    cxx_is(folder)
    cxx_is(folder, "-static")


def case_cxx_jemalloc(folder):
    cxx_is(folder, "-Wl,--no-as-needed", "-l:libjemalloc.so.2")


def case_cxx_tcmalloc(folder):
    cxx_is(folder, "-Wl,--no-as-needed", "-l:libtcmalloc_minimal.so.4")


def case_cxx_mimalloc(folder):
    # It ends the program when there is no memory.
    cxx_is(folder, "-Wl,--no-as-needed", "-l:libmimalloc.so.2", options=["does-not-fail"])


def case_attach(folder):
    """Earlier allocations are unseen, and said to be; the program runs on afterwards."""
    program = subprocess.Popen([build(folder, "told"), "loop"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    same("program", program.stdout.readline(), "ready\n")
    atexit.register(program.kill) # also where the test fails
    end = f"{folder}/end"
    tool = subprocess.Popen([TOOL, "-p", str(program.pid), "-e", end, "-S", "500"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first, begin = tool.stderr.readline(), time.monotonic()
    if first != "started\n":
        program.kill()
        result(tool.wait(), tool.stdout.read(), first + tool.stderr.read())
    program.stdin.write("\n")
    program.stdin.close()
    same("program", program.stdout.readline(), "done\n")
    begun = seen.sleeps(program.pid)
    while seen.sleeps(program.pid) < begun + 5:  # some of its further rounds, each of which has a sleep
        time.sleep(0.01)
    # There is a snapshot of what it has now: each is taken within 500 ms, or in the end.
    time.sleep(max(0.6, begin + 4 - time.monotonic() if JUDGED else 0))
    with open(end, "w"):
        pass
    stdout, stderr = tool.communicate(timeout=600)
    told = result(tool.returncode, stdout, stderr)
    assert program.poll() is None, "it has ended"
    # Nothing of ours is left in its code: it makes rounds as quickly as before.
    program.send_signal(signal.SIGTERM)
    rounds = int(program.stdout.readline())
    same("status", program.wait(timeout=600), 0)
    lost_nothing(told)
    sums = by_function(told)
    same("other", figures(sums, "other"), (2000, 96000, 2000, 96000))
    same("calloc", figures(sums, "calloc"), (20, 1600, 0, 0))
    assert 0 < sums["malloc"]["allocations"] <= rounds - 2000, (sums["malloc"], rounds)
    same("unseen", told["processes"][0]["unseen_frees"], 20)
    assert any(na["what"] == "earlier allocations" for na in told["document"]["na"]), told["document"]
    same("attached", told["document"]["attached"], True)
    cost = told["document"]["cost_ns_per_call"]
    assert cost > 0, told["document"]
    timed("ns a call", 50 < cost < 1000000, str(cost))
    timed("snapshots of 4 s", len(told["snapshots"]) >= 3, str(told["snapshots"]))
    assert told["snapshots"][-1]["bytes"] >= 1600, told["snapshots"]
    assert told["processes"][0]["moments"] > 0, told["processes"]
    timed("moments of 4 s", told["processes"][0]["moments"] >= 10, str(told["processes"]))


def case_nothing(folder):
    program = subprocess.Popen([build(folder, "told"), "loop"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    same("program", program.stdout.readline(), "ready\n")
    try:
        told = dump(["-p", str(program.pid), "-d", "1"], [])
    finally:
        program.kill()
        program.wait()
    assert "nothing" in told["na"], told["na"]


CASE, TOOL, SOURCES = sys.argv[1:4]
with tempfile.TemporaryDirectory() as scratch:
    globals()["case_" + CASE.replace("-", "_")](scratch)
