#!/usr/bin/python3
"""What `whyslow bench` does when things go wrong.

    bench.py CASE --whyslow WHYSLOW
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("case")
parser.add_argument("--whyslow", required=True)
args = parser.parse_args()
whyslow = os.path.abspath(args.whyslow)
PATIENCE_S = 600  # for what hangs


def run(*command, **more):
    return subprocess.run([whyslow, "bench", *command], capture_output=True, text=True, check=False,
                          timeout=600, **more)


def processes(pattern):
    """Command lines of living processes that match."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode(errors="replace")
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z" and re.search(pattern, text):
            found.append(text)
    return found


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what()}"
        time.sleep(0.05)


def wait_gone(pattern):
    wait_for(lambda: not processes(pattern), lambda: f"the end of {processes(pattern)}")


def disk_full():
    """The results are printed, the old file stays whole, nothing half-written is left."""
    if os.geteuid() != 0:
        print("SKIP: mounting a small disk needs root")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
                          capture_output=True, check=False).returncode != 0:
            print("SKIP: a small disk cannot be mounted here")
            sys.exit(77)
        try:
            path = f"{folder}/result.json"
            open(path, "w").write("old\n")
            done = run("-w", "0", "-r", "200", "--export-json", path, "true")
            assert done.returncode == 5, done
            assert "No space left on device" in done.stderr, done.stderr
            assert "wall time" in done.stdout
            assert open(path).read() == "old\n"
            assert os.listdir(folder) == ["result.json"], os.listdir(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def gigabytes():
    """Output of any size is hashed and dropped: whyslow stays small."""
    command = [whyslow, "bench", "--json", "-w", "0", "-r", "1", "head -c 1000000000 /dev/zero"]
    done = subprocess.Popen(command, stdout=subprocess.PIPE)
    result = json.loads(done.stdout.read())
    _, _, usage = os.wait4(done.pid, 0)
    peak = usage.ru_maxrss  # KiB, also of the small ones that it waited for
    r = result["results"][0]
    assert r["runs"][0]["output_bytes"] == 1000000000
    assert [w["kind"] for w in r["warnings"] if w["kind"] == "large_output"], r["warnings"]
    # A hundredth of the output; the sanitizers alone take some 50 MiB.
    assert 0 < peak < 200000, peak


def closed_streams():
    """whyslow itself without stdin, and a target that closes its own, are measured like others."""
    done = subprocess.run(["bash", "-c", f"exec 0<&-; exec {whyslow} bench --json -r 3 cat"],
                          capture_output=True, check=False, timeout=600)
    assert done.returncode in (0, 3), done
    assert json.loads(done.stdout)["results"][0]["n"] == 3
    done = subprocess.run(["bash", "-c", f"exec 0<&- 2>&-; exec {whyslow} bench --json -r 3 true"],
                          capture_output=True, check=False, timeout=600)
    assert json.loads(done.stdout)["results"][0]["n"] == 3
    done = run("-r", "3", "sh -c 'exec <&- >&- 2>&-; sleep 0.05'")
    assert done.returncode in (0, 3), done


def killed():
    """kill -9 of whyslow: the target runs to its end, and then nobody is left."""
    with tempfile.TemporaryDirectory() as folder:
        script = f"{folder}/target"
        open(script, "w").write(f"#!/bin/sh\necho begin >>{folder}/log\nuntil [ -e {folder}/killed ]; do sleep 0.05; done\n"
                                f"yes | head -c 200000\necho end >>{folder}/log\n")
        os.chmod(script, 0o755)
        for warmup in ("0", "1"):  # timed, and watched at its exit
            open(f"{folder}/log", "w").close()
            bench = subprocess.Popen([whyslow, "bench", "-w", warmup, "-r", "5", script],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(lambda: "begin" in open(f"{folder}/log").read(), lambda: "the first run")
            bench.send_signal(signal.SIGKILL)
            bench.wait()
            open(f"{folder}/killed", "w").close()
            # The launcher, too: it has the command's words.
            wait_gone(re.escape(script))
            # Once only: it was not started again, and it was not cut off.
            assert open(f"{folder}/log").read() == "begin\nend\n", open(f"{folder}/log").read()
            os.unlink(f"{folder}/killed")


def hanging():
    """A target that ignores SIGTERM and has children is ended by its timeout, children and all."""
    mark = f"9{os.getpid()}"
    done = run("--timeout", "300ms", "-w", "0", "-r", "2",
               f"sh -c \"trap '' TERM; sleep {mark} & sleep {mark}\"")
    assert done.returncode == 1, done
    assert "run 1 was ended because it ran longer than --timeout" in done.stderr, done.stderr
    wait_gone(f"^sleep {mark}")


def vanishing():
    """The program goes away in the midst of it: what was measured before is kept and told."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/app"
        open(program, "w").write('#!/bin/sh\necho x >>"$0.log"\n[ "$(wc -l <"$0.log")" -lt 4 ] || rm "$0"\n')
        os.chmod(program, 0o755)
        done = run("-w", "0", "-r", "9", "--export-json", f"{folder}/r.json", program)
        assert done.returncode == 1, done
        result = json.load(open(f"{folder}/r.json"))["results"][0]
        assert result["n"] == 4 and result["end"] == "failed", result["n"]
        assert "app" in done.stderr, done.stderr


{"disk-full": disk_full, "gigabytes": gigabytes, "closed-streams": closed_streams, "killed": killed,
 "hanging": hanging, "vanishing": vanishing}[args.case]()
print("ok")
