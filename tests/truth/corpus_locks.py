#!/usr/bin/python3
"""Planted trouble with locks, threads and CPUs, and what mending it really gains.

    corpus_locks.py DETECTOR gain WHYSLOW PROGRAMS...

What is said could be saved, beside what the mended program saves, measured by turns. Both are shares of the planted
program's wall time, since a machine that others use is not as fast now as it was then. The cases are those of
corpus.py: `idle`, `tiny`, `single` are near misses, too, `file` is another plant, `nobody` is the plant without
privileges.
"""

import contextlib
import functools
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import corpus_tools
import gain_tools

TURNS, IO, HERD, SERIAL = ("lock-" + name for name in ("turns", "io", "herd", "serial"))

# Threads that could run side by side do so only while the CPUs are free: of these the least disturbed run counts.
SIDE_BY_SIDE = ("hot_lock", "lock_convoy", "serial_section")

# All that these programs compute they compute in one function, as planted and as mended: it is said, and true.
ONE = ("one_function", "one_line")
CASES = {
    "hot_lock": {"planted": [TURNS, "hot"], "near": [TURNS, "alone"], "idle": [TURNS, "idle"],
                 "clean": [TURNS, "hot", "apart"], "mended": [TURNS, "hot", "apart"]},
    "lock_convoy": {"planted": [TURNS, "convoy"], "near": [TURNS, "once"], "clean": [TURNS, "convoy", "apart"],
                    "mended": [TURNS, "convoy", "apart"], "nobody": [TURNS, "convoy"]},
    "io_under_lock": {"planted": [IO, "held"], "file": [IO, "file"], "near": [IO, "alone"],
                      "clean": [IO, "held", "out"], "mended": [IO, "held", "out"], "nobody": [IO, "held"]},
    "thundering_herd": {"planted": [HERD, "all"], "near": [HERD, "share"], "tiny": [HERD, "tiny"],
                        "clean": [HERD, "one"], "mended": [HERD, "one"]},
    "serial_section": {"planted": [SERIAL, "serial"], "near": [SERIAL, "busy"], "single": [SERIAL, "single"],
                       "clean": [SERIAL, "shared"], "mended": [SERIAL, "shared"]},
    "cpu_starvation": {"planted": [SERIAL, "single"], "near": [TURNS, "convoy", "apart"], "clean": [SERIAL, "single"],
                       "mended": [SERIAL, "single"]},
    "cgroup_throttling": {"planted": [SERIAL, "single"], "near": [SERIAL, "single"], "clean": [SERIAL, "single"],
                          "mended": [SERIAL, "single"]},
}
# What is made durable under the lock is made durable for each message, too: of `file` both are said.
PLANTED, NEAR = ("planted", "nobody", "file"), ("near", "idle", "tiny", "single")


class Burners:
    """Three for each CPU, outside of the tree of the target: it waits for longer than it computes."""

    def __enter__(self):
        code = "import time\nend = time.monotonic() + 200\nwhile time.monotonic() < end: pass"
        self.all = [subprocess.Popen([sys.executable, "-c", code]) for _ in 3 * list(os.sched_getaffinity(0))]
        time.sleep(0.3)

    def __exit__(self, *_):
        for one in self.all:
            one.kill()
            one.wait()


def own_group():
    """The group that this process is in, and the one below which it may be limited: itself, so that what its children
    take is its own for judge.py. Where version 2 does not give it that controller, only the top can have it."""
    mine = dict(line.split(":", 2)[1:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines())
    v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
    for names, path in mine.items():
        if v1.is_dir() and "cpu" in names.split(","):
            return v1 / path.lstrip("/"), v1 / path.lstrip("/")
    own = v2 / mine.get("", "/").lstrip("/")
    given = own / "cgroup.controllers"
    return own, own if given.exists() and "cpu" in given.read_text().split() else v2


class Limited:
    """This process and its children in a cgroup with a part of one CPU."""

    def __init__(self, part):
        self.part = part
        self.enabled = None

    def limit(self, root):
        if (self.group / "cpu.cfs_quota_us").exists():
            (self.group / "cpu.cfs_quota_us").write_text(str(int(self.part * 100000)))
            return
        if not (self.group / "cpu.max").exists():
            # Of a group that has processes itself others may be parts only if they are of threads.
            (self.group / "cgroup.type").write_text("threaded")
            (root / "cgroup.subtree_control").write_text("+cpu")
            self.enabled = root / "cgroup.subtree_control"
        (self.group / "cpu.max").write_text(f"{int(self.part * 100000)} 100000")

    def __enter__(self):
        self.own, root = own_group()
        self.group = root / f"whyslow-corpus-{os.getpid()}"
        try:
            self.group.mkdir()
            self.limit(root)
            for name, most in (("cpu.shares", 262144), ("cpu.weight", 10000)):  # its limit stops it, not others
                if (self.group / name).exists():
                    (self.group / name).write_text(str(most))
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError as error:
            self.__exit__()
            raise corpus_tools.Skip(f"no cgroup can be limited here: {error}") from None

    def __exit__(self, *_):
        try:
            (self.own / "cgroup.procs").write_text(str(os.getpid()))
            self.group.rmdir()
            if self.enabled:
                self.enabled.write_text("-cpu")
        except OSError as error:
            print("the cgroup stays:", error)


def around(detector, kind):
    """What the trouble is when it is not in the program."""
    if detector == "cpu_starvation" and kind == "planted":
        return Burners
    if detector == "cgroup_throttling" and kind in ("planted", "near"):
        return functools.partial(Limited, 0.4 if kind == "planted" else 8)
    return contextlib.nullcontext


def cases():
    for detector, kinds in CASES.items():
        for kind, command in kinds.items():
            if kind == "mended":
                continue
            judged = "planted" if kind in PLANTED else "near" if kind in NEAR else "clean"
            # Who has one CPU at most loses nothing by taking turns.
            quiet = (judged == "planted" and detector in (*SIDE_BY_SIDE, "cgroup_throttling")) \
                or (judged != "planted" and detector == "cpu_starvation")
            yield corpus_tools.Case(detector, kind, judged, command, ONE,
                                    around=around(detector, kind), quiet=quiet, nobody=kind == "nobody",
                                    beside=kind == "file")


def attempt(whyslow, detector):
    planted, mended = (corpus_tools.resolved(CASES[detector][kind]) for kind in ("planted", "mended"))
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        def pair():
            with around(detector, "planted")():
                took = gain_tools.wall(planted, folder)
            return took, gain_tools.wall(mended, folder)

        def look():
            with around(detector, "planted")():
                return corpus_tools.run(whyslow, planted, folder)
        pairs, (result, _) = gain_tools.around(pair, look)
    # What burners leave to others is not the same each time.
    before = gain_tools.baseline_of(result) if detector == "cpu_starvation" else None
    return gain_tools.compared_by_wall(detector, pairs, result, min if detector in SIDE_BY_SIDE else statistics.median,
                                       before)


def main(detector, _, whyslow, *programs):
    corpus_tools.programs_are(programs)
    try:
        corpus_tools.need_quiet()
        return gain_tools.verdict(lambda: attempt(os.path.abspath(whyslow), detector))
    except corpus_tools.Skip as skip:
        print("SKIP:", skip)
        return gain_tools.SKIP


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
