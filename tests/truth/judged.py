"""Which assertions of a test are about times, and whether they are judged here.

A test of the running machine checks two kinds of things: counts, stacks and structure, which are the same whatever the
machine does, and times, which belong to the machine. The first are plain assertions. The second go through timed(), and
are judged only where the test is registered as a measurement (suite `truth`, under tests/truth/judge.py): there a failure
ends with the exit status that says that it is about times. Elsewhere (suites `smoke` and `fault`, TIMES=not-judged in the
environment) the figure is printed and nothing else.
"""

import os
import signal
import sys
import traceback

ABOUT_TIMES = 75
JUDGED = os.environ.get("TIMES", "judged") == "judged"


# What nohup, or a shell in the background, made this process ignore its programs would ignore, too.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


class TimeWrong(AssertionError):
    """A time that is not what it should be."""


def timed(what, good, detail=""):
    """An assertion about time: a duration, a share of time, a rate, who came first."""
    print(f"{'time' if JUDGED else 'time, not judged here'}: {what} {detail}: {'good' if good else 'WRONG'}")
    if JUDGED and not good:
        raise TimeWrong(f"{what} {detail}")


def time_between(what, value, low, high):
    timed(what, low <= value <= high, f"{value:.3f} in {low:.3f} to {high:.3f}")


def between(what, value, low, high):
    """No time: a count, a size, a share of counts."""
    print(f"{what}: {value} in {low} to {high}")
    assert low <= value <= high, what


def has_no_bpf(status, said):
    """whyslow or a tool of ours could have no BPF here. A program that the kernel's verifier refuses is no limit of the
    machine but ours."""
    return status == 4 and "verifier" not in said and ("BPF" in said or "privilege" in said)


def hook(kind, value, trace):
    traceback.print_exception(kind, value, trace)
    if issubclass(kind, TimeWrong):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ABOUT_TIMES)


sys.excepthook = hook


class Checks:
    """Checks of which all are made before the test ends; those about times apart."""

    def __init__(self):
        self.wrong, self.times_wrong = 0, 0

    def check(self, name, good, detail="", time=False):
        judged = not time or JUDGED
        print(f"{'ok' if good else 'WRONG' if judged else 'not judged here':<6} {name}: {detail}")
        if not good and judged:
            self.times_wrong += time
            self.wrong += not time

    def between(self, name, value, low, high, reason="", time=False):
        good = isinstance(value, (int, float)) and low <= value <= high
        self.check(name, good, f"{value} in {low:g} to {high:g} {reason and '(' + reason + ')'}", time)

    def status(self):
        return 1 if self.wrong else ABOUT_TIMES if self.times_wrong else 0
