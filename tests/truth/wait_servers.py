#!/usr/bin/python3
"""Waits of real servers under load beside the servers' own statistics.

    wait_servers.py redis|postgresql WHYSLOW

Shares of a busy stretch are compared, so that neither the speed of the machine nor the moments
of beginning and end matter. The kernel tier, since other users' processes are looked at.
"""

import collections
import json
import pathlib
import sys
import threading
import time

import server_tools
import wait_tools
from wait_tools import CLASSES, Answer, check_complete, skip, time_between, timed

SECONDS = 4
lab = wait_tools.Lab(sys.argv[2], [], "whyslow-servers-")


def record(pid):
    lab.run(lab.whyslow, "record", "--offcpu", "--locks", "-p", str(pid), "-d", str(SECONDS), "-o", "s.whyslow")
    answer = lab.waits("s.whyslow")
    assert answer.json["honesty"]["tier"] == "kernel"
    return answer


def life(thread):
    return sum(thread["classes_ms"][name] or 0 for name in CLASSES)


def window(path):
    """When it was recorded, in us of the clock that others read."""
    done = lab.run(lab.whyslow, "query", "--json", path, "SELECT json FROM document WHERE name = 'waits'")
    facts = json.loads(json.loads(done.stdout)["rows"][0]["json"])
    ahead = time.time_ns() - time.monotonic_ns()
    return (facts["start_ns"] + ahead) / 1e3, (facts["stop_ns"] + ahead) / 1e3


def rate(rows, figure, begin, end):
    """Growth of a figure per time within a window, from the looks that lie in it."""
    inside = [row for row in rows if begin <= row["time"] <= end]
    timed("looks", len(inside) > 5, str(len(inside)))
    return (inside[-1][figure] - inside[0][figure]) / (inside[-1]["time"] - inside[0]["time"])


def case_redis():
    if not server_tools.Redis.there():
        skip(f"not installed: {server_tools.Redis.missing}")
    with server_tools.Redis(lab.folder / "redis") as redis:
        load = redis.benchmark(100_000_000, stdout=server_tools.subprocess.DEVNULL)
        watch = redis.watch()
        try:
            time.sleep(0.5)
            answer = record(redis.pid)
        finally:
            for process in (load, watch):
                process.kill()
                process.wait()
        rows, (begin, end) = redis.watched(), window("s.whyslow")
    check_complete(answer)
    main = answer.threads[redis.pid]["classes_ms"]
    whole = life(answer.threads[redis.pid])
    time_between("its stretch in ms", whole, SECONDS * 1e3 * 0.95, SECONDS * 1e3 * 1.5)
    cpu, commands = rate(rows, "cpu", begin, end), rate(rows, "commands", begin, end)
    time_between("share running, by its used_cpu", main["running"] / whole, cpu - 0.1, cpu + 0.1)
    # Of commands it measures the wall time: being preempted is in it.
    timed("running and ready, by its commands", (main["running"] + main["runq"]) / whole >= commands - 0.1, str(commands))
    # It does nothing but compute and wait for requests; the rest is waiting for a CPU.
    time_between("idle, running or ready", (main["idle"] + main["running"] + main["runq"]) / whole, 0.9, 1.001)
    time_between("idle", main["idle"] / whole, 1 - cpu - main["runq"] / whole - 0.1, 1 - cpu + 0.1)
    # Its background threads wait for work.
    for tid, thread in answer.threads.items():
        if tid != redis.pid:
            time_between(f"idle of {thread.get('name')}", thread["classes_ms"]["idle"] / life(thread), 0.9, 1.001)


class CpuTimes:
    """The kernel's own account of a process's children: CPU time in ms by pid, as last seen."""

    def __init__(self, pid):
        self.pid, self.ms, self.over = pid, {}, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def look(self):
        while not self.over.wait(0.02):
            children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            for child in children:
                try:
                    text = pathlib.Path(f"/proc/{child}/schedstat").read_text()
                except (FileNotFoundError, ProcessLookupError):
                    continue  # gone since it was listed
                self.ms[int(child)] = int(text.split()[0]) / 1e6


# What PostgreSQL calls it, and what we do. Timeout is pg_usleep() with contended spinlocks.
KINDS = {"Lock": "lock", "LWLock": "lock", "BufferPin": "lock", "IPC": "lock", "IO": "disk", "Client": "idle",
         "Timeout": "timer", "Activity": "idle", "Extension": "idle", "": "running"}


def case_postgresql():
    if not server_tools.PostgreSQL.there():
        skip(f"not installed: {server_tools.PostgreSQL.missing}")
    with server_tools.PostgreSQL(lab.folder / "pg") as server:
        # Backends that the server starts from now on are its children, and so recorded.
        recorder = wait_tools.subprocess.Popen(
            [lab.whyslow, "record", "--offcpu", "--locks", "-p", str(server.pid), "-o", "s.whyslow"],
            env=lab.environment, stderr=wait_tools.subprocess.PIPE, text=True)
        lab.wait_recording(recorder, "s.whyslow")
        watch = server.watch("SELECT pid, coalesce(wait_event_type, ''), wait_event FROM pg_stat_activity "
                             "WHERE application_name = 'pgbench' AND state IS NOT NULL", 0.015)
        try:
            with CpuTimes(server.pid) as cpu:
                load = server.benchmark(seconds=SECONDS)
                said, _ = load.communicate(timeout=wait_tools.PATIENCE_S)
            print(said)
            assert load.returncode == 0
        finally:
            watch.kill()
            watch.wait()
            recorder.send_signal(server_tools.signal.SIGINT)
        _, stderr = recorder.communicate(timeout=wait_tools.PATIENCE_S)
        print(stderr)
        assert recorder.returncode == 0
        rows = [line.split("|") for line in (server.folder / "watched").read_text().splitlines() if "|" in line]
    done = lab.run(lab.whyslow, "waits", "--json", "--idle", "--limit", "0", "s.whyslow")
    answer = Answer(json.loads(done.stdout))
    answer.show()
    assert answer.json["honesty"]["tier"] == "kernel"
    check_complete(answer)
    print(collections.Counter(f"{kind}:{event}" for _, kind, event in rows).most_common(12))
    timed("looks by the server's own account", len(rows) > 500, str(len(rows)))
    backends = {int(pid) for pid, _, _ in rows}
    theirs = collections.Counter(KINDS[kind] for _, kind, _ in rows)
    ours = collections.Counter()
    for pid in backends & set(answer.threads):  # pgbench's first connection may be gone before
        ours.update({k: v or 0 for k, v in answer.threads[pid]["classes_ms"].items()})
    whole = sum(ours[name] for name in CLASSES)
    ready = ours["runq"] / whole
    print("theirs", {k: round(v / len(rows), 3) for k, v in theirs.items()})
    print("ours", {k: round(v / whole, 3) for k, v in ours.items()})
    assert len(backends & set(answer.threads)) >= 8
    # A backend that was woken and has no CPU yet still shows what it waited for: what we miss of
    # one kind or another is on the run queue, once.
    missed = 0
    for kind in ("lock", "disk", "idle", "timer"):
        share = theirs[kind] / len(rows)
        time_between(f"share of {kind}", ours[kind] / whole, share - ready - 0.1, share + 0.1)
        missed += max(share - ours[kind] / whole, 0)
    # It computes, too, on its way into a wait and out of it: of that only the kernel knows.
    running = ours["running"] / whole
    time_between("missed of all kinds", missed, 0, ready + max(running - theirs["running"] / len(rows), 0) + 0.1)
    told = sum(cpu.ms[pid] for pid in backends & set(answer.threads) if pid in cpu.ms) / whole
    time_between("share of running, by the kernel's account", running, told - 0.03, told + 0.03)


try:
    wait_tools.need_kernel_tier()
    globals()["case_" + sys.argv[1]]()
    print("ok")
finally:
    lab.close()
