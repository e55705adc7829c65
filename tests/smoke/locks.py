#!/usr/bin/python3
"""`whyslow record --locks` and `whyslow locks` beside what programs measure of their own locks.

    locks.py NAME TIER WHYSLOW WAITS-CALLS WAITS-THREADS SCHEMA

TIER is kernel, user (as root) or nobody: BPF, or the library in the target.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import wait_tools  # noqa: E402
from wait_tools import between, check_schema, functions, skip, time_between, timed  # noqa: E402

name, tier, schema = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[6])
lab = wait_tools.Lab(sys.argv[3], sys.argv[4:6], "whyslow-locks-")
threads = lab.waits_threads


def look(*command, **more):
    path, truth, _ = lab.record(*command, tier=tier, locks=True, **more)
    answer = lab.locks(path)
    check_schema(schema, answer)
    assert answer["honesty"]["tier"] == ("kernel" if tier == "kernel" else "user")
    return answer["locks"], truth, lab.waits(path)


def stacks(lock, which):
    """The functions of each stack of a lock's waiters or holders."""
    return [functions(entry["stack"]) for entry in lock[which]]


def of_program(locks):
    """Without the kernel's own: pages may have to be waited for in any function."""
    return [lock for lock in locks if not lock["kind"].startswith("kernel")]


def one(locks, function, which="waiters", kind=""):
    """The lock (of this kind) that this function waits for, or holds."""
    found = [lock for lock in of_program(locks)
             if kind in lock["kind"] and any(function in names for names in stacks(lock, which))]
    assert len(found) == 1, (function, [lock["lock"] for lock in found])
    return found[0]


def check_total(lock, truth, function, answer, elsewhere=0.0):
    """5% of what the program measured, less what it waited elsewhere; its figure has the run queue in it."""
    off = truth.sum(function) - elsewhere
    slack = wait_tools.EACH_SWITCH_MS * truth.sum(function, "switches") + 0.2
    runq = answer.runq(truth.tids(function))
    time_between(f"{function} in ms", lock["total_ms"], off * 0.95 - slack - runq, off * 1.05 + slack)
    assert 0 < lock["p50_ms"] <= lock["p99_ms"] <= lock["max_ms"] <= lock["total_ms"] * 1.0001 + 0.001


def case_held():
    """200 ms behind a lock that a named function holds, asleep. Without privileges who holds it has to be looked at."""
    locks, truth, answer = look(threads, "lock", 200, until_seen=threads if tier != "kernel" else None)
    lock = one(locks, "waits_for_lock")
    assert "the_lock" in lock["lock"] and "mutex" in lock["kind"], lock
    assert lock["waits"] == 1, lock["waits"]
    check_total(lock, truth, "waits_for_lock", answer)
    assert any("holds_the_lock" in names for names in stacks(lock, "holders")), "the holder is not named"
    if tier == "kernel":
        time_between("of the hold off the CPU", lock["off_cpu_hold_pct"], 95, 100.01)


def case_busy():
    """The holder computes: the hold is not spent off the CPU."""
    locks, truth, answer = look(threads, "lock-busy", 200)
    lock = one(locks, "waits_for_lock")
    check_total(lock, truth, "waits_for_lock", answer)
    if tier == "kernel":
        # On a busy machine the holder is off the CPU, too: as much as it measured itself.
        off = truth.sum("holds_the_lock") / truth.sum("holds_the_lock", "wall_ms") * 100
        time_between("of the hold off the CPU", lock["off_cpu_hold_pct"], 0, off + 10)


def case_heap():
    """Without a name of its own a lock is known by where it is used."""
    locks, truth, answer = look(threads, "lock-heap", 200)
    lock = one(locks, "waits_for_lock")
    assert "waits_for_lock" in lock["lock"] or "holds_the_lock" in lock["lock"], lock["lock"]
    check_total(lock, truth, "waits_for_lock", answer)


def case_convoy():
    locks, truth, answer = look(threads, "convoy", 8, 30)
    lock = one(locks, "takes_the_lock")
    assert "convoy_lock" in lock["lock"] and "mutex" in lock["kind"], lock
    check_total(lock, truth, "takes_the_lock", answer)
    # Without privileges who finds the lock free is counted by nobody, and on a busy machine that may be often.
    switches = truth.sum("takes_the_lock", "switches")
    if tier == "kernel":
        races = wait_tools.races_of(switches)
        least = switches - races - wait_tools.number(answer.json["honesty"]["parts_lost"])
        assert least <= lock["waits"] <= switches + races, (lock["waits"], switches)
        timed("waits as often as it slept", lock["waits"] == switches, f"{lock['waits']} {switches}")
    else:
        time_between("waits", lock["waits"], switches * 0.5, switches * 1.01)
    # Eight threads, one has it, some sleep for a moment: the others stand behind it.
    time_between("mean waiters", lock["mean_waiters"], 3, 7.5)
    hold = lock["hold"]
    assert not isinstance(hold, str), hold
    # Each hold is a sleep of 2 ms and what the machine adds; the program has timed them.
    held = truth.sum("holds_in_convoy", "wall_ms") / truth.sum("holds_in_convoy", "calls")
    # Those that nobody had to wait for are not all seen: how many they are is a matter of who comes when.
    calls = truth.sum("holds_in_convoy", "calls")
    assert 0 < hold["count"] <= calls * 1.01, (hold, calls)
    timed("holds seen", hold["count"] >= calls * (0.5 if tier == "kernel" else 0.01), str(hold["count"]))
    time_between("mean hold in ms", hold["total_ms"] / hold["count"], held * 0.9, held * 1.3 + 0.5)


def case_rwlock():
    locks, truth, answer = look(threads, "rwlock", 400)
    lock = one(locks, "writer_starves")
    assert "the_rwlock" in lock["lock"] and "rwlock" in lock["kind"], lock
    check_total(lock, truth, "writer_starves", answer)


def case_kinds():
    for what, function, kind in (("semaphore", "waits_for_semaphore", "semaphore"),
                                 ("barrier", "waits_at_barrier", "barrier"),
                                 ("condition", "waits_for_condition", "cond")):
        locks, truth, answer = look(threads, what, 200)
        lock = one(locks, function, kind=kind)
        # Who is woken from a condition variable takes its mutex back, and may have to wait for that, too.
        others = [other for other in of_program(locks)
                  if other is not lock and any(function in names for names in stacks(other, "waiters"))]
        assert all(what == "condition" and other["kind"] == "mutex" for other in others), others
        check_total(lock, truth, function, answer, sum(other["total_ms"] for other in others))


def case_idle_workers():
    """The condition variable of a worker with nothing to do is no contended lock."""
    locks, _, _ = look(threads, "idle-workers", 300)
    # Its mutex may be: both wake at once, and one has to wait for the other.
    assert not [lock for lock in locks if "cond" in lock["kind"]
                and any("idles_for_work" in names for names in stacks(lock, "waiters"))]


def case_alone():
    """--locks without --offcpu: locks are seen, and other waits are not paid for."""
    who = lab.nobody() if tier == "nobody" else []
    done = lab.run(*who, lab.whyslow, "record", "--locks", "--tier", "kernel" if tier == "kernel" else "user",
                   "-o", "alone.whyslow", "--", threads, "convoy", 4, 20)
    truth = wait_tools.Truth(done.stdout)
    answer = lab.locks("alone.whyslow")
    lock = one(answer["locks"], "takes_the_lock")
    off = truth.sum("takes_the_lock")
    # Without the run queue of each thread there is no telling how much of it was that.
    time_between("takes_the_lock in ms", lock["total_ms"], off * 0.5, off * 1.05 + 1)


def case_none():
    """A program without contention: no lock, and words that say so."""
    path, _, _ = lab.record(lab.waits_calls, "sleep", 100, tier=tier, locks=True)
    answer = lab.locks(path)
    # The kernel's own it may have met, for a moment, on a busy machine.
    assert not of_program(answer["locks"]), answer["locks"]
    timed("the kernel's own", all(lock["total_ms"] < 1 for lock in answer["locks"]))
    assert lab.run(lab.whyslow, "locks", path).stdout.strip()


def case_same_answer():
    """With the library inside or the kernel outside, a program does and prints the same."""
    for what, numbers in (("lock", [50]), ("rwlock", [50]), ("semaphore", [50]), ("barrier", [50]), ("condition", [50])):
        plain = lab.run(threads, what, *numbers)
        _, truth, _ = lab.record(threads, what, *numbers, tier=tier, locks=True)
        assert set(wait_tools.Truth(plain.stdout).waits) == set(truth.waits)


try:
    if tier == "kernel":
        wait_tools.need_kernel_tier()
    elif tier == "nobody" and os.geteuid() != 0:
        skip("only root can become nobody")
    globals()["case_" + name.replace("-", "_")]()
    print("ok")
finally:
    lab.close()
