#!/usr/bin/env python3
"""Known answers of the kernel tier of waits: offcpu.py CASE offcpu_dump offcpu-paths PLUGIN_A PLUGIN_B.

Counts are exact, since every wait is seen: whether a call blocked (the other side may be quicker)
the program knows from the kernel's own count of its switches. What has lost its stack is counted as
that. Times, and how soon a stack is learnt, are judged in the suite `truth` only."""
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import seen  # noqa: E402
from judged import has_no_bpf, timed  # noqa: E402
from wait_tools import races_of  # noqa: E402

SKIPPED = 77
FLAG_FAULT, FLAG_INTERRUPT, FLAG_LIMITED, FLAG_ASKED, FLAG_OPEN = 4, 8, 16, 32, 128
BLOCKED, RUNQ, HOLD = 0, 1, 2
PIPE, FUTEX, PROCESS = 5, 10, 12


def dump(options, command, process=None):
    """Facts, rows and what the command printed. `process`: of the whole machine only that one is known to us."""
    with tempfile.NamedTemporaryFile("w+") as printed:
        done = subprocess.run([TOOL, "-k", *options, "-o", printed.name, "--", *command],
                              capture_output=True, text=True, timeout=600)
        if has_no_bpf(done.returncode, done.stderr):
            print("SKIP: no BPF here:", done.stderr)
            sys.exit(SKIPPED)
        assert done.returncode == 0, (done.returncode, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        kernel_fits([row for row in lines[1:] if process in (None, row["thread"][0])])
        return lines[0], lines[1:], printed.read()


def same(what, got, want):
    assert got == want, f"{what}: {got}, not {want}"


# Waits that are there without their stack: not learnt yet, in pages that were not there when the kernel's program
# looked, of a thread that ran on meanwhile. How many is the machine's affair; that they are counted is ours.
WITHOUT_STACK = ("waits.lost.stacks_spared", "waits.lost.stacks_unreadable", "waits.lost.stacks_stale",
                 "waits.lost.stacks_stray",
                 # Whyslow got no CPU for long: what the ring had no room for is stacks and names. A wait that finds no
                 # room in it is added up instead.
                 "waits.lost.ring_full")
# The same of the kernel's part of a stack: another one has its place in the kernel's table.
WITHOUT_PART = (*WITHOUT_STACK, "waits.lost.kernel_stacks")


# Of more threads than there is room for until whyslow comes by: what is not added up, and whose waker is left out.
MANY_LOST = ("waits.lost.tallies_full", "waits.lost.wakers_merged")


def lost_nothing(facts, unreadable=0, but=()):
    """No wait, that is. Where nobody is in the way nothing else is lost, either, but what is not learnt yet;
    `unreadable`: so many stacks may be in pages that were not there; `but`: what the caller accounts for."""
    lost = {k: v for k, v in facts.items() if k.startswith("waits.lost.") and v and k != "waits.lost.stacks_spared"}
    same("lost", {k: v for k, v in lost.items() if k not in (*WITHOUT_PART, *but)}, {})
    beyond = {k: v for k, v in lost.items() if k != "waits.lost.stacks_unreadable" or v > unreadable}
    timed("nothing was lost", not beyond, str(lost))


def as_often(what, got, least, most=None, lost=0):
    """As the kernel has counted, but for races; where nobody is in the way there are none. `lost`: so many may be missing."""
    most = least if most is None else most
    races = races_of(most)
    timed(f"{what}: as often as the kernel says", least <= got <= most, f"{got}, {least} to {most}")
    assert least - lost - races <= got <= most + races, (what, got, least, most, lost)


def all_are_there(facts, rows, got, want, syscall, most):
    """`want`: how often the first thread blocked in this call, by what its stack must show; `got`: the same of the
    rows with a stack. What is missing there has lost its stack, and there are no more losses than are told; where
    nobody is in the way at most so many, since stacks are learnt soon."""
    for key, count in want.items():
        assert got[key] <= count + races_of(count), (key, got[key], count)
        timed(f"{key}: no more than there were", got[key] <= count, f"{got[key]} {count}")
    first = next(row["thread"] for row in rows if "block" in row["stack"] and row["syscall"] == syscall)
    # The kernel's part may be there all the same. The loader has read, too: from files.
    bare = sum(row["count"] for row in rows if row["kind"] == BLOCKED and row["syscall"] == syscall
               and row["thread"] == first and "block" not in row["stack"] and row.get("object_kind") in (PIPE, None))
    as_often("blocked", sum(got.values()) + bare, sum(want.values()))
    told = sum(facts[name] for name in WITHOUT_STACK)
    assert bare <= told, (bare, told)
    timed("stacks that are there", bare <= most, str(bare))


# What the kernel's part of a stack must show for a call (x86_64's numbers).
KERNEL_PARTS = {0: ("read", "Read"), 1: ("write",), 230: ("nanosleep",), 202: ("futex",),
                61: ("wait",), 232: ("ep_poll", "epoll")}


def kernel_fits(rows):
    """A kernel stack that was recognised is that of the call the thread sits in."""
    if os.uname().machine != "x86_64":
        return
    for row in rows:
        parts = KERNEL_PARTS.get(row["syscall"])
        if row["kind"] == BLOCKED and parts and row["stack"][:1] == ["__schedule"]:
            frames = " ".join(row["stack"][:row["stack"].index("do_syscall_64")])
            # On its way back it may be stopped, by a signal or a debugger.
            assert any(p in frames for p in parts + ("exit_to_user_mode",)), row


def to_main(row):
    return row["stack"][-1:] == ["_start"] and "main" in " ".join(row["stack"])


def complete(rows):
    """Waits whose stack reaches the root, and all."""
    blocked = [r for r in rows if r["kind"] == BLOCKED]
    good = sum(r["count"] for r in blocked if r["stack"] and
               r["stack"][-1] in ("_start", "__clone3", "clone3", "__GI___clone3"))
    return good, sum(r["count"] for r in blocked)


def in_function(rows, name):
    return [r for r in rows if r["kind"] == BLOCKED and name in r["stack"]]


def case_paths():
    """Sixteen ways to one read() that differ in nothing but return addresses: each has its own
    count, and a wait without a stack (before the first were learnt) is in no wrong place."""
    facts, rows, printed = dump([], [PATHS, "paths", "4000"])
    lost_nothing(facts, unreadable=2)
    told = [line.split() for line in printed.splitlines()]
    want = {name: int(blocked) for name, _, blocked in told}
    same("calls made", sum(int(calls) for _, calls, _ in told), 4000)
    reads = [r for r in rows if r["kind"] == BLOCKED and "block" in r["stack"]
             and r["syscall"] == 0]
    got = collections.Counter()
    for row in reads:
        ways = [f for f in row["stack"] if f.startswith("way_")]
        same("ways in a stack", len(ways), 1)
        assert row["stack"].index(ways[0]) == row["stack"].index("block") + 1, row
        assert to_main(row), row
        got[ways[0]] += row["count"]
    all_are_there(facts, rows, got, want, 0, 400)
    timed("recognised", facts["waits.stacks_recognised"] > 6000, str(facts))  # reads and the peer's wake-ups
    for row in reads:
        same("object", row["object_kind"], PIPE)
        woken_by(row, "peer_start")
        same("buckets", row["bucketed"], row["count"])


def woken_by(row, function):
    """A wake-up that comes while its thread is just leaving the CPU counts for the time before: such waits are over
    at once, and how many there are is a matter of who runs when."""
    timed("somebody ended it", row["waker"], str(row))
    if row["waker"]:
        assert function in " ".join(row["waker_stack"] or [function]), row


def case_deep():
    facts, rows, printed = dump([], [PATHS, "deep", "4000"])
    lost_nothing(facts)
    want = {int(d): int(n) for d, n in (l.split() for l in printed.splitlines())}
    got = collections.Counter()
    for row in in_function(rows, "block"):
        if row["syscall"] == 0:
            got[row["stack"].count("dive") - 1] += row["count"]
            assert to_main(row), row
    all_are_there(facts, rows, got, want, 0, 600)


def case_pingpong():
    facts, rows, printed = dump([], [PATHS, "pingpong", "20000"])
    lost_nothing(facts)
    want = {int(pid): int(blocked) for pid, blocked in (line.split() for line in printed.splitlines())}
    same("processes", len(want), 2)
    by_pid, unwoken = collections.Counter(), 0
    for row in rows:
        if row["kind"] == BLOCKED and row["syscall"] == 0 and row["thread"][0] in want:
            by_pid[row["thread"][0]] += row["count"]
            if row["waker"]:
                assert row["waker"][0] != row["thread"][0], row
            else:
                unwoken += row["count"]
    # A side that was quicker need not block; the kernel has counted for each how often it did.
    # The loader has read, too: from files, which may have to be fetched.
    for pid, blocked in want.items():
        files = sum(row["count"] for row in rows if row["kind"] == BLOCKED and row["syscall"] == 0
                    and row["thread"][0] == pid and row.get("object_kind") not in (PIPE, None))
        as_often(f"process {pid} blocked", by_pid[pid], blocked, blocked + files)
    # See woken_by().
    timed("waits that nobody ended", unwoken <= sum(by_pid.values()) / 1000, str(unwoken))
    assert facts["waits.seen"] >= sum(by_pid.values())


def case_exec():
    """The same pid, pc and sp, another program: nothing of the first is found in the second."""
    facts, rows, _ = dump([], [PATHS, "exec", "5000"])
    lost_nothing(facts)
    for name in ("before_exec", "after_exec"):
        found = in_function(rows, name)
        count = sum(r["count"] for r in found)
        # Until a stack is learnt some of them go without one, and on a busy machine it takes longer.
        assert 0 < count <= 5000, (name, count)
        timed("learnt soon", count >= 100, f"{name} {count}")
        assert all(to_main(r) for r in found)
    assert not [r for r in rows if "before_exec" in r["stack"] and "after_exec" in r["stack"]]


def case_plugin():
    """Two libraries in turn at one address, with the same code: no wait of one in the other."""
    turns = 60
    facts, rows, printed = dump([], [PATHS, "plugin", str(turns), *PLUGINS])
    *places, blocked = printed.split()
    assert len(set(places)) == 1, "the libraries did not come to one address"
    counts = [sum(r["count"] for r in in_function(rows, name)) for name in ("plugin_a", "plugin_b")]
    assert all(counts) and sum(counts) <= int(blocked), (counts, blocked)
    timed("half of them each", max(counts) <= turns / 2 * 10, str(counts))
    assert facts["waits.stacks_taken_back"] > 0


def case_sleep():
    facts, rows, _ = dump([], ["/bin/sleep", "0.3"])
    lost_nothing(facts)
    found = [r for r in rows if r["kind"] == BLOCKED and r["flags"] & FLAG_LIMITED]
    same("sleeps", [r["count"] for r in found], [1])
    timed("0.3 s", 300e6 <= found[0]["total_ns"] < 1e9, str(found))
    # A timer that is late is run by a thread of the kernel's.
    timed("by an interrupt", found[0]["flags"] & FLAG_INTERRUPT, str(found))
    assert not found[0]["waker"], found
    same("told one by one", found[0]["events"], 1)
    assert facts["waits.map_bytes"] <= 64 << 20, facts


# It ends only when the one that started it sleeps in a call: that is the wait for it.
AWAITED = """while read call rest < /proc/$PPID/syscall && { [ "$call" = running ] || [ "$call" = -1 ]; }
do sleep 0.01; done; exec sleep 0.2"""


def case_child():
    facts, rows, _ = dump([], ["/bin/sh", "-c", 'sh -c "$0"; true', AWAITED])
    lost_nothing(facts)
    found = [r for r in rows if r.get("object_kind") == PROCESS]
    assert found
    timed("0.2 s", max(r["total_ns"] for r in found) >= 190e6, str(found))
    longest = max(found, key=lambda r: r["total_ns"])
    same("ended by", longest["waker"][2], "sleep")


def case_mutex():
    count = 20
    facts, rows, _ = dump(["-l"], [PATHS, "mutex", str(count)])
    lost_nothing(facts)
    waits = [r for r in in_function(rows, "wait_for_it") if r["detail"] == 1]
    assert waits and all(r["object_name"] == "lock" and r["object_kind"] == FUTEX for r in waits), waits
    timed("waits", sum(r["count"] for r in waits) >= count * 0.8, str(waits))
    total = sum(r["total_ns"] for r in waits)
    timed("5 ms each", total >= count * 0.8 * 4e6, str(total))
    # The owner slept nearly all of it.
    owned = sum(r["owned_ns"] for r in waits)
    off = sum(r["owner_off_ns"] for r in waits)
    assert 0 < off <= owned <= total, (off, owned, total)
    timed("with an owner who sleeps", owned >= 0.9 * total and off >= 0.8 * owned, f"{total} {owned} {off}")
    assert all("hold_asleep" in r["waker_stack"] for r in waits if r["waker_stack"]), waits
    # The other owner worked, 5 ms of CPU time each: however long that took, so long it was on one.
    busy = [r for r in in_function(rows, "wait_for_work") if r["detail"] == 1]
    assert all(r["object_name"] == "busy_lock" for r in busy), busy
    on = sum(r["owned_ns"] - r["owner_off_ns"] for r in busy)
    timed("with an owner who works", on >= 0.6 * count * 5e6, f"{on} {busy}")
    # Another way into the kernel with the same call on the same kind of object.
    heirs = [r for r in in_function(rows, "wait_for_heir") if r["detail"] == 4]
    assert heirs and all("futex_lock_pi" in r["stack"] for r in heirs), heirs
    timed("waits for what is inherited", sum(r["count"] for r in heirs) >= count * 0.8, str(heirs))
    assert all("futex_lock_pi" not in r["stack"] for r in waits + busy), (waits, busy)
    assert all(r["owned_ns"] > 0 for r in heirs if r["total_ns"] > 1e6), heirs


def case_locks_only():
    facts, rows, _ = dump(["-L"], [PATHS, "mutex", "10"])
    lost_nothing(facts)
    assert rows and all(r.get("object_kind") in (FUTEX, 11) for r in rows), rows


def case_threads():
    """More threads than stay: each ends with its time told, none is lost."""
    facts, rows, printed = dump([], [PATHS, "threads", "3000"])
    lost_nothing(facts, but=MANY_LOST)
    # Nothing else here has a time limit: what a thread waits for when it ends has not kept that of its sleep.
    sleeps = [r for r in rows if r["kind"] == BLOCKED and r["flags"] & FLAG_LIMITED]
    # One that is off the CPU for all of its 50 ms before it sleeps need not sleep any more; the kernel has counted.
    want, lost = int(printed), facts["waits.lost.tallies_full"]
    as_often("sleeps", sum(r["count"] for r in sleeps), want, lost=lost)
    as_often("threads that slept", len({r["thread"][1] for r in sleeps}), want, lost=lost)
    assert all(r["thread"][2] == "offcpu-paths" for r in sleeps)
    # Announcements that come more than 5 ms late, on a CPU that stood still, make one of two.
    assert facts["threads"] >= 3001 - facts["loss.ring_full"], facts
    timed("threads that are one", facts["threads"] <= 3005, str(facts["threads"]))


def case_attach():
    """Threads that sleep all the while are there at the end, with the time so far."""
    target = subprocess.Popen(["/bin/sleep", "600"])
    try:
        wait_until(lambda: seen.asleep([target.pid]))  # all that it does before is over
        facts, rows, _ = dump(["-p", str(target.pid), "-d", "1"], ["-"])
        found = [r for r in rows if r["kind"] == BLOCKED]
        assert len(found) == 1 and found[0]["flags"] & FLAG_OPEN, rows
        timed("1 s", 0.9e9 <= found[0]["total_ns"] <= 20e9, str(found))
        assert found[0]["syscall"] in (35, 230, 101, 115), found
        assert target.poll() is None
    finally:
        target.kill()
        target.wait()


def case_timer():
    """A timer that ends a wait interrupts whoever computes: that one has woken nobody."""
    facts, rows, _ = dump([], [PATHS, "timer", "200"])
    lost_nothing(facts)
    sleeps = [r for r in rows if r["kind"] == BLOCKED and r["flags"] & FLAG_LIMITED]
    assert sleeps
    timed("sleeps of 1 ms", sum(r["count"] for r in sleeps) >= 150, str(sleeps))
    # A timer that is late is run by a thread of the kernel's: it has woken nobody, either.
    assert all(r["waker"] is None for r in sleeps) and any(r["flags"] & FLAG_INTERRUPT for r in sleeps), sleeps
    timed("by an interrupt", all(r["flags"] & FLAG_INTERRUPT for r in sleeps), str(sleeps))


def case_machine():
    """All processes: one that began before, and is no child of ours, is seen when it runs."""
    other = subprocess.Popen([PATHS, "timer", "10000000"])  # it is ended below
    try:
        facts, rows, _ = dump(["-a", "-w", str(other.pid)], ["-"], other.pid)
        found = [r for r in rows if r["thread"][0] == other.pid and r["kind"] == BLOCKED]
        assert found, "the other process was not seen"
        assert [r for r in found if "timer" in r["stack"] and to_main(r)], found
        own = [r for r in rows if r["thread"][0] == facts["own_pid"]]
        assert not own, ("we recorded ourselves", own)
        assert facts["waits.lost.threads_full"] == 0, facts
    finally:
        other.kill()
        other.wait()


CLIENT = """
import os, select, socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
poll = select.epoll()
poll.register(peer, select.EPOLLIN)
peer.send(b"%d" % os.getpid())
assert poll.poll(600)         # a request is under way
assert peer.recv(10) == b"!"
assert poll.poll(600)         # nothing to do
"""


def case_asked():
    """Waiting for an answer is not waiting for nothing, though both are epoll_wait()."""
    import socket
    import threading
    import time
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        peer, _ = server.accept()
        client, watch, before = int(peer.recv(10)), seen.Watch(looks=0, seconds=0.2), None
        for said in b"!", b"?":
            while not watch.look(client, [client]) or watch.state == before:  # until it waits
                time.sleep(0.01)
            before = watch.state
            peer.send(said)
        peer.recv(10)  # until it is closed

    threading.Thread(target=serve, daemon=True).start()
    facts, rows, _ = dump([], [sys.executable, "-c", CLIENT, str(server.getsockname()[1])])
    lost_nothing(facts)
    polls = [r for r in rows if r["kind"] == BLOCKED and r.get("object_kind") == 9]
    asked = [r for r in polls if r["flags"] & FLAG_ASKED]
    idle = [r for r in polls if not r["flags"] & FLAG_ASKED]
    same("with a request under way", sum(r["count"] for r in asked), 1)
    same("with nothing to do", sum(r["count"] for r in idle), 1)
    timed("0.2 s each", all(r["total_ns"] >= 150e6 for r in polls), str(polls))
    assert all(r["flags"] & FLAG_LIMITED for r in polls), polls


def case_killed():
    """kill -9 leaves no program in the kernel and the target as it was."""
    target = subprocess.Popen(["/bin/sleep", "60"])
    tool = subprocess.Popen([TOOL, "-k", "-p", str(target.pid), "-d", "100", "--", "-"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        # Switches, wake-ups, beginnings and ends of processes: no fewer than five.
        wait_until(lambda: len(programs(tool.pid)) >= 5 or tool.poll() is not None)
        if tool.poll() is not None:
            said = tool.stderr.read()
            assert has_no_bpf(tool.returncode, said), (tool.returncode, said)
            print("SKIP: no BPF here:", said)
            sys.exit(SKIPPED)
        ids = programs(tool.pid)
        assert len(ids) >= 5 and all(program_is_there(i) for i in ids), ids
        tool.kill()
        tool.wait()
        wait_until(lambda: not any(program_is_there(i) for i in ids))
        same("programs left", [i for i in ids if program_is_there(i)], [])
        assert target.poll() is None
    finally:
        tool.kill()
        target.kill()
        target.wait()


def programs(pid):
    """Ids of the BPF programs that a process holds."""
    found = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fdinfo"):
            with open(f"/proc/{pid}/fdinfo/{fd}") as text:
                for line in text:
                    if line.startswith("prog_id:"):
                        found.add(int(line.split()[1]))
    except OSError:
        pass
    return found


def program_is_there(program):
    """Asks the kernel for it by its id (bpf(), BPF_PROG_GET_FD_BY_ID)."""
    import ctypes
    number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    attributes = (ctypes.c_uint32 * 32)(program)
    fd = ctypes.CDLL(None, use_errno=True).syscall(number, 13, attributes, 128)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def wait_until(done, seconds=600):
    import time
    for _ in range(seconds * 20):
        if done():
            return
        time.sleep(0.05)


if __name__ == "__main__":
    CASE, TOOL, PATHS, *PLUGINS = sys.argv[1:]
    globals()["case_" + CASE.replace("-", "_")]()
