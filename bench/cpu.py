#!/usr/bin/python3
"""whyslow record beside perf record --call-graph dwarf, in one run, on real programs.

    bench/cpu.py BUILD [--quick] [--rounds N] [--script-limit S]

Programs, each of some 15 s, so that what a recording costs once does not decide: gcc's cc1 -O2 on a generated C file of 3,000 functions, a C++ program, a Go (else a Rust)
program. Of each: wall time plain, under whyslow and under perf, interleaved; whyslow's own CPU
time; sizes; complete stacks; the time from the end of the target to the printed table against
that of `perf script`. Run it on a quiet machine; perf (package linux-perf) is optional.
"""

import argparse
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import figures
from figures import figure

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("build")
parser.add_argument("--quick", action="store_true", help="small programs, one round: a smoke test")
parser.add_argument("--rounds", type=int, default=0)
parser.add_argument("--script-limit", type=int, default=0, metavar="S",
                    help="end perf script after S seconds (default 900); its time is a lower bound then")
args = parser.parse_args()
whyslow = os.path.abspath(os.path.join(args.build, "whyslow"))
rounds = args.rounds or (1 if args.quick else 5)
perf = next((p for p in [shutil.which("perf"), *map(str, pathlib.Path("/usr/bin").glob("perf_*"))] if p), None)


def c_source(functions):
    pick = random.Random(1)
    parts = []
    for i in range(functions):
        call = f" + f{pick.randint(0, i - 1)}(s, p, d)" if i else ""
        parts.append(
            f"int f{i}(int x, int *p, double d) {{ int s = x;\n"
            f"  for (int i = 0; i < {pick.randint(3, 40)}; i++) {{ s += p[i % {pick.randint(2, 9)}] * {pick.randint(1, 99)};\n"
            f"    if (s > {pick.randint(100, 9999)}) s -= (int)(d * {pick.random():.4f}); else s ^= {pick.randint(1, 999)}; }}\n"
            f"  switch (s & 7) {{ case 0: s += {i}; break; case 1: s *= 3; break; case 2: s -= p[0];\n"
            f"    case 3: s++; break; default: s += x; }}\n  return s{call}; }}\n")
    return "".join(parts)


CPP = """
#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
int main(int argc, char **argv) {
    std::mt19937 random(1);
    long rounds = argc > 1 ? std::stol(argv[1]) : 1, sum = 0;
    std::regex word("(a+)(b*)c");
    for (long r = 0; r < rounds; r++) {
        std::vector<std::string> words;
        for (int i = 0; i < 20000; i++) words.push_back(std::to_string(random()));
        std::sort(words.begin(), words.end(), [](auto &a, auto &b) { return a.back() != b.back() ? a.back() < b.back() : a < b; });
        std::map<std::string, int> tree;
        std::unordered_map<std::string, int> hash;
        for (auto &w : words) { tree[w]++; hash[w] += 2; }
        for (int i = 0; i < 2000; i++) sum += std::regex_search("xxaab" + words[i] + "aabbc", word);
        sum += tree.size() + hash.size();
    }
    std::cout << sum << "\\n";
}
"""

GO = """
package main
import ("fmt"; "os"; "sort"; "strconv"; "strings")
func work(n int) int {
	words := make([]string, 0, n)
	seed := uint32(1)
	for i := 0; i < n; i++ { seed = seed*1664525 + 1013904223; words = append(words, strconv.Itoa(int(seed))) }
	sort.Slice(words, func(a, b int) bool { return words[a] < words[b] })
	counts := map[string]int{}
	for _, w := range words { counts[w[:3]] += len(strings.Repeat(w, 2)) }
	return len(counts)
}
func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	sum := 0
	for i := 0; i < rounds; i++ { sum += work(50000) }
	fmt.Println(sum)
}
"""


def programs(folder):
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    (folder / "big.c").write_text(c_source(300 if args.quick else 3000))
    yield "cc1 -O2", [cc1, "-quiet", "-O2", str(folder / "big.c"), "-o", "/dev/null"]
    if shutil.which("g++"):
        (folder / "work.cpp").write_text(CPP)
        subprocess.run(["g++", "-O2", "-g", "-o", folder / "work", folder / "work.cpp"], check=True)
        yield "C++", [str(folder / "work"), "2" if args.quick else "700"]
    if shutil.which("go"):
        (folder / "work.go").write_text(GO)
        env = {**os.environ, "GOCACHE": str(folder / "gocache"), "GOFLAGS": "-mod=mod", "HOME": str(folder)}
        subprocess.run(["go", "build", "-o", folder / "work-go", folder / "work.go"], check=True, env=env)
        yield "Go", [str(folder / "work-go"), "3" if args.quick else "600"]


def timed(command, **more):
    """Wall time of the target itself, and from its end until the prompt comes back."""
    begin, end = pathlib.Path("begin"), pathlib.Path("end")
    begin.unlink(missing_ok=True)
    end.unlink(missing_ok=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
    done = time.clock_gettime(time.CLOCK_BOOTTIME)
    ended = float(end.read_text())
    return ended - float(begin.read_text()), max(done - ended, 0.001)


def wrapped(target):
    """The target between its begin and its end on the clock that Python reads."""
    look = 'cut -d" " -f1 /proc/uptime'
    return ["sh", "-c", f'{look} > begin; "$@"; r=$?; {look} > end; exit $r', "sh", *target]


def read_recording(path):
    db = sqlite3.connect(path)
    return dict(db.execute("SELECT name, value FROM counter"))


def measure(name, target):
    print(f"{name}: {' '.join(target[:1])}")
    plain, under, peer = [], [], []
    report = script = size = peer_size = counters = None
    for _ in range(rounds):
        plain.append(timed(wrapped(target))[0])
        pathlib.Path("a.whyslow").unlink(missing_ok=True)
        wall, after = timed([whyslow, "record", "-F", "999", "-o", "a.whyslow", "--", *wrapped(target)])
        under.append(wall / plain[-1])
        report = min(filter(None, [report, after]))
        size, counters = os.path.getsize("a.whyslow"), read_recording("a.whyslow")
        if perf:
            wall, after = timed([perf, "record", "-q", "-F", "999", "--call-graph", "dwarf,16384",
                                  "-o", "perf.data", "--", *wrapped(target)])
            peer.append(wall / plain[-1])
            peer_size = os.path.getsize("perf.data")
    if perf:
        start = time.monotonic()
        try:
            subprocess.run([perf, "script", "-i", "perf.data"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False, timeout=args.script_limit or (20 if args.quick else 900))
        except subprocess.TimeoutExpired:
            print("  perf script did not end in time; its time below is a lower bound")
        script = time.monotonic() - start
    base = statistics.median(plain)
    figure("plain", base, "s")
    print("  rounds, against plain: " + " ".join(f"{x - 1:+.1%}" for x in under)
          + (" whyslow; " + " ".join(f"{x - 1:+.1%}" for x in peer) + " perf" if peer else ""))
    cost = (statistics.median(under) - 1) * 100
    peer_cost = (statistics.median(peer) - 1) * 100 if peer else None
    figure("wall overhead of whyslow record", cost, "%", 2)
    figure("wall overhead of perf record --call-graph dwarf", peer_cost, "%")
    if peer:
        figure("whyslow's beyond perf's", cost - peer_cost, "points", 0)
    own = (counters["cpu.own_ns"] + counters["cpu.naming_ns"]) / 1e6
    print(f"  own CPU while it ran {counters['cpu.own_ns'] / counters['cpu.samples'] / 1e3:.1f} us a sample, "
          f"names {counters['cpu.naming_ns'] / 1e6:.0f} ms")
    figure("own CPU of the target's", own / counters["cpu.rusage_ns"] * 1e8, "%", 1)
    figure("incomplete stacks", 100 - counters["cpu.complete"] / counters["cpu.samples"] * 100, "%", 0.5)
    figure("sampled against rusage, off by", abs(counters["cpu.sampled_ns"] / counters["cpu.rusage_ns"] - 1) * 100, "%", 2)
    figure("lost", counters["loss.ring_full"], "samples", 0)
    figure("recording", size / 1e6, "MB")
    figure("perf.data", peer_size and peer_size / 1e6, "MB")
    if peer:
        figure("recording of perf's file", size / peer_size, "", 0.01)
    figure("from the end of the target to the table", report, "s", 1)
    figure("perf script", script, "s")
    if peer:
        figure("of perf script's time", report / script, "", 0.01)


with tempfile.TemporaryDirectory(prefix="whyslow-bench-") as name_of_folder:
    work = pathlib.Path(name_of_folder)
    os.chdir(work)
    os.environ["HOME"] = str(work)  # a cache of its own, warm from the second program on
    if not perf:
        print("perf is not installed (package linux-perf): no peer beside")
    for title, command in programs(work):
        measure(title, command)
print("cpu bench:", "MISS" if figures.missed else "pass")
sys.exit(1 if figures.missed else 0)
