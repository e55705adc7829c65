#!/usr/bin/python3
"""Makes a measurement of the running machine, and says whether its answer counts.

    judge.py [--times] [--bound SECONDS] -- COMMAND…

A measurement compares times, and times belong to the whole machine: to the guests beside it on the same host (steal),
to other programs, to whoever stands in a run queue. So the machine is watched meanwhile, and the last line is

    held                    the measurement passed, whatever the machine did
    failed: WHY             about times, in a quiet window; or not about times at all. Exit status 1
    not judged: WHY         about times, and every window was a disturbed one, with its figures; or it cannot be made
                            here. Exit status 77

A measurement that fails in a disturbed window is made again after a wait for quiet, at most ATTEMPTS times and no later
than the bound; not at all where no quiet comes. Nothing begins after the second since 1970 that JUDGE_UNTIL in the
environment names, and what has not ended then is ended: not judged. Nothing is forgiven: what is not judged was not
seen to hold, and is listed with its reason.

What a failure is about is said by the measurement: exit status 75 (judged.py: timed()) is about times; every
other failure (a stack, a count, a crash, a hang) is failed at once and never made again. With --times so is what ends
with exit status 1 and complaints, lines that begin with WRONG: for scripts whose every verdict hangs on times.
"""

import argparse
import ctypes
import os
import pathlib
import resource
import select
import signal
import subprocess
import sys
import time

ABOUT_TIMES, SKIPPED, FAILED = 75, 77, 1
ATTEMPTS = 3
SLICE_S = 1.0
WAIT_FOR_QUIET_S = 20.0
QUIET_SLICES = 2

# What makes a second a disturbed one. Tight, since the tests' own tolerances are: 5% of a wait of 300 ms is 15 ms.
# The kernel tells steal in ticks of 10 ms, for each CPU apart: one may be a rest of the second before, two are not.
STEAL_MS = 20.0
# CPU time of programs that are none of the measurement's, in ms of one CPU within a second. A quiet machine's own
# housekeeping (kernel threads that write its pages back, its log) stays below 3%; an eighth of a CPU makes threads wait
# that need all CPUs, and a scheduler moves them then.
OTHERS_MS = 125.0


class Group:
    """A control group for the measurement alone: what its processes take of the CPUs, those that have ended, too."""

    def __init__(self, proc=pathlib.Path("/proc"), name=None):
        self.path = self.file = self.all = None
        self.scale = 1.0
        for mount, kind, mine in self.places(proc):
            path = mount / mine.lstrip("/") / (name or f"whyslow-judge-{os.getpid()}")
            file, scale = ("cpuacct.usage", 1e-6) if kind == "cpuacct" else ("cpu.stat", 1e-3)
            try:
                path.mkdir()
                (path / file).read_text()
            except OSError:
                continue
            self.path, self.file, self.scale = path, path / file, scale
            self.all = mount / file if kind == "cpuacct" else None
            return

    @staticmethod
    def places(proc):
        """Mounts of version 1 first: a test may put processes into groups of version 2 of its own."""
        try:
            mine = dict(line.split(":", 2)[1:] for line in (proc / "self/cgroup").read_text().splitlines())
            mounts = [line.split() for line in (proc / "self/mounts").read_text().splitlines()]
        except OSError:
            return
        for _, mount, kind, options, *_ in mounts:
            if kind == "cgroup" and "cpuacct" in options.split(","):
                at = next((path for names, path in mine.items() if "cpuacct" in names.split(",")), "/")
                yield pathlib.Path(mount), "cpuacct", at
        for _, mount, kind, *_ in mounts:
            if kind == "cgroup2":
                at = mine.get("", "/")
                yield from ((pathlib.Path(mount), "v2", path) for path in (*with_cpu(pathlib.Path(mount), at), at))

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def used_ms(self):
        text = self.file.read_text().split()
        return float(text[1] if text[0] == "usage_usec" else text[0]) * self.scale

    def waited_ms(self):
        """How long some thread of it stood in a run queue; None where the kernel does not tell."""
        return pressure_ms(self.path / "cpu.pressure") if self.path else None

    def groups(self):
        """Itself and what a measurement made below it, innermost first."""
        return sorted((file.parent for file in self.path.rglob("cgroup.procs")), reverse=True) if self.path else []

    def left(self):
        pids = set()
        for group in self.groups():
            try:
                pids.update(map(int, (group / "cgroup.procs").read_text().split()))
            except OSError:
                continue  # gone, or one of threads, whose processes are its parent's
        return sorted(pids)

    def clear(self):
        """Ends what a measurement left behind, which would disturb the next one; how many these are."""
        left = pids = self.left()
        for _ in range(100):
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            if not pids:
                break
            time.sleep(0.05)
            pids = self.left()
        return len(left)

    def remove(self):
        try:
            for group in self.groups():
                group.rmdir()
        except OSError as error:
            print(f"its control group stays: {error}", file=sys.stderr)


def with_cpu(mount, mine):
    """Of this group of version 2 and those above it the ones in which groups may be limited: some measurements limit one
    below their own, whose CPU time is theirs then."""
    own = pathlib.PurePosixPath(mine)
    for path in (own, *own.parents):
        try:
            if "cpu" in (mount / str(path).lstrip("/") / "cgroup.subtree_control").read_text().split():
                yield str(path)
        except OSError:
            continue


def pressure_ms(path):
    try:
        return int(path.read_text().split("total=", 1)[1].split()[0]) / 1000
    except (OSError, IndexError, ValueError):
        return None


def tree_ms(proc, root, ticks):
    """Without a group: what the descendants of a process took, they and what they have waited for."""
    parents, took = {}, {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            took[int(entry.name)] = sum(map(int, fields[11:15])) * 1000 / ticks
    total = 0.0
    for pid, ms in took.items():
        at = pid
        while at in parents and at != root:
            at = parents[at]
        if at == root and pid != root:
            total += ms
    return total


class Machine:
    """What the CPUs did since the machine started, in ms."""

    def __init__(self, group, proc=pathlib.Path("/proc"), ticks=os.sysconf("SC_CLK_TCK")):
        self.group, self.proc, self.ticks = group, proc, ticks
        # A group of version 1 sees all of the machine where it is not that of a container.
        _, told = self.told_ms()
        exact = self.exact_ms()
        self.exact = exact is not None and exact >= 0.8 * told

    def told_ms(self):
        """Stolen and taken by all, in ticks."""
        user, nice, system, _, _, irq, softirq, steal = map(int, (self.proc / "stat").read_text().split()[1:9])
        return steal * 1000 / self.ticks, (user + nice + system + irq + softirq) * 1000 / self.ticks

    def exact_ms(self):
        """Taken by all as the scheduler knows it: a tick is charged whole to whoever runs at its end, which is wrong
        for programs that run by timers. None: this kernel does not tell."""
        try:
            rows = [line.split() for line in (self.proc / "schedstat").read_text().splitlines() if line.startswith("cpu")]
            return sum(int(row[7]) for row in rows) / 1e6
        except (OSError, IndexError, ValueError):
            return int(self.group.all.read_text()) / 1e6 if self.group.all else None

    def own_ms(self):
        if self.group.path:
            return self.group.used_ms()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (usage.ru_utime + usage.ru_stime) * 1000 + tree_ms(self.proc, os.getpid(), self.ticks)

    def look(self):
        """Stolen, taken by all, taken by the measurement, stood in run queues (None: not told)."""
        stolen, told = self.told_ms()
        waited = self.group.waited_ms()
        return (stolen, self.exact_ms() if self.exact else told, self.own_ms(),
                pressure_ms(self.proc / "pressure/cpu") if waited is None else waited)


class Window:
    """What the machine did while a measurement was made: second by second, since a mean hides a burst."""

    def __init__(self, machine, clock=time.monotonic):
        self.machine, self.clock = machine, clock
        self.first = self.last = machine.look()
        self.begun = self.cut = clock()
        self.slices = []

    def slice(self, least_s=SLICE_S):
        now = self.clock()
        if now - self.cut < least_s:
            return
        look = self.machine.look()
        stolen, busy, own, _ = (None if a is None or b is None else b - a for a, b in zip(self.last, look))
        # Below 0 is none: the two accounts are not read at one moment. Of a slice that was long, as when the judge itself was kept waiting, a second's part counts.
        long = max(now - self.cut, SLICE_S)
        self.slices.append((stolen / long, max(0.0, busy - own) / long))
        self.last, self.cut = look, now

    def end(self):
        # The rest of a second counts as a whole one: half of a burst is no quieter than all of it.
        self.slice(0.0)

    def disturbed(self):
        """The reason with its figures; empty: it was quiet."""
        stolen = max((s for s, _ in self.slices), default=0.0)
        others = max((o for _, o in self.slices), default=0.0)
        said = []
        if stolen >= STEAL_MS:
            said.append(f"other guests of the host took {stolen:.0f} ms of CPU time in a second (quiet: below {STEAL_MS:.0f})")
        if others >= OTHERS_MS:
            said.append(f"other programs took {others:.0f} ms of CPU time in a second (quiet: below {OTHERS_MS:.0f})")
        return "; ".join(said)

    def figures(self):
        stolen, busy, own, waited = (None if a is None or b is None else b - a for a, b in zip(self.first, self.last))
        queue = "n/a" if waited is None else f"{waited:.0f} ms"
        return (f"{self.cut - self.begun:.1f} s, stolen {stolen:.0f} ms, others {max(0.0, busy - own):.0f} ms, "
                f"own {own:.0f} ms, in run queues {queue}")


def wait_for_quiet(machine, until, clock=time.monotonic, sleep=time.sleep):
    """Whether there was quiet before that second."""
    window = Window(machine, clock)
    while clock() < until:
        sleep(SLICE_S)
        window.slice(0.0)
        latest = window.slices[-QUIET_SLICES:]
        if len(latest) == QUIET_SLICES and all(s < STEAL_MS and o < OTHERS_MS for s, o in latest):
            return True
    return False


def judge(attempt, machine, until, clock=time.monotonic, sleep=time.sleep, say=print):
    """The exit status. `attempt(window)` makes one measurement: its status and the line that says why."""
    reasons = []
    if clock() > until:
        say("not judged: no time left of that of all measurements")
        return SKIPPED
    for number in range(1, ATTEMPTS + 1):
        window = Window(machine, clock)
        status, why = attempt(window)
        window.end()
        say(f"measurement {number}: {window.figures()}")
        if status == 0:
            say("held")
            return 0
        if status == SKIPPED:
            say(f"not judged: {why.removeprefix('SKIP:').strip()}")
            return SKIPPED
        if status != ABOUT_TIMES:
            say(f"failed: {why}")
            return FAILED
        disturbed = window.disturbed()
        if not disturbed:
            say(f"failed: {why}")
            return FAILED
        reasons.append(disturbed)
        say(f"disturbed: {disturbed}")
        if number == ATTEMPTS or clock() + WAIT_FOR_QUIET_S + (window.cut - window.begun) > until:
            break
        if not wait_for_quiet(machine, clock() + WAIT_FOR_QUIET_S, clock, sleep):
            break
    say(f"not judged: {reasons[-1]}, {len(reasons)} times of {len(reasons)}; the last one: {why}")
    return SKIPPED


def last_words(lines):
    """What a measurement said when it failed: the end of a traceback, or the last complaint."""
    said = [line.strip() for line in lines if line.strip()]
    wrong = [line for line in said if line.startswith(("WRONG", "SKIP:"))]
    return (wrong or said or ["it printed nothing"])[-1]


def measurement(command, group, until, over, all_about_times):
    """attempt() for judge(): runs the command in its group and shows what it prints. It hangs beyond `until`; `over` is
    when all measurements have to end."""
    made = 0

    def attempt(window):
        nonlocal made
        made += 1
        lines, rest = [], b""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              preexec_fn=group.enter, start_new_session=True) as process:
            pidfd, out = os.pidfd_open(process.pid), process.stdout.fileno()
            os.set_blocking(out, False)
            waiting = select.poll()
            waiting.register(pidfd, select.POLLIN)
            waiting.register(out, select.POLLIN | select.POLLHUP)
            ended = hung = False
            while not ended and not hung:
                ready = {fd for fd, _ in waiting.poll(SLICE_S * 1000)}
                ended = pidfd in ready
                hung = not ended and time.monotonic() > min(until, over)
                if out in ready or ended:  # a server that was left behind may hold the pipe: no waiting for its end
                    text = drain(out)
                    if not text and out in ready and not ended:
                        waiting.unregister(out)
                    sys.stdout.buffer.write(text)
                    sys.stdout.flush()
                    *whole, rest = (rest + text).split(b"\n")
                    lines += [line.decode(errors="replace") for line in whole]
                    del lines[:-200]
                window.slice()
            os.close(pidfd)
            if hung:
                os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        left = group.clear()
        if left:
            print(f"processes that it left behind, ended: {left}")
        why = last_words(lines + [rest.decode(errors="replace")])
        if hung and over < until:
            return SKIPPED, f"it had not ended when the time of all measurements was over; the last line: {why}"
        if hung:
            # The first one had all the time there is. A later one has what is left of it, and a busy machine is slow.
            window.end()
            status = ABOUT_TIMES if made > 1 and window.disturbed() else FAILED
            return status, f"it had not ended when its time was over; the last line: {why}"
        if status < 0:
            return FAILED, f"killed by signal {-status}; the last line: {why}"
        complains = why.startswith("WRONG")
        return ABOUT_TIMES if status == 1 and complains and all_about_times else status, why
    return attempt


def drain(fd):
    text = b""
    try:
        while part := os.read(fd, 65536):
            text += part
    except BlockingIOError:
        pass
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", action="store_true", help="complaints are about times, too")
    parser.add_argument("--bound", type=float, default=280, help="seconds for all attempts together")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    until = time.monotonic() + options.bound
    over = until
    if os.environ.get("JUDGE_UNTIL"):
        over = time.monotonic() + float(os.environ["JUDGE_UNTIL"]) - time.time()
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: whose parent is gone stays ours
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # nor is anything left when we are ended
    group = Group()
    try:
        return judge(measurement(options.command, group, until, over, options.times), Machine(group), min(until, over))
    finally:
        group.clear()
        group.remove()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
