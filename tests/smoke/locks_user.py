#!/usr/bin/python3
"""Locks told by the library in the target, against what the program itself measured.

    locks_user.py CASE DUMP SEMANTICS KNOWN STATIC SANITIZED WHYSLOW SCRIBBLES

Times are compared with those that the workload took around its own calls, so that a busy
machine makes both longer: 5%, and 2 ms for what happens between the two clocks' readings. They are
judged in the suite `truth` only.
"""

import collections
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import timed  # noqa: E402

case = sys.argv[1]
dump, semantics, known, static, sanitized, whyslow, scribbles = map(os.path.abspath, sys.argv[2:9])
Row = collections.namedtuple("Row", "kind tid object count total max flags waker events owned off stack")
SAMPLED, OPEN = 64, 128
MS = 1000000


def run(*command, ms=60000, prefix=(), env=None):
    done = subprocess.run([*prefix, dump, str(ms), *command], capture_output=True, text=True,
                          timeout=600, check=False, env={**os.environ, **(env or {})})
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    rows, counters, said, facts, tids = [], {}, [], {}, []
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("wait", "hold", "open"):
            tid, thing, *numbers, stack = rest.split(" ", 10)
            rows.append(Row(word, int(tid), int(thing, 16), *map(int, numbers),
                            tuple(stack.split(";")[:-1])))
        elif word == "thread":
            tids.append(rest)
        elif word == "counter":
            counters[rest.split()[0]] = int(rest.split()[1])
        elif word in ("na", "status", "library"):
            facts[word] = rest
        else:
            said.append(line)
    assert not os.path.exists(os.path.dirname(facts["library"])), facts
    assert done.stderr == "", done.stderr
    # A shell that becomes another program is another process to the recording.
    assert command[0] in ("sh", scribbles) or len(tids) == len(set(tids)), tids
    return rows, counters, said, facts


def near(value, truth, what):
    timed(what, abs(value - truth) <= 0.05 * truth + 2 * MS, f"{value / MS:.2f} ms, measured {truth / MS:.2f} ms")


def nothing_lost(counters):
    """Rings are full where whyslow gets no CPU for long: that is the machine's, and is counted."""
    ring = "loss.wait_locks_ring_full"
    lost = {name: value for name, value in counters.items() if name.startswith("loss.wait_locks") and value and name != ring}
    assert not lost, lost
    timed("rings had room", counters[ring] == 0, str(counters[ring]))


def numbers(said):
    return {word: int(value, 16 if word == "lock" else 10)
            for word, value in re.findall(r"(\w+) (\w+)", " ".join(said))}


def complete(rows):
    for row in rows:
        assert row.stack[-1] in ("_start", "clone3", "__clone3"), row


def promises_of_pthread_calls_are_kept():
    plain = subprocess.run([semantics], capture_output=True, text=True, timeout=600, check=True,
                           stdin=subprocess.DEVNULL)
    rows, counters, said, facts = run(semantics)
    assert said == plain.stdout.splitlines(), (said, plain.stdout)
    assert facts["status"] == "0" and plain.stderr == ""
    assert counters["locks.processes"] >= 2 and len(rows) > 100
    nothing_lost(counters)


def convoy_of_eight_threads():
    rows, counters, said, _ = run(known, "convoy")
    truth = numbers(said)
    waits = [row for row in rows if row.kind == "wait" and "work_under_lock" in row.stack]
    holds = [row for row in rows if row.kind == "hold" and not row.flags & SAMPLED]
    near(sum(row.total for row in waits), truth["waited"], "waited")
    count, total = sum(row.count for row in holds), sum(row.total for row in holds)
    assert count == sum(row.count for row in waits), (count, waits)
    # Each was held for a sleep of 2 ms; the longest ones are the machine's.
    timed("mean hold", 2 * MS <= total / count <= truth["held"] / 200 * 2, f"{total} {count} {truth}")
    # The lock is held asleep.
    off, owned = sum(row.off for row in holds), sum(row.owned for row in holds)
    timed("held asleep", owned >= 0.9 * total and 0.9 * owned <= off <= owned, f"{off} {owned} {total}")
    off, owned = sum(row.off for row in waits), sum(row.owned for row in waits)
    assert 0 < off <= owned <= sum(row.total for row in waits), (off, owned)
    timed("told one by one", sum(row.events for row in waits) >= 0.9 * sum(row.count for row in waits))
    assert all(row.stack[:2] == ("pthread_mutex_lock", "work_under_lock") for row in waits)
    assert len({row.object for row in waits}) == 1
    # One of the eight may have been through before the others came: it wakes, and never waits.
    assert len({row.waker for row in waits} - {0} | {row.tid for row in waits}) <= 8, waits
    complete(waits + holds)
    nothing_lost(counters)


def short_waits_add_up():
    rows, counters, said, _ = run(known, "short")
    waits = [row for row in rows if row.kind == "wait" and row.stack[:1] != ("pthread_join",) and
             row.stack[:1] != ("pthread_barrier_wait",)]
    truth = numbers(said)
    near(sum(row.total for row in waits), truth["waited"], "waited")
    # A lock that is free needs no wait, but each 64th of those has its hold timed, too.
    holds = [row for row in rows if row.kind == "hold"]
    with_time = sum(row.count for row in holds if not row.flags & SAMPLED)
    assert with_time == sum(row.count for row in waits) <= 2000, (with_time, waits)
    count, total = sum(row.count for row in holds), sum(row.total for row in holds)
    timed("mean hold", 50000 <= total / count <= truth["held"] / 2000 * 2, f"{total} {count} {truth}")
    nothing_lost(counters)


def owner_ends_the_wait():
    rows, _, said, _ = run(known, "owner")
    truth = numbers(said)
    wait, = [row for row in rows if row.kind == "wait" and row.object == truth["lock"]]
    near(wait.total, truth["waited"], "waited")
    assert (wait.waker, wait.events, wait.count) == (truth["owner"], 1, 1), wait
    assert wait.owned == wait.total, wait
    timed("the owner slept", wait.off >= 0.9 * wait.owned, str(wait))
    hold, = [row for row in rows if row.kind == "hold"]
    assert hold.stack[:2] == ("pthread_mutex_unlock", "work_under_lock") and hold.total > 0
    timed("held for 2 ms", hold.total >= 2 * MS, str(hold))
    complete(rows)


def whoever_rings_ends_the_wait():
    rows, _, said, _ = run(known, "rings")
    truth = numbers(said)
    by_call = {row.stack[0]: row for row in rows if row.kind == "wait"}
    near(by_call["pthread_cond_wait"].total, truth["condition"], "condition")
    near(by_call["sem_wait"].total, truth["semaphore"], "semaphore")
    assert all(row.waker == truth["ringer"] for row in by_call.values()), rows
    complete(rows)


def ways_of_equal_depth_are_told_apart():
    rows, counters, said, _ = run(known, "paths")
    waits = [row for row in rows if row.kind == "wait" and row.stack[:1] != ("pthread_join",)]
    ways = collections.Counter()
    for row in waits:
        ways[row.stack[2] if row.stack else "not known"] += row.count
    unknown = ways.pop("not known", 0)
    print(ways, unknown)
    near(sum(row.total for row in waits), numbers(said)["waited"], "waited")
    # Each round lasts until the other waits.
    assert sum(ways.values()) + unknown == 20 * 16, ways
    assert set(ways) <= {f"path_{i}" for i in range(16)} and ways, ways
    timed("of all ways", len(ways) == 16, str(ways))
    assert max(ways.values()) <= 20, ways
    # Those of before whyslow had read the first ones; a stalled machine makes them more.
    timed("recognised", unknown <= 100 and counters["locks.stacks_recognised"] >= 100, str(counters))
    nothing_lost(counters)


def children_by_fork_and_exec_are_covered():
    rows, counters, said, _ = run(known, "tree")
    truth = [numbers([line]) for line in said]
    waits = [row for row in rows if row.kind == "wait" and "work_under_lock" in row.stack]
    assert counters["locks.processes"] == 3 and len(waits) == 4 == len(truth), (counters, waits)
    for told in truth:
        wait, = [row for row in waits if row.waker == told["owner"]]
        near(wait.total, told["waited"], f"waited for {wait.waker}")
        assert (wait.tid, wait.object) == (told["waiter"], told["lock"]), (wait, told)


def a_wait_that_never_ends_is_told():
    rows, _, said, _ = run(known, "hang", ms=1500)
    opened = {row.stack[0]: row for row in rows if row.kind == "open"}
    assert said == ["hangs"] and set(opened) == {"pthread_mutex_lock", "pthread_join"}, rows
    assert all(row.flags & OPEN for row in opened.values()), opened
    timed("most of 1.5 s", all(row.total >= 500 * MS for row in opened.values()), str(opened))
    assert opened["pthread_mutex_lock"].waker == opened["pthread_join"].tid, opened
    complete(opened.values())


def a_static_program_is_not_covered_and_said_so():
    rows, counters, said, facts = run(static, "owner")
    assert rows == [] and counters["locks.processes"] == 0 and said[0].startswith("waited")
    assert "static" in facts["na"], facts


def another_libc_does_not_mind():
    compiler = shutil.which("musl-gcc")
    if not compiler:
        print("SKIP: musl-gcc is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
        with open(source, "w", encoding="utf-8") as file:
            file.write("""#include <pthread.h>
                #include <semaphore.h>
                #include <stdio.h>
                static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
                static int count;
                static void *run(void *arg)
                {
                    for (int i = 0; i < 10000; i++) {
                        pthread_mutex_lock(&mutex);
                        count++;
                        pthread_mutex_unlock(&mutex);
                    }
                    return arg;
                }
                int main(void)
                {
                    pthread_t a, b;
                    sem_t semaphore;
                    sem_init(&semaphore, 0, 1);
                    pthread_create(&a, NULL, run, NULL);
                    pthread_create(&b, NULL, run, NULL);
                    pthread_join(a, NULL);
                    pthread_join(b, NULL);
                    printf("%d %d\\n", count, sem_wait(&semaphore));
                    return 0;
                }""")
        subprocess.run([compiler, "-O2", source, "-o", program], check=True)
        rows, counters, said, facts = run(program)
        assert (rows, said, facts["status"]) == ([], ["20000 0"], "0"), (said, facts)
        assert counters["locks.processes"] == 0 and "libc" in facts["na"], facts


def a_sanitized_program_runs():
    rows, counters, said, facts = run(sanitized, "owner", env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert facts["status"] == "0" and counters["locks.processes"] == 1, (said, facts)
    wait, = [row for row in rows if row.kind == "wait" and "work_under_lock" in row.stack]
    near(wait.total, numbers(said)["waited"], "waited")


def a_stack_that_ends_in_a_hole_is_read_to_the_hole():
    rows, _, said, facts = run(known, "fiber")
    assert facts["status"] == "0", facts
    wait, = [row for row in rows if row.kind == "wait" and "work_under_lock" in row.stack]
    near(wait.total, numbers(said)["waited"], "waited")
    assert wait.stack[:4] == ("pthread_mutex_lock", "work_under_lock", "owner", "fiber_runs"), wait


def little_memory_is_left_to_the_target():
    rows, _, said, facts = run("sh", "-c", f"ulimit -v 300000; exec {known} owner")
    assert facts["status"] == "0", facts
    wait, = [row for row in rows if row.kind == "wait" and "work_under_lock" in row.stack]
    near(wait.total, numbers(said)["waited"], "waited")


def what_was_preloaded_stays():
    library = "/lib/x86_64-linux-gnu/libm.so.6"
    if not os.path.exists(library):
        library = subprocess.run(["cc", "-print-file-name=libm.so.6"], capture_output=True,
                                 text=True, check=True).stdout.strip()
    env = {"LD_PRELOAD": os.path.abspath(library)}
    done = subprocess.run([dump, "9000", "sh", "-c", "echo $LD_PRELOAD; cat /proc/self/maps"],
                          capture_output=True, text=True, env={**os.environ, **env}, check=True)
    assert re.match(r"/\S+/whyslow-before-libasan\.so:" + re.escape(env["LD_PRELOAD"]) + "$",
                    done.stdout.splitlines()[0]), done.stdout
    assert "libm" in done.stdout and "whyslow-before" in done.stdout, done.stdout


def another_pid_namespace_is_not_taken_for_ours():
    if subprocess.run(["unshare", "--pid", "--fork", "true"], check=False).returncode != 0:
        print("SKIP: this kernel has no namespaces for us")
        sys.exit(77)
    # Its first process is number 1 to itself, as another one is to us.
    rows, counters, said, _ = run("unshare", "--pid", "--fork", known, "owner")
    assert numbers(said)["waiter"] == 1, said
    assert rows == [] and counters["loss.wait_locks_refused"] > 0, (rows, counters)


def nonsense_from_the_target_is_refused_and_counted():
    _, counters, said, facts = run(scribbles)
    assert said == ["scribbled"] and facts["status"] == "0", (said, facts)
    assert counters["loss.wait_locks_malformed"] > 0, counters


def the_target_goes_on_when_whyslow_is_killed():
    with tempfile.TemporaryDirectory() as folder:  # The library's file stays: nobody removes it.
        with subprocess.Popen(
                [dump, "60000", "sh", "-c", f"echo go; exec {known} hot 1000000"],
                stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": folder}) as process:
            assert process.stdout.readline() == "go\n"
            process.send_signal(signal.SIGKILL)
            said = process.stdout.read()  # To the end of the target, which has the pipe, too.
        assert said.startswith(f"count {8 * 1000000} "), said
        left = [os.path.join(folder, name) for name in os.listdir(folder)]
        assert len(left) == 1 and os.listdir(left[0]) == ["whyslow-before-libasan.so"], left


def nobody_needs_no_privileges():
    if os.getuid() != 0:
        print("not root: every other case is this one")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for path in (dump, known):
            shutil.copy(path, folder)
        # A nobody of its own: locked memory is counted by user, and tests run side by side.
        prefix = ["setpriv", f"--reuid={61000 + os.getpid() % 4000}", "--regid=65534", "--clear-groups"]
        done = subprocess.run([*prefix, os.path.join(folder, os.path.basename(dump)), "60000",
                               os.path.join(folder, os.path.basename(known)), "owner"],
                              capture_output=True, text=True, check=False)
        if "perf_event" in done.stderr:
            print("SKIP: perf_event_paranoid: sampling is denied here:", done.stderr)
            sys.exit(77)
        assert done.returncode == 0 and done.stderr == "", done
        truth = numbers([done.stdout.splitlines()[0]])
        wait, = [line.split() for line in done.stdout.splitlines()
                 if line.startswith("wait") and "work_under_lock" in line]
        near(int(wait[4]), truth["waited"], "waited")


def report(command, recording):
    done = subprocess.run([whyslow, command, "--json", recording], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def reports_have_each_wait_once():
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "a.whyslow")
        done = subprocess.run(
            [whyslow, "record", "--offcpu", "--locks", "--tier", "user", "-o", recording, "--",
             known, "convoy"], capture_output=True, text=True, check=True, cwd=folder,
            env={**os.environ, "HOME": folder, "TMPDIR": folder})
        truth = numbers(done.stdout.splitlines())
        locks, waits = report("locks", recording), report("waits", recording)
        left = [name for name in os.listdir(folder) if name.startswith("whyslow-")]
        assert not left, left
    lock, = [row for row in locks["locks"] if row["lock"] == "queue_mutex"]
    near(lock["total_ms"] * MS, truth["waited"], "waited")
    assert lock["kind"] == "mutex", lock
    timed("holds", 2 <= lock["hold"]["p50_ms"] * 1.3, str(lock["hold"]))
    timed("held asleep", 80 <= lock["off_cpu_hold_pct"] <= 100, str(lock["off_cpu_hold_pct"]))
    near(sum(row["total_ms"] for row in waits["waits"]
             if "queue_mutex" in row["cause"]) * MS, truth["waited"], "waited")
    for thread in waits["threads"]:
        timed("no more than its life", sum(thread["classes_ms"].values()) <= 1.05 * thread["life_ms"] + 2, str(thread))


def what_cannot_be_had_is_said():
    with subprocess.Popen([known, "hang"], stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout.readline() == "hangs\n"
            for command, why in (([static, "owner"], "static"),
                                 (["-p", str(target.pid), "-d", "300ms"], "runs already")):
                with tempfile.TemporaryDirectory() as folder:
                    recording = os.path.join(folder, "a.whyslow")
                    options = ["--locks", "--tier", "user", "-o", recording]
                    subprocess.run([whyslow, "record", *options, *command], check=True,
                                   capture_output=True)
                    db = sqlite3.connect(recording)
                    text, = db.execute("SELECT json FROM document WHERE name = 'locks'").fetchone()
                    db.close()
                    assert why in json.loads(text)["library"], text
        finally:
            target.kill()


CASES = {
    "semantics": promises_of_pthread_calls_are_kept,
    "convoy": convoy_of_eight_threads,
    "short": short_waits_add_up,
    "owner": owner_ends_the_wait,
    "rings": whoever_rings_ends_the_wait,
    "paths": ways_of_equal_depth_are_told_apart,
    "tree": children_by_fork_and_exec_are_covered,
    "hang": a_wait_that_never_ends_is_told,
    "static": a_static_program_is_not_covered_and_said_so,
    "musl": another_libc_does_not_mind,
    "sanitized": a_sanitized_program_runs,
    "fiber": a_stack_that_ends_in_a_hole_is_read_to_the_hole,
    "limited": little_memory_is_left_to_the_target,
    "preloaded": what_was_preloaded_stays,
    "scribbled": nonsense_from_the_target_is_refused_and_counted,
    "namespace": another_pid_namespace_is_not_taken_for_ours,
    "report": reports_have_each_wait_once,
    "not-had": what_cannot_be_had_is_said,
    "killed": the_target_goes_on_when_whyslow_is_killed,
    "nobody": nobody_needs_no_privileges,
}
CASES[case]()
