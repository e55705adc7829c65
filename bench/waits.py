#!/usr/bin/python3
"""What recording waits and locks costs a target, beside perf sched record, in one run.

    bench/waits.py BUILD [--quick] [--rounds N] [--only pipe,mutex,redis,postgresql]

Round trips between two processes through pipes; 8 threads on one mutex; throughput of
redis-server and PostgreSQL. Plain and recorded rounds alternate, medians of their ratios are
judged. Run it as root on a quiet machine; perf (package linux-perf), redis-server, redis-tools,
postgresql and postgresql-contrib are optional.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import figures
from figures import figure
from rounds import alternate, loss

import server_tools  # from tests/truth, where rounds has looked, too

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


def recording(*options):
    pathlib.Path("b.whyslow").unlink(missing_ok=True)
    return [whyslow, "record", *options, "-o", "b.whyslow", "--"]


def perf_sched():
    """Where tracefs is not mounted it is for perf alone, and for no longer."""
    inner = [perf, "sched", "record", "-o", os.path.abspath("perf.data"), "--"]
    if os.path.exists("/sys/kernel/tracing/events"):
        return inner
    return ["unshare", "--mount", "sh", "-c", 'mount -t tracefs none /sys/kernel/tracing && exec "$@"', "sh", *inner]


def bench_pipe():
    count = 5000 if args.quick else 200000
    print(f"{count} round trips between two processes through pipes")
    sizes = {}

    def whyslow_way():
        return recording("--offcpu")

    ways = {"whyslow record --offcpu": whyslow_way}
    if perf:
        ways["perf sched record"] = perf_sched
    result = alternate([calls, "ping", str(count)], ways, rounds, peers=("perf sched record",))
    figure("slowdown with --offcpu", result["whyslow record --offcpu"], "x", 1.25)
    if os.path.exists("b.whyslow"):
        sizes["whyslow"] = os.path.getsize("b.whyslow")
        figure("recording", sizes["whyslow"] / 1e6, "MB")
    if result.get("perf sched record") and os.path.exists("perf.data"):
        sizes["perf"] = os.path.getsize("perf.data")
        figure("slowdown with perf sched record", result["perf sched record"], "x")
        figure("perf.data", sizes["perf"] / 1e6, "MB")
        figure("recording of perf's file", sizes["whyslow"] / sizes["perf"], "", None if args.quick else 0.02)
    user = alternate([calls, "ping", str(count)], {"--tier user": lambda: recording("--offcpu", "--tier", "user")},
                     rounds)
    figure("slowdown with --offcpu, user tier", user["--tier user"], "x")


def bench_mutex():
    count = 50000 if args.quick else 2000000
    print(f"8 threads on one mutex, {count} acquisitions")
    result = alternate([threads, "fight", "8", str(count)], {
        "kernel tier": lambda: recording("--locks", "--tier", "kernel"),
        "user tier": lambda: recording("--locks", "--tier", "user")}, rounds if args.quick else 3 * rounds)  # they are short
    for tier, value in result.items():
        figure(f"slowdown with --locks, {tier}", value, "x", 1.3)


def server_loss(rate_of, pid):
    figure("loss of throughput", loss(rate_of, [whyslow, "record", "--offcpu", "--locks", "-p", str(pid), "-o",
                                                "s.whyslow"], rounds), "%", 10)


def bench_redis():
    print("redis-server under redis-benchmark, 8 clients")
    if not server_tools.Redis.there():
        print(f"  n/a: not installed: {server_tools.Redis.missing}")
        return
    with server_tools.Redis(pathlib.Path("redis").absolute()) as redis:
        def rate():
            text, _ = redis.benchmark(20000 if args.quick else 400000).communicate(timeout=300)
            return float(re.search(r'^"SET","([0-9.]+)"', text, re.M).group(1))

        server_loss(rate, redis.pid)


def bench_postgresql():
    print("PostgreSQL under pgbench, 8 clients, one branch")
    if not server_tools.PostgreSQL.there():
        print(f"  n/a: not installed: {server_tools.PostgreSQL.missing}")
        return
    with server_tools.PostgreSQL(pathlib.Path("pg").absolute()) as server:
        def rate():
            text, _ = server.benchmark(seconds=2 if args.quick else 10).communicate(timeout=300)
            return float(re.search(r"^tps = ([0-9.]+)", text, re.M).group(1))

        server_loss(rate, server.pid)


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
