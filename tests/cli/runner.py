#!/usr/bin/python3
"""Golden tests of the command line.

A case is a folder with `run.sh` (bash; `whyslow` is the program under test, `make-recording`
and other `make-*` write recordings whose figures are known, `$SRC` is the source tree, the working folder is empty
and thrown away) and three files with what it must print and return: `stdout`, `stderr`, `status`.
`filter` may hold a sed script for what differs from machine to machine; it is applied to what is
printed before it is compared.

    python3 tests/cli/runner.py --update --whyslow build/whyslow [--case NAME]
"""

import argparse
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 300  # for what hangs; tools/run_tests allows 360 on a busy machine


def all_cases():
    return sorted(p.parent.name for p in HERE.glob("*/run.sh"))


def run_case(name, whyslow):
    """What the case prints and returns now, filtered."""
    folder = HERE / name
    work = pathlib.Path(tempfile.mkdtemp(prefix="whyslow-cli-"))
    try:
        (work / "bin").mkdir()
        (work / "bin" / "whyslow").symlink_to(pathlib.Path(whyslow).resolve())
        tools = pathlib.Path(whyslow).resolve().parent / "tests" / "workloads"
        for tool in tools.glob("make-*"):
            if tool.is_file():
                (work / "bin" / tool.name).symlink_to(tool)
        (work / "cwd").mkdir()
        # Nothing of the person running the tests may leak in: no signals that nohup or a background job ignores, either.
        for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            if signal.getsignal(one) == signal.SIG_IGN:
                signal.signal(one, signal.SIG_DFL)
        env = {
            "PATH": f"{work}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "HOME": str(work / "cwd"),
            "SRC": str(HERE.parent.parent),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""),
            "UBSAN_OPTIONS": os.environ.get("UBSAN_OPTIONS", ""),
        }
        done = subprocess.run(
            ["bash", str(folder / "run.sh")], cwd=work / "cwd", env=env,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
        outputs = {"stdout": done.stdout, "stderr": done.stderr}
        for key, text in outputs.items():
            text = text.replace(str(work).encode(), b"WORK")
            # As a whole: a tree in /whyslow is no part of /var/lib/whyslow.
            text = re.sub(rb"(?<![\w.-])" + re.escape(str(HERE.parent.parent).encode()) + rb"(?![\w-])", b"SRC", text)
            if (folder / "filter").exists():
                text = subprocess.run(["sed", "-E", "-f", str(folder / "filter")], input=text,
                                      capture_output=True, check=True).stdout
            outputs[key] = text
        outputs["status"] = f"{done.returncode}\n".encode()
        return outputs
    finally:
        shutil.rmtree(work, ignore_errors=True)


def update(name, outputs):
    for key, text in outputs.items():
        path = HERE / name / key
        if not path.exists() or path.read_bytes() != text:
            print(f"updated {name}/{key}")
            path.write_bytes(text)


def compare(name, outputs):
    good = True
    for key, text in outputs.items():
        path = HERE / name / key
        expected = path.read_bytes() if path.exists() else b"(file is missing)\n"
        if expected == text:
            continue
        good = False
        sys.stdout.writelines(difflib.unified_diff(
            expected.decode(errors="replace").splitlines(keepends=True),
            text.decode(errors="replace").splitlines(keepends=True),
            f"{name}/{key} (expected)", f"{name}/{key} (now)"))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whyslow")
    parser.add_argument("--case")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--check-listed")
    args = parser.parse_args()
    if args.check_listed is not None:
        unlisted = set(all_cases()) ^ set(args.check_listed.split(","))
        if unlisted:
            print("in the folder or in meson.build, but not in both:", ", ".join(sorted(unlisted)))
        return 1 if unlisted else 0
    good = True
    for name in [args.case] if args.case else all_cases():
        outputs = run_case(name, args.whyslow)
        if args.update:
            update(name, outputs)
        else:
            good = compare(name, outputs) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
