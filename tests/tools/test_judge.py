#!/usr/bin/python3
"""The judge of measurements (tests/truth/judge.py) beside machines that are made up: what it says of a measurement
depends on what it is about and on what the machine did meanwhile, and on nothing else."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

TRUTH = pathlib.Path(__file__).resolve().parent.parent / "truth"
sys.path.insert(0, str(TRUTH))
import judge  # noqa: E402
from judged import has_no_bpf  # noqa: E402

number = 0


def ok(name):
    global number
    number += 1
    print(f"ok {number} - {name}")


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Machine:
    """Each second brings so much: [(stolen, others)] in ms, then nothing."""

    def __init__(self, clock, seconds, own=0.0):
        self.clock, self.seconds, self.own = clock, list(seconds), own

    def look(self):
        past = self.seconds[:int(self.clock.now + 0.001)]
        stolen, others = (sum(column) for column in zip(*past)) if past else (0, 0)
        own = self.own * self.clock.now
        return float(stolen), others + own, own, 0.0


def run(outcomes, seconds, until=1000.0, lasts=3, own=0.0):
    """What the judge says of measurements of some seconds each that end with these statuses."""
    clock, said, left = Clock(), [], list(outcomes)
    machine = Machine(clock, seconds, own)

    def sleep(seconds):
        clock.now += seconds

    def attempt(window):
        for _ in range(lasts):
            sleep(1)
            window.slice()
        return left.pop(0), "a time was wrong"

    status = judge.judge(attempt, machine, until, clock, sleep, said.append)
    return status, said[-1], len(outcomes) - len(left), clock.now


QUIET, STEAL, LOAD = (0, 10), (50, 0), (0, 900)
TIMES = judge.ABOUT_TIMES


def test_outcomes():
    status, last, made, _ = run([0], [QUIET] * 9)
    assert (status, last, made) == (0, "held", 1)
    ok("what passes is held")
    status, last, made, _ = run([0], [LOAD] * 9)
    assert (status, last, made) == (0, "held", 1)
    ok("what passes is held, whatever the machine did")
    status, last, made, _ = run([TIMES], [QUIET] * 9)
    assert (status, last, made) == (1, "failed: a time was wrong", 1)
    ok("a wrong time in a quiet window is failed, and not made again")
    status, last, made, _ = run([TIMES, TIMES, TIMES, 0], ([STEAL] * 3 + [QUIET] * 2) * 99)
    assert status == 77 and made == judge.ATTEMPTS and "other guests of the host took 50 ms" in last, last
    assert last.startswith("not judged: "), last
    ok("a wrong time while other guests have the CPUs is not judged, with the figure, after three attempts")
    status, last, made, _ = run([TIMES] * 3, ([LOAD] * 3 + [QUIET] * 2) * 99)
    assert (status, made) == (77, judge.ATTEMPTS) and "other programs took 900 ms" in last, last
    ok("nor while other programs have them")
    status, last, made, _ = run([TIMES, 0], [LOAD] * 3)
    assert (status, last, made) == (0, "held", 2)
    ok("what failed in a disturbed window and holds in the next is held")
    status, last, made, _ = run([TIMES, TIMES], [LOAD] * 3)
    assert (status, last, made) == (1, "failed: a time was wrong", 2)
    ok("what fails in a quiet window after a disturbed one is failed")
    for hard in (1, 2, 139, judge.FAILED):
        status, last, made, _ = run([hard, 0], [LOAD] * 99)
        assert (status, made) == (1, 1) and last.startswith("failed: "), (hard, last)
    ok("what is not about times is failed at once, however busy the machine is")
    status, last, made, _ = run([judge.SKIPPED], [LOAD] * 9)
    assert (status, last, made) == (77, "not judged: a time was wrong", 1)
    ok("what cannot be had here is skipped as the measurement says")


def test_windows():
    status, last, made, _ = run([TIMES], [QUIET, QUIET, QUIET], own=1800.0)
    assert (status, made) == (1, 1), last
    ok("its own CPU time does not disturb it")
    status, _, made, _ = run([TIMES] * 3, ([QUIET] * 29 + [STEAL]) * 9, lasts=30)
    assert (status, made) == (77, 3)
    ok("one bad second of thirty is a disturbed window: a mean would hide it")
    status, _, made, _ = run([TIMES], [(10, 100)] * 9)
    assert (status, made) == (1, 1)
    ok("one tick of steal a second, and housekeeping, are quiet")
    status, _, made, _ = run([TIMES], [(20, 0)] + [QUIET] * 9, until=0)
    assert (status, made) == (77, 1)
    ok("two ticks are not")


def test_bounds():
    status, last, made, now = run([TIMES] * 9, [LOAD] * 9999, until=20.0)
    assert (status, made) == (77, 1) and now <= 20, (last, made, now)
    ok("no attempt begins that could not end within the bound")
    status, last, made, now = run([TIMES] * 9, [LOAD] * 9999)
    assert (status, made) == (77, 1) and now <= 3 + judge.WAIT_FOR_QUIET_S and "other programs" in last, (last, now)
    ok("the wait for quiet has an end, and where no quiet came nothing is made again")
    _, _, _, now = run([TIMES, 0], [LOAD] * 3 + [QUIET] * 99)
    assert now == 3 + judge.QUIET_SLICES + 3, now
    ok("and is over as soon as it is quiet")
    status, last, made, _ = run([TIMES, 0], [QUIET] * 9, until=-1.0)
    assert (status, made) == (77, 0) and last == "not judged: no time left of that of all measurements", last
    ok("what has no time left does not begin")


def test_reading():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "proc/self").mkdir(parents=True)
        (folder / "proc/pressure").mkdir()
        (folder / "cg").mkdir()
        (folder / "proc/stat").write_text("cpu  100 20 30 999 888 4 6 7 55 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
        (folder / "proc/pressure/cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=2500\n"
                                                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        (folder / "proc/self/cgroup").write_text("2:cpuacct:/\n0::/\n")
        (folder / "proc/self/mounts").write_text("proc /proc proc rw 0 0\n")
        group = judge.Group(folder / "proc")
        assert group.path is None and group.left() == []
        machine = judge.Machine(group, folder / "proc", ticks=100)
        stolen, busy, own, waited = machine.look()
        # Guests' time (55) is in the users' already.
        assert (stolen, busy, waited) == (70.0, 1600.0, 2.5) and own >= 0, (stolen, busy, own, waited)
        ok("steal, CPU time and run-queue delay are read as the kernel writes them")
        (folder / "proc/schedstat").write_text("version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 1500000000 7 8\n"
                                               "domain0 3 1 2\ncpu1 0 0 0 0 0 0 250000000 7 8\n")
        assert judge.Machine(group, folder / "proc", ticks=100).look()[1] == 1750.0
        ok("exactly where the scheduler tells")
        (folder / "proc/schedstat").unlink()
        (folder / "proc/10").mkdir()
        (folder / "proc/11").mkdir()
        (folder / "proc/12").mkdir()
        row = "{} (a) b) S {} 1 1 0 0 0 0 0 0 0 {} {} {} {} 20 0\n"
        (folder / "proc/10/stat").write_text(row.format(10, 7, 1, 2, 3, 4))
        (folder / "proc/11/stat").write_text(row.format(11, 10, 10, 0, 0, 0))
        (folder / "proc/12/stat").write_text(row.format(12, 1, 500, 0, 0, 0))
        assert judge.tree_ms(folder / "proc", 7, 100) == 200.0
        ok("without a control group the descendants' times are added up, and nobody else's")
        (folder / "v1").mkdir()
        (folder / "proc/self/mounts").write_text(f"cgroup {folder}/v1 cgroup rw,cpuacct 0 0\n"
                                                 f"cgroup2 {folder}/cg cgroup2 rw 0 0\n")

        def made(path, files):
            """A kernel puts files into a folder that is made."""
            real = pathlib.Path.mkdir

            def mkdir(self, *args, **more):
                real(self, *args, **more)
                for file, text in files.items():
                    (self / file).write_text(text)
            pathlib.Path.mkdir = mkdir
            try:
                return judge.Group(folder / "proc", path)
            finally:
                pathlib.Path.mkdir = real
        group = made("one", {"cpuacct.usage": "1500000\n", "cgroup.procs": "\n"})
        assert group.path == folder / "v1/one" and group.used_ms() == 1.5, group.path
        for usage, busy in (("1500000000\n", 1500.0), ("15000000\n", 1600.0)):  # the latter is a container's
            (folder / "v1/cpuacct.usage").write_text(usage)
            assert judge.Machine(group, folder / "proc", ticks=100).look()[1] == busy
        ok("a control group of version 1 counts in nanoseconds")
        (folder / "proc/self/mounts").write_text(f"cgroup2 {folder}/cg cgroup2 rw 0 0\n")
        group = made("two", {"cpu.stat": "usage_usec 2500\nuser_usec 1\n", "cgroup.procs": "\n",
                             "cpu.pressure": "some avg10=0.00 total=3000\n"})
        assert group.path == folder / "cg/two" and group.used_ms() == 2.5 and group.waited_ms() == 3.0, group.path
        ok("one of version 2 in microseconds")
        (folder / "proc/self/cgroup").write_text("0::/slice/scope\n")
        (folder / "cg/slice/scope").mkdir(parents=True)
        group = made("three", {"cpu.stat": "usage_usec 1\n", "cgroup.procs": "\n"})
        assert group.path == folder / "cg/slice/scope/three", group.path
        for path, given in (("", "cpu memory"), ("slice", "memory pids"), ("slice/scope", "")):
            (folder / "cg" / path / "cgroup.subtree_control").write_text(given + "\n")
        group = made("four", {"cpu.stat": "usage_usec 1\n", "cgroup.procs": "1\n"})
        assert group.path == folder / "cg/four", group.path
        ok("it stands where those below it may be limited, or where its maker is")
        (group.path / "inside").mkdir()
        (group.path / "inside/cgroup.procs").write_text("2\n")
        assert group.left() == [1, 2] and group.groups() == [group.path / "inside", group.path], group.groups()
        ok("and holds the groups that a measurement makes below it")


def judged(source, *options, **environment):
    done = subprocess.run([sys.executable, TRUTH / "judge.py", *options, "--", sys.executable, "-u", "-c",
                           f"import sys; sys.path.insert(0, {str(TRUTH)!r})\n{source}"],
                          capture_output=True, text=True, timeout=100, check=False, env={**os.environ, **environment})
    return done.returncode, done.stdout.splitlines()[-1]


def test_for_real():
    """Only what does not depend on the machine that this runs on."""
    status, last = judged("import judged; judged.timed('x', True); print('fine')")
    assert (status, last) == (0, "held"), last
    status, last = judged("import judged; assert 1 == 2, 'a count'")
    assert status == 1 and last == "failed: AssertionError: a count", last
    status, last = judged("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert status == 1 and last.startswith("failed: killed by signal 11"), last
    status, last = judged("print('SKIP: nothing to see'); sys.exit(77)")
    assert (status, last) == (77, "not judged: nothing to see"), last
    status, last = judged("import time; time.sleep(60)", "--bound", "1")
    assert status == 1 and last.startswith("failed: it had not ended"), last
    ok("counts, crashes, skips and hangs of real programs")
    status, last = judged("import time; time.sleep(600)", JUDGE_UNTIL=str(time.time() + 5))
    assert status == 77 and last.startswith("not judged: "), last
    status, last = judged("print('never')", JUDGE_UNTIL=str(time.time() - 1))
    assert (status, last) == (77, "not judged: no time left of that of all measurements"), last
    ok("the end of all measurements ends one, which is no hang of it")
    # Within 20 s there is no time for a second one.
    status, last = judged("import judged; judged.time_between('ms of it', 9, 1, 2)", "--bound", "20")
    assert (status, last.split(":")[0]) in ((1, "failed"), (77, "not judged")) and "ms of it" in last, last
    ok("a wrong time is failed or not judged")
    status, last = judged("print('WRONG it is not first'); sys.exit(1)", "--times", "--bound", "20")
    assert (status, last.split(":")[0]) in ((1, "failed"), (77, "not judged")) and "not first" in last, last
    status, last = judged("print('fine so far'); assert False, 'exit status 139'", "--times")
    assert (status, last) == (1, "failed: AssertionError: exit status 139"), last
    ok("and so is a complaint of a script that is all about times, but not its crash")
    assert has_no_bpf(4, "whyslow: this kernel has no ring buffers for BPF")
    assert not has_no_bpf(4, "whyslow: the kernel's verifier refuses the BPF program 'io': invalid access")
    assert not has_no_bpf(1, "BPF")
    ok("a program of ours that the kernel refuses is no lack of BPF")
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(TRUTH)!r})\n"
                           "import judged\njudged.timed('x', False)\nc = judged.Checks()\n"
                           "c.check('a', False, time=True)\nassert c.status() == 0\nc.check('b', False)\n"
                           "sys.exit(c.status())"], env={"TIMES": "not-judged"}, capture_output=True, check=False)
    assert done.returncode == 1, done
    ok("where times are not judged counts are, all the same")


for test in (test_outcomes, test_windows, test_bounds, test_reading, test_for_real):
    test()
print(f"1..{number}")
