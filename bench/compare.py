#!/usr/bin/python3
"""How often `whyslow compare` is wrong, and how often it finds what is there; hyperfine beside it.

    compare.py [--build DIR] [--aa-trials N] [--power-trials N] [--aa-budget S] [--power-budget S]

A/A: the same program against itself, while competing load comes and goes on the machine. Every
"faster" or "slower" is false. Target: at most 5% of the trials. Beside it: hyperfine, A's runs and
then B's as it makes them, for the same time, judged by Welch's t-test at 5%, as its users do.

Power: a program that does exactly 2% more work (bench/work.c), on a quiet machine. Target: "slower" in
at least 90% of the comparisons of 10 s. hyperfine beside it with the same time; there a "find" is
t-test p < 5% and the right sign, without a margin, which is the easier question.

Prints figure, target and pass or MISS; the default numbers of trials take hours. Exit status 1 on
a miss.
"""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent


class Load:
    """Competing load that comes and goes: bursts of a busy loop, seeded, on every CPU."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stop.is_set():
            count = self.random.randint(0, os.cpu_count())
            burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
            self.stop.wait(self.random.uniform(0.2, 3))
            for burner in burners:
                burner.kill()
                burner.wait()
            self.stop.wait(self.random.uniform(0, 2))

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def student_two_sided(t, freedom):
    """P(|T| > t), by Simpson's rule over the density."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    t, steps = min(abs(t), 200.0), 2000
    width = t / steps
    total = sum((1 if i in (0, steps) else 4 if i % 2 else 2) * scale
                * (1 + (i * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1))
    return max(0.0, 1 - 2 * total * width / 3)


def welch(a, b):
    """Two-sided p of Welch's t-test."""
    va, vb = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    if va + vb == 0:
        return 1.0
    t = (statistics.mean(b) - statistics.mean(a)) / math.sqrt(va + vb)
    freedom = (va + vb) ** 2 / (va ** 2 / (len(a) - 1) + vb ** 2 / (len(b) - 1))
    return student_two_sided(t, freedom)


def whyslow(program, a, b, budget, seed):
    done = subprocess.run([program, "compare", "--json", "--budget", f"{budget}s", "--seed", str(seed), a, b],
                          capture_output=True, check=True)
    result = json.loads(done.stdout)
    return result["verdict"], result["ratio"], result["blocks"]


def hyperfine(a, b, budget, run_s):
    """The same time, half of it for each; "slower", "faster" or "unknown" by the t-test."""
    runs = max(3, round(budget / 2 / run_s))
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run(["hyperfine", "-N", "--warmup", "1", "--runs", str(runs), "--export-json", out.name, a, b],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times = [result["times"] for result in json.load(open(out.name))["results"]]
    if welch(*times) >= 0.05:
        return "unknown"
    return "slower" if statistics.mean(times[1]) > statistics.mean(times[0]) else "faster"


def report(name, count, trials, target, good):
    share = 100 * count / trials if trials else float("nan")
    print(f"{name:<58} {count:4d} of {trials:4d}  {share:5.1f}%  {target:<22} {good}", flush=True)


def run_time_s(command):
    """Of one run, for a fair number of hyperfine's."""
    times = []
    for _ in range(5):
        start = time.monotonic()
        subprocess.run(command.split(), check=True)
        times.append(time.monotonic() - start)
    return statistics.median(times)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def false_verdicts(args, program, work):
    command = f"{work} 1000"
    run_s = run_time_s(command)
    ours = theirs = 0
    with Load(seed=1):
        for trial in range(args.aa_trials):
            verdict, _, _ = whyslow(program, command, command, args.aa_budget, trial + 1)
            ours += verdict in ("faster", "slower")
            if args.peer:
                theirs += hyperfine(command, command, args.aa_budget, run_s) != "unknown"
            progress(f"A/A {trial + 1} of {args.aa_trials}: false {ours}, hyperfine {theirs}")
    progress("")
    good = ours <= 0.05 * args.aa_trials
    report("A/A under load: false verdicts, whyslow compare", ours, args.aa_trials, "target at most 5%",
           "pass" if good else "MISS")
    if args.peer:
        report("A/A under load: false verdicts, hyperfine and t-test", theirs, args.aa_trials, "(beside it)", "")
    return good


def power(args, program, work):
    a, b = f"{work} 1000", f"{work} 1000 20"
    run_s = run_time_s(a)
    ours = theirs = 0
    ratios, blocks = [], []
    for trial in range(args.power_trials):
        verdict, ratio, count = whyslow(program, a, b, args.power_budget, trial + 1)
        ours += verdict == "slower"
        ratios.append(ratio)
        blocks.append(count)
        if args.peer:
            theirs += hyperfine(a, b, args.power_budget, run_s) == "slower"
        progress(f"2% {trial + 1} of {args.power_trials}: found {ours}, hyperfine {theirs}")
    progress("")
    good = ours >= 0.9 * args.power_trials
    report(f"2% more work, {args.power_budget:g} s: found, whyslow compare", ours, args.power_trials,
           "target at least 90%", "pass" if good else "MISS")
    if args.peer:
        report("2% more work: found, hyperfine and t-test (no margin)", theirs, args.power_trials, "(beside it)", "")
    if ratios:
        print(f"  median ratio {statistics.median(ratios):.4f}, true 1.02 less the loader's share; "
              f"{statistics.median(blocks):g} blocks")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("--aa-trials", type=int, default=200)
    parser.add_argument("--power-trials", type=int, default=50)
    parser.add_argument("--aa-budget", type=float, default=10)
    parser.add_argument("--power-budget", type=float, default=10)
    args = parser.parse_args()
    program = f"{args.build}/whyslow"
    work = f"{args.build}/bench/work"
    args.peer = shutil.which("hyperfine") is not None
    if not args.peer:
        print("hyperfine is not installed: no figures beside ours")
    good = false_verdicts(args, program, work) if args.aa_trials else True
    good = (power(args, program, work) if args.power_trials else True) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
