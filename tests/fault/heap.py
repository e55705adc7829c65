#!/usr/bin/python3
"""Counting memory while things go wrong: the target is as it would be alone, what was counted until
then can be read, and what could not be had is said.

    heap.py CASE WHYSLOW FAULTS STATIC SANITIZED
"""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import heap_tools  # noqa: E402
from heap_tools import PATIENCE_S, Heap, compare, compiled, nobody, skip  # noqa: E402

DENIED = 4
case = sys.argv[1]
whyslow, faults, static, sanitized = map(os.path.abspath, sys.argv[2:6])
Heap.whyslow = whyslow
USER = ("--tier", "user")


def truth():
    pathlib.Path("truth").unlink(missing_ok=True)
    return {**os.environ, "KNOWN_TRUTH": os.path.abspath("truth")}


def run(*command, env=None, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, env=env or truth(), **more)
    return done.returncode, done.stdout, done.stderr


def recorded(*command, options=USER, before=(), ours=whyslow, **more):
    pathlib.Path("r.whyslow").unlink(missing_ok=True)
    return run(*before, ours, "record", "--heap", *options, "-o", "r.whyslow", "--", *command, **more)


def as_alone(*command, options=USER, env=None):
    """Status and output are those of a run without us; the account is that of the second."""
    status, out, _ = run(*command, env=env)
    if os.path.exists("truth"):
        os.unlink("truth")
    told = recorded(*command, options=options, env=env)
    shell_status = status if status >= 0 else 128 - status
    assert told[:2] == (shell_status, out), (status, out, told)
    return told[2]


def ends(name):
    as_alone(faults, name)
    return compare(whyslow)


def case_ends():
    """abort(), _exit(), quick_exit(), SIGSEGV and SIGKILL: all is counted up to there."""
    for name in ("abort", "exit", "quick-exit", "segv", "killed"):
        print(name)
        ends(name)


def case_limit():
    """malloc() that returns NULL: limited by itself, and from the start."""
    wrap = ("sh", "-c", 'ulimit -v 400000; LIMITED=1 exec "$@"', "sh")
    as_alone(*wrap, faults, "limit")
    heap, truth_of = Heap("r.whyslow"), heap_tools.account()[0]
    found, site = heap.by_owner(truth_of["pid"])["known_malloc"], truth_of["sites"]["known_malloc"]
    unseen = sum(heap.of_process(truth_of["pid"], "unseen_frees"))
    print(found, site, unseen)
    # Where the program has the last of the memory there is none to note where that lies: its free is
    # seen as one of unknown memory, and counted as such.
    assert found["allocations"] == site["allocations"] and found["allocated_bytes"] == site["allocated_bytes"]
    assert found["frees"] + unseen == site["frees"] and unseen == heap.counters["heap.no_entry"] <= 16
    assert sum(heap.of_process(truth_of["pid"], "failed")) == truth_of["failed"] == 3
    # A program that limits itself, with the library in it already: half of it is enough for both.
    as_alone("/usr/bin/python3", "-c", "import resource; resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2); "
             "print(len(bytearray(100 << 20)), len([str(i) for i in range(100000)]))")
    # So little that the library has no room for itself: the program does not notice, we say so.
    for kib in (60000, 20000, 8000):
        wrap = ("sh", "-c", f'ulimit -v {kib}; exec "$@"', "sh")
        said = as_alone(*wrap, faults, "work")
        sites = Heap("r.whyslow").by_owner(heap_tools.account()[0]["pid"]) if os.path.exists("r.whyslow") else {}
        found = sites.get("known_malloc", {}).get("allocations", 0)
        print(kib, "KiB:", found, said.strip().splitlines()[-1:])
        assert found == heap_tools.account()[0]["sites"]["known_malloc"]["allocations"] or "memory" in said, (kib, found, said)


def case_overflow():
    """A stack that overflows, with a handler and without."""
    as_alone(faults, "overflow")
    found = Heap("r.whyslow").by_owner(heap_tools.account()[0]["pid"])["known_malloc"]
    assert found["allocations"] == 1000 and found["frees"] == 500, found
    as_alone(faults, "overflow-dies")
    assert Heap("r.whyslow").total("allocations") > 1000


def case_seccomp():
    """A filter that ends the program at what it did not foresee, before and after the first call."""
    for late in ("", "1"):
        env = truth()
        if late:
            env["FILTERED_LATE"] = late
        as_alone(faults, "seccomp", env=env)
        compare(whyslow)


def case_small_shared_memory():
    """No room in the shared memory: the target goes on, and what is not counted is said."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    alone = run(faults, "work")
    done = recorded(faults, "work", preexec_fn=limit)
    print(done)
    # Either it worked within the limit, or it is refused in words; the program is not killed by it.
    if done[0] == 0:
        assert done[1] == alone[1]
        compare(whyslow)
    else:
        assert done[0] in (DENIED, 5) and "try: " in done[2], done


def refused(status, words, *command, **more):
    told = recorded(*command, **more)
    print(told[0], told[2].strip())
    assert told[0] == status, told
    assert any(word in told[2] for word in words) and "try: " in told[2], told
    assert not os.path.exists("r.whyslow"), "an empty recording was left"


def case_privileged():
    """Set-user-ID and capabilities: the loader ignores the library. Never an empty report."""
    if os.geteuid() != 0:
        skip("only root can make such programs")
    program = shutil.copy(faults, "suid")
    os.chown(program, 0, 0)
    os.chmod(program, 0o4755)
    ours, = heap_tools.copied(whyslow)
    refused(DENIED, ("set-user-ID", "setuid"), "./suid", "work", before=nobody(), ours=ours)
    if not shutil.which("setcap", path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
        skip("setcap is not installed")
    program = shutil.copy(faults, "capable")
    os.chmod(program, 0o755)
    done = subprocess.run(["/usr/sbin/setcap", "cap_net_raw+ep", program], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"setcap does not work here: {done.stderr.strip()}")
    refused(DENIED, ("capabilit",), "./capable", "work", before=nobody(), ours=ours)


def case_static():
    """A static program: an error with its reason without root, the kernel's tier with it."""
    ours, program = heap_tools.copied(whyslow, static)
    refused(DENIED, ("static",), program, "work")
    refused(DENIED, ("static",), program, "work", options=(), before=nobody(), ours=ours)
    if os.geteuid() == 0:
        as_alone(program, "work", options=())
        compare(whyslow)


def case_static_child():
    """A static program started by a shell: nothing of it is seen, and that is said."""
    told = recorded("sh", "-c", f"{static} work; {faults} work")
    assert told[0] == 0, told
    first, second = heap_tools.account()
    heap = Heap("r.whyslow")
    assert not heap.by_owner(first["pid"]) and heap.by_owner(second["pid"])["known_malloc"]["allocations"] == 1000
    words = told[2] + json.dumps(heap_tools.report(whyslow))
    assert "static" in words, words


def case_musl():
    """Another libc: it must not mind our library; seen or refused, never empty."""
    program = compiled("musl", heap_tools.SOURCES / "heap_faults.c", "-D_GNU_SOURCE", compiler="musl-gcc")
    alone = run(program, "work")
    assert alone[0] == 0, alone
    told = recorded(program, "work")
    print(told)
    if told[0] == 0:
        compare(whyslow)
    else:
        refused(DENIED, ("musl", "libc"), program, "work")


def case_sanitized():
    """AddressSanitizer brings its own malloc() and wants to be first: it runs as alone."""
    env = truth()
    env["ASAN_OPTIONS"] = "detect_leaks=0"
    alone = run(sanitized, "work", env=env)
    told = recorded(sanitized, "work", env={**env, "KNOWN_TRUTH": os.path.abspath("truth2")})
    print(told)
    if told[0] == 0:
        assert told[1] == alone[1]
        compare(whyslow, truth="truth2")
    else:
        assert told[0] == DENIED and "try: " in told[2] and not os.path.exists("r.whyslow"), told


def case_nothing():
    """A program that asks for no memory: an error with the reason, never an empty report."""
    pathlib.Path("nothing.c").write_text("int main(void) { return 0; }\n")
    program = compiled("nothing", "nothing.c")
    told = recorded(program)
    print(told)
    assert told[0] not in (0, 1) and told[2].strip(), told
    told = run(whyslow, "heap", "--", program)
    print(told)
    assert told[0] != 0 and told[2].strip(), told


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


def committed():
    """Allocations and frees of the recording by now. What is committed while the program is in the midst of its work has
    the first without the second."""
    try:
        heap = Heap("r.whyslow") if os.path.exists("r.whyslow") else None
        return (heap.total("allocations"), heap.total("frees")) if heap else (0, 0)
    except Exception:  # not yet a whole database
        return 0, 0


def start_waiting():
    process = subprocess.Popen([whyslow, "record", "--heap", *USER, "-o", "r.whyslow", "--", faults, "waits"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env=truth())
    assert process.stdout.readline() == "worked\n"
    return process


def case_whyslow_killed():
    """kill -9 of whyslow: the target goes on to its right end, what was committed can be read."""
    process = start_waiting()
    wait_for(lambda: committed() == (1000, 500), "a commit of all of it")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.write("\n")
    process.stdin.close()
    assert process.stdout.readline() == "worked on\n"
    wait_for(lambda: os.path.exists("truth") and os.path.getsize("truth"), "the target's account")
    heap = Heap("r.whyslow")
    print(heap.total("allocations"), heap.total("frees"))
    assert heap.total("allocations") == 1000 and heap.total("frees") == 500
    done = run(whyslow, "heap", "r.whyslow")
    assert done[0] == 0 and "cut off" in done[1] + done[2], done


def case_target_killed():
    """kill -9 of the target from outside: its status is passed on, its account is whole."""
    process = start_waiting()
    # A launcher may stand between: not that one, nor what another test has started.
    found = [pid for pid in heap_tools.below(process.pid)
             if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(f"{faults}\0waits".encode())]
    assert len(found) == 1, found
    os.kill(int(found[0]), signal.SIGKILL)
    assert process.wait(timeout=PATIENCE_S) == 128 + signal.SIGKILL
    heap = Heap("r.whyslow")
    heap.nothing_lost()
    assert heap.total("allocations") == 1000 and heap.total("frees") == 500, heap.total("allocations")
    told = heap_tools.report(whyslow)
    assert told["leaked_count"] == 500 and told["peak_bytes"] == sum(range(10, 1010)), told


def case_disk_full():
    """No room for the recording: an error in words, and the target runs on to its end."""
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", "small"], check=False,
                      capture_output=True).returncode != 0:
        skip("no permission to mount a small disk")
    try:
        known = os.path.join(os.path.dirname(faults), "heap-known")
        told = run(whyslow, "record", "--heap", *USER, "-o", "small/r.whyslow", "--", known, "wide", "14")
        print(told)
        assert told[0] == 5 and "No space left" in told[2] and "try: " in told[2], told
        assert heap_tools.account()[0]["sites"]["known_other"]["allocations"] == 1 << 14
    finally:
        subprocess.run(["umount", "small"], check=True)


def main():
    globals()["case_" + case.replace("-", "_")]()


heap_tools.in_folder(main)
