#!/usr/bin/python3
"""What recording I/O costs a target, beside strace -c, in one run.

    bench/io.py BUILD [--quick] [--rounds N] [--only reads,blocks,names,redis,nginx]

A million one-byte reads; a program that reads 2 GiB in blocks of 64 KiB; find over 100,000 names,
where nearly each call is about another one; throughput of redis-server under redis-benchmark and of
nginx under wrk with every request decoded. Plain and recorded rounds alternate, medians of their
ratios are judged. Run it as root on a quiet machine; strace, redis-server, redis-tools, nginx-light
and wrk are optional.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import figures
from figures import figure
from rounds import alternate, loss, wall

import io_tools  # from tests/truth, where rounds has looked, too
import server_tools

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("build")
parser.add_argument("--quick", action="store_true", help="little work, one round: a smoke test")
parser.add_argument("--rounds", type=int, default=0)
parser.add_argument("--only", default="reads,blocks,names,redis,nginx")
args = parser.parse_args()
build = pathlib.Path(args.build).resolve()
subprocess.run(["ninja", "-C", build, "--quiet", "whyslow", "tests/workloads/io-known"], check=True)
whyslow = str(build / "whyslow")
known = str(build / "tests" / "workloads" / "io-known")
rounds = args.rounds or (1 if args.quick else 7)


def recording(*options):
    pathlib.Path("b.whyslow").unlink(missing_ok=True)
    return [whyslow, "record", "--io", *options, "-o", "b.whyslow", "--"]


def bench_reads():
    count = 20000 if args.quick else 1000000
    print(f"{count} one-byte reads")
    result = alternate([known, "reads", str(count)], {
        "counts and latencies": lambda: recording("--no-io-stacks"),
        "a stack for every call": recording,
        "user tier": lambda: recording("--tier", "user")}, rounds)
    figure("slowdown with counts and latencies", result["counts and latencies"], "x", 3)
    figure("slowdown with a stack for every call", result["a stack for every call"], "x", 4)
    figure("slowdown in the user tier", result["user tier"], "x")
    if not shutil.which("strace"):
        print("  strace is not installed: no peer beside")
        return
    few = count // 10  # it takes long
    plain = wall(known, "reads", str(few))
    strace = wall(known, "reads", str(few), before=["strace", "-c", "-f", "-o", "/dev/null"]) / plain
    figure("slowdown with strace -c", strace, "x")
    figure("our slowdown with counts of strace's", result["counts and latencies"] / strace, "", 1 / 40)
    figure("our slowdown with stacks of strace's", result["a stack for every call"] / strace, "", 1 / 40)


def bench_blocks():
    mib = 64 if args.quick else 2048
    print(f"{mib} MiB read in blocks of 64 KiB, from the page cache")
    with open("large.dat", "wb") as file:
        for _ in range(mib):
            file.write(bytes(1 << 20))
    result = alternate([known, "blocks", "large.dat", "64"], {"with --io": recording}, rounds)
    figure("slowdown", (result["with --io"] - 1) * 100, "%", 3)
    os.unlink("large.dat")


def bench_names():
    folders = 50 if args.quick else 1000
    print(f"find over {folders} folders of 100 names each")
    tree = io_tools.tree_make(pathlib.Path("tree").absolute(), folders, 100)
    result = alternate(io_tools.walk(tree), {
        "with --io": recording,
        "user tier": lambda: recording("--tier", "user"),
        **({"strace -c": lambda: ["strace", "-c", "-f", "-o", "/dev/null"]} if shutil.which("strace") else {})},
        rounds, peers=("strace -c",))
    figure("slowdown", result["with --io"], "x", 3)
    figure("slowdown in the user tier", result["user tier"], "x")
    if not result.get("strace -c"):
        print("  strace is not installed, or fails: no peer beside")
        return
    figure("slowdown with strace -c", result["strace -c"], "x")
    figure("our slowdown of strace's", result["with --io"] / result["strace -c"], "", 1 / 4)


def server_loss(rate_of, pid):
    figure("loss of throughput", loss(rate_of, [whyslow, "record", "--io", "-p", str(pid), "-o", "s.whyslow"], rounds),
           "%", 15)
    done = subprocess.run([whyslow, "io", "--json", "--requests", "s.whyslow"], capture_output=True, text=True, check=True)
    seen = sum(row["count"] for row in json.loads(done.stdout)["requests"])
    figure("requests decoded in the last round", seen, "")
    figures.miss(seen == 0)


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


def bench_nginx():
    print("nginx under wrk, 8 connections")
    if not server_tools.Nginx.there() or not shutil.which("wrk"):
        print(f"  n/a: not installed: {server_tools.Nginx.missing}, wrk")
        return
    with server_tools.Nginx(pathlib.Path("nginx").absolute()) as nginx:
        worker = int(subprocess.run(["pgrep", "-P", str(nginx.pid)], capture_output=True, text=True,
                                    check=True).stdout.split()[0])

        def rate():
            text, _ = nginx.background("wrk", "-t", "1", "-c", "8", "-d", "1" if args.quick else "5",
                                       f"{nginx.url}/index.html").communicate(timeout=300)
            return float(re.search(r"^Requests/sec:\s+([0-9.]+)", text, re.M).group(1))

        server_loss(rate, worker)


with tempfile.TemporaryDirectory(prefix="whyslow-bench-") as name_of_folder:
    os.chmod(name_of_folder, 0o755)
    os.chdir(name_of_folder)
    os.environ["HOME"] = name_of_folder
    for part in args.only.split(","):
        globals()["bench_" + part]()
print("io bench:", "MISS" if figures.missed else "pass")
sys.exit(1 if figures.missed else 0)
