#!/usr/bin/python3
"""Signals to whyslow alone, as scripts and CI send them, and what a killed one leaves behind.

    signals.py CASE WHYSLOW

The first signal is handed to the target, which has 5 s to end; the second ends it with all that it started; the third
ends whyslow at once. Every wait here is for something that was written or printed, or for the end of a process.
"""

import concurrent.futures
import fcntl
import json
import os
import pathlib
import pty
import pwd
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
import judged  # noqa: E402,F401  # signals are not ignored from here on

case, whyslow = sys.argv[1], os.path.abspath(sys.argv[2])
PATIENCE_S = 600
WATCHED = (signal.SIGINT, signal.SIGTERM)
AXES = [["record", "-o", "it.whyslow"], ["waits"], ["io", "--tier", "user"], ["heap"], ["locks", "--tier", "user"]]
# Says that it is there, with its child's pid, and ends when it is told to by a file.
DIES = 'echo $$ >pids.new; mv pids.new pids; exec sleep 1000'
IGNORES = ('trap "" INT TERM HUP; sh -c "while ! [ -e stop ]; do sleep 0.05; done" & echo $$ $! >pids.new; '
           'mv pids.new pids; wait; echo >ended')


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Run:
    """A whyslow of its own folder, with a target that has said that it is there."""

    def __init__(self, root, words, script, heard=True):
        self.prepare(root, heard)
        self.process = self.start(words, script)
        wait_for(lambda: (self.place / "pids").exists() or self.process.poll() is not None, "the target")
        assert self.process.poll() is None, self.err()
        self.pids = [int(word) for word in (self.place / "pids").read_text().split()]

    def prepare(self, root, heard=True):
        self.heard, self.reader = heard, None
        self.place = pathlib.Path(tempfile.mkdtemp(dir=root))
        self.tmp = self.place / "tmp"
        self.tmp.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.tmp), "HOME": str(self.place), "LC_ALL": "C.UTF-8"}
        self.environment.pop("XDG_CACHE_HOME", None)
        self.environment.pop("XDG_RUNTIME_DIR", None)

    def start(self, words, script):
        def usual_signals():
            for one in (*WATCHED, signal.SIGHUP):
                signal.signal(one, signal.SIG_DFL)

        target = ["--", "sh", "-c", script] if script else []
        messages = open(self.place / "err", "wb") if self.heard else self.pipe()
        with open(self.place / "out", "wb") as out, messages as err:
            return subprocess.Popen([whyslow, *words, *target], cwd=self.place, env=self.environment,
                                    stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=usual_signals)

    def pipe(self):
        """What is written there can be read until self.reader is closed."""
        self.reader, writer = os.pipe()
        return os.fdopen(writer, "wb")

    def pipe_fill(self):
        """Until whoever writes there waits for ever: through an opening of our own, which waits for nothing."""
        writer = os.open(f"/proc/{self.process.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
        try:
            while os.write(writer, bytes(4096)):
                pass
        except BlockingIOError:
            os.close(writer)

    def pipe_empty(self):
        while os.read(self.reader, 65536):
            pass

    def err(self):
        return (self.place / "err").read_text() if self.heard else ""

    def send(self, which, said):
        """And waits until whyslow has said what it does."""
        self.process.send_signal(which)
        wait_for(lambda: said in self.err() or self.process.poll() is not None, said)
        assert said in self.err(), self.err()

    def status(self):
        status = self.process.wait(timeout=PATIENCE_S)
        print(self.process.args[1], "->", status, self.err(), sep="\n")
        return status

    def target_stop(self):
        (self.place / "stop").touch()
        wait_for((self.place / "ended").exists, "the end of the target")
        wait_for(lambda: not any(map(alive, self.pids)), "the end of its processes")

    def reported(self):
        if self.process.args[1] == "record":
            return "recorded to" in self.err()
        return "recorded for" in (self.place / "out").read_text()

    def left(self):
        return sorted(path.name for path in self.tmp.iterdir())


def each(check, runs):
    """All at once: most of their time is the target's."""
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(check, root, *run) for run in runs]:
            done.result()


def recorded(check):
    each(check, [(words, which) for words in AXES for which in WATCHED])


def dies(root, words, which):
    run = Run(root, words, DIES)
    run.send(which, "A second signal kills it")
    assert run.status() == 128 + which
    assert run.reported() and "handed to the program" in run.err()
    assert not alive(run.pids[0]) and run.left() == []


def ignores(root, words, which):
    run = Run(root, words, IGNORES)
    run.send(which, "A second signal kills it")
    assert run.status() == 128 + which
    assert run.reported() and f"the program (pid {run.pids[0]}) runs on" in run.err()
    assert all(map(alive, run.pids))
    run.target_stop()


def second(root, words, which):
    run = Run(root, words, IGNORES)
    run.send(which, "A second signal kills it")
    time.sleep(0.1)  # more than INTERRUPT_ECHO_MS: what comes sooner is the same signal
    run.send(which, "is killed with all it started")
    assert run.status() == 128 + signal.SIGKILL
    assert run.reported()
    wait_for(lambda: not any(map(alive, run.pids)), "the end of the target and its child")
    assert run.left() == []


def third(root, words, _):
    """Stopped, so that all of them are there before it can do anything but take them."""
    run = Run(root, words, IGNORES)
    run.process.send_signal(signal.SIGSTOP)
    for which in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        run.process.send_signal(which)
    run.process.send_signal(signal.SIGCONT)
    assert run.status() in (-signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM)
    assert "whyslow ends at once" in run.err() and not run.reported()
    wait_for(lambda: not alive(run.pids[0]), "the end of the target")
    (run.place / "stop").touch()
    wait_for(lambda: not any(map(alive, run.pids)), "the end of its child")


def finished(run):
    """A recording whose writer has come to its end is one file that says so."""
    shown = subprocess.run([whyslow, "report", "it.whyslow"], cwd=run.place, capture_output=True, text=True,
                           check=False)
    names = [path.name for path in run.place.glob("it.whyslow*")]
    return "was not finished" not in shown.stderr and names == ["it.whyslow"]


def unread(root, words, script):
    """As `… 2>&1 | tee log` leaves it: tee took Ctrl-C first, and who writes to stderr from then on gets SIGPIPE."""
    run = Run(root, words, script, heard=False)
    os.close(run.reader)
    run.process.send_signal(signal.SIGINT)
    assert run.status() == 128 + signal.SIGINT
    if words[0] == "record":
        assert finished(run)
    if words[0] == "record" and script == IGNORES:
        run.target_stop()
    wait_for(lambda: not any(map(alive, run.pids)), "the end of the target")
    assert run.left() == []


def full(root, words, script):
    """Nobody reads stderr, and its pipe is full: the target gets the signal all the same."""
    run = Run(root, words, script, heard=False)
    run.pipe_fill()
    run.process.send_signal(signal.SIGTERM)
    wait_for(lambda: not alive(run.pids[0]), "the end of the target")
    run.pipe_empty()
    assert run.status() == 128 + signal.SIGTERM


def writes_messages(pid):
    """Waits in write() to stderr."""
    try:
        call, _, rest = pathlib.Path(f"/proc/{pid}/syscall").read_text().partition(" ")
    except OSError:
        return False
    return call.isdigit() and rest.startswith("0x2 ")


def left_alone(root, words, which):
    """The target runs on, and whyslow is held where it says so: the next signal ends whyslow, and not the target."""
    run = Run(root, words, IGNORES, heard=False)
    run.pipe_fill()
    run.process.send_signal(which)
    wait_for(lambda: writes_messages(run.process.pid), "the end of whyslow's patience")
    run.process.send_signal(which)
    assert run.status() == -which
    assert all(map(alive, run.pids))
    run.target_stop()


def unread_result(root, words):
    """`… | head` ends whyslow as it ends any program, and whyslow cleans up all the same."""
    place = pathlib.Path(tempfile.mkdtemp(dir=root))
    (place / "tmp").mkdir()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([whyslow, *words, "--", "sleep", "0.1"], cwd=place, stdin=subprocess.DEVNULL, stdout=writer,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, "TMPDIR": str(place / "tmp"), "HOME": str(place)})
    os.close(writer)
    print(words, "->", done.returncode, done.stderr)
    assert done.returncode == -signal.SIGPIPE and "cannot write" not in done.stderr
    assert list((place / "tmp").iterdir()) == []


def benched(root, words, script, which, twice):
    run = Run(root, words, None) if script is None else Run(root, [*words, script], None)
    run.send(which, "A second signal kills it")
    if twice:
        time.sleep(0.1)
        run.send(which, "is killed with all it started")
    assert run.status() == 128 + which
    wait_for(lambda: not any(map(alive, run.pids)), "the end of the target")
    assert run.left() == []
    if words[0] == "scale":
        rounds = "[ $(wc" in script
        assert ("interrupted: fewer rounds than asked for" in (run.place / "out").read_text()) == rounds
        assert ("interrupted before the first round was whole" in run.err()) != rounds


def attached(root, which, twice):
    target = subprocess.Popen(["sleep", "1000"])
    try:
        for words in [["record", "-o", "it.whyslow", "-p", str(target.pid)], ["waits", "-p", str(target.pid)],
                      *([["record", "-o", "it.whyslow", "-a"]] if os.geteuid() == 0 else [])]:
            # Nothing in the target can say when it is watched: the recording begins when there is a file.
            run = Run.__new__(Run)
            run.prepare(root)
            run.process = run.start(words, None)
            wait_for(lambda r=run: list(r.place.rglob("*.whyslow-wal")), "the recording")
            if twice:
                run.process.send_signal(signal.SIGSTOP)
                for one in (signal.SIGINT, signal.SIGTERM):
                    run.process.send_signal(one)
                run.process.send_signal(signal.SIGCONT)
                assert run.status() in (-signal.SIGINT, -signal.SIGTERM)
                assert "whyslow ends at once" in run.err()
            else:
                run.send(which, "A second signal ends")
                assert run.status() in (0, 5) and "handed" not in run.err()
            assert target.poll() is None
    finally:
        target.kill()
        target.wait()


def again(run, status, output="it.whyslow"):
    done = subprocess.run([whyslow, "record", "-o", output, "--", "true"], cwd=run.place, env=run.environment,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    print("again ->", done.returncode, done.stderr)
    assert done.returncode == status
    return sorted(path.name for path in run.place.glob("it.whyslow*"))


def rows(run, name):
    """Of what was committed."""
    done = subprocess.run([whyslow, "query", "--json", name, "SELECT name, json FROM document ORDER BY name"],
                          cwd=run.place, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return json.loads(done.stdout)["rows"]


def kept_recording(run):
    """The next of its name takes what a killed one left beside it, and keeps what that had recorded."""
    before = rows(run, "it.whyslow")
    dead, lives = run.process.pid, os.getpid()
    for name in (f"it.whyslow.{dead}.new", f"it.whyslow.{lives}.new", f"it.whyslow.{dead}.txt", f"notes.{dead}.new"):
        (run.place / name).touch()
    names = again(run, 0)
    assert names == sorted(["it.whyslow", f"it.whyslow.{lives}.new", f"it.whyslow.{dead}.txt", "it.whyslow.old"]), names
    assert before and rows(run, "it.whyslow.old") == before
    assert (run.place / f"notes.{dead}.new").exists()


def leftovers(root, words, _):
    """Of a killed run: the next one removes what nobody needs, and nothing else."""
    run = Run(root, words, IGNORES)
    if words[0] == "record":
        wait_for(lambda: (run.place / "it.whyslow-wal").stat().st_size > 0, "something that is committed")
        again(run, 2)  # somebody writes it
    run.process.kill()
    run.process.wait()
    assert all(map(alive, run.pids))
    if words[0] == "record":
        kept_recording(run)
    else:
        assert run.left(), "a recording should lie there"
    # Others: somebody else's, one whose maker lives, a link, a file, a name that is not ours.
    victim = run.place / "victim"
    victim.mkdir()
    (victim / "recording.whyslow").touch()
    names = {name: run.tmp / f"whyslow-tmp-{name}" for name in ("other0", "locked", "link00", "stale0", "file00", "linked")}
    for name in ("other0", "locked", "stale0"):
        names[name].mkdir()
        (names[name] / "recording.whyslow").touch()
    if os.geteuid() == 0:
        os.chown(names["other0"], pwd.getpwnam("nobody").pw_uid, -1)
    names["link00"].symlink_to(victim)
    names["file00"].touch()
    (run.place / "precious").touch()
    os.link(run.place / "precious", names["linked"])
    (run.tmp / "whyslow-backup").mkdir()
    lock = os.open(names["locked"], os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)

    def next_run(*words):
        subprocess.run([whyslow, *(words or ("waits", "--json")), "--", "true"], cwd=run.place, env=run.environment,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
        return run.left()

    kept = {"whyslow-backup", "whyslow-tmp-link00", "whyslow-tmp-linked", "whyslow-tmp-locked"}
    kept |= {"whyslow-tmp-other0"} if os.geteuid() == 0 else set()
    # One that may make no temporary folder of its own.
    rest = set(next_run("record", "-o", "next.whyslow")) - kept
    # The library lies there as long as the target may start a program that looks for it.
    assert all(any(file.suffix == ".so" for file in (run.tmp / name).iterdir()) for name in rest), rest
    assert (victim / "recording.whyslow").exists() and (names["locked"] / "recording.whyslow").exists()
    run.target_stop()
    assert set(next_run()) == kept
    os.close(lock)
    assert "whyslow-tmp-locked" not in next_run()


def case_dies():
    recorded(dies)


def case_ignores():
    recorded(ignores)


def case_second():
    recorded(second)


def case_third():
    each(third, [(words, None) for words in AXES])


def children(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


def duet(root, other, which):
    """Two targets at once, each in a group of its own: signals are about both, and about one when the other has ended."""
    run = Run(root, ["compare", "--duet", "-w", "0", f"sh -c '{other}'", f"sh -c '{IGNORES}'"], None)
    wait_for((run.place / "a").exists, "the other target")
    others = [int(word) for word in (run.place / "a").read_text().split()]
    if not others:
        wait_for(lambda: len(children(run.process.pid)) == 1, "whyslow to have seen the end of the other target")
    if which:
        run.send(which, "A second signal kills them" if others else "A second signal kills it")
        time.sleep(0.1)
        run.send(which, "are killed with all they started" if others else "is killed with all it started")
        assert run.status() == 128 + which
    else:
        run.process.send_signal(signal.SIGSTOP)
        for one in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            run.process.send_signal(one)
        run.process.send_signal(signal.SIGCONT)
        assert run.status() in (-signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM)
    wait_for(lambda: not any(map(alive, run.pids + others)), "the end of both targets")
    assert run.left() == []


def case_left():
    each(left_alone, [(words, which) for words in (["record", "-o", "it.whyslow"], ["waits"]) for which in WATCHED])


def case_duet():
    ends = "while ! [ -e pids ]; do sleep 0.05; done; echo >a"
    ignores_too = IGNORES.replace("pids", "a").replace("ended", "a-ended")
    each(duet, [(other, which) for other in (ends, ignores_too) for which in (*WATCHED, None)])


def case_benches():
    quoted = f"sh -c '{IGNORES}'"
    runs = []
    for which in WATCHED:
        for twice in (False, True):
            runs.append((["bench", "-N", "-w", "0"], quoted, which, twice))
            runs.append((["run", "--out", "results", "--", "sh", "-c", IGNORES], None, which, twice))
    # What judges the answer gets the signal, too, and that is no wrong answer.
    runs.append((["run", "--out", "results", "--golden", f"sh -c '{DIES}'", "--", "true"], None, signal.SIGINT, False))
    # At the first run, and when two rounds of two sizes were made.
    runs.append((["scale", "--units", "1,2", "-w", "0"], f"{quoted} {{n}}", signal.SIGTERM, True))
    after = f"echo >>runs; [ $(wc -l <runs) -lt 8 ] && exit; {IGNORES}"
    runs.append((["scale", "--units", "1,2", "-w", "0"], f"sh -c '{after}' {{n}}", signal.SIGTERM, True))
    runs.append((["compare", "--budget", "60s", "true"], quoted, signal.SIGTERM, True))
    each(benched, runs)


def case_unread():
    each(unread, [(["record", "-o", "it.whyslow"], DIES), (["record", "-o", "it.whyslow"], IGNORES), (["waits"], DIES),
                  (["bench", "-N", "-w", "0", f"sh -c '{IGNORES}'"], None),
                  (["run", "--out", "results", "--", "sh", "-c", IGNORES], None)])
    each(full, [(["record", "-o", "it.whyslow"], DIES), (["waits"], DIES)])
    each(unread_result, [(["waits"],), (["waits", "--json"],)])


def case_init():
    """The first process of a container, which the kernel ends by no signal that has no handler."""
    unshare = ["unshare", *(["--user", "--map-root-user"] if os.geteuid() != 0 else []), "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.PIPE, check=False).returncode != 0:
        print("SKIP: refused: a namespace of processes (unshare --pid)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as root:
        run = Run.__new__(Run)
        run.prepare(root)
        with open(run.place / "err", "wb") as err, open(run.place / "out", "wb") as out:
            run.process = subprocess.Popen([*unshare, whyslow, "waits", "--tier", "user", "--", "sh", "-c", IGNORES],
                                           cwd=run.place, env=run.environment, stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=err)
        wait_for((run.place / "pids").exists, "the target")
        first, = children(run.process.pid)
        os.kill(first, signal.SIGSTOP)
        for one in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(first, one)
        os.kill(first, signal.SIGCONT)
        status = run.process.wait(timeout=PATIENCE_S)
        said, reported = (run.place / "err").read_text(), (run.place / "out").read_text()
        print(said, "->", status)
        assert status in (128 + signal.SIGHUP, 128 + signal.SIGINT, 128 + signal.SIGTERM)
        assert "whyslow ends at once" in said and "recorded for" not in reported


def case_attached():
    each(attached, [(which, False) for which in WATCHED] + [(None, True)])


def case_leftovers():
    each(leftovers, [(words, None) for words in AXES])


def case_terminal():
    """Ctrl-C there reaches the target by itself, unless that has left the group: it gets it once, and whyslow says how."""
    for leaves, says in ((False, b"has got it, too; "), (True, b"SIGINT: handed to the program")):
        with tempfile.TemporaryDirectory() as root:
            ctrl_c(pathlib.Path(root), leaves, says)


def ctrl_c(place, leaves, says):
    script = f"""
import os, pathlib, signal
if {leaves}:
    os.setpgid(0, 0)
count = 0
def got(*_):
    global count
    count += 1
    pathlib.Path("got").touch()
signal.signal(signal.SIGINT, got)
signal.signal(signal.SIGHUP, signal.SIG_IGN)  # whyslow leads the session, and ends
pathlib.Path("pids").write_text(str(os.getpid()))
while not os.path.exists("stop"):
    signal.sigtimedwait([], 0.05)
pathlib.Path("count.new").write_text(str(count))
os.rename("count.new", "count")
"""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place)
        os.execv(whyslow, [whyslow, "record", "-o", "it.whyslow", "--", sys.executable, "-c", script])
    said = b""
    wait_for((place / "pids").exists, "the target")
    os.write(terminal, b"\x03")
    wait_for((place / "got").exists, "the signal")
    # It goes on, and whyslow ends after its 5 s: then there is nobody left who could send another.
    ended = 0
    while not ended or select.select([terminal], [], [], 0)[0]:
        if select.select([terminal], [], [], 0.05)[0]:
            said += os.read(terminal, 4096)
        if not ended:
            ended, status = os.waitpid(pid, os.WNOHANG)
    status = os.waitstatus_to_exitcode(status)
    (place / "stop").touch()
    wait_for((place / "count").exists, "the end of the target")
    print(said.decode(), "->", status)
    assert status == 128 + signal.SIGINT and says in said and b"runs on" in said
    assert (place / "count").read_text() == "1"


def in_terminal(root, script, leads):
    """whyslow as the leader of a terminal's session or as the job of one: the leader, whyslow, the terminal."""
    words = [whyslow, "record", "-o", "it.whyslow", "--", "sh", "-c", script]

    def become_whyslow():
        os.chdir(root)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.dup2(os.open("err", os.O_WRONLY | os.O_CREAT, 0o600), 2)
        os.execv(whyslow, words)

    def be_a_shell():
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            wait_for(lambda: os.tcgetpgrp(0) == os.getpid(), "the foreground")
            become_whyslow()
        wait_for(lambda: os.getpgid(job) == job, "the job")
        (root / "job").write_text(str(job))
        os.tcsetpgrp(0, job)
        # As one does whose terminal is closed, but not before it is told to.
        wait_for((root / "close").exists, "the word")
        os.killpg(job, signal.SIGHUP)
        wait_for((root / "end").exists, "the word")

    leader, terminal = pty.fork()
    if leader == 0:
        try:
            become_whyslow() if leads else be_a_shell()
        finally:
            os._exit(0)
    wait_for((root / "pids").exists, "the target")
    return leader, leader if leads else int((root / "job").read_text()), terminal


def case_hangup():
    """SIGHUP of a terminal that closes: from its shell to the job, and from the kernel when the shell ends."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        leader, job, terminal = in_terminal(root, IGNORES, False)
        (root / "close").touch()
        wait_for(lambda: "A second signal kills it" in (root / "err").read_text(), "the first")
        (root / "end").touch()
        os.waitpid(leader, 0)
        wait_for(lambda: not alive(job), "the end of whyslow")
        said = (root / "err").read_text()
        print(said)
        assert "SIGHUP: handed to the program" in said and "runs on" in said and "is killed" not in said
        (root / "stop").touch()
        wait_for((root / "ended").exists, "the end of the target")
        os.close(terminal)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        leader, _, terminal = in_terminal(root, DIES, True)
        os.close(terminal)  # the kernel tells the leader of the session alone
        status = os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1])
        said = (root / "err").read_text()
        print(said, "->", status)
        assert status == 128 + signal.SIGHUP and "SIGHUP: handed to the program" in said and "runs on" not in said


globals()["case_" + case]()
