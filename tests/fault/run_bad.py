#!/usr/bin/python3
"""`whyslow run` on what is bad input: what was finished is kept and reported, what is missing is
named, and the exit status is right.

    run_bad.py CASE WHYSLOW DENY
"""

import contextlib
import errno
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from judged import ABOUT_TIMES, timed  # noqa: E402

DONE, FAILED, USAGE, INCONCLUSIVE, DENIED, OWN_FAILURE = range(6)
# Few runs and a budget that no machine is too busy for: what is said of the last axis hangs on its being recorded.
ALL_AXES = ["--runs", "3", "--budget", "10m"]
# As --quick, in all the time that a busy machine takes.
QUICK = ["--quick", "--budget", "10m"]
# A nobody of its own: locked memory is counted by user, and tests run side by side.
NOBODY = ["setpriv", f"--reuid={61000 + os.getpid() % 4000}", "--regid=65534", "--clear-groups"]
case, whyslow, deny = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])


def call(folder, *words, before=(), stdin=subprocess.DEVNULL, timeout=600, env=None):
    begin = time.monotonic()
    done = subprocess.run([*before, whyslow, "run", "--json", "--out", "out", *words], cwd=folder, stdin=stdin,
                          capture_output=True, check=False, timeout=timeout, env=env)
    done.seconds = time.monotonic() - begin
    print("$ whyslow run", *words, "->", done.returncode, f"in {done.seconds:.1f} s")
    print(done.stderr.decode(errors="replace"))
    return done


def answered(done, *statuses):
    """The JSON. An unstable baseline is the machine's affair: status 3 is as good as 0."""
    assert done.returncode in (statuses or (DONE, INCONCLUSIVE)), done.returncode
    return json.loads(done.stdout)


def says(lines, *words):
    text = "\n".join(lines)
    for word in words:
        assert re.search(word, text), f"'{word}' is not said in:\n{text}"


def in_time(done, seconds):
    timed("it was over", done.seconds < seconds, f"in {done.seconds:.1f} s, of {seconds}")


def latest(folder):
    return pathlib.Path(folder) / "out" / "latest"


def fails(folder):
    """Exit status 1, which run, and the end of its stderr; nothing is reported as if it were good."""
    done = call(folder, *QUICK, "--", "sh", "-c", "echo reason >&2; exit 7")
    assert done.returncode == FAILED and not done.stdout
    says([done.stderr.decode()], "warm-up run 1 exited with status 7", r"\| reason", "--force")
    result = answered(call(folder, *QUICK, "--force", "--", "sh", "-c", "exit 7"))
    assert result["failed_runs"] == result["runs"]


def fails_when_recorded(folder):
    """An axis whose library the program does not take is n/a; the others are there."""
    result = answered(call(folder, *ALL_AXES, "--", "sh", "-c", "sleep 0.05; test -z \"$LD_PRELOAD\""))
    assert result["artifacts"]["recording"].endswith("recording.whyslow")
    says(result["missing"], r"heap: the program exited with status 1 while it was recorded, not without")
    assert result["artifacts"]["recording_heap"].startswith("n/a: ")


def answer_changes(folder):
    """The same for a program that says something else."""
    result = answered(call(folder, *ALL_AXES, "--", "sh", "-c", "sleep 0.05; echo \"<$LD_PRELOAD>\""))
    says(result["missing"], "heap: the program's answer changed while it was recorded")
    assert result["output_stable"] is True


def hangs(folder):
    """--timeout ends it, with the remedy."""
    done = call(folder, "--timeout", "300ms", "--", "sleep", "60")
    assert done.returncode == FAILED
    in_time(done, 30)
    says([done.stderr.decode()], "longer than --timeout", "give it longer")


def terminal(folder):
    """A program that asks the terminal is stopped, not waited for."""
    parent, child = pty.openpty()
    script = "import os\nos.close(os.open('/dev/tty', os.O_RDWR))\nprint(open('/dev/tty').readline())\n"
    pid = os.fork()
    if pid == 0:
        os.setsid()
        import fcntl
        import termios
        fcntl.ioctl(child, termios.TIOCSCTTY, 0)
        done = call(folder, *QUICK, "--", sys.executable, "-c", script, stdin=child)
        text = done.stderr.decode()
        good = done.returncode in (FAILED, USAGE) and "terminal" in text
        sys.stdout.flush()
        os._exit(1 if not good else ABOUT_TIMES if done.seconds >= 30 else 0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(parent)
    assert status in (0, ABOUT_TIMES), status
    timed("it was over in 30 s", status == 0)


def stdin(folder):
    """It gets /dev/null, whatever we were given, and --input puts a file in its place."""
    reader, writer = os.pipe()
    os.write(writer, b"from the pipe\n")
    script = "n=$(wc -c); sleep 0.02; echo $n"
    result = answered(call(folder, *QUICK, "--", "sh", "-c", script, stdin=reader))
    zero = result["output"]
    (pathlib.Path(folder) / "given").write_text("12345\n")
    result = answered(call(folder, *QUICK, "--input", "given", "--golden", "grep -q 6", "--", "sh", "-c", script))
    assert result["output"] != zero
    assert 'input = "given"' in (latest(folder) / "scenario.toml").read_text()


def daemon(folder):
    """What is left behind is said: ended where it is ours to end, named where it is not."""
    result = answered(call(folder, *QUICK, "--", "sh", "-c", "sleep 100 & sleep 0.05"))
    says(result["notes"], "left processes behind")
    (pathlib.Path(folder) / "holds").touch()
    script = "setsid sh -c 'while [ -e holds ]; do sleep 0.1; done' & sleep 0.05"
    result = answered(call(folder, *QUICK, "--runs", "2", "--", "sh", "-c", script))
    says(result["notes"], "holds the output open")
    (pathlib.Path(folder) / "holds").unlink()


def changing(folder):
    """Another answer every time: said, marked, and no golden output is kept."""
    result = answered(call(folder, *QUICK, "--", sys.executable, "-c", "import os; print(os.urandom(9))"))
    assert result["output_stable"] is False
    says(result["marks"], "different outputs")
    assert "golden" not in (latest(folder) / "scenario.toml").read_text()


def golden(folder):
    """A wrong answer fails loudly, whatever says that it is wrong."""
    (pathlib.Path(folder) / "right").write_text("42\n")
    for good in ("right", "grep -qx 42", "sha256:084c799cd551dd1d8d5c5f9a5d593b2e931f5e36122ee5c793c1d08a19839cc0"):
        answered(call(folder, *QUICK, "--golden", good, "--", "echo", "42"))
    for bad in ("right", "grep -qx 42"):
        done = call(folder, *QUICK, "--golden", bad, "--", "echo", "41")
        assert done.returncode == FAILED and not done.stdout
        says([done.stderr.decode()], "printed (something else|what the check command refuses)")
    # The scenario that a run leaves holds its answer.
    answered(call(folder, *QUICK, "--", "cat", "right"))
    scenario = str(latest(folder).resolve() / "scenario.toml")
    (pathlib.Path(folder) / "right").write_text("43\n")
    assert call(folder, *QUICK, "--scenario", scenario).returncode == FAILED


def short(folder):
    """A program of a millisecond: measured, and said how little samples of it are worth, unless it hardly computes (on a
    busy machine it waits for a CPU most of that time), or recording took so long there that samples were given up."""
    result = answered(call(folder, *QUICK, "--", "true"))
    assert result["runs"] == 10 and result["complete"]
    metrics = {row["metric"]: row["median"] for row in result["metrics"]}
    share = metrics["cpu_time"] / metrics["wall"]
    said = any(re.search(r"only \d+ CPU samples", mark) for mark in result["marks"])
    sampled = not any("instead waits alone" in mark for mark in result["marks"])
    print("share of CPU time:", share, "sampled:", sampled, "said:", said)
    timed("it computes", share > 0.1, str(share))
    timed("it is sampled", sampled, str(result["marks"]))
    assert said == (sampled and share > 0.1) or abs(share - 0.1) < 0.001, (share, result["marks"])


def long(folder):
    """A program that does not fit into the budget: its beginning is recorded, the time is kept."""
    done = call(folder, "--budget", "5s", "--", "sleep", "60")
    result = answered(done)
    in_time(done, 5 + 3)  # reading and naming what was recorded has no bound of its own
    assert result["runs"] == 0 and "no plain run was finished: a first one was ended after" in result["measured"]
    assert re.search("no plain run was finished; seen are the first .* until it was ended", result["cost"]), result["cost"]
    says(result["honesty"], "cost: .*n/a: no plain run was finished")
    assert wall_of(folder) == "n/a: no plain run was finished", wall_of(folder)
    says(result["missing"], "holds the first", "I/O: not recorded", "heap: not recorded")
    assert (latest(folder) / "recording.whyslow").exists()


def ends(value, low, high):
    """None, or how wide the interval is to either side, relative."""
    if isinstance(low, str) or isinstance(high, str):
        assert low == high == "n/a: not known", (low, high)
        return None
    return (value - low) / value, (high - value) / value


def single(folder):
    """One run does not tell how much runs differ: nothing is said to vary by 0."""
    result = answered(call(folder, "--runs", "1", "--", "sh", "-c", "sleep 0.4; sleep 0.2"))
    assert result["runs"] == 1
    for name, metric in json.loads((latest(folder) / "baseline.json").read_text())["metrics"].items():
        for key in ("stddev", "mad", "cv_percent"):
            assert metric.get(key, "n/a: one run only") == "n/a: one run only", (name, metric)
    done = subprocess.run([whyslow, "bench", "--json", "--runs", "1", "--warmup", "0", "true"], cwd=folder, check=False,
                          stdout=subprocess.PIPE)
    metric = json.loads(done.stdout)["results"][0]["wall_ms"]
    assert all(metric[key] == "n/a: one run only" for key in ("stddev", "mad", "cv")), metric
    costs, axes = (json.loads((latest(folder) / "evidence.json").read_text())[key] for key in ("costs", "axes"))
    apart = abs(axes["waits"]["wall_ns"] / costs["wall_ns"] - 1)
    rows = [(row["location"], row["value_ms"], row["value_low_ms"], row["value_high_ms"]) for row in result["hotspots"]]
    rows += [(row["detector"], row["recoverable_ms"], row["recoverable_low_ms"], row["recoverable_high_ms"])
             for row in result["suspicions"] if row["verdict"] == "confirmed"]
    rows += [(row["detector"], row["ms"], row["low_ms"], row["high_ms"]) for row in result["environment"]
             if row["verdict"] == "confirmed"]
    sleeps = [row for row in rows if "nanosleep" in row[0]]
    assert sleeps, rows
    for row in rows:
        width = ends(*row[1:]) if row[1] != 0 else None
        print(row, width, apart)
        assert width is None or sum(width) > 0.0099, row
    for row in sleeps:
        width = ends(*row[1:])
        assert width is None or width[0] >= 0.999 * apart, (row, apart)
    says(result["honesty"], "fewer than 2 plain runs say nothing of how much runs differ")


def wall_of(folder):
    return json.loads((latest(folder) / "hotspots.json").read_text())["wall_ms"]


def cold(folder):
    """Only the first run is slow. The one that is recorded is whole: it is compared with plain runs, or with nothing."""
    pathlib.Path(folder, "cold.sh").write_text("test -e flag || { touch flag; sleep 60; }; sleep 0.3\n")
    result = answered(call(folder, "--quick", "--", "sh", "cold.sh"))
    costs = json.loads((latest(folder) / "evidence.json").read_text())["costs"]
    said = "\n".join(result["honesty"])
    assert "only the beginning" not in said and "left processes behind" not in said, said
    says(result["missing"], "the first run was ended after .*, as long as one may take of a budget of 10.0 s; the recorded one")
    if result["runs"] == 0:  # a machine so busy that nothing else fitted
        assert "no plain run was finished; the recorded one ended by itself after" in result["cost"], result["cost"]
        says(result["honesty"], "cost: .*n/a: no plain run was finished")
        assert costs["recorded_whole"] and costs["wall_ns"] == "n/a: not known", costs
    else:
        assert re.search("after the recorded one, .*: a first one was ended after", result["measured"]), result["measured"]
        assert costs["wall_ns"] == json.loads((latest(folder) / "baseline.json").read_text())["metrics"]["wall"]["median"]
        assert costs["wall_ns"] / 1e6 == wall_of(folder) and costs["recorded_ns"] == "n/a: not known", costs
        axis = json.loads((latest(folder) / "evidence.json").read_text())["axes"]["waits"]
        says(result["honesty"], re.escape(f"waits {(axis['wall_ns'] / costs['wall_ns'] - 1) * 100:+.1f}%"))
    timed("a plain run fits", result["runs"] > 0, str(result["runs"]))


def budget(folder):
    """The budget is that of all; what it cut is named."""
    done = call(folder, "--budget", "8s", "--", "sleep", "1")
    result = answered(done)
    in_time(done, 8 + 3)
    assert 1 <= result["runs"] < 8 and not result["complete"]
    says(result["missing"], "allowed no more")


def quick(folder):
    """--quick: 10 s in all; with all axes for a program of a second, with fewer for a longer one."""
    script = "import time; x = [bytes(1000) for i in range(20000)]; time.sleep(0.9)"
    command = ("--quick", "--", sys.executable, "-c", script)
    # The first one looks up the names in the interpreter, as it is for who has just installed whyslow.
    env = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "cache")}
    for _ in ("cold", "warm"):
        done = call(folder, *command, env=env)
        result = answered(done)
        in_time(done, 10 + 1)
    timed("runs that fit into 10 s", result["runs"] >= 2, str(result["runs"]))
    for key in ("recording", "recording_io", "recording_heap"):
        timed(f"{key} fits into 10 s", os.path.exists(os.path.join(folder, result["artifacts"][key])), result["artifacts"][key])
    assert os.listdir(os.path.join(folder, "cache")), "nothing was kept for the second"
    done = call(folder, "--quick", "--", "sleep", "3")
    result = answered(done)
    in_time(done, 10 + 1)
    timed("heap does not", "heap: not recorded: the budget left no time" in "\n".join(result["missing"]), str(result["missing"]))
    done = call(folder, "--quick", "--", "sleep", "30")
    result = answered(done)
    in_time(done, 10 + 1)
    says(result["missing"], "the first run was ended after .*, as long as one may take of a budget of 10.0 s")


def cut(folder):
    """The budget holds while recording, too: a run that goes on and on with the heap's library in it is ended by it."""
    done = call(folder, "--quick", "--", "sh", "-c", "sleep 1.5; test -z \"$LD_PRELOAD\" || sleep 100")
    result = answered(done)
    in_time(done, 10 + 1)
    # How far it comes is the machine's affair.
    says(result["missing"], "heap: (not recorded: the budget left no time|the budget ended it before the run was over)")
    assert "3 times its usual time" not in "\n".join(result["missing"]), result["missing"]
    assert re.match("n/a: the budget", result["artifacts"]["recording_heap"]), result["artifacts"]


def gigabytes(folder):
    """More than a gigabyte on stdout a run: counted and hashed, in little memory."""
    before = ["/usr/bin/time", "-f", "peak %M"]
    if not os.path.exists(before[0]):
        before = []
    done = call(folder, "--budget", "120s", "--runs", "2", "--", "head", "-c", "1200000000", "/dev/zero", before=before,
                timeout=600)
    result = answered(done)
    assert result["output_stable"] is True and re.search(r"1\.12 GiB", result["output"]), result["output"]
    peak = re.search(r"peak (\d+)", done.stderr.decode())
    if peak:
        assert int(peak.group(1)) < 400 * 1024, peak.group(0)


def folders(folder):
    """A folder without tests says what was looked for; with some it asks, or refuses in a pipe."""
    empty, full = pathlib.Path(folder) / "empty", pathlib.Path(folder) / "full"
    empty.mkdir()
    full.mkdir()
    done = call(folder, "--yes", "empty")
    assert done.returncode == USAGE
    says([done.stderr.decode()], "nothing to run was found", "scenario.toml", "whyslow run -- ./app")
    (full / "Makefile").write_text("test:\n\t@test -e Makefile\nbench:\n\t@sleep 0.05\n")
    done = call(folder, "full")
    assert done.returncode == USAGE
    says([done.stderr.decode()], "Makefile has a target 'bench'", "--yes", "whyslow run -- make bench")
    result = answered(call(folder, "--yes", *QUICK, "full"))
    assert result["command"] == "make bench"
    says(result["notes"], "functional check: 'make test' went well")
    (full / "Makefile").write_text("test:\n\t@false\nbench:\n\t@sleep 0.05\n")
    assert call(folder, "--yes", *QUICK, "full").returncode == FAILED
    (full / "scenario.toml").write_text('command = ["sleep", "0.03"]\nruns = 7\nwarmup = 2\nmetric = "peak_rss"\n')
    assert answered(call(folder, "--yes", *QUICK, "full"))["runs"] == 10  # as typed
    result = answered(call(folder, "--yes", "--budget", "10m", "full"))
    assert result["command"] == "sleep 0.03" and result["runs"] == 7
    assert result["metric"] == "peak_rss" and 1 << 18 < result["metric_value"] < 1 << 25


def found(folder):
    """Every kind of build, by its files; a tool that is not installed is named, not tried."""
    projects = [
        ("make bench", {"GNUmakefile": "bench: x\n", "Cargo.toml": ""}),
        ("make check", {"makefile": "all:\n\ncheck:\n"}),
        ("meson test -C build --benchmark", {"meson.build": "subdir('b')", "b/meson.build": "benchmark('x', y)",
                                             "build/build.ninja": ""}),
        ("meson test -C _build", {"meson.build": "test('x', y)", "_build/build.ninja": ""}),
        ("ctest --test-dir build", {"CMakeLists.txt": "enable_testing()", "build/CTestTestfile.cmake": ""}),
        ("cargo bench", {"Cargo.toml": "", "benches/x.rs": ""}),
        ("cargo test --release", {"Cargo.toml": ""}),
        ("go test -run ^$ -bench . ./...", {"go.mod": "", "p/a_test.go": "func BenchmarkX("}),
        ("go test ./...", {"go.mod": "", "p/a_test.go": "func TestX("}),
        ("npm run --silent bench", {"package.json": '{"scripts": {"bench": "x", "test": "y"}}'}),
        ("npm test --silent", {"package.json": '{"scripts": {"test": "y"}}'}),
        ("python3 -m pytest -q", {"tests/test_a.py": "def test_a():\n"}),
        ("python3 -m pytest -q", {"pyproject.toml": "[tool.pytest.ini_options]\n"}),
        ("sh e2e.sh", {"e2e.sh": "", "test.sh": ""}),
        (None, {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}),
        (None, {"package.json": "{", "Makefile": "tests = 1\n", "meson.build": "test('x', y)"}),
        (None, {".hidden/test_a.py": "def test_a():\n", "node_modules/x/test_b.py": "def test_b():\n"}),
    ]
    tools = pathlib.Path(folder) / "tools"
    tools.mkdir()
    for name in ("make", "meson", "ctest", "cargo", "go", "npm", "python3", "sh"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    for number, (command, files) in enumerate(projects):
        project = pathlib.Path(folder) / str(number)
        for name, text in files.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text)
        done = call(folder, str(number), env={**os.environ, "PATH": str(tools)})
        text = done.stderr.decode()
        assert done.returncode == USAGE
        assert (f"found {command}: " if command else "nothing to run was found") in text, (command, text)
    (tools / "cargo").unlink()
    says([call(folder, "6", env={**os.environ, "PATH": str(tools)}).stderr.decode()], "'cargo' is not installed")


def asks(folder):
    """On a terminal what was found in a folder is run after a yes only."""
    (pathlib.Path(folder) / "full").mkdir()
    (pathlib.Path(folder) / "full" / "e2e.sh").write_text("sleep 0.02\n")
    for answer, statuses in ((b"n\n", (USAGE,)), (b"y\n", (DONE, INCONCLUSIVE))):
        parent, child = pty.openpty()
        done = subprocess.Popen([whyslow, "run", *QUICK, "--json", "--out", "out", "full"], cwd=folder, stdin=child,
                                stdout=subprocess.PIPE, stderr=child, start_new_session=True)
        os.close(child)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(parent, 4096)
        os.write(parent, answer)
        out = done.stdout.read()
        with contextlib.suppress(OSError):  # the other end is gone
            while True:
                said += os.read(parent, 4096)
        print(said.decode(errors="replace"))
        assert done.wait() in statuses, done.returncode
        assert b"e2e.sh is there" in said and (answer[:1] == b"n") == (out == b"")
        os.close(parent)


def said(folder):
    """Spans the program prints, on either stream and in either spelling, are rows of the hotspot table."""
    script = """sleep 0.1
echo '{"event":"perf.profile.run_start","scenario":"s"}'
echo '{"event":"perf.profile.span_summary","span":"parse","cumulative_us":70000,"count":7,"p50_us":9000}' >&2
echo '{"type":"perf.profile.span_summary","data":{"span_name":"emit","cumulative_us":"25000","p50":25000}}'
echo '{"event":"perf.profile.span_summary","span":"without a time"}'
printf '{"event":"perf.profile.hypothesis_evaluated","name":"lock","verdict":"rejects","evidence":"no futex"}'
"""
    (pathlib.Path(folder) / "x.sh").write_text(script)
    result = answered(call(folder, *QUICK, "--", "sh", "x.sh"))
    spans = {row["location"]: row["value_ms"] for row in result["hotspots"] if row["metric"].startswith("span")}
    assert spans == {"parse": 70, "emit": 25}, spans
    says(result["notes"], "1 of 5 perf.profile lines made no sense")
    ledger = json.loads((latest(folder) / "ledger.json").read_text())
    assert "no futex" in json.dumps(ledger), ledger
    (pathlib.Path(folder) / "lines").write_text(
        'text\n{"msg":"perf.profile.span_summary","span":"of a file","cumulative_us":40000}\n')
    result = answered(call(folder, *QUICK, "--ingest", "lines", "--", "sleep", "0.1"))
    assert any(row["location"] == "of a file" and row["value_ms"] == 40 for row in result["hotspots"])
    result = answered(call(folder, *QUICK, "--ingest", "nothing", "--", "sleep", "0.1"))
    says(result["missing"], "perf.profile lines: .*nothing")


def nobody(folder):
    """Without any right: the axes that can be had are there, the others say why not."""
    os.chmod(folder, 0o777)
    shutil.copy(whyslow, os.path.join(folder, "whyslow"))
    env = {**os.environ, "HOME": folder}
    done = subprocess.run([*NOBODY, "./whyslow", "run", "--json", *QUICK, "--out", "out", "--", "sleep", "0.1"],
                          cwd=folder, capture_output=True, check=False, timeout=600, env=env)
    print(done.stderr.decode(errors="replace"))
    result = answered(done)
    assert result["runs"] == 10
    for key in ("recording", "recording_io", "recording_heap"):
        path = result["artifacts"][key]
        assert path.startswith("n/a: ") or os.path.exists(os.path.join(folder, path)), path


def denied(folder):
    """No event may be opened: the CPU axis is n/a with the reason, and the command goes on."""
    import platform
    number = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
    if number is None:
        print("SKIP: not known which call to deny here")
        sys.exit(77)
    done = call(folder, *QUICK, "--", "sleep", "0.1", before=[deny, str(errno.EACCES)])
    if done.returncode == 77:
        sys.exit(77)
    result = answered(done)
    assert result["runs"] == 10
    says(result["missing"], "CPU samples")


@contextlib.contextmanager
def small_disk(folder, size):
    path = os.path.join(folder, "out")
    os.mkdir(path)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path],
                                           check=False).returncode != 0:
        print("SKIP: a small disk cannot be mounted here")
        sys.exit(77)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def disk_full(folder):
    """Stopped before time is spent; with --force all is told on the terminal, the status is 5."""
    with small_disk(folder, "200k"):
        done = call(folder, *QUICK, "--", "sleep", "0.05")
        assert done.returncode == DENIED and not done.stdout
        says([done.stderr.decode()], "not measured: the result would be spoilt: room for results", "--force")
        assert not os.listdir(os.path.join(folder, "out")), "an empty folder is left"
        result = answered(call(folder, *QUICK, "--force", "--", "sleep", "0.05"), OWN_FAILURE)
        assert result["runs"] == 10
        says(result["marks"], "room for results")
        says(result["missing"], "[Nn]o space left|disk is full|full")


def sanitized(folder):
    """A sanitizer in the binary: refused, and marked when forced."""
    source = pathlib.Path(folder) / "x.c"
    source.write_text("int main(void) { return 0; }\n")
    if subprocess.run(["cc", "-fsanitize=address", "-o", "x", "x.c"], cwd=folder, check=False).returncode != 0:
        print("SKIP: no compiler with a sanitizer here")
        sys.exit(77)
    done = call(folder, *QUICK, "--", "./x")
    assert done.returncode == DENIED
    says([done.stderr.decode()], "no sanitizer: built with -fsanitize=address", "--force")
    result = answered(call(folder, *QUICK, "--force", "--", "./x"))
    says(result["marks"], "-fsanitize=address")


def build(folder, text):
    (pathlib.Path(folder) / "x.c").write_text(text)
    if subprocess.run(["cc", "-O2", "-g", "-fno-builtin", "-o", "x", "x.c"], cwd=folder, check=False).returncode != 0:
        print("SKIP: no compiler here")
        sys.exit(77)


def dear(folder):
    """Nothing but malloc() and free(): counting all of them is far too dear, which is measured and said (M18)."""
    build(folder, """#include <stdlib.h>
int main(void) { for (long i = 0; i < 20000000; i++) { char *p = malloc(16 + (i & 63)); p[0] = 1; free(p); } }
""")
    result = answered(call(folder, "--runs", "5", "--budget", "60s", "--", "./x"))
    assert os.path.exists(os.path.join(folder, result["artifacts"]["recording_heap"]))
    # How much dearer is measured, a run against a run: on a busy machine it may come out as anything.
    timed("counting every allocation is given up",
          re.search(r"counting every allocation \(because \S+% of the CPU samples are in the allocator\) "
                    r"slows the program down by \d\d+%: samples stay", "\n".join(result["notes"])), str(result["notes"]))
    assert not list(latest(folder).glob("*-exact*")), "what was given up is left behind"


def escalates(folder):
    """Memory that is never given back calls for every allocation, and that is said with the number."""
    build(folder, """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) { for (int i = 0; i < 100; i++) memset(malloc(1 << 20), 1, 1 << 20); usleep(200000); }
""")
    result = answered(call(folder, "--runs", "5", "--budget", "10m", "--", "./x"))
    because = r"because ~\d+% of a peak of ~\S+ MiB still lives"
    # Counted they are, and whether that is dear is measured, a run against a run.
    says(result["notes"], rf"level 3: every allocation was counted, {because}|"
         rf"counting every allocation \({because}\) slows the program down by \d+%: samples stay")
    timed("counting is not dear", "samples stay" not in "\n".join(result["notes"]), str(result["notes"]))


def lean(folder):
    """--quick leaves the instructions of hot functions to who reads the files later; their source it keeps."""
    build(folder, """volatile long sum;
int main(void) {
    for (long i = 0; i < 100000000; i++)
        sum += i;
    return 0;
}
""")
    result = answered(call(folder, *QUICK, "--runs", "1", "--", "./x"))

    def ask(*words):
        done = subprocess.run([whyslow, *words, "--json"], cwd=folder, capture_output=True, check=True)
        return json.loads(done.stdout)

    recording = result["artifacts"]["recording"]
    # Where recording a run took so much longer than a plain one that samples were given up there is nothing to show.
    sampled = not any("instead waits alone" in mark for mark in result["marks"])
    timed("it is sampled", sampled, str(result["marks"]))
    if not sampled:
        return
    counts = ask("query", recording, "SELECT (SELECT count(1) FROM instruction) AS code, (SELECT count(1) FROM source_line) AS lines")
    assert counts["rows"][0]["code"] == 0 < counts["rows"][0]["lines"], counts["rows"]
    annotation = ask("report", recording, "--annotate", "main")
    assert annotation["assembly"] and "instructions" in annotation["note"], annotation


def static(folder):
    """A static program takes no library: what cannot be seen of it is said, the rest is there."""
    source = pathlib.Path(folder) / "x.c"
    source.write_text("#include <unistd.h>\nint main(void) { usleep(50000); return 0; }\n")
    if subprocess.run(["cc", "-static", "-o", "x", "x.c"], cwd=folder, check=False).returncode != 0:
        print("SKIP: nothing can be linked statically here")
        sys.exit(77)
    result = answered(call(folder, *QUICK, "--", "./x"))
    assert result["artifacts"]["recording"].endswith("recording.whyslow")


class Gated:
    """`whyslow run` of a program each run of which waits at a gate until it is let through: who interrupts it there
    does so at the step that was said last, however fast the machine is."""

    PROGRAM = "echo >>runs; read word <gate; sleep 0.05"

    def __init__(self, folder, *words):
        for name in ("out", "runs", "gate"):
            subprocess.run(["rm", "-rf", name], cwd=folder, check=True)
        self.runs, self.gate = pathlib.Path(folder, "runs"), pathlib.Path(folder, "gate")
        os.mkfifo(self.gate)
        self.through, self.said = 0, b""
        self.whyslow = subprocess.Popen(
            [whyslow, "run", "--json", "--budget", "10m", "--out", "out", *words, "--", "sh", "-c", self.PROGRAM], cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pipesize=4096,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        os.set_blocking(self.whyslow.stderr.fileno(), False)

    def is_at_gate(self):
        assert self.whyslow.poll() is None, (self.whyslow.returncode, self.said)
        return self.runs.exists() and len(self.runs.read_bytes()) > self.through

    def let_through(self):
        self.gate.write_text("on\n")
        self.through += 1

    def at(self, mark, runs=0):
        """A run is at the gate, the next after `mark` was said and so many were let through."""
        while True:
            while not self.is_at_gate():
                self.said += self.whyslow.stderr.read() or b""  # it must not wait for us
                time.sleep(0.01)
            self.said += self.whyslow.stderr.read() or b""
            if mark.encode() in self.said:
                runs -= 1
            if runs < 0:
                return self
            self.let_through()

    def in_the_way_of(self, mark):
        """Nobody reads what it says, and it waits for that with `mark`: nothing that comes after it has begun."""
        with open(f"/proc/{self.whyslow.pid}/fd/2", "wb", buffering=0, opener=lambda path, _: os.open(
                path, os.O_WRONLY | os.O_NONBLOCK)) as full:
            while full.write(b"\n"):
                pass
        text = b""
        while not text:
            if self.is_at_gate():
                self.let_through()
            time.sleep(0.01)
            text = self.waits_to_say()
        assert text.startswith(mark.encode()), text
        return self

    def waits_to_say(self):
        """What it wants to write to its stderr, which is full; nothing: it does something else."""
        try:
            number, *arguments = pathlib.Path(f"/proc/{self.whyslow.pid}/syscall").read_text().split()
        except (FileNotFoundError, PermissionError) as error:
            print("SKIP: this kernel does not tell what a process waits for:", error)
            sys.exit(77)
        if number != {"x86_64": "1", "aarch64": "64"}.get(os.uname().machine) or int(arguments[0], 16) != 2:
            return b""
        with open(f"/proc/{self.whyslow.pid}/mem", "rb") as memory:
            memory.seek(int(arguments[1], 16))
            return memory.read(int(arguments[2], 16))

    def interrupted(self):
        self.whyslow.send_signal(signal.SIGINT)
        out, rest = self.whyslow.communicate(timeout=600)
        print((self.said + rest).decode(errors="replace").replace("\n\n", ""), "->", self.whyslow.returncode)
        assert self.whyslow.returncode == 128 + signal.SIGINT, self.whyslow.returncode
        assert b"No such process" not in rest
        folder = self.runs.parent
        for name in ("scenario.toml", "fingerprint.json", "baseline.json"):
            assert (latest(folder) / name).exists(), name
        return json.loads(out)


def interrupted(folder):
    """Ctrl-C at every step."""
    result = Gated(folder).at("[3/5]").interrupted()
    assert result["runs"] == 0
    says(result["missing"], "baseline: interrupted after 0 of 20", "CPU and waits: not recorded: interrupted before")
    result = Gated(folder).at("[3/5]", runs=3).interrupted()  # the first of them warms up
    assert result["runs"] == 2
    says(result["missing"], "baseline: interrupted after 2 of 20", "heap: not recorded: interrupted before")
    words = ("--runs", "2", "--warmup", "0")
    for mark, cut, kept in (("recorded run: CPU and waits", "CPU and waits", []),
                            ("recorded run: I/O", "I/O", ["recording"]),
                            ("recorded run: heap", "heap", ["recording", "recording_io"])):
        result = Gated(folder, *words).at(mark).interrupted()
        assert result["runs"] == 2
        says(result["missing"], f"{cut}: interrupted")
        for key in kept:
            assert os.path.exists(os.path.join(folder, result["artifacts"][key])), result["artifacts"]
        if "recording" in kept:
            assert (latest(folder) / "report.html").exists()
    result = Gated(folder, *words).at("recorded run: heap").in_the_way_of("[5/5]").interrupted()
    assert "interrupted" not in "\n".join(result["missing"]), result["missing"]
    assert (latest(folder) / "report.html").exists()
    assert os.path.exists(os.path.join(folder, result["artifacts"]["recording_io"]))


with tempfile.TemporaryDirectory() as place:
    globals()[case.replace("-", "_")](place)
