#!/usr/bin/python3
"""A handshake with a recorder that looks at threads, as all do that have no privileges.

It comes by 97 times a second where it gets the CPU, and on a busy machine whenever that is: no wait is so long that it is
certain to be looked at. But between any two looks it sleeps. So a thread that has slept all the while was looked at when
the recorder has fallen asleep often enough since, however long that takes.

    seen.py PID PROGRAM SIGNAL     ends processes of this name below the recorder PID so, once they were looked at and
                                   have slept for 0.3 s
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

# One look is enough for a shallow stack. A deep one is read in steps, each of which is another look; and a recorder that
# has read large tables rests for some rounds.
LOOKS = 40
PAUSE_S = 0.02


def below(pid):
    """The processes that it started, and those that they did."""
    children = [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text().split()]
    return [*children, *(further for child in children for further in below(child))]


def named(recorder, program):
    """Processes of this name below it; a name has 15 letters at most."""
    return [pid for pid in below(recorder)
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == program[:15]]


def sleeps(pid):
    """How often its first thread has fallen asleep."""
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def fallen_asleep(pid):
    """The same of all its threads together."""
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M)[1])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def looks_by_now(recorder):
    """Whether it has begun to: the timer that calls it to look is set."""
    for file in pathlib.Path(f"/proc/{recorder}/fdinfo").iterdir():
        try:
            if re.search(r"^it_interval: \((?!0, 0\))", file.read_text(), re.M):
                return True
        except OSError:
            pass
    return False


def asleep(pids, only=None):
    """For each of their threads, or for that one alone, how often it has left the CPU: the same twice, and it has slept
    in between. None: one of them runs."""
    found = {}
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            if only and task.name != str(only):
                continue
            text = (task / "status").read_text()
            if "State:\tS" not in text:
                return None
            found[task.name] = re.findall(r"ctxt_switches:\s+(\d+)", text)
    return found or None


class Watch:
    """Looks whether all that is watched has slept for so long, and while the recorder has come by so often."""

    def __init__(self, looks=LOOKS, seconds=0.0, only=None):
        self.looks, self.seconds, self.only = looks, seconds, only
        self.state, self.begin, self.since = None, 0, 0.0

    def look(self, recorder, pids):
        """Since when they sleep, once that is long enough; else None."""
        try:
            state = asleep(pids, self.only)
            count = sleeps(recorder)
        except (OSError, TypeError):  # gone
            state = None
        if state is None or state != self.state:
            self.state, self.begin, self.since = state, 0 if state is None else count, time.monotonic()
            return None
        long = count - self.begin >= self.looks and time.monotonic() - self.since >= self.seconds
        return self.since if long else None


def wait_seen(recorder, program, watch=None, alive=lambda: True):
    """Returns since when all processes of this name below the recorder sleep, once it has looked; None: it ended before."""
    watch, since = watch or Watch(), None
    while since is None and alive():
        time.sleep(PAUSE_S)
        try:
            since = watch.look(recorder, named(recorder, program))
        except OSError:  # one that was about to end
            pass
    return since


def end(recorder, program, number, alive):
    """The signal goes on until it is heeded: a process may not be waiting for it yet."""
    while alive():
        try:
            for pid in named(recorder, program):
                os.kill(pid, number)
        except OSError:
            pass
        time.sleep(PAUSE_S)


def run(command, program, ends_by=signal.SIGUSR1, watch=None, timeout=None, **more):
    """Like subprocess.run() with all output as text, of a recorder of that program, which is sent the signal when it was
    looked at. `slept_s` of the result: for how long it certainly had slept by then."""
    more.setdefault("env", dict(os.environ))
    more["env"] = {**more["env"], "UNTIL_TOLD": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more) as process:
        slept = []

        def watching():
            since = wait_seen(process.pid, program, watch, lambda: process.poll() is None)
            if since is not None:
                slept.append(time.monotonic() - since)
                end(process.pid, program, ends_by, lambda: process.poll() is None)

        watcher = threading.Thread(target=watching, daemon=True)
        watcher.start()
        try:
            out, words = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
        watcher.join()
    done = subprocess.CompletedProcess(command, process.returncode, out, words)
    done.slept_s = slept[0] if slept else None
    return done


def main():
    recorder, program, number = int(sys.argv[1]), sys.argv[2], getattr(signal, f"SIG{sys.argv[3]}")

    def alive():
        return os.path.exists(f"/proc/{recorder}") and ") Z " not in pathlib.Path(f"/proc/{recorder}/stat").read_text()

    if wait_seen(recorder, program, Watch(seconds=0.3), alive) is not None:
        end(recorder, program, number, alive)


if __name__ == "__main__":
    main()
