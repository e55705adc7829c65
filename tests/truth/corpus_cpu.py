#!/usr/bin/python3
"""Planted trouble of CPU time, memory and builds, and what mending it really gains.

    corpus_cpu.py DETECTOR gain WHYSLOW PROGRAMS...

What `whyslow run` says could be saved, beside what the mended mode of the same program does save,
measured by turns. Both are shares of the planted program's CPU time: these programs wait for nothing,
and a machine that others use is not as fast now as it was then. The cases are those of corpus.py.
"""

import os
import resource
import subprocess
import sys
import tempfile

import corpus_tools
import gain_tools

# Heap passes must fit into it on a busy machine, too.
BUDGET = ("--budget", "60s")

HOT, HEAP, KERNEL = "cpu-hot", "cpu-heap", "cpu-kernel"
# 300 processes, one after another; three, and then work.
STARTS = ["sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done"]


def starts_few(_):
    return ["sh", "-c", "/bin/true; /bin/true; exec " + corpus_tools.PROGRAMS[HOT] + " flat 400"]


CASES = {
    "allocation_churn": {"planted": [HEAP, "churn", "4000"], "near": [HEAP, "churn-rare", "15000"],
                         "clean": [HEAP, "long-lived", "1000"]},
    "kernel_dominated": {"planted": [KERNEL, "calls", "500"], "near": [KERNEL, "calls-some", "300"],
                         "clean": [KERNEL, "flat", "300"]},
    "memory_growth": {"planted": [HEAP, "leak", "8000"], "near": [HEAP, "bounded", "8000"],
                      "clean": [HEAP, "reused", "8000"]},
    "one_function": {"planted": [HOT, "function", "400"], "near": [HOT, "spread", "400"],
                     "clean": [HOT, "flat", "400"]},
    "one_line": {"planted": [HOT, "line", "400"], "near": [HOT, "spread", "400"], "clean": [HOT, "flat", "400"]},
    "page_faults": {"planted": [KERNEL, "faults", "200"], "near": [KERNEL, "faults-few", "60"],
                    "clean": [KERNEL, "flat", "300"]},
    "realloc_growth": {"planted": [HEAP, "realloc", "500"], "near": [HEAP, "realloc-twice", "500"],
                       "clean": [HEAP, "realloc-once", "500"]},
    "start_up": {"planted": STARTS, "near": starts_few, "clean": [HOT, "flat", "400"]},
    "unoptimized_build": {"planted": ["cpu-build-debug", "own", "8000"], "near": ["cpu-build-debug", "libc", "1500"],
                          "clean": ["cpu-build-plain", "flat", "20000"]},
    "unsymbolised_build": {"planted": ["cpu-build-stripped", "flat", "20000"],
                           "near": ["cpu-build-stripped", "libc", "1500"],
                           "clean": ["cpu-build-plain", "flat", "20000"]},
}
# The same trouble in other clothes, and other programs without it: as which kind they are judged.
EXTRA = {
    ("allocation_churn", "large"): ("planted", [HEAP, "churn-large", "600"]),
    ("memory_growth", "filled"): ("near", [HEAP, "filled", "8000"]),
    ("one_function", "wait"): ("near", [HOT, "wait", "400"]),
    ("one_line", "helper"): ("planted", [HOT, "helper", "400"]),
}
ALSO = {
    # Most of the time is in one function or line there; it is the C library's, or small, that matters.
    ("one_function", "planted"): ["one_line"],
    ("unoptimized_build", "near"): ["one_line", "one_function"],
    ("unsymbolised_build", "near"): ["one_line", "one_function"],
    # Doubling asks the kernel for fresh memory, too; on a virtual machine its pages may take a sixth of the time.
    ("realloc_growth", "near"): ["page_faults"],
    ("start_up", "planted"): ["page_faults"],
}
# Facts of the finding whose answer is known. Each of 300 processes runs for half a millisecond, the shell hardly.
FACTS = {
    ("start_up", "planted"): {"short_processes": (240, 300), "start_up_share": (50, 100)},
}
MENDED = {
    "allocation_churn": ([HEAP, "churn", "4000"], [HEAP, "reused", "4000"]),
    "allocation_churn-large": ([HEAP, "churn-large", "600"], [HEAP, "churn-large-reused", "600"]),
    "realloc_growth": ([HEAP, "realloc", "500"], [HEAP, "realloc-twice", "500"]),
}


def cases():
    for detector, kinds in CASES.items():
        for kind, command in kinds.items():
            yield corpus_tools.Case(detector, kind, kind, command, tuple(ALSO.get((detector, kind), ())), BUDGET,
                                    facts=FACTS.get((detector, kind), {}))
    for (detector, kind), (judged, command) in EXTRA.items():
        yield corpus_tools.Case(detector, kind, judged, command, options=BUDGET)


def cpu(command, folder):
    """CPU seconds of a run: these programs wait for nothing, and what others do is left out."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def attempt(whyslow, detector, planted, mended):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        pairs, (result, _) = gain_tools.around(lambda: (cpu(planted, folder), cpu(mended, folder)),
                                               lambda: corpus_tools.run(whyslow, planted, folder, *BUDGET))
    own = gain_tools.confirmed(result, detector)
    if not own:
        return None
    # Shares of what runs on the path: waiting for a CPU, as on a busy machine, is left out on both sides.
    times = {row["class"]: row["ms"] for row in result["time"]}
    return gain_tools.compared(detector, pairs, own["recoverable_ms"] / times["running"],
                               noise=times["runq"] / sum(times.values()))


def main(detector, kind, whyslow, *programs):
    corpus_tools.programs_are(programs)
    planted, mended = (corpus_tools.resolved(command) for command in MENDED[detector + kind.removeprefix("gain")])
    return gain_tools.verdict(lambda: attempt(os.path.abspath(whyslow), detector, planted, mended))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
