#!/usr/bin/python3
"""`whyslow record --offcpu` and `whyslow waits` beside what programs measure of their own waits.

    waits.py NAME TIER WHYSLOW WAITS-CALLS WAITS-THREADS SCHEMA

TIER is kernel, user (as root) or nobody. Nothing depends on how fast the machine is: what is
expected is what the program saw happen (wait_tools.py). Times are judged in the suite `truth` only.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import wait_tools  # noqa: E402
from wait_tools import (between, check_complete, check_lives, check_schema, check_wait, functions, skip,  # noqa: E402
                        time_between, timed)

name, tier, schema = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[6])
lab = wait_tools.Lab(sys.argv[3], sys.argv[4:6], "whyslow-waits-")
calls, threads = lab.waits_calls, lab.waits_threads
# Who ends a wait is known to the kernel only; without it the class is what can be told.
FROM_PROCESS = ("child",) if tier == "kernel" else ("child", "net", "idle")
# Nor is it known there whether a thread that sleeps again and again keeps anybody waiting.
HABIT = ("timer",) if tier == "kernel" else ("timer", "idle")


def look(*command, complete=0.99, lives=True, earlier=(), validate=True, **more):
    """Records, and checks what must be so of every recording."""
    path, truth, stderr = lab.record(*command, tier=tier, **more)
    answer = lab.waits(path)
    if validate:  # of very many rows it takes very long
        check_schema(schema, answer.json)
    assert answer.json["honesty"]["tier"] == ("kernel" if tier == "kernel" else "user")
    if complete and tier == "kernel":
        check_complete(answer, complete)
    if lives:
        # Without the kernel's help a thread is looked at every 10 ms, on a busy machine less often:
        # a wait of 20 ms may fall in between, and is then said to be unknown.
        check_lives(answer, truth, 0.02 if tier == "kernel" else 0.05, 0.02 if tier == "kernel" else 0.15, earlier)
    return answer, truth, stderr


def look_long(program, *arguments, **more):
    """The same of a program whose first long sleep lasts, where threads are looked at, until it was looked at."""
    return look(program, *arguments, until_seen=program if tier != "kernel" else None, **more)


def check(answer, truth, function, *kinds, **more):
    check_wait(answer, truth, function, kinds, tier=tier, **more)


def check_long(answer, truth, function, *kinds):
    check(answer, truth, function, *kinds, seen_for_certain=True)


def path_ms(answer, function):
    """Time on the critical path in waits with this function on their stack."""
    by_id = {row["id"]: row for row in answer.rows}
    total = 0
    for step in answer.json["critical_path"]:
        stack = step.get("stack") or by_id.get(step.get("wait"), {}).get("stack")
        if function in functions(stack):
            total += step["ms"] if "ms" in step else step["total_ms"]
    return total


def case_sleep():
    answer, truth, _ = look_long(calls, "sleep", 300)
    check_long(answer, truth, "sleeps_here", "timer")
    row = answer.with_function("sleeps_here")[0]
    assert "nanosleep" in row["cause"], row["cause"]
    time_between("longest", row["max_ms"], truth.sum("sleeps_here") * 0.9 - answer.runq(), truth.sum("sleeps_here") * 1.01)
    time_between("p50", row["p50_ms"], 0, row["max_ms"])


def case_pipe():
    answer, truth, _ = look_long(calls, "pipe", 400)
    check_long(answer, truth, "reads_the_pipe", *FROM_PROCESS)
    check_long(answer, truth, "feeds_the_pipe", *HABIT)
    for row in answer.with_function("reads_the_pipe"):
        assert row["class"] == "pagefault" or "read" in row["cause"] and "pipe" in row["cause"], row["cause"]
    if tier == "kernel":
        # Ended by the child's writes, and at last by its end.
        woken = [row for row in answer.with_function("reads_the_pipe")
                 if "feeds_the_pipe" in functions(row["waker_stack"])]
        # A write that finds its reader awake has woken nobody; how often it slept the reader has counted.
        switches = truth.sum("reads_the_pipe", "switches")
        least = switches - 1 - wait_tools.races_of(switches) - wait_tools.number(answer.json["honesty"]["parts_lost"])
        count = sum(row["count"] for row in woken)
        assert count >= least and count > 0, ("the waker is not known", count, switches)


def case_child():
    answer, truth, _ = look_long(calls, "child", 300)
    check_long(answer, truth, "waits_for_child", "child")
    check_long(answer, truth, "sleeps_here", "timer")
    assert any(word in answer.with_function("waits_for_child")[0]["cause"] for word in ("wait4", "waitid", "child"))


def case_lock():
    answer, truth, _ = look_long(threads, "lock", 200)
    check_long(answer, truth, "waits_for_lock", "lock")
    check_long(answer, truth, "holds_the_lock", "timer")
    if tier == "kernel":
        row = answer.with_function("waits_for_lock")[0]
        assert "holds_the_lock" in functions(row["waker_stack"]), "who held it is not known"
        assert "the_lock" in row["cause"], row["cause"]


def case_cold_read():
    file = lab.folder / "cold"
    answer, truth, _ = look(calls, "cold-read", file, 64)
    # Where the disk answers at once there is little to wait for: then little must be said.
    if tier != "kernel":
        # Of waits shorter than the time between two looks the call may be taken to be like the
        # one before, which is the writing of the file: the class must be right all the same.
        known = answer.json["classes_ms"]["disk"] + answer.json["classes_ms"]["runq"]
        timed("disk and run queue: no less than there was", known >= truth.sum("reads_cold") * 0.95 - 10, f"{known:.3f} ms")
        return
    check(answer, truth, "reads_cold", "disk")
    if truth.sum("reads_cold") > 20:
        causes = [row["cause"] for row in answer.with_function("reads_cold")]
        assert tier != "kernel" or any(str(file) in cause for cause in causes), causes
    assert not answer.total("make_cold") or answer.with_function("make_cold")[0]["class"] == "disk"


def case_starve():
    answer, truth, _ = look(calls, "starve", 500, complete=None)  # there may be no wait at all
    # Both never wait by themselves: being off the CPU is being on the run queue. The parent's
    # wait for the child is apart.
    for row in truth.waits["starves"]:
        thread = answer.threads[row["tid"]]
        time_between("run queue ms", thread["classes_ms"]["runq"], row["off_ms"] * 0.95, row["off_ms"] * 1.05 + 50)
    timed("starves: blocked", answer.total("starves") <= 0.02 * truth.sum("starves") + 1)


def case_hops():
    """A waits for B, B sleeps: the path names B's sleep, not A's wait."""
    answer, truth, _ = look(calls, "hops", 300)
    check(answer, truth, "waits_for_b", "child")
    check(answer, truth, "b_sleeps", "timer")
    off = truth.sum("b_sleeps")
    time_between("B's sleep on the path", path_ms(answer, "b_sleeps"), off * 0.95 - answer.runq(), off * 1.05)
    time_between("A's wait on the path", path_ms(answer, "waits_for_b"), 0, off * 0.05 + 1)


def case_hops_threads():
    answer, truth, _ = look(threads, "condition", 300)
    check(answer, truth, "waits_for_condition", "lock")
    off = truth.sum("b_sleeps")
    time_between("B's sleep on the path", path_ms(answer, "b_sleeps"), off * 0.95 - answer.runq(), off * 1.05)
    time_between("A's wait on the path", path_ms(answer, "waits_for_condition"), 0, off * 0.05 + 1)


def case_hops_disk():
    answer, truth, _ = look(calls, "hops-disk", lab.folder / "cold", 64)
    check(answer, truth, "waits_for_b", "child")
    check(answer, truth, "b_reads_cold", "disk")
    off = truth.sum("b_reads_cold")
    # Short waits are charged in proportion, and the path has other work of B beside them.
    time_between("B's disk on the path", path_ms(answer, "b_reads_cold"), off * 0.9 - answer.runq() - 2, off * 1.1 + 2)


def case_epoll():
    """Idle most of the time, and idle is not ranked."""
    answer, truth, _ = look(calls, "epoll", 1500)
    check(answer, truth, "serves", "idle")
    if tier == "kernel":  # answers come within 2 ms: too short for a reader that comes by every 10
        check(answer, truth, "asks_the_server", "net")
    server = next(iter(truth.tids("serves")))
    idle = answer.threads[server]["classes_ms"]["idle"]
    time_between("idle of the server's life", idle / truth.lives[server]["life_ms"], 0.6, 1)
    ranked = lab.run(lab.whyslow, "waits", "--json", "--limit", "0", f"{lab.count}.whyslow")
    plain = wait_tools.Answer(wait_tools.json.loads(ranked.stdout))
    assert not plain.with_function("serves"), "idle is ranked"
    assert plain.json["classes_ms"]["idle"] >= idle * 0.99, "the same recording"


def case_idle_workers():
    answer, truth, _ = look(threads, "idle-workers", 400)
    check(answer, truth, "idles_for_work", "idle")
    ranked = lab.run(lab.whyslow, "waits", "--json", "--limit", "0", f"{lab.count}.whyslow")
    # Woken together, one waits for the mutex that the other has: a moment, and a lock.
    left = wait_tools.Answer(wait_tools.json.loads(ranked.stdout)).total("idles_for_work")
    time_between("ranked ms", left, 0, truth.sum("idles_for_work") * 0.05)


def case_convoy():
    answer, truth, _ = look(threads, "convoy", 8, 20)
    if tier != "kernel":
        # Each thread alternates between waits of 15 ms and of 2 ms: a reader that comes by every
        # 10 ms sees the former, and takes some of the latter for it.
        share = answer.total("takes_the_lock") / truth.sum("takes_the_lock")
        time_between("share of what was measured", share, 0.75, 1.3)
        return
    check(answer, truth, "takes_the_lock", "lock")
    check(answer, truth, "holds_in_convoy", *HABIT)


def case_rwlock():
    answer, truth, _ = look(threads, "rwlock", 400)
    check(answer, truth, "writer_starves", "lock")


def case_semaphore():
    answer, truth, _ = look(threads, "semaphore", 200)
    check(answer, truth, "waits_for_semaphore", "lock")


def case_barrier():
    answer, truth, _ = look(threads, "barrier", 200)
    check(answer, truth, "waits_at_barrier", "lock")


def case_paths():
    """A stack is recognised for what it is, not for where it blocks: each path has its own count."""
    # The first recording of all reads the tables of libc, for which it has no time later.
    lab.record(calls, "sleep", 1, tier=tier)
    answer, truth, _ = look(calls, "paths", 12000)
    assert len(truth.waits) == 16
    for function in truth.waits:
        check(answer, truth, function, *FROM_PROCESS)
        letter = function.split("_")[1]
        for row in answer.with_function(function):
            names = functions(row["stack"])
            assert [n for n in names if n.startswith("path_")] == [f"path_{letter}"], names
            assert [n for n in names if n.startswith("through_")] == [function], names
    honesty = answer.json["honesty"]
    print(honesty)
    time_between("recognised", honesty["recognised_pct"], 80, 100)  # a matter of how soon they are learnt


def case_many():
    """10,000 threads at once: every wait counts, and stacks that there was no room for are said."""
    answer, truth, _ = look(threads, "many", 10000, complete=None, lives=False, validate=False)
    function = "waits_among_many"
    off, honesty = truth.sum(function), answer.json["honesty"]
    assert truth.sum(function, "calls") == 10000
    total = sum(row["total_ms"] for row in answer.rows)
    time_between("share of the time", (total + answer.runq()) / off, 0.95, 1.1)
    time_between("share with its stack", answer.total(function) / off, 0.05, 1.05)
    if tier != "kernel":
        return  # why a thread waits is known of those that the reader came by
    locks = sum(row["total_ms"] for row in answer.rows if row["class"] == "lock")
    time_between("share behind locks", locks / total, 0.95, 1)
    stacks = sum(row["count"] for row in answer.rows if wait_tools.ROOTS & set(functions(row["stack"])))
    assert stacks + honesty["parts_lost"] >= 0.99 * honesty["waits"], (stacks, honesty)
    between("threads", len(answer.threads), 10001 - honesty["lost"], 10001)
    check_lives(answer, truth)


def case_short():
    """Threads that live for 1 ms."""
    answer, truth, _ = look(threads, "short", 2000, lives=tier == "kernel")
    if tier != "kernel":
        # Gone before the reader comes by: the time is there, and that it was not seen is said.
        total = sum(row["total_ms"] for row in answer.rows if row["class"] != "child")
        time_between("off the CPU", total / truth.sum("sleeps_shortly"), 0.75, 1.2)
    else:
        check(answer, truth, "sleeps_shortly", *HABIT)


def case_forks():
    answer, truth, _ = look(calls, "forks", 1000)
    check(answer, truth, "waits_for_child", "child", exact_count=False)
    if tier == "kernel" and not wait_tools.lost(answer):
        assert len(answer.threads) == 1001, len(answer.threads)


def case_exec():
    """What was before and after an exec: both programs' waits, each with its own names."""
    answer, truth, _ = look(calls, "exec", 200, threads, "lock", 200, lives=False)
    check(answer, truth, "sleeps_here", "timer")
    check(answer, truth, "waits_for_lock", "lock")
    check(answer, truth, "holds_the_lock", "timer")


def case_counted():
    """A thread is one, whatever it was called and whichever programs it was: a shell that is given another name, and
    four that it starts."""
    command = "echo other > /proc/$$/comm; for i in 1 2 3 4; do /bin/true; done"
    path, _, _ = lab.record("sh", "-c", command, options=["--io"])
    answer = lab.waits(path).json
    names = sorted(thread["name"].strip() for thread in answer["threads"])
    assert names == ["other", "true", "true", "true", "true"], names
    assert answer["thread_count"] == 5, answer["thread_count"]
    done = lab.run(lab.whyslow, "io", "--json", path)
    assert wait_tools.json.loads(done.stdout)["time"]["threads"] == 5, done.stdout


def case_typed():
    """What was asked for, as a shell would take it and without its secret, not what a script became."""
    script = lab.folder / "wrap.sh"
    script.write_text('#!/bin/sh\nexec /bin/true "$@"\n')
    script.chmod(0o755)
    path, _, _ = lab.record(script, "-e", "two words", "--password", "hunter2", options=["--io", "--cpu"])
    want = f"{script} -e 'two words' --password [redacted]"
    for view in ("waits", "io"):
        done = lab.run(lab.whyslow, view, "--json", path)
        assert wait_tools.json.loads(done.stdout)["command"] == want, (view, done.stdout[:2000])
    documents = lab.run(lab.whyslow, "query", "--json", path, "SELECT json FROM document").stdout
    assert "two words" in documents and "hunter2" not in documents


def case_namespaces():
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    for before, command in ((apart, []), ([], apart)):
        if tier == "nobody":
            skip("a namespace of its own needs root")
        answer, truth, _ = look(*command, threads, "lock", 200, before=before, lives=bool(before))
        check(answer, truth, "waits_for_lock", "lock")
        check(answer, truth, "holds_the_lock", "timer")
    # Files that are there for the target only, and as long as it is: until its stacks were read.
    hidden = lab.folder / "hidden"
    hidden.mkdir()
    answer, truth, _ = look("unshare", "--mount", "sh", "-c",
                            f"mount -t tmpfs none {hidden} && cp {threads} {hidden} && exec {hidden}/waits-threads lock 200",
                            until_seen=threads,
                            lives=tier == "kernel",  # the shell's waits are too short to be looked at
                            earlier=("child", "disk"))  # it waits for mount and cp, and for what they are read from
    check(answer, truth, "waits_for_lock", "lock")
    row = answer.with_function("waits_for_lock")[0]
    assert "the_lock" in row["cause"], row["cause"]


def attach(*options, command, seconds, switches=100):
    """Looks at a program that runs already for so long, and until its threads have fallen asleep so often meanwhile.
    Returns the answer, the pid, and how long that was in ms: at least, since it was seen to record, and at most."""
    target = subprocess.Popen([*(lab.nobody() if tier == "nobody" else []), *map(str, command)],
                              stdout=subprocess.PIPE, text=True)
    try:
        # Until it is this program, not what comes before its exec, and waits.
        while (pathlib.Path(f"/proc/{target.pid}/comm").read_text().strip() != pathlib.Path(command[0]).name[:15]
               or not wait_tools.seen.asleep([target.pid], only=target.pid)):
            assert target.poll() is None, "the target is gone"
            time.sleep(0.01)
        options = [str(target.pid) if option is None else option for option in options]
        who = lab.nobody() if tier == "nobody" else []
        begun = time.monotonic()
        recorder = subprocess.Popen([*who, lab.whyslow, "record", "--offcpu", "--tier", "kernel" if tier == "kernel" else
                                     "user", *options, "-o", "attached.whyslow"], env=lab.environment)
        lab.wait_recording(recorder, "attached.whyslow")
        there, first = time.monotonic(), wait_tools.seen.fallen_asleep(target.pid)
        while time.monotonic() < there + seconds or wait_tools.seen.fallen_asleep(target.pid) < first + switches:
            assert target.poll() is None and recorder.poll() is None, "one of them is gone"
            time.sleep(0.01)
        least = time.monotonic() - there
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(wait_tools.PATIENCE_S) == 0
        looked_ms = (least * 1e3, (time.monotonic() - begun) * 1e3)
        assert target.poll() is None, "the target is gone"
    finally:
        target.kill()
        target.wait()
    answer = lab.waits("attached.whyslow")
    check_schema(schema, answer.json)
    return answer, target.pid, looked_ms


def whole_length(thread, looked_ms):
    """All that a thread did together: as long as we looked, and as long as the recording says it is."""
    whole = sum(thread[name] or 0 for name in wait_tools.CLASSES)
    time_between("all the time", whole, *looked_ms)
    said = wait_tools.json.loads(recorded("SELECT json FROM document WHERE name = 'target'")[0]["json"])
    long_ms = (said["end_ns"] - said["start_ns"]) / 1e6
    time_between("the recording's length", whole, 0.95 * long_ms, 1.05 * long_ms)
    return whole


def case_attach():
    answer, pid, looked_ms = attach("-p", None, command=[calls, "epoll", 600000], seconds=2)
    thread = answer.threads[pid]["classes_ms"]
    whole = whole_length(thread, looked_ms)
    time_between("idle", thread["idle"], 0.45 * whole, whole)
    assert answer.with_function("serves"), "the stack is not known"


def case_attach_blocked():
    """In mid-wait before we come and after we go: the wait is as long as we looked."""
    answer, pid, looked_ms = attach("-p", None, command=[calls, "sleep", 60000], seconds=2, switches=0)
    thread = answer.threads[pid]["classes_ms"]
    whole = whole_length(thread, looked_ms)
    time_between("asleep", thread["timer"], 0.95 * whole, whole)


def recorded(query):
    done = lab.run(lab.whyslow, "query", "--json", "attached.whyslow", query)
    return wait_tools.json.loads(done.stdout)["rows"]


def case_attach_all():
    """CPU, waits and calls of a thread that runs already count from one moment, which is when all of them are there:
    what is put into the kernel last takes seconds where others have the CPU, and what was seen until then is of no
    recording. Nanoseconds of the recording, and no tolerance but one sample and what a clock may be slewed."""
    target = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        lab.run(lab.whyslow, "record", "--cpu", "--offcpu", "--io", "--tier", "kernel", "-p", target.pid, "-d", "1",
                "-o", "attached.whyslow")
        assert target.poll() is None, "the target is gone"
    finally:
        target.kill()
        target.wait()
    documents = {row["name"]: wait_tools.json.loads(row["json"])
                 for row in recorded("SELECT name, json FROM document WHERE name IN ('target', 'waits', 'cpu')")}
    start_ns, end_ns = documents["target"]["start_ns"], documents["target"]["end_ns"]
    assert end_ns - start_ns >= 1e9, "the clock of -d runs from there"
    # What waits goes on to wait until the kernel's programs are taken away.
    stop_ns = max(end_ns, documents["waits"]["stop_ns"])
    waited = recorded("SELECT coalesce(sum(total_ns), 0) AS ns, min(first_ns) AS first FROM wait WHERE kind <> 'hold'")[0]
    events = recorded("SELECT min(start_ns) AS first FROM wait_event")[0]
    running, sampled = (recorded("SELECT coalesce(sum(weight), 0) AS ns FROM total WHERE series = "
                                 f"(SELECT id FROM series WHERE name = '{name}')")[0]["ns"] for name in ("running", "cpu"))
    print(f"recorded {end_ns - start_ns}, waited {waited}, ran {running}, sampled {sampled}")
    assert documents["waits"]["start_ns"] == start_ns, documents
    for first in (waited["first"], events["first"]):
        assert first is None or first >= start_ns, (first, start_ns)
    assert waited["ns"] + running <= stop_ns - start_ns, "more than there was time"
    if "periods_ns" in documents["cpu"]:  # else they are cycles, and how many go into a second is estimated
        assert sampled <= end_ns - start_ns + max(documents["cpu"]["periods_ns"]), "CPU time of one thread"
    # The kernel brings its books of another thread up to date at ticks only, late where the CPU itself is given away.
    booked = recorded("SELECT value AS ns FROM counter WHERE name = 'cpu.rusage_ns'")[0]["ns"]
    assert booked <= (end_ns - start_ns) * 1.001 + 100e6, booked
    answer = lab.waits("attached.whyslow")
    thread = answer.threads[target.pid]
    all_ms = sum(thread["classes_ms"][kind] for kind in wait_tools.CLASSES)
    assert all_ms <= thread["life_ms"] + 1e-3 <= (stop_ns - start_ns) / 1e6 + 2e-3, (all_ms, thread)


def case_at_once():
    """`whyslow waits -- CMD`: the answer alone on stdout, the target's status, no file left."""
    who = lab.nobody() if tier == "nobody" else []
    os.mkdir("empty")
    os.chmod("empty", 0o777)
    done = lab.run(*who, lab.whyslow, "waits", "--json", "--idle", "--limit", "0", "--tier",
                   "kernel" if tier == "kernel" else "user", "--", "sh", "-c", f"{calls} sleep 300; exit 6",
                   status=6, cwd="empty", until_seen=calls if tier != "kernel" else None)
    answer = wait_tools.Answer(wait_tools.json.loads(done.stdout))
    check_schema(schema, answer.json)
    truth = wait_tools.Truth("\n".join(line for line in done.stderr.splitlines() if line.startswith('{"')))
    check_long(answer, truth, "sleeps_here", "timer")
    assert not os.listdir("empty"), "a recording that nobody asked for"
    done = lab.run(*who, lab.whyslow, "waits", "-o", str(lab.folder / "kept.whyslow"), "--", calls, "sleep", 200,
                   until_seen=calls if tier != "kernel" else None)
    assert "timer" in done.stdout and "sleeps_here" in done.stdout
    assert lab.waits(str(lab.folder / "kept.whyslow")).with_function("sleeps_here")


def case_both():
    """CPU and waits in one recording, on one clock: each says its own part."""
    answer, truth, stderr = look(threads, "lock-busy", 400, options=["--cpu", "-F", "999"])
    check(answer, truth, "waits_for_lock", "lock")
    holder = next(iter(truth.tids("holds_the_lock")))
    done = lab.run(lab.whyslow, "query", "--json", f"{lab.count}.whyslow",
                   "SELECT sum(weight) AS ns FROM total WHERE series = (SELECT id FROM series WHERE name = 'cpu') "
                   f"AND thread IN (SELECT id FROM thread WHERE tid = {holder})")
    time_between("sampled CPU ms of the holder", wait_tools.json.loads(done.stdout)["rows"][0]["ns"] / 1e6,
            # Without privileges only the part in user space is sampled; it looks at the clock a lot.
            320 if tier == "kernel" else 80, 480)


def case_system():
    answer, _, _ = attach("-a", command=[threads, "convoy", 4, 100000], seconds=2)
    assert answer.with_function("takes_the_lock"), "the convoy is not seen"
    assert {row["class"] for row in answer.with_function("takes_the_lock")} - {"pagefault"} == {"lock"}


GO = """
package main

import ("fmt"; "sync"; "time")

var lock sync.Mutex

//go:noinline
func takesTheLock() {
	lock.Lock()
	time.Sleep(5 * time.Millisecond)
	lock.Unlock()
}

func main() {
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() { defer group.Done(); for j := 0; j < 5; j++ { takesTheLock() } }()
	}
	group.Wait()
	fmt.Printf("{\\"name\\": \\"done\\", \\"value\\": 1}\\n")
}
"""

RUST = """
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[inline(never)]
fn rust_takes_the_lock(lock: &Mutex<u64>) -> Duration {
    let start = Instant::now();
    let mut value = lock.lock().unwrap();
    let waited = start.elapsed();
    thread::sleep(Duration::from_millis(5));
    *value += 1;
    waited
}

fn main() {
    let lock = Arc::new(Mutex::new(0u64));
    let threads: Vec<_> = (0..4).map(|_| {
        let lock = lock.clone();
        thread::spawn(move || {
            let mut sum = Duration::ZERO;
            for _ in 0..20 {
                sum += rust_takes_the_lock(&lock);
                thread::sleep(Duration::from_millis(1));
            }
            sum
        })
    }).collect();
    let total: Duration = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("{{\\"name\\": \\"locked_ms\\", \\"value\\": {}}}", total.as_secs_f64() * 1e3);
}
"""


def build_go():
    if not shutil.which("go"):
        skip("go is not installed")
    go = "/usr/bin/go" if os.path.exists("/usr/bin/go") else "go"
    pathlib.Path("lock.go").write_text(GO)
    environment = {**os.environ, "GOCACHE": os.path.join(os.environ.get("BUILD_ROOT", lab.folder), "go-cache"), "GO111MODULE": "off", "GOFLAGS": ""}
    subprocess.run([go, "build", "-o", "lock-go", "lock.go"], check=True, env=environment)
    return "./lock-go"


def build_rust():
    if not shutil.which("rustc"):
        skip("rustc is not installed")
    rustc = "/usr/bin/rustc" if os.path.exists("/usr/bin/rustc") else "rustc"
    pathlib.Path("lock.rs").write_text(RUST)
    subprocess.run([rustc, "-g", "-O", "-o", "lock-rust", "lock.rs"], check=True)
    return "./lock-rust"


def case_go():
    """Goroutines wait in the program, its threads have nothing to do then: idle, not a lock."""
    program = build_go()
    lab.record(program, tier=tier)  # its tables are read once; this takes longer than it runs
    answer, _, _ = look(program, lives=False, complete=None)
    # Its scheduler runs on a stack of its own, whose bottom is a switch from a goroutine's.
    check_complete(answer, roots=wait_tools.ROOTS | {"runtime.mcall", "runtime.systemstack", "runtime.morestack"}, within=64)
    for row in answer.rows:
        names = functions(row["stack"])
        idles = next((i for i, n in enumerate(names) if n.startswith(("runtime.findRunnable", "runtime.stopm", "runtime.sysmon"))),
                     None)
        if idles is None or row["class"] == "pagefault":
            continue
        # On its way there it takes locks of the scheduler, and on a busy machine another thread has one.
        locks = any(n.startswith("runtime.lock2") for n in names[:idles])
        assert row["class"] in (("lock",) if locks else ("idle", "timer")), (row["class"], names)


def case_rust():
    answer, truth, _ = look(build_rust(), lives=False)
    rows = [row for row in answer.rows if any("rust_takes_the_lock" in n for n in functions(row["stack"]))]
    locked = sum(row["total_ms"] for row in rows if row["class"] == "lock")
    measured = truth.numbers["locked_ms"]
    time_between("behind the lock", locked, measured * 0.95 - answer.runq() - 1, measured * 1.05)
    assert any(row["class"] == "timer" for row in rows), "the sleep of the holder"


try:
    if tier == "kernel":
        wait_tools.need_kernel_tier()
    elif tier == "nobody" and os.geteuid() != 0:
        skip("only root can become nobody")
    globals()["case_" + name.replace("-", "_")]()
    print("ok")
finally:
    lab.close()
