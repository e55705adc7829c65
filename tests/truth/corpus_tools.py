"""The corpus of planted trouble: what `whyslow run` must confirm, dismiss, and never say.

For every detector there are a program with the trouble (it must be confirmed and ranked first), a
near miss (the same shape without the trouble: it must be dismissed, with a reason) and a clean
program (nothing may be confirmed). The files corpus_*.py have the cases, corpus.py has them all:
each is recorded once and judged from that by the tests of the suite replay.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import pwd
import resource
import shutil
import subprocess
import sys
import tempfile
import time


IS_KERNEL_THREAD = 0x00200000  # PF_KTHREAD in field 9 of /proc/PID/stat


def kernel_thread_ticks():
    """What the kernel's own threads took: of those that are there now, so a thread that ended counts as others' work."""
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[6]) & IS_KERNEL_THREAD:
            ticks += int(fields[11]) + int(fields[12])
    return ticks


def busy_seconds():
    """Of all programs since the machine started, of this test and its children, and what other guests took.

    The kernel's own threads and interrupts are no other program: a command that syncs 8,000 times makes them write for
    it, 4 s beside 9 s of its own on an idle machine. Other programs that make them work take CPU time themselves."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, _, _, steal, *_ = map(int, file.readline().split()[1:])
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = os.sysconf("SC_CLK_TCK")
    return ((user + nice + system - kernel_thread_ticks()) / ticks, sum(each.ru_utime + each.ru_stime for each in usage),
            steal / ticks)


def is_crowded(before, after, capacity):
    """Others had the CPUs: other programs, or other guests of the same host."""
    busy, own, stolen = (b - a for a, b in zip(before, after))
    print(f"CPU time of others: {busy - own:.1f} s, of other guests: {stolen:.1f} s, ours: {own:.1f} s of {capacity:.1f} s")
    return busy - own > CROWDED * capacity or stolen > CROWDED * (own + stolen)


def run(whyslow, command, folder, *options, env=None):
    """The JSON of `whyslow run` and the artifacts' folder. Its key "crowded" says whether others had the CPUs."""
    started, before = time.monotonic(), busy_seconds()
    done = subprocess.run([whyslow, "run", "--quick", "--json", "--out", "out", *options, "--", *command], cwd=folder,
                          capture_output=True, check=False, env=env, timeout=240)
    sys.stderr.write(done.stderr.decode(errors="replace"))
    # 3: the baseline drifted, as on a busy machine; the ranking is there all the same, and marked.
    assert done.returncode in (0, 3), f"exit status {done.returncode}"
    capacity = (time.monotonic() - started) * os.cpu_count()
    result = json.loads(done.stdout)
    result["crowded"] = is_crowded(before, busy_seconds(), capacity)
    return result, pathlib.Path(folder) / "out" / "latest"


def suspicions(result, verdict=None, detector=None):
    return [row for row in result["suspicions"] if (verdict is None or row["verdict"] == verdict)
            and (detector is None or row["detector"] == detector)]


# What is stated apart from the suspicions, by the section in which it stands: never among what can be fixed.
APART = {"cpu_starvation": "environment", "cgroup_throttling": "environment", "kernel_dominated": "context",
         "unsymbolised_build": "context"}


def apart(result, detector, verdict=None):
    """Rows of a detector that is stated apart; the time is `ms`, of the environment what it took from a run."""
    return [row for row in result[APART[detector]] if row["detector"] == detector
            and (verdict is None or row["verdict"] == verdict)]


def show(result):
    for row in suspicions(result, "confirmed"):
        print(f"  confirmed {row['rank']} {row['detector']}: {row['title']} ({row['recoverable_ms']} ms)")
    for name in ("context", "environment"):
        for row in result[name]:
            if row["verdict"] == "confirmed":
                print(f"  {name}: {row['detector']}: {row['title']} ({row['ms']} ms)")


# True of any program while others have the CPUs, and not planted: a test is not alone on its machine. A share of all
# CPUs' time, or of what was asked of them; programs that a command leaves to others (a server outside of it) are such
# others, too. These are stated apart: none may be ranked.
AROUND = tuple(name for name, section in APART.items() if section == "environment")
CROWDED = 0.04


def misplaced(result):
    """What is stated apart is nowhere among what can be fixed, and takes no more than a run has."""
    yield from (f"not to be ranked: {row['detector']}" for table in ("suspicions", "opportunities")
                for row in result[table] if row["detector"] in APART)
    wall = sum(row["ms"] for row in result["time"] if not isinstance(row["ms"], str))
    yield from (f"more than there is: {row['detector']}: {row['ms']} of {wall} ms" for name in ("context", "environment")
                for row in result[name] if not isinstance(row["ms"], str) and row["ms"] > wall * 1.000001)


def judge_apart(detector, kind, result, also):
    """The same for what is stated apart: planted it is confirmed in its section; what is ranked must be true."""
    own = apart(result, detector)
    if kind == "planted" and not apart(result, detector, "confirmed"):
        yield f"{detector} is not stated: {own}"
    if kind == "near" and (not own or any(row["verdict"] != "dismissed" or not row["reason"] for row in own)):
        yield f"{detector} is not dismissed with a reason: {own}"
    if kind == "clean" and detector not in also and apart(result, detector, "confirmed") \
            and not (detector in AROUND and result.get("crowded", True)):
        yield f"false: {detector}: {own}"
    yield from (f"false: {row['detector']}: {row['title']}" for row in suspicions(result, "confirmed")
                if row["detector"] not in also)


def judge(detector, kind, result, also=()):
    """Complaints."""
    confirmed = suspicions(result, "confirmed")
    names = [row["detector"] for row in confirmed]
    show(result)
    yield from misplaced(result)
    if detector in APART:
        yield from judge_apart(detector, kind, result, also)
        return
    if kind == "planted":
        if not confirmed or confirmed[0]["detector"] != detector:
            yield f"{detector} is not first: {names}; {suspicions(result, detector=detector)}"
        yield from (f"false: {row['detector']}: {row['title']}" for row in confirmed
                    if row["detector"] != detector and row["detector"] not in also)
    elif kind == "near":
        own = suspicions(result, detector=detector)
        if any(row["verdict"] != "dismissed" or not row["reason"] for row in own) or not own:
            yield f"{detector} is not dismissed with a reason: {own}"
        yield from (f"false: {row['detector']}: {row['title']}" for row in confirmed if row["detector"] not in also)
    else:
        yield from (f"false: {row['detector']}: {row['title']}" for row in confirmed if row["detector"] not in also)


# Name: absolute path, of the programs that were built.
PROGRAMS = {}


def programs_are(paths):
    PROGRAMS.update({pathlib.Path(path).name: os.path.abspath(path) for path in paths})


def resolved(command):
    return [PROGRAMS.get(command[0], command[0]), *command[1:]]


class Skip(Exception):
    """This machine, or its state, does not have what the case needs."""


@dataclasses.dataclass
class Case:
    """A program of the corpus, and what must be said of it."""
    detector: str
    kind: str  # a name among those of its detector
    judged: str  # planted, near or clean
    command: list  # the first word may be a name of PROGRAMS; or a callable that makes one in a given folder
    also: tuple = ()  # detectors that may be confirmed beside it because they are true of it
    options: tuple = ("--budget", "60s")  # on a busy machine all takes longer; no axis is to be left out
    around: object = contextlib.nullcontext  # what has to be there meanwhile; its value is more of the command
    quiet: bool = False  # it is what it is only where the CPUs are free
    nobody: bool = False  # recorded by a user without privileges
    facts: dict = dataclasses.field(default_factory=dict)  # of the confirmed finding: (least, most)
    beside: bool = False  # planted with another trouble that is larger: confirmed is enough
    after: object = None  # what has to hold in the folder afterwards: a callable
    needs: str = ""  # a program of the distribution
    truth: object = None  # a program with more than one answer has its own: result → complaints

    @property
    def name(self):
        return f"{self.detector}-{self.kind}"

    def complaints(self, result):
        if self.truth:
            show(result)
            yield from self.truth(result)
            return
        if self.beside:
            if not suspicions(result, "confirmed", self.detector):
                yield f"not confirmed: {suspicions(result, detector=self.detector)}"
            return
        yield from judge(self.detector, self.judged, result, self.also)
        for row in suspicions(result, "confirmed", self.detector):
            for name, (low, high) in self.facts.items():
                if not low <= row["facts"][name] <= high:
                    yield f"{name} is {row['facts'][name]}, not {low} to {high}"


def share_of_cpus():
    """What programs that compute, one for each CPU, get of them."""
    with tempfile.TemporaryDirectory() as folder:
        before, start = os.times(), time.monotonic()
        all_of_them = [subprocess.Popen([PROGRAMS["lock-serial"], "single"], cwd=folder, stdout=subprocess.DEVNULL)
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
    raise Skip(f"others have the CPUs: programs that compute got {had * 100:.0f}% of them")


def as_nobody(whyslow, folder):
    """A program that is whyslow without privileges; the folder becomes theirs."""
    if os.geteuid() != 0:
        raise Skip("to become somebody else is for root only")
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    script = pathlib.Path(folder) / "whyslow"
    script.write_text(f"#!/bin/sh\nHOME={folder} exec setpriv --reuid={user.pw_uid} --regid={user.pw_gid} "
                      f"--clear-groups {whyslow} \"$@\"\n")
    script.chmod(0o755)
    return str(script)


def record(case, whyslow, folder, whatever=False):
    """The case, run in the folder: what `whyslow run` says of it, and where its artifacts are. `whatever`: on a machine
    that is not quiet, too."""
    if case.needs and not shutil.which(case.needs):
        raise Skip(f"no {case.needs} here")
    if case.quiet and not whatever:
        need_quiet()
    with case.around() as more:
        command = case.command(folder) if callable(case.command) else resolved(case.command)
        program = as_nobody(whyslow, folder) if case.nobody else whyslow
        answer = run(program, [*command, *(more or ())], folder, *case.options)
    if case.after:
        case.after(folder)
    return answer


SKIP = 77


def live(case, whyslow, *programs):
    """Recorded now and judged: an exit status."""
    programs_are(programs)
    whyslow = os.path.abspath(whyslow)
    try:
        # Beside the build, not in /tmp: an fsync on a RAM disk would cost nothing.
        with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
            result, _ = record(case, whyslow, folder)
    except Skip as skip:
        print("SKIP:", skip)
        return SKIP
    complaints = list(case.complaints(result))
    for line in complaints:
        print("WRONG", line)
    print("ok" if not complaints else "", case.name)
    return 1 if complaints else 0
