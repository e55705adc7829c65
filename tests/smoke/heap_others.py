#!/usr/bin/python3
"""Memory of programs that bring their own allocator, of real ones, and in samples.

    heap_others.py CASE WHYSLOW KNOWN
"""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import heap_tools  # noqa: E402
from heap_tools import KNOWN_ARGS, SOURCES, Heap, compare, compiled, nobody, record, skip  # noqa: E402
import server_tools  # noqa: E402

case = sys.argv[1]
whyslow, known = map(os.path.abspath, sys.argv[2:4])
Heap.whyslow = whyslow
USER = ("--tier", "user")
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
ENTRIES = ("malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc")


def library(name):
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"{re.escape(ALLOCATORS[name])} .*=> (\S+)", listed)
    if not found:
        skip(f"{name} is not installed")
    return found.group(1)


def lacks(path):
    """What it has no function for: libc's would give memory that its free() does not know."""
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    there = set(re.findall(r" [TWi] (\w+)", listed))
    return ",".join(["cfree"] + [name for name in ENTRIES if name not in there and name != "reallocarray"])


def truth(**more):
    pathlib.Path("truth").unlink(missing_ok=True)
    return {"KNOWN_TRUTH": os.path.abspath("truth"), **more}


def of_allocator(name):
    path = library(name)
    linked = compiled("linked", *KNOWN_ARGS, SOURCES / "heap_known.c", "-Wl,--no-as-needed", path)
    for how, program, more in (("preloaded", known, {"LD_PRELOAD": path}), ("linked", linked, {})):
        for words in (("entries",), ("threads", "16", "50"), ("peak",)):
            print(how, *words)
            record(whyslow, program, *words, options=USER, env=truth(KNOWN_SKIP=lacks(path), **more))
            compare(whyslow)


def case_jemalloc():
    of_allocator("jemalloc")


def case_mimalloc():
    of_allocator("mimalloc")


def case_tcmalloc():
    of_allocator("tcmalloc")


OWN = """
#define _GNU_SOURCE
#include <string.h>
#include <stddef.h>
#include <sys/mman.h>
static char *at, *end;
void *malloc(size_t size)
{
    size = (size + 31) / 16 * 16;
    if (!at || at + size > end) {
        at = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = at + (64 << 20);
    }
    char *memory = at + 16;
    *(size_t *)at = size;
    at += size;
    return memory;
}
void free(void *memory) { (void)memory; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *old, size_t size)
{
    char *memory = malloc(size);
    if (old) memcpy(memory, old, *(size_t *)((char *)old - 16) < size ? *(size_t *)((char *)old - 16) : size);
    return memory;
}
"""


def case_own():
    """Defined in the program: no library sees it, the kernel does; without it that is said."""
    pathlib.Path("own.c").write_text(OWN)
    own = compiled("own", *KNOWN_ARGS, "-fno-builtin", SOURCES / "heap_known.c", "own.c")
    words = record(whyslow, own, "peak", options=USER, status=4, env=truth()).stderr
    assert "malloc" in words and "try: " in words and not os.path.exists("r.whyslow"), words
    if os.geteuid() != 0:
        skip("the kernel tier needs root")
    record(whyslow, own, "peak", env=truth())
    compare(whyslow)


# ---- real programs: the same as alone ----

SQL = """create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
  insert into t select i, hex(i * 7919 % 10007) || 'x' || i, i / 7.0 from n;
create index tb on t(b);
select count(*), sum(a), group_concat(b) from (select * from t where b like '3%' order by b limit 500);
select a % 97 as k, count(*), max(b) from t group by k order by 2 desc, 1 limit 20;
select nonsense from t;
"""
PYTHON = """
import json, re, sys
rows = [{"id": i, "name": f"row {i}", "tags": [str(i % k) for k in range(1, 9)]} for i in range(20000)]
text = json.dumps(rows)
words = {}
for word in re.findall(r"\\w+", text):
    words[word] = words.get(word, 0) + 1
print(len(text), sorted(words.items(), key=lambda kv: (-kv[1], kv[0]))[:10])
print(sorted(json.loads(text), key=lambda row: row["name"])[100])
sys.exit(9)
"""
SOURCE = "".join(f"int f{i}(int a, int b) {{ int s = 0; for (int i = 0; i < a; i++) s += (i ^ b) * {i + 1}; "
                 f"return s > {i} ? s : f{i - 1 if i else 0}(b, s); }}\n" for i in range(400))


def same_as_alone(*command, status=0, outputs=(), **more):
    """What it says, how it ends and what it writes; and something was counted."""
    def run(before):
        for output in outputs:
            pathlib.Path(output).unlink(missing_ok=True)
        done = subprocess.run([*before, *command], capture_output=True, check=False, timeout=heap_tools.PATIENCE_S, **more)
        return done.returncode, done.stdout, done.stderr, [pathlib.Path(output).read_bytes() for output in outputs]

    alone = run(())
    assert alone[0] == status, alone
    recorded = run((whyslow, "record", "--heap", *USER, "-o", "r.whyslow", "--"))
    said = recorded[2][:len(alone[2])]  # what whyslow says comes behind
    assert recorded[:2] == alone[:2] and said == alone[2] and recorded[3] == alone[3], (alone, recorded)
    heap = Heap("r.whyslow")
    heap.nothing_lost()
    told = heap_tools.report(whyslow)
    print(command[0], {name: told[name] for name in ("allocations", "frees", "peak_bytes", "leaked_bytes", "temporary")})
    assert not heap_tools.compare_report(heap, told)
    assert heap.total("allocations") > 100 and heap.total("frees") <= heap.total("allocations")
    unknown = sum(row["allocations"] for row in heap.sites if len(heap.names(row["stack"])) < 3)
    assert unknown < heap.total("allocations") / 50, (unknown, heap.total("allocations"))
    return heap


def need_program(name):
    if not shutil.which(name):
        skip(f"{name} is not installed")


def case_sqlite3():
    need_program("sqlite3")
    same_as_alone("sqlite3", ":memory:", input=SQL.encode(), status=1)


def case_python3():
    same_as_alone(sys.executable, "-c", PYTHON, status=9, env={**os.environ, "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "1"})


def case_gcc():
    """A driver that starts the compiler and the assembler: all in one recording."""
    need_program("gcc")
    pathlib.Path("big.c").write_text(SOURCE)
    gcc = "/usr/bin/gcc" if os.path.exists("/usr/bin/gcc") else "gcc"  # not what remembers compilations
    heap = same_as_alone(gcc, "-O2", "-c", "-o", "big.o", "big.c", outputs=["big.o"])
    programs = {row["exe"].rpartition("/")[2] for row in heap.db.execute("SELECT exe FROM process WHERE id IN"
                " (SELECT process FROM heap_process)")}
    assert len(programs) >= 3 and "cc1" in programs, programs


def case_redis():
    """A server under load: what it answers, and its own figure of what lives."""
    if not server_tools.Redis.there():
        skip(f"not installed: {server_tools.Redis.missing}")
    path, (ours,) = os.path.abspath("r.whyslow"), heap_tools.copied(whyslow)

    class Recorded(server_tools.Redis):
        def spawn(self, *command):
            super().spawn(ours, "record", "--heap", *USER, "-o", path, "--", *command)

    with Recorded(os.path.abspath("redis")) as redis:
        text, _ = redis.benchmark(20000).communicate(timeout=heap_tools.PATIENCE_S)
        assert re.search(r'^"SET","([0-9.]+)"', text, re.M), text
        summed = redis.ask("redis-cli", "-s", redis.socket, "eval", "local s = 0 for i = 1, 1000 do s = s + i end return s", "0")
        assert summed == "500500\n", summed
        subprocess.run(["redis-cli", "-s", redis.socket, "shutdown", "nosave"], check=False, capture_output=True)
        assert redis.process.wait(timeout=heap_tools.PATIENCE_S) == 0
    told = heap_tools.report(whyslow)
    print({name: told[name] for name in ("allocations", "frees", "peak_bytes", "leaked_bytes")})
    assert told["allocations"] > 20000, told


def case_heaptrack():
    """Another tool's totals of the same run. It brings the C++ library along, which takes 72,704 bytes
    in one piece, and a few calls more."""
    need_program("heaptrack")
    need_program("sqlite3")
    done = subprocess.run(["heaptrack", "-o", os.path.abspath("h"), "sqlite3", ":memory:"], input=SQL, capture_output=True,
                          text=True, check=False, timeout=heap_tools.PATIENCE_S)
    calls, leaked = (int(re.search(rf"{name}:\s+(\d+)", done.stdout + done.stderr).group(1))
                     for name in ("\tallocations", "leaked allocations"))
    printed = subprocess.run(["heaptrack_print", "h.zst"], capture_output=True, text=True, check=False).stdout
    peak = float(re.search(r"peak heap memory consumption: ([0-9.]+)M", printed).group(1)) * 1e6
    subprocess.run([whyslow, "record", "--heap", *USER, "-o", "r.whyslow", "--", "sqlite3", ":memory:"], input=SQL, text=True,
                   capture_output=True, check=False, timeout=heap_tools.PATIENCE_S)
    told = heap_tools.report(whyslow)
    print(calls, leaked, peak, {name: told[name] for name in ("allocations", "leaked_count", "peak_bytes")})
    assert 0 <= calls - told["allocations"] <= 8 and 0 <= leaked - told["leaked_count"] <= 4
    assert abs(peak - 72704 - told["peak_bytes"]) <= 10000, "it prints three digits"


# ---- in samples ----

def case_sampled():
    """Twenty runs over 2 GiB: each within its interval, all within 5%."""
    totals, outside = [], 0
    for seed in range(20):
        record(whyslow, known, "large", "2", str(seed + 1), options=("--sample", "512KiB", *USER), env=truth())
        told = heap_tools.report(whyslow)
        site = heap_tools.account()[0]["sites"]["known_malloc"]
        error = told["allocated_bytes"] / site["allocated_bytes"] - 1
        heap = Heap("r.whyslow")
        # sqrt of the summed variance, twice: 95 in 100 lie inside.
        sigma = math.sqrt(sum(row["variance"] for row in heap.sites))
        outside += abs(told["allocated_bytes"] - site["allocated_bytes"]) > 1.96 * sigma
        totals.append(error)
        samples = sum(row["samples"] for row in heap.sites)
        assert 0.8 < samples / (site["allocated_bytes"] / (512 << 10)) < 1.2, samples
        counted = told["allocations"] / site["allocations"] - 1
        print(f"bytes {error:+.2%}, calls {counted:+.2%}, one sigma {sigma / site['allocated_bytes']:.2%}, {samples} samples")
    mean = sum(totals) / len(totals)
    print(f"mean {mean:+.2%}, worst {max(map(abs, totals)):.2%}, outside of their intervals {outside}")
    # About 4500 samples each: one sigma is some 1.2%; 5% is four of them.
    assert max(map(abs, totals)) < 0.05, totals
    assert abs(mean) < 0.012, mean
    assert outside <= 5, outside


def case_sampled_leak():
    """What leaks is found in samples, too, and never frees more than was allocated."""
    # Some 225 pieces of 100 bytes are never given back; that none of them is a sample is one in e^45.
    record(whyslow, known, "peak", options=("--sample", "512B", *USER), env=truth())
    heap = Heap("r.whyslow")
    assert 0 < heap.total("freed_bytes") < heap.total("allocated_bytes")
    truths = heap_tools.account()
    told = heap.by_owner(truths[0]["pid"])
    left = {name for name, sums in told.items() if name and sums["freed_bytes"] < sums["allocated_bytes"]}
    assert left == {name for name, site in truths[0]["sites"].items() if site["frees"] < site["allocations"]}, (left, told)


def case_snapshots():
    """What lives, now and then: memory that grows is seen growing."""
    code = ("import os, time\nkept = []\n"
            "for i in range(8):\n kept.append(bytearray(1 << 20))\n time.sleep(0.25)\n"
            "os._exit(0)\n")  # before it frees them
    record(whyslow, sys.executable, "-c", code, options=("--snapshot", "200ms", *USER),
           env={"PYTHONMALLOC": "malloc"})
    heap = Heap("r.whyslow")
    rows = heap.db.execute("SELECT snapshot, sum(bytes) AS bytes FROM heap_snapshot_row GROUP BY snapshot"
                           " ORDER BY snapshot").fetchall()
    sizes = [row["bytes"] for row in rows]
    print(sizes)
    assert len(sizes) >= 5 and all(b > a - 4096 for a, b in zip(sizes, sizes[1:])) and sizes[-1] - sizes[0] >= 4 << 20, sizes
    assert all(size <= max(row["peak_bytes"] for row in heap.processes) for size in sizes)


def case_script():
    """A program that is a script: its interpreter, and what that starts."""
    script = pathlib.Path("script.sh")
    script.write_text(f"#!/bin/sh\n{known} peak\n{known} growth\n")
    script.chmod(0o755)
    record(whyslow, "./script.sh", options=USER, env=truth())
    compare(whyslow)


def case_heap_command():
    """`whyslow heap -- CMD` in one go: counts every call, as nobody and as root."""
    for before in ([], nobody()):
        program, ours = heap_tools.copied(known, whyslow)
        done = subprocess.run([*before, ours, "heap", "--json", "--", program, "entries"], capture_output=True, text=True,
                              check=False, timeout=heap_tools.PATIENCE_S, env={**os.environ, **truth()})
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        os.chmod("truth", 0o666)
        sites = heap_tools.account()[0]["sites"].values()
        for field in ("allocations", "frees", "allocated_bytes", "temporary"):
            assert told[field] == sum(site[field] for site in sites), (field, told[field])
        leaked = sum(site["allocations"] - site["frees"] for site in sites)
        assert told["leaked_count"] == leaked and told["peak_bytes"] == heap_tools.account()[0]["peak_bytes"], told
        assert sum(site["allocations"] for site in told["sites"]) == told["allocations"], told["sites"]


IDLE = """#include <unistd.h>
int main(void)
{
    char c;
    write(1, "+", 1);
    return read(0, &c, 1) != 0;
}
"""


def case_nothing():
    """Nothing to conclude from is no failure of ours: status 3, with the reason, and no file is left."""
    pathlib.Path("idle.c").write_text(IDLE)
    idle = compiled("idle", "idle.c")
    program = None
    whats = [[*USER, "--", idle]]
    if os.geteuid() == 0:
        program = subprocess.Popen([idle], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert program.stdout.read(1) == b"+"
        whats.append(["-d", "0.2", "-p", str(program.pid)])
    try:
        for what in whats:
            for command in ("heap", "record --heap -o r.whyslow"):
                done = subprocess.run([whyslow, *command.split(), *what], capture_output=True, text=True, check=False,
                                      timeout=heap_tools.PATIENCE_S, stdin=subprocess.DEVNULL)
                print(command, what, done)
                if program and "-p" in what and done.returncode == 4:
                    skip("the kernel tier is not possible here")
                assert done.returncode == 3, done
                assert "no allocation was seen: " in done.stderr and "try: " in done.stderr, done.stderr
                assert not os.path.exists("r.whyslow")
    finally:
        if program:
            program.kill()
            program.wait()


def main():
    globals()["case_" + case.replace("-", "_")]()


heap_tools.in_folder(main)
