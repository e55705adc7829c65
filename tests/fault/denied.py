#!/usr/bin/python3
"""`whyslow record` where perf_event_open() really fails: refused in words, before anything is
started, and without an empty recording that looks like a result.

    denied.py CASE --whyslow WHYSLOW --deny DENY
"""

import argparse
import errno
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

DENIED = 4
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

parser = argparse.ArgumentParser()
parser.add_argument("case", choices=["eacces", "eperm", "enosys", "paranoid-3"])
parser.add_argument("--whyslow", required=True)
parser.add_argument("--deny", required=True)
args = parser.parse_args()


def run(folder, number, *command, before=()):
    done = subprocess.run([*before, folder / "deny", str(number), folder / "whyslow", *command],
                          cwd=folder / "work", capture_output=True, text=True, check=False, timeout=600,
                          env={**os.environ, "HOME": str(folder / "home")})
    print("$", *command, "->", done.returncode, "\n" + done.stdout + done.stderr)
    if done.returncode == 77 and "seccomp" in done.stderr:
        print("SKIP: this kernel has no seccomp filters")
        sys.exit(77)
    return done


def refused(folder, number, words, before=()):
    """Every kind of target; the command's own status must not be mistaken for ours."""
    me = subprocess.Popen([*before, "sleep", "100"])
    targets = [["--", "touch", "started"], ["-p", str(me.pid), "-d", "1"]]
    if not before:
        targets += [["-a", "-d", "1"], ["--cgroup", ".", "-d", "1"]]
    try:
        for target in targets:
            done = run(folder, number, "record", *target, before=before)
            assert done.returncode == DENIED, done.returncode
            assert done.stdout == "" and "try: " in done.stderr, done
            for word in words:
                assert word in done.stderr, (word, done.stderr)
            left = list((folder / "work").iterdir())
            assert not left, f"left behind: {left}"
        assert me.poll() is None, "the target was ended"
    finally:
        me.kill()
        me.wait()


def measured_all_the_same(folder, number):
    """`run` does not need samples: it says what is missing and goes on."""
    done = run(folder, number, "run", "--runs", "2", "--out", "out", "--", "true")
    assert done.returncode == 0, done.returncode
    assert "sampling permitted" in done.stderr and "perf_event_open" in done.stderr, done.stderr
    shutil.rmtree(folder / "work" / "out")


def paranoid_3(folder):
    """Debian's and Ubuntu's value: nobody may sample. Other kernels take the number, but do not
    act on it, so the refusal comes from the filter and the words from the number."""
    path = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    before = path.read_text()
    try:
        path.write_text("3\n")
    except OSError as error:
        print("SKIP: perf_event_paranoid cannot be set:", error)
        sys.exit(77)
    try:
        refused(folder, errno.EACCES, ["not permitted (kernel.perf_event_paranoid is 3)",
                                       "sudo sysctl kernel.perf_event_paranoid=2"], before=NOBODY)
    finally:
        path.write_text(before)


def main():
    with tempfile.TemporaryDirectory(prefix="whyslow-denied-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        for place in ("work", "home"):  # compilers, asked for their version, fill the latter
            (folder / place).mkdir()
            (folder / place).chmod(0o777)
        shutil.copy(args.whyslow, folder / "whyslow")
        shutil.copy(args.deny, folder / "deny")
        if args.case == "paranoid-3":
            if os.geteuid() != 0:
                print("SKIP: only root may change perf_event_paranoid")
                sys.exit(77)
            paranoid_3(folder)
        elif args.case == "enosys":
            refused(folder, errno.ENOSYS, ["this kernel has no perf_event_open", "CONFIG_PERF_EVENTS"])
            measured_all_the_same(folder, errno.ENOSYS)
        else:
            number = errno.EACCES if args.case == "eacces" else errno.EPERM
            refused(folder, number, ["not permitted", "kernel.perf_event_paranoid is", "PERFMON"])
            measured_all_the_same(folder, number)


main()
