#!/usr/bin/python3
"""Recording waits while things go wrong: the target is not harmed, nothing stays in the kernel,
and what could not be had is said.

    waits.py CASE WHYSLOW WAITS-CALLS WAITS-THREADS DENY
"""

import ctypes
import errno
import json
import os
import pathlib
import platform
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
import seen  # noqa: E402
import wait_tools  # noqa: E402
from wait_tools import check_wait, skip  # noqa: E402

DENIED = 4
lab = wait_tools.Lab(sys.argv[2], sys.argv[3:6], "whyslow-waits-fault-")
calls, threads, deny = lab.waits_calls, lab.waits_threads, lab.deny
libc = ctypes.CDLL(None, use_errno=True)


def wait_for(condition, what):
    end = time.monotonic() + wait_tools.PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def bpf_programs():
    """Ids of all BPF programs that the kernel has."""
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    get_next_id, found, last = 11, set(), 0
    while True:
        attributes = (ctypes.c_uint32 * 32)(last)
        if libc.syscall(number, get_next_id, ctypes.byref(attributes), ctypes.sizeof(attributes)) < 0:
            assert ctypes.get_errno() == errno.ENOENT, os.strerror(ctypes.get_errno())
            return found
        last = attributes[1]
        found.add(last)


def programs_of(pid):
    """Those that a process has put there."""
    found = set()
    for file in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            found |= set(map(int, re.findall(r"^prog_id:\t(\d+)", file.read_text(), re.M)))
        except OSError:
            pass
    return found


def committed(path):
    """Waits that are safe in a recording that is still being made."""
    if not os.path.exists(path):
        return False
    done = subprocess.run([lab.whyslow, "query", "--json", path, "SELECT count(*) AS n FROM wait WHERE total_ns > 0"],
                          capture_output=True, check=False)
    return done.returncode == 0 and json.loads(done.stdout)["rows"][0]["n"] > 0


def tier_of(path):
    done = lab.run(lab.whyslow, "query", "--json", path, "SELECT json FROM document WHERE name = 'waits'")
    return json.loads(json.loads(done.stdout)["rows"][0]["json"])


def case_dies():
    """By a signal: its status is passed on, and its waits are there."""
    for tier in ("kernel", "user"):
        path, truth, _ = lab.record(calls, "crash", 200, tier=tier, status=128 + 11,
                                    until_seen=calls if tier == "user" else None)
        check_wait(lab.waits(path), truth, "sleeps_here", ("timer",), tier=tier, seen_for_certain=True)


def case_killed_in_wait():
    """kill -9 in the midst of a wait: the wait up to then counts."""
    for tier in ("kernel", "user"):
        path = str(lab.folder / f"{tier}.whyslow")
        # The kernel sees all, and need not look; but the wait must have begun.
        watch = seen.Watch(seconds=0.5, looks=seen.LOOKS if tier == "user" else 0)
        done = seen.run([lab.whyslow, "record", "--offcpu", "--tier", tier, "-o", path, "--", "sh", "-c",
                         f"{threads} lock 60000 & wait $!; exit 7"], "waits-threads", ends_by=signal.SIGKILL, watch=watch,
                        env=lab.environment, timeout=wait_tools.PATIENCE_S)
        print(done.stdout, done.stderr)
        assert done.returncode == 7, done
        answer = lab.waits(path)
        got = answer.total("waits_for_lock")
        print("behind the lock:", got, "certainly:", done.slept_s * 1e3)
        assert got >= done.slept_s * 1e3 - 0.1, "less than there was"
        assert {row["class"] for row in answer.with_function("waits_for_lock")} == {"lock"}


def falls_back(*before, words):
    """The user tier with the reason; asked for the kernel's, an error before anything runs."""
    path = str(lab.folder / "fallen.whyslow")
    pathlib.Path(path).unlink(missing_ok=True)
    done = lab.run(*before, lab.whyslow, "record", "--offcpu", "-o", path, "--", calls, "sleep", "300", until_seen=calls)
    check_wait(lab.waits(path), wait_tools.Truth(done.stdout), "sleeps_here", ("timer",), tier="user", seen_for_certain=True)
    facts = tier_of(path)
    print(facts)
    assert facts["tier"] == "user", facts
    for text in (done.stderr, json.dumps(facts)):
        assert any(word in text for word in words), (words, text)
    done = lab.run(*before, lab.whyslow, "record", "--offcpu", "--tier", "kernel", "-o", "none.whyslow", "--",
                   "touch", "started", status=DENIED)
    assert "try: " in done.stderr and any(word in done.stderr for word in words), done.stderr
    assert not os.path.exists("started") and not os.path.exists("none.whyslow")


def need_root():
    if os.geteuid() != 0:
        skip("only root has something to be denied")


def case_bpf_denied():
    need_root()
    falls_back(deny, "--bpf", str(errno.EPERM), words=["bpf", "BPF"])
    falls_back(deny, "--bpf", str(errno.ENOSYS), words=["bpf", "BPF"])


def case_no_capabilities():
    need_root()
    falls_back("setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", words=["CAP_BPF"])


def case_no_btf():
    need_root()
    wait_tools.need_kernel_tier()
    hide = f"mount -t tmpfs none /sys/kernel/btf && exec \"$@\""
    falls_back("unshare", "--mount", "sh", "-c", hide, "sh", words=["BTF"])


def killed(tier, *options):
    """kill -9 of whyslow: the target ends as it would, nothing stays, the recording opens."""
    # One convoy after the other, the last of which began before that or after: all of them do what they have to.
    script = f"""
until [ -e killed ]; do
    {threads} convoy 4 100 >out.new || exit
    mv out.new out
done
echo $? >status.new
mv status.new status"""
    recorder = subprocess.Popen([lab.whyslow, "record", "--offcpu", *options, "--tier", tier, "-o", "k.whyslow", "--",
                                 "sh", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=lab.environment)
    wait_for(lambda: committed("k.whyslow"), "a commit")
    programs = programs_of(recorder.pid)
    print("programs", programs)
    assert bool(programs) == (tier == "kernel"), programs
    assert programs <= bpf_programs(), bpf_programs()
    assert recorder.poll() is None, "too early"
    recorder.kill()
    recorder.wait()
    pathlib.Path("killed").touch()
    wait_for(lambda: not programs & bpf_programs(), "the end of its BPF programs")
    wait_for(lambda: os.path.exists("status"), "the target's end")
    assert pathlib.Path("status").read_text() == "0\n"
    truth = wait_tools.Truth(pathlib.Path("out").read_text())
    assert truth.sum("takes_the_lock", "calls") == 400
    assert len(truth.lives) == 5, truth.lives  # four threads and main
    answer = lab.waits("k.whyslow")
    assert any(row["total_ms"] > 0 for row in answer.rows), "nothing of what was committed"


def case_whyslow_killed():
    wait_tools.need_kernel_tier()
    killed("kernel")


def case_whyslow_killed_user():
    if os.geteuid() != 0:
        skip("programs in the kernel are listed for root only")
    killed("user", "--locks")


def case_interrupted():
    """Ctrl-C ends a recording of a running process, not the process."""
    target = subprocess.Popen([calls, "epoll", "3600000"], stdout=subprocess.DEVNULL)
    try:
        for tier in ("kernel", "user"):
            recorder = subprocess.Popen([lab.whyslow, "record", "--offcpu", "--tier", tier, "-p", str(target.pid),
                                         "-o", f"{tier}.whyslow"], stderr=subprocess.PIPE, text=True, env=lab.environment)
            wait_for(lambda t=tier: committed(f"{t}.whyslow"), "a commit")
            recorder.send_signal(signal.SIGINT)
            _, stderr = recorder.communicate(timeout=wait_tools.PATIENCE_S)
            print(stderr)
            assert recorder.returncode == 0 and target.poll() is None
            assert lab.waits(f"{tier}.whyslow").with_function("serves")
    finally:
        target.kill()
        target.wait()


def case_maps_full():
    """More threads than there is room for in the kernel: the target is not harmed, the loss is said."""
    wait_tools.need_kernel_tier()
    plain = subprocess.run([threads, "many", "18000"], capture_output=True, text=True, check=False)
    if plain.returncode != 0:
        skip(f"18,000 threads cannot be had here: {plain.stderr.strip()}")
    path, truth, stderr = lab.record(threads, "many", 18000)
    assert truth.sum("waits_among_many", "calls") == 18000
    answer = lab.waits(path)
    print({k: v for k, v in answer.json["honesty"].items()})
    assert answer.json["honesty"]["lost"] > 0 and " 0 lost" not in stderr, stderr
    assert 16000 < len(answer.threads) <= 18001, len(answer.threads)
    assert answer.with_function("waits_among_many")


def case_vanishing():
    """The process that is attached to ends while it is recorded."""
    for tier in ("kernel", "user"):
        target = subprocess.Popen([calls, "epoll", "3600000"], stdout=subprocess.DEVNULL)
        recorder = subprocess.Popen([lab.whyslow, "record", "--offcpu", "--tier", tier, "-p", str(target.pid), "-o",
                                     f"{tier}.whyslow"], stderr=subprocess.PIPE, text=True, env=lab.environment)
        wait_for(lambda t=tier: committed(f"{t}.whyslow"), "a commit")
        target.kill()
        target.wait()
        _, stderr = recorder.communicate(timeout=wait_tools.PATIENCE_S)
        print(stderr)
        assert recorder.returncode == 0, recorder.returncode
        assert lab.waits(f"{tier}.whyslow").with_function("serves")


def case_small_ring():
    """Where there is no room for a large buffer it is a small one, with the reason: neither an error nor a lower tier."""
    wait_tools.need_kernel_tier()
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 4 << 30:
        skip("a machine with less memory has the small buffer anyway")
    maps = {}
    for before, small in ((), False), ((deny, "--map-from", str(48 << 20), str(errno.ENOMEM)), True):
        path = f"{small}.whyslow"
        lab.run(*before, lab.whyslow, "record", "--offcpu", "--tier", "kernel", "-o", path, "--", calls, "sleep", "300")
        facts = tier_of(path)
        said = [reason for reason in facts["not_known"] if "larger buffer" in reason]
        print(small, facts)
        assert facts["tier"] == "kernel" and lab.waits(path).with_function("sleeps_here"), facts
        assert len(said) == small and all("Cannot allocate memory" in reason for reason in said), facts
        maps[small] = facts["map_bytes"]
    assert maps[False] - maps[True] == 16 << 20, maps


def case_disk_full():
    """A recording that cannot grow is an error with words; the target does not notice."""
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))

    done = lab.run(lab.whyslow, "record", "--offcpu", "-o", "full.whyslow", "--", "sh", "-c",
                   f"trap 'echo xfsz' XFSZ; {calls} forks 1000 >/dev/null; echo done; exit 3",
                   preexec_fn=small, status=5)
    assert done.stdout == "done\n" and "try: " in done.stderr, done


def case_refused():
    """Recordings without waits, and files that are none, are refused with what to do."""
    lab.run(lab.whyslow, "record", "--cpu", "-o", "cpu.whyslow", "--", calls, "sleep", "10")
    pathlib.Path("garbage").write_bytes(b"SQLite format 3\0" + b"x" * 100)
    for command in ("waits", "locks"):
        for path, words in (("cpu.whyslow", ["no waits", "--offcpu", "--locks"]), ("garbage", ["garbage"])):
            done = subprocess.run([lab.whyslow, command, path], capture_output=True, text=True, check=False,
                                  env=lab.environment, timeout=wait_tools.PATIENCE_S)
            print(command, path, done.returncode, done.stdout, done.stderr)
            assert done.returncode not in (0, -11, -6) and done.stdout == "", done
            assert "try: " in done.stderr and any(word in done.stderr for word in words), done.stderr
    for options in (["--tier", "ring0"], ["-p", "2147483646"]):
        done = lab.run(lab.whyslow, "record", "--offcpu", *options, *([] if "-p" in options else ["--", "true"]), status=2)
        assert "try: " in done.stderr or "see: " in done.stderr
    done = lab.run(*lab.nobody(), lab.whyslow, "record", "--offcpu", "--tier", "kernel", "-o", "n.whyslow", "--", "true",
                   status=DENIED)
    assert "CAP_BPF" in done.stderr and "try: " in done.stderr


try:
    globals()["case_" + sys.argv[1].replace("-", "_")]()
    print("ok")
finally:
    lab.close()
