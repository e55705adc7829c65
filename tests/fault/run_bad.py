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

DONE, FAILED, USAGE, INCONCLUSIVE, DENIED, OWN_FAILURE = range(6)
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
case, whyslow, deny = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])


def call(folder, *words, before=(), stdin=subprocess.DEVNULL, timeout=100, env=None):
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


def in_time(done, result, seconds):
    """On a machine that others keep busy a second of ours may take ten: that is said, not judged."""
    if any(check["id"] == "load" and check["verdict"] == "fail" for check in result["checks"]):
        print(f"the machine is busy: {done.seconds:.1f} s say nothing")
    else:
        assert done.seconds < seconds, done.seconds


def latest(folder):
    return pathlib.Path(folder) / "out" / "latest"


def fails(folder):
    """Exit status 1, which run, and the end of its stderr; nothing is reported as if it were good."""
    done = call(folder, "--quick", "--", "sh", "-c", "echo reason >&2; exit 7")
    assert done.returncode == FAILED and not done.stdout
    says([done.stderr.decode()], "warm-up run 1 exited with status 7", r"\| reason", "--force")
    result = answered(call(folder, "--quick", "--force", "--", "sh", "-c", "exit 7"))
    assert result["failed_runs"] == result["runs"]


def fails_when_recorded(folder):
    """An axis whose library the program does not take is n/a; the others are there."""
    result = answered(call(folder, "--quick", "--", "sh", "-c", "sleep 0.05; test -z \"$LD_PRELOAD\""))
    assert result["artifacts"]["recording"].endswith("recording.whyslow")
    says(result["missing"], r"heap: the program exited with status 1 while it was recorded, not without")
    assert result["artifacts"]["recording_heap"].startswith("n/a: ")


def answer_changes(folder):
    """The same for a program that says something else."""
    result = answered(call(folder, "--quick", "--", "sh", "-c", "sleep 0.05; echo \"<$LD_PRELOAD>\""))
    says(result["missing"], "heap: the program's answer changed while it was recorded")
    assert result["output_stable"] is True


def hangs(folder):
    """--timeout ends it, with the remedy."""
    done = call(folder, "--timeout", "300ms", "--", "sleep", "60")
    assert done.returncode == FAILED and done.seconds < 30
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
        done = call(folder, "--quick", "--", sys.executable, "-c", script, stdin=child)
        text = done.stderr.decode()
        good = done.returncode in (FAILED, USAGE) and "terminal" in text and done.seconds < 30
        sys.stdout.flush()
        os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0
    os.close(parent)


def stdin(folder):
    """It gets /dev/null, whatever we were given, and --input puts a file in its place."""
    reader, writer = os.pipe()
    os.write(writer, b"from the pipe\n")
    script = "n=$(wc -c); sleep 0.02; echo $n"
    result = answered(call(folder, "--quick", "--", "sh", "-c", script, stdin=reader))
    zero = result["output"]
    (pathlib.Path(folder) / "given").write_text("12345\n")
    result = answered(call(folder, "--quick", "--input", "given", "--golden", "grep -q 6", "--", "sh", "-c", script))
    assert result["output"] != zero
    assert 'input = "given"' in (latest(folder) / "scenario.toml").read_text()


def daemon(folder):
    """What is left behind is said: ended where it is ours to end, named where it is not."""
    result = answered(call(folder, "--quick", "--", "sh", "-c", "sleep 100 & sleep 0.05"))
    says(result["notes"], "left processes behind")
    result = answered(call(folder, "--quick", "--runs", "2", "--", "sh", "-c", "setsid sleep 4 & sleep 0.05"))
    says(result["notes"], "holds the output open")


def changing(folder):
    """Another answer every time: said, marked, and no golden output is kept."""
    result = answered(call(folder, "--quick", "--", sys.executable, "-c", "import os; print(os.urandom(9))"))
    assert result["output_stable"] is False
    says(result["marks"], "different outputs")
    assert "golden" not in (latest(folder) / "scenario.toml").read_text()


def golden(folder):
    """A wrong answer fails loudly, whatever says that it is wrong."""
    (pathlib.Path(folder) / "right").write_text("42\n")
    for good in ("right", "grep -qx 42", "sha256:084c799cd551dd1d8d5c5f9a5d593b2e931f5e36122ee5c793c1d08a19839cc0"):
        answered(call(folder, "--quick", "--golden", good, "--", "echo", "42"))
    for bad in ("right", "grep -qx 42"):
        done = call(folder, "--quick", "--golden", bad, "--", "echo", "41")
        assert done.returncode == FAILED and not done.stdout
        says([done.stderr.decode()], "printed (something else|what the check command refuses)")
    # The scenario that a run leaves holds its answer.
    answered(call(folder, "--quick", "--", "cat", "right"))
    scenario = str(latest(folder).resolve() / "scenario.toml")
    (pathlib.Path(folder) / "right").write_text("43\n")
    assert call(folder, "--quick", "--scenario", scenario).returncode == FAILED


def short(folder):
    """A program of a millisecond: measured, and said how little samples of it are worth."""
    result = answered(call(folder, "--quick", "--", "true"))
    assert result["runs"] == 10 and result["complete"]
    says(result["marks"], "only \\d+ CPU samples")


def long(folder):
    """A program that does not fit into the budget: its beginning is recorded, the time is kept."""
    done = call(folder, "--budget", "5s", "--", "sleep", "60")
    result = answered(done)
    in_time(done, result, 5 + 3)  # reading and naming what was recorded has no bound of its own
    assert result["runs"] == 0 and "longer than the budget" in result["measured"]
    says(result["missing"], "holds the first", "I/O: not recorded", "heap: not recorded")
    assert (latest(folder) / "recording.whyslow").exists()


def budget(folder):
    """The budget is that of all; what it cut is named."""
    done = call(folder, "--budget", "8s", "--", "sleep", "1")
    result = answered(done)
    in_time(done, result, 8 + 3)
    assert 1 <= result["runs"] < 8 and not result["complete"]
    says(result["missing"], "allowed no more")


def quick(folder):
    """--quick: at most 10 s beyond the run of a program of one second, with all axes."""
    script = "import time; x = [bytes(1000) for i in range(20000)]; time.sleep(0.9)"
    command = ("--quick", "--", sys.executable, "-c", script)
    call(folder, *command)  # the names in the interpreter are looked up once for all
    done = call(folder, *command)
    result = answered(done)
    busy = any(check["id"] == "load" and check["verdict"] != "ok" for check in result["checks"])
    if busy:
        print(f"SKIP: the machine is busy: {done.seconds:.1f} s say nothing")
        sys.exit(77)
    assert done.seconds <= 1 + 10, done.seconds
    assert result["runs"] >= 2
    for key in ("recording", "recording_io", "recording_heap"):
        assert os.path.exists(os.path.join(folder, result["artifacts"][key])), result["artifacts"]


def gigabytes(folder):
    """More than a gigabyte on stdout a run: counted and hashed, in little memory."""
    before = ["/usr/bin/time", "-f", "peak %M"]
    if not os.path.exists(before[0]):
        before = []
    done = call(folder, "--budget", "120s", "--runs", "2", "--", "head", "-c", "1200000000", "/dev/zero", before=before,
                timeout=250)
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
    result = answered(call(folder, "--yes", "--quick", "full"))
    assert result["command"] == "make bench"
    says(result["notes"], "functional check: 'make test' went well")
    (full / "Makefile").write_text("test:\n\t@false\nbench:\n\t@sleep 0.05\n")
    assert call(folder, "--yes", "--quick", "full").returncode == FAILED
    (full / "scenario.toml").write_text('command = ["sleep", "0.03"]\nruns = 7\nwarmup = 2\nmetric = "peak_rss"\n')
    result = answered(call(folder, "--yes", "--quick", "full"))
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
        done = subprocess.Popen([whyslow, "run", "--quick", "--json", "--out", "out", "full"], cwd=folder, stdin=child,
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
    result = answered(call(folder, "--quick", "--", "sh", "x.sh"))
    spans = {row["location"]: row["value_ms"] for row in result["hotspots"] if row["metric"].startswith("span")}
    assert spans == {"parse": 70, "emit": 25}, spans
    says(result["notes"], "1 of 5 perf.profile lines made no sense")
    ledger = json.loads((latest(folder) / "ledger.json").read_text())
    assert "no futex" in json.dumps(ledger), ledger
    (pathlib.Path(folder) / "lines").write_text(
        'text\n{"msg":"perf.profile.span_summary","span":"of a file","cumulative_us":40000}\n')
    result = answered(call(folder, "--quick", "--ingest", "lines", "--", "sleep", "0.1"))
    assert any(row["location"] == "of a file" and row["value_ms"] == 40 for row in result["hotspots"])
    result = answered(call(folder, "--quick", "--ingest", "nothing", "--", "sleep", "0.1"))
    says(result["missing"], "perf.profile lines: .*nothing")


def nobody(folder):
    """Without any right: the axes that can be had are there, the others say why not."""
    os.chmod(folder, 0o777)
    shutil.copy(whyslow, os.path.join(folder, "whyslow"))
    env = {**os.environ, "HOME": folder}
    done = subprocess.run([*NOBODY, "./whyslow", "run", "--json", "--quick", "--out", "out", "--", "sleep", "0.1"],
                          cwd=folder, capture_output=True, check=False, timeout=100, env=env)
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
    done = call(folder, "--quick", "--", "sleep", "0.1", before=[deny, str(errno.EACCES)])
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
        done = call(folder, "--quick", "--", "sleep", "0.05")
        assert done.returncode == DENIED and not done.stdout
        says([done.stderr.decode()], "not measured: the result would be spoilt: room for results", "--force")
        assert not os.listdir(os.path.join(folder, "out")), "an empty folder is left"
        result = answered(call(folder, "--quick", "--force", "--", "sleep", "0.05"), OWN_FAILURE)
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
    done = call(folder, "--quick", "--", "./x")
    assert done.returncode == DENIED
    says([done.stderr.decode()], "no sanitizer: built with -fsanitize=address", "--force")
    result = answered(call(folder, "--quick", "--force", "--", "./x"))
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
    says(result["notes"], r"counting every allocation \(because \S+% of the CPU samples are in the allocator\) "
                          r"slows the program down by \d\d+%: samples stay")
    assert os.path.exists(os.path.join(folder, result["artifacts"]["recording_heap"]))
    assert not list(latest(folder).glob("*-exact*")), "what was given up is left behind"


def escalates(folder):
    """Memory that is never given back calls for every allocation, and that is said with the number."""
    build(folder, """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) { for (int i = 0; i < 100; i++) memset(malloc(1 << 20), 1, 1 << 20); usleep(200000); }
""")
    result = answered(call(folder, "--runs", "5", "--budget", "60s", "--", "./x"))
    says(result["notes"], r"level 3: every allocation was counted, because \d+% of a peak of \S+ MiB still lives")


def static(folder):
    """A static program takes no library: what cannot be seen of it is said, the rest is there."""
    source = pathlib.Path(folder) / "x.c"
    source.write_text("#include <unistd.h>\nint main(void) { usleep(50000); return 0; }\n")
    if subprocess.run(["cc", "-static", "-o", "x", "x.c"], cwd=folder, check=False).returncode != 0:
        print("SKIP: nothing can be linked statically here")
        sys.exit(77)
    result = answered(call(folder, "--quick", "--", "./x"))
    assert result["artifacts"]["recording"].endswith("recording.whyslow")


def interrupted_at(folder, mark, delay, seconds, *words):
    """The result after Ctrl-C `delay` seconds after `mark` is said; None: it was too late."""
    shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
    done = subprocess.Popen([whyslow, "run", "--json", "--out", "out", *words, "--", "sleep", str(seconds)], cwd=folder,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    said = ""
    for line in done.stderr:
        said += line
        if mark in line:
            time.sleep(delay)
            done.send_signal(signal.SIGINT)
            break
    out, rest = done.communicate(timeout=60)
    print(said + rest, "->", done.returncode)
    if done.returncode in (DONE, INCONCLUSIVE, -signal.SIGINT):
        return None
    assert done.returncode == 128 + signal.SIGINT, done.returncode
    assert "No such process" not in rest
    result = json.loads(out)
    for name in ("scenario.toml", "fingerprint.json", "baseline.json"):
        assert (latest(folder) / name).exists(), name
    return result


def interrupted(folder):
    """Ctrl-C at every step."""
    result = interrupted_at(folder, "[3/5]", 0.3, 1)
    assert result["runs"] == 0
    says(result["missing"], "baseline: interrupted after 0 of 20", "CPU and waits: not recorded: interrupted before")
    result = interrupted_at(folder, "[3/5]", 1.3, 0.5)
    assert result["runs"] >= 1
    says(result["missing"], "baseline: interrupted after", "heap: not recorded: interrupted before")
    words = ("--runs", "2", "--warmup", "0")
    for mark, cut, kept in (("recorded run: CPU and waits", "CPU and waits", []),
                            ("recorded run: I/O", "I/O", ["recording"]),
                            ("recorded run: heap", "heap", ["recording", "recording_io"])):
        result = interrupted_at(folder, mark, 0.6, 1.5, *words)
        assert result["runs"] == 2
        says(result["missing"], f"{cut}: interrupted")
        for key in kept:
            assert os.path.exists(os.path.join(folder, result["artifacts"][key])), result["artifacts"]
        if "recording" in kept:
            assert (latest(folder) / "report.html").exists()
    for _ in range(5):
        result = interrupted_at(folder, "[5/5]", 0, 0.05, *words)
        if result:
            assert (latest(folder) / "report.html").exists()
            assert os.path.exists(os.path.join(folder, result["artifacts"]["recording_io"]))
            break
    else:
        raise AssertionError("interpretation was over each time before the signal came")


with tempfile.TemporaryDirectory() as place:
    globals()[case.replace("-", "_")](place)
