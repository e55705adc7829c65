#!/usr/bin/python3
"""What counting every allocation costs a target, beside heaptrack, in one run.

    bench/heap.py BUILD [--quick] [--rounds N] [--only tree,apart,threads,sqlite,python,gcc,redis,sampled,size,report]

Trees of small nodes, 20 deep, in one thread and in eight; real programs; samples; what the files
weigh; how long a report of 100 M events takes. Plain, ours and heaptrack's rounds alternate and
are all printed; medians are judged. A slowdown is time against plain ("x"); of real programs, on
which it is small, the time that is added to plain is compared instead. Programs tell themselves
what they took, without the start and end of whoever looks on. Run it on a quiet machine;
heaptrack, sqlite3, redis-server and redis-tools are optional.
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
from rounds import wall

import server_tools  # from tests/truth, where rounds has looked, too

PARTS = "tree,apart,threads,sqlite,python,gcc,redis,sampled,size,report"
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("build")
parser.add_argument("--quick", action="store_true", help="little work, one round: a smoke test")
parser.add_argument("--rounds", type=int, default=0)
parser.add_argument("--only", default=PARTS)
args = parser.parse_args()
build = pathlib.Path(args.build).resolve()
subprocess.run(["ninja", "-C", build, "--quiet", "whyslow", "bench/heap-work"], check=True)
whyslow = str(build / "whyslow")
work = str(build / "bench" / "heap-work")
rounds = args.rounds or (1 if args.quick else 5)
peer = shutil.which("heaptrack") is not None


def ours(*options):
    pathlib.Path("b.whyslow").unlink(missing_ok=True)
    return [whyslow, "record", "--heap", "--tier", "user", *options, "-o", "b.whyslow", "--"]


def sampled():
    return ours("--sample", "512KiB")


def heaptrack():
    pathlib.Path("h.zst").unlink(missing_ok=True)
    return ["heaptrack", "-o", os.path.abspath("h")]


def alternate(took, ways):
    """Rounds of plain and of each way; the ratios to the plain one of the same round."""
    plain, ratios = [], {name: [] for name in ways}
    for number in range(rounds):
        # Who comes first changes: what warms up must not be taken for a cost.
        turns = list(ways.items())[::-1 if number % 2 else 1]
        base = took([])
        plain.append(base)
        for name, before in turns:
            value = took(before())
            if value is not None:
                ratios[name].append(value / base)
            elif name != "heaptrack":
                figures.miss()
    figure("plain", statistics.median(plain) / 1e3, "s")
    for name, values in ratios.items():
        if values:
            print(f"  {name}, rounds against plain: " + " ".join(f"{x:.3f}" for x in values))
    return {name: statistics.median(values) if values else None for name, values in ratios.items()}


def beside_heaptrack(took, part_of_theirs, added=False):
    result = alternate(took, {"exact": ours, **({"heaptrack": heaptrack} if peer else {})})
    figure("slowdown, every call counted", result["exact"], "x")
    theirs = result.get("heaptrack")
    if theirs is None:
        print("  heaptrack is not installed or failed: no peer beside")
        return
    figure("slowdown with heaptrack", theirs, "x")
    figure("our slowdown of heaptrack's", result["exact"] / theirs, "", None if added else part_of_theirs)
    if theirs < 1.02:
        print("  heaptrack adds too little to be compared with")
        return
    figure("time we add of what heaptrack adds", (result["exact"] - 1) / (theirs - 1), "", part_of_theirs if added else None)


def of_work(*words):
    return lambda before: wall(work, *words, before=before)


def bench_tree():
    print("trees of a million small nodes, 20 deep")
    beside_heaptrack(of_work("tree", "1" if args.quick else "10"), 1 / 8)


def bench_apart():
    print("the same, and every node has a stack of its own")
    beside_heaptrack(of_work("apart", "1" if args.quick else "10"), 1 / 8)


def bench_threads():
    print("eight threads that build small trees at once")
    beside_heaptrack(of_work("threads", "8", "20" if args.quick else "200"), 1 / 10)


SQL = """.timer on
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
  insert into t select i, hex(i * 7919 % 10007) || 'x' || i, i / 7.0 from n;
create index tb on t(b);
select count(*), sum(length(g)) from (select a % 997 as k, group_concat(b) as g from t group by k);
select count(*) from t as x join t as y on y.b = x.b where x.a % 3 = 0;
select count(*), max(u) from (select upper(b) || lower(b) as u from t order by u desc);
"""


def sqlite_took(before):
    """What its own clock says, statement by statement."""
    done = subprocess.run([*before, "sqlite3", "-batch", ":memory:"], capture_output=True, text=True, check=False,
                          input=SQL.format(rows=20000 if args.quick else 400000))
    times = re.findall(r"Run Time: real ([0-9.]+)", done.stdout)
    return sum(map(float, times)) * 1e3 if len(times) == 6 else None


PYTHON = """
import json, re, time
begin = time.perf_counter()
for _ in range({times}):
    rows = [{{"id": i, "name": f"row {{i}}", "tags": [str(i % k) for k in range(1, 9)]}} for i in range(20000)]
    text = json.dumps(rows)
    words = {{}}
    for word in re.findall(r"\\w+", text):
        words[word] = words.get(word, 0) + 1
    back = sorted(json.loads(text), key=lambda row: row["name"])
print(json.dumps({{"name": "wall_ms", "value": (time.perf_counter() - begin) * 1e3}}))
"""


def python_took(before):
    return wall("/usr/bin/python3", "-c", PYTHON.format(times=1 if args.quick else 10), before=before)


def gcc_took(before):
    """The compiler itself: heaptrack does not follow what the driver starts."""
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    functions = 60 if args.quick else 600
    if not os.path.exists("big.c"):
        pathlib.Path("big.c").write_text("".join(
            f"int f{i}(int a, int b) {{ int s = 0; for (int i = 0; i < a; i++) s += (i ^ b) * {i + 1}; "
            f"return s > {i} ? s : f{max(i - 1, 0)}(b, s); }}\n" for i in range(functions)))
    done = subprocess.run([*before, cc1, "-quiet", "-O2", "-ftime-report", "big.c", "-o", "big.s"], capture_output=True,
                          text=True, check=False)
    total = re.search(r"TOTAL\s*:\s*[0-9.]+\s+[0-9.]+\s+([0-9.]+)", done.stderr)
    return float(total.group(1)) * 1e3 if total else None


def bench_sqlite():
    print("sqlite3 on a large script")
    if shutil.which("sqlite3"):
        beside_heaptrack(sqlite_took, 1 / 4, added=True)
    else:
        print("  n/a: not installed: sqlite3")


def bench_python():
    print("python3 on a script")
    beside_heaptrack(python_took, 1 / 4, added=True)


def bench_gcc():
    print("gcc compiling (cc1)")
    beside_heaptrack(gcc_took, 1 / 4, added=True)


class UnderTool(server_tools.Redis):
    """A server that was started by whoever looks on."""

    def __init__(self, folder, before):
        self.before = before
        super().__init__(folder)
        self.who = []  # the files of tools lie in our folder

    def spawn(self, *command):
        super().spawn(*self.before, *command)

    def stop(self):
        subprocess.run(["redis-cli", "-s", self.socket, "shutdown", "nosave"], check=False, capture_output=True)
        self.process.wait(timeout=300)


def redis_took(before):
    """Milliseconds for a million requests, of the median of three loads on one server."""
    shutil.rmtree("redis", ignore_errors=True)
    with UnderTool(os.path.abspath("redis"), before) as redis:
        rates = []
        for _ in range(1 if args.quick else 3):
            text, _ = redis.benchmark(10000 if args.quick else 200000).communicate(timeout=600)
            rates.append(float(re.search(r'^"SET","([0-9.]+)"', text, re.M).group(1)))
        redis.stop()
    return 1e9 / statistics.median(rates)


def bench_redis():
    print("redis-server under redis-benchmark, 8 clients")
    if server_tools.Redis.there():
        beside_heaptrack(redis_took, 1 / 4, added=True)
    else:
        print(f"  n/a: not installed: {server_tools.Redis.missing}")


def bench_sampled():
    print("samples of 512 KiB")
    for name, took in (("sqlite3", sqlite_took), ("python3", python_took)):
        if not shutil.which(name):
            continue
        result = alternate(took, {"sampled": sampled})
        figure(f"slowdown of {name}", (result["sampled"] - 1) * 100, "%", 2)
    result = alternate(of_work("tree", "1" if args.quick else "10"), {"sampled": sampled})
    figure("slowdown of trees", (result["sampled"] - 1) * 100, "%")


def bench_size():
    print("what the recording weighs, of the trees and of sqlite3")
    for name, took in (("trees", of_work("tree", "1" if args.quick else "10")), ("sqlite3", sqlite_took)):
        took(ours())
        mine = os.path.getsize("b.whyslow")
        figure(f"{name}: ours", mine / 1024, "KiB")
        if peer:
            took(heaptrack())
            theirs = os.path.getsize("h.zst")
            figure(f"{name}: heaptrack's", theirs / 1024, "KiB")
            figure(f"{name}: ours of heaptrack's", mine / theirs, "", 1 / 20)


def bench_report():
    pairs = 500000 if args.quick else 50000000
    print(f"a report of {2 * pairs / 1e6:g} M events")
    wall(work, "events", str(pairs), before=ours())
    times, peaks = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        pid = os.posix_spawn(whyslow, [whyslow, "heap", "--json", "b.whyslow"], os.environ,
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, "told.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
        _, status, usage = os.wait4(pid, 0)
        times.append(time.perf_counter() - begin)
        peaks.append(usage.ru_maxrss / 1024)
        figures.miss(status != 0)
    print("  rounds: " + " ".join(f"{x:.3f} s" for x in times))
    figure("report", statistics.median(times), "s", 1)
    figure("memory of the report", statistics.median(peaks), "MiB", 100)
    told = json.loads(pathlib.Path("told.json").read_text())
    figure("calls in it", told["allocations"] + told["frees"], "")
    figures.miss(told["allocations"] < pairs)


with tempfile.TemporaryDirectory(prefix="whyslow-bench-") as name_of_folder:
    os.chmod(name_of_folder, 0o755)
    os.chdir(name_of_folder)
    os.environ["HOME"] = name_of_folder
    for part in args.only.split(","):
        globals()["bench_" + part]()
    os.chdir("/")
print("heap bench:", "MISS" if figures.missed else "pass")
sys.exit(1 if figures.missed else 0)
