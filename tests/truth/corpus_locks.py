#!/usr/bin/python3
"""Planted trouble with locks, threads and CPUs, and what mending it really gains.

    corpus_locks.py DETECTOR KIND WHYSLOW PROGRAMS...

Kinds are those of corpus_tools.py and more of each: `idle`, `tiny`, `single` are near misses, too,
`file` is another plant, `nobody` is the plant without privileges. `gain`: what is said could be
saved, beside what the mended program saves, measured by turns. Both are shares of the planted
program's wall time, since a machine that others use is not as fast now as it was then.
"""

import os
import pathlib
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import corpus_tools
import gain_tools

SKIP = gain_tools.SKIP
detector, kind = sys.argv[1:3]
whyslow = os.path.abspath(sys.argv[3])
programs = {pathlib.Path(path).name: os.path.abspath(path) for path in sys.argv[4:]}
TURNS, IO, HERD, SERIAL = (programs["lock-" + name] for name in ("turns", "io", "herd", "serial"))

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
# tiny: what is left of jobs of some microseconds is the kernel's time to hand them over.
ALSO = {"tiny": ("kernel_dominated",)}
PLANTED, NEAR = ("planted", "nobody"), ("near", "idle", "tiny", "single")


def skip(reason):
    print("SKIP:", reason)
    sys.exit(SKIP)


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


class Limited:
    """This process and its children in a cgroup with a part of one CPU."""

    def __init__(self, part):
        self.part = part

    def __enter__(self):
        v1 = pathlib.Path("/sys/fs/cgroup/cpu")
        self.root = v1 if (v1 / "cpu.cfs_quota_us").exists() or v1.is_dir() else pathlib.Path("/sys/fs/cgroup")
        self.group = self.root / f"whyslow-corpus-{os.getpid()}"
        try:
            self.group.mkdir()
            if (self.group / "cpu.cfs_quota_us").exists():
                (self.group / "cpu.cfs_quota_us").write_text(str(int(self.part * 100000)))
            else:
                (self.group / "cpu.max").write_text(f"{int(self.part * 100000)} 100000")
            for name, most in (("cpu.shares", 262144), ("cpu.weight", 10000)):  # its limit stops it, not others
                if (self.group / name).exists():
                    (self.group / name).write_text(str(most))
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError as error:
            self.__exit__()
            skip(f"no cgroup can be limited here: {error}")

    def __exit__(self, *_):
        try:
            (self.root / "cgroup.procs").write_text(str(os.getpid()))
            self.group.rmdir()
        except OSError as error:
            print("the cgroup stays:", error)


class Nothing:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def around(planted):
    """What the trouble is when it is not in the program."""
    if detector == "cpu_starvation" and planted:
        return Burners()
    if detector == "cgroup_throttling" and (planted or kind == "near"):
        return Limited(0.4 if planted else 8)
    return Nothing()


def share_of_cpus():
    """What programs that compute, one for each CPU, get of them."""
    with tempfile.TemporaryDirectory() as folder:
        before, start = os.times(), time.monotonic()
        all_of_them = [subprocess.Popen([SERIAL, "single"], cwd=folder, stdout=subprocess.DEVNULL)
                       for _ in os.sched_getaffinity(0)]
        for one in all_of_them:
            one.wait()
        took, after = time.monotonic() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used / took / len(all_of_them)


def need_quiet():
    """What threads gain by running side by side is there only where the CPUs are free."""
    for _ in range(20):
        had = share_of_cpus()
        if had >= 0.93:
            return
        time.sleep(1)
    skip(f"others have the CPUs: programs that compute got {had * 100:.0f}% of them")


def attempt():
    table = CASES[detector]
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        def pair():
            with around(True):
                planted = gain_tools.wall(table["planted"], folder)
            return planted, gain_tools.wall(table["mended"], folder)

        def look():
            with around(True):
                return corpus_tools.run(whyslow, table["planted"], folder)
        pairs, (result, _) = gain_tools.around(pair, look)
    # What burners leave to others is not the same each time.
    planted = gain_tools.baseline_of(result) if detector == "cpu_starvation" else None
    return gain_tools.compared_by_wall(detector, pairs, result, min if detector in SIDE_BY_SIDE else statistics.median,
                                       planted)


def gain():
    need_quiet()
    return gain_tools.verdict(attempt)


def nobody():
    """The same as a user without privileges: files where it may read and write them."""
    if os.geteuid() != 0:
        skip("only root can become another user")
    user = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory() as folder:
        command = CASES[detector][kind]
        for path in (whyslow, command[0]):
            shutil.copy(path, folder)
        for path in pathlib.Path(os.path.dirname(whyslow)).glob("**/libwhyslow-*.so"):
            shutil.copy(path, folder)
        shutil.chown(folder, user.pw_uid, user.pw_gid)
        os.environ["HOME"] = folder
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
        own = os.path.join(folder, os.path.basename(whyslow))
        program = os.path.join(folder, os.path.basename(command[0]))
        result, _ = corpus_tools.run(own, [program, *command[1:]], folder)
    return list(corpus_tools.judge(detector, "planted", result, ONE))


def beside():
    """What is made durable under the lock is made durable for each message, too: both are said."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        result, _ = corpus_tools.run(whyslow, CASES[detector][kind], folder)
    corpus_tools.show(result)
    if not corpus_tools.suspicions(result, "confirmed", detector):
        yield f"not confirmed: {corpus_tools.suspicions(result, detector=detector)}"


def case():
    if kind == "nobody":
        return nobody()
    if kind == "file":
        return list(beside())
    as_kind = "planted" if kind in PLANTED else "near" if kind in NEAR else "clean"
    if as_kind == "planted" and detector in ("hot_lock", "lock_convoy", "serial_section", "cgroup_throttling"):
        need_quiet()  # else the trouble is not there: who has one CPU at most loses nothing by taking turns
    if detector == "cpu_starvation" and kind != "planted":
        need_quiet()
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder, around(as_kind == "planted"):
        result, _ = corpus_tools.run(whyslow, CASES[detector][kind], folder)
        also = ONE + ALSO.get(kind, ())
        return list(corpus_tools.judge(detector, as_kind, result, also))


def main():
    if kind == "gain":
        return gain()
    complaints = case()
    for line in complaints:
        print("WRONG", line)
    print("ok" if not complaints else "", detector, kind)
    return 1 if complaints else 0


sys.exit(main())
