#!/usr/bin/python3
"""What recording waits and locks costs a target, beside perf sched record, in one run.

    bench/waits.py BUILD [--quick] [--rounds N] [--only pipe,mutex,redis,postgresql]

Round trips between two processes through pipes; 8 threads on one mutex; throughput of
redis-server and PostgreSQL. Plain and recorded rounds alternate, medians of their ratios are
judged. Run it as root on a quiet machine; perf (package linux-perf), redis-server, redis-tools,
postgresql and postgresql-contrib are optional.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import figures
from figures import figure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "truth"))
import server_tools  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("build")
parser.add_argument("--quick", action="store_true", help="little work, one round: a smoke test")
parser.add_argument("--rounds", type=int, default=0)
parser.add_argument("--only", default="pipe,mutex,redis,postgresql")
args = parser.parse_args()
build = pathlib.Path(args.build).resolve()
subprocess.run(["ninja", "-C", build, "--quiet", "whyslow", "tests/workloads/waits-calls",
                "tests/workloads/waits-threads"], check=True)
whyslow = str(build / "whyslow")
calls, threads = (str(build / "tests" / "workloads" / f"waits-{name}") for name in ("calls", "threads"))
rounds = args.rounds or (1 if args.quick else 7)
perf = next((p for p in [shutil.which("perf"), *map(str, pathlib.Path("/usr/bin").glob("perf_*"))] if p), None)


def wall(*command, before=()):
    """What the workload says it took: without the start and end of whoever looks on."""
    done = subprocess.run([*before, *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"  {' '.join(before[:8])}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        return None
    return next(row["value"] for row in map(json.loads, filter(lambda line: line.startswith("{"), done.stdout.splitlines()))
                if row.get("name") == "wall_ms")


def recording(*options):
    pathlib.Path("b.whyslow").unlink(missing_ok=True)
    return [whyslow, "record", *options, "-o", "b.whyslow", "--"]


def perf_sched():
    """Where tracefs is not mounted it is for perf alone, and for no longer."""
    inner = [perf, "sched", "record", "-o", os.path.abspath("perf.data"), "--"]
    if os.path.exists("/sys/kernel/tracing/events"):
        return inner
    return ["unshare", "--mount", "sh", "-c", 'mount -t tracefs none /sys/kernel/tracing && exec "$@"', "sh", *inner]


def alternate(command, ways, times=1):
    """Rounds of plain and of each way; returns the median ratio of each way."""
    plain, ratios = [], {name: [] for name in ways}
    for _ in range(rounds * times):
        plain.append(wall(*command))
        for name, before in ways.items():
            took = wall(*command, before=before())
            if took is not None:
                ratios[name].append(took / plain[-1])
            elif before is not perf_sched:  # the peer may be missing; we may not
                figures.miss()
    figure("plain", statistics.median(plain) / 1e3, "s")
    for name, values in ratios.items():
        if values:
            print(f"  {name}, rounds against plain: " + " ".join(f"{x:.3f}" for x in values))
    return {name: statistics.median(values) if values else None for name, values in ratios.items()}


def bench_pipe():
    count = 5000 if args.quick else 200000
    print(f"{count} round trips between two processes through pipes")
    sizes = {}

    def whyslow_way():
        return recording("--offcpu")

    ways = {"whyslow record --offcpu": whyslow_way}
    if perf:
        ways["perf sched record"] = perf_sched
    result = alternate([calls, "ping", str(count)], ways)
    figure("slowdown with --offcpu", result["whyslow record --offcpu"], "x", 1.25)
    if os.path.exists("b.whyslow"):
        sizes["whyslow"] = os.path.getsize("b.whyslow")
        figure("recording", sizes["whyslow"] / 1e6, "MB")
    if result.get("perf sched record") and os.path.exists("perf.data"):
        sizes["perf"] = os.path.getsize("perf.data")
        figure("slowdown with perf sched record", result["perf sched record"], "x")
        figure("perf.data", sizes["perf"] / 1e6, "MB")
        figure("recording of perf's file", sizes["whyslow"] / sizes["perf"], "", None if args.quick else 0.02)
    user = alternate([calls, "ping", str(count)], {"--tier user": lambda: recording("--offcpu", "--tier", "user")})
    figure("slowdown with --offcpu, user tier", user["--tier user"], "x")


def bench_mutex():
    count = 50000 if args.quick else 2000000
    print(f"8 threads on one mutex, {count} acquisitions")
    result = alternate([threads, "fight", "8", str(count)], {
        "kernel tier": lambda: recording("--locks", "--tier", "kernel"),
        "user tier": lambda: recording("--locks", "--tier", "user")}, times=1 if args.quick else 3)  # they are short
    for tier, value in result.items():
        figure(f"slowdown with --locks, {tier}", value, "x", 1.3)


def loss(rate_of, pid):
    """Throughput plain and recorded by turns on one running server; the median loss in percent."""
    losses = []
    rate_of()  # warm
    for number in range(rounds):
        def recorded():
            pathlib.Path("s.whyslow").unlink(missing_ok=True)
            recorder = subprocess.Popen([whyslow, "record", "--offcpu", "--locks", "-p", str(pid), "-o", "s.whyslow"],
                                        stderr=subprocess.DEVNULL)
            try:
                end = time.monotonic() + 30
                while not os.path.exists("s.whyslow") and recorder.poll() is None and time.monotonic() < end:
                    time.sleep(0.05)
                time.sleep(0.5)
                assert recorder.poll() is None, "the recorder has ended"
                return rate_of()
            finally:
                recorder.send_signal(server_tools.signal.SIGINT)
                recorder.wait(timeout=60)

        # Who comes first changes: what warms up or drifts must not be taken for a cost.
        if number % 2:
            under, plain = recorded(), rate_of()
        else:
            plain, under = rate_of(), recorded()
        losses.append((1 - under / plain) * 100)
    print("  rounds, loss: " + " ".join(f"{x:+.1f}%" for x in losses))
    return statistics.median(losses)


def bench_redis():
    print("redis-server under redis-benchmark, 8 clients")
    if not server_tools.Redis.there():
        print(f"  n/a: not installed: {server_tools.Redis.missing}")
        return
    with server_tools.Redis(pathlib.Path("redis").absolute()) as redis:
        def rate():
            text, _ = redis.benchmark(20000 if args.quick else 400000).communicate(timeout=300)
            return float(re.search(r'^"SET","([0-9.]+)"', text, re.M).group(1))

        figure("loss of throughput", loss(rate, redis.pid), "%", 10)


def bench_postgresql():
    print("PostgreSQL under pgbench, 8 clients, one branch")
    if not server_tools.PostgreSQL.there():
        print(f"  n/a: not installed: {server_tools.PostgreSQL.missing}")
        return
    with server_tools.PostgreSQL(pathlib.Path("pg").absolute()) as server:
        def rate():
            text, _ = server.benchmark(seconds=2 if args.quick else 10).communicate(timeout=300)
            return float(re.search(r"^tps = ([0-9.]+)", text, re.M).group(1))

        figure("loss of throughput", loss(rate, server.pid), "%", 10)


with tempfile.TemporaryDirectory(prefix="whyslow-bench-") as name_of_folder:
    os.chmod(name_of_folder, 0o755)
    os.chdir(name_of_folder)
    os.environ["HOME"] = name_of_folder
    if not perf:
        print("perf is not installed (package linux-perf): no peer beside")
    for part in args.only.split(","):
        globals()["bench_" + part]()
print("waits bench:", "MISS" if figures.missed else "pass")
sys.exit(1 if figures.missed else 0)
