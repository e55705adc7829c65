#!/usr/bin/python3
"""What others leave in a folder, a cache or /tmp neither runs nor is believed.

    trust.py CASE WHYSLOW
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

DONE, FAILED, USAGE, INCONCLUSIVE, DENIED = range(5)
# Somebody of its own: locked memory is counted by user, and tests run side by side.
OTHER = 61001 + os.getpid() % 4000
NOBODY = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
TOOLS = ["cc", "gcc", "clang", "ld", "rustc", "go", "python3", "node", "java", "git", "sh", "bash", "less", "more",
         "pager", "debuginfod-find", "valgrind", "gdb", "addr2line", "true", "perf"]
case, whyslow = sys.argv[1], os.path.abspath(sys.argv[2])


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def needs_root():
    if os.geteuid() != 0:
        skip("only root can make files of others")


def call(folder, *words, before=(), env=None, program=whyslow, timeout=600):
    done = subprocess.run([*before, program, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, timeout=timeout, env={**os.environ, **(env or {})})
    print("$", *words, "->", done.returncode)
    print(done.stderr.decode(errors="replace"))
    return done


def give_away(folder, owner=OTHER):
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, owner, owner, follow_symlinks=False)


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def trapped(folder, marker):
    """A repository of somebody else, in which whatever is looked up by name is a trap."""
    trap = f"echo \"$0 $*\" >>'{marker}'\n"
    folder.mkdir()
    for name in TOOLS:
        script(folder / name, trap)
    (folder / "rust-toolchain.toml").write_text(f'[toolchain]\npath = "{folder}"\n')
    (folder / ".python-version").write_text(str(folder))
    (folder / ".valgrindrc").write_text(f"--log-file={marker}\n")
    git = folder / ".git"
    for name in ("post-checkout", "post-index-change", "pre-auto-gc", "fsmonitor-watchman"):
        script(git / "hooks" / name, trap)
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs/heads/main").write_text("1" * 40 + "\n")
    (git / "config").write_text(f'[core]\n\tfsmonitor = "{folder}/sh"\n\tpager = "{folder}/pager"\n'
                                f'\thooksPath = "{git}/hooks"\n\tsshCommand = "{folder}/sh"\n')


def executed(log):
    """Programs of an strace, the ones that did run. Calls that others interrupt are in two lines."""
    names, begun = [], {}
    for line in log.read_text().splitlines():
        called = re.match(r'(\d+) +execve(?:at)?\([^"]*"([^"]*)"', line)
        thread = line.split(" ", 1)[0]
        if called and line.endswith("<unfinished ...>"):
            begun[thread] = called[2]
        elif called and line.endswith("= 0"):
            names.append(called[2])
        elif "execve" in line and "resumed>" in line and line.endswith("= 0"):
            names.append(begun.pop(thread))
    assert names, log.read_text()
    return names


def executed_is_read_from_all_lines(folder):
    log = folder / "strace"
    log.write_text("""\
7 execve("/bin/one", ["one"], 0x7ffd /* 20 vars */) = 0
7 execve("/bin/none", ["none"], 0x7ffd /* 20 vars */) = -1 ENOENT (No such file or directory)
8 execve("/bin/two", ["two"], 0x7ffd /* 20 vars */ <unfinished ...>
9 execveat(5, "", ["three"], 0x7ffd /* 20 vars */, AT_EMPTY_PATH <unfinished ...>
8 <... execve resumed>)             = 0
9 <... execveat resumed>)           = -1 EACCES (Permission denied)
""")
    assert executed(log) == ["/bin/one", "/bin/two"], executed(log)


def programs(folder):
    """Of the programs that could be started, only the target is, and /bin/true for a probe."""
    needs_root()
    if not shutil.which("strace"):
        skip("there is no strace")
    executed_is_read_from_all_lines(folder)
    marker, log, copy = folder / "ran", folder / "strace", folder / "whyslow"
    shutil.copy(whyslow, copy)
    marker.touch()
    marker.chmod(0o666)
    trapped(folder / "theirs", marker)
    give_away(folder / "theirs")
    # What rustup, pyenv and others do: a tool of this machine that runs what the folder says.
    for name in ("rustc", "python3", "node", "go"):
        script(folder / "proxies" / name, f'[ ! -x "./{name}" ] || exec "./{name}"\n')
    (folder / "folded.txt").write_text("main;work 5\n")
    (folder / "home").mkdir()
    (folder / "home").chmod(0o777)
    env = {"PATH": f"{folder}/proxies:.::{os.environ['PATH']}", "HOME": str(folder / "home"), "PAGER": "./pager"}
    for before in ([], NOBODY):
        work = folder / "theirs"
        if before:  # as somebody who cannot write there either
            give_away(work, OTHER - 1)
        out = folder / ("out" + str(len(before)))
        out.mkdir()
        out.chmod(0o777)
        for words in (["doctor"], ["doctor", "--for", "/bin/true"], ["record", "-o", f"{out}/r", "--", "/bin/true"],
                      ["run", "--quick", "--force", "--runs", "3", "--out", f"{out}/run", "--", "/bin/true"],
                      ["bench", "--runs", "3", "/bin/true"], ["bench", "--runs", "3", "--shell", "sh", ":"],
                      ["waits", "--", "/bin/true"], ["io", "--", "/bin/true"], ["heap", "--", "/bin/true"],
                      ["locks", "--", "/bin/true"], ["report", f"{out}/r"],
                      ["import", "--format", "folded", "-o", f"{out}/imported", f"{folder}/folded.txt"],
                      ["gate", "--budget", "1s", "--baseline", "/bin/true", "--candidate", "/bin/true"],
                      ["compare", "--blocks", "3", "/bin/true", "/bin/true"],
                      ["scale", "--runs", "3", "--units", "1,2", "/bin/true {n}"]):
            log.unlink(missing_ok=True)
            log.touch()
            log.chmod(0o666)
            call(work, *words, before=[*before, "strace", "-f", "-qq", "-e", "trace=execve,execveat", "-o", log],
                 env=env, program=copy)
            expected = {str(copy), "/bin/true"} | ({"/bin/sh"} if "sh" in words else set())
            others = [name for name in executed(log)
                      if name not in expected and not re.fullmatch(r"/proc/self/fd/\d+", name)]
            assert not others, (words, others)
            assert marker.read_text() == "", marker.read_text()


def repository(folder):
    """Revision and branch are text; the history of somebody else's repository is not ours to keep."""
    needs_root()
    theirs, planted = folder / "theirs", folder / "planted"
    trapped(theirs, folder / "ran")
    (theirs / ".git/whyslow").mkdir()
    (theirs / ".git/whyslow/history.db").symlink_to(planted)
    give_away(theirs)
    result = folder / "result.json"
    call(folder, "bench", "--runs", "3", "--export-json", result, "/bin/true")
    add = ["history", "add", result]

    def refused():
        done = call(theirs, *add)
        assert done.returncode == USAGE and b"belongs to another user" in done.stderr, done.returncode
        assert not planted.exists(), "the link was followed"

    refused()
    # Of our own, a link is as bad, and a file is kept as ever.
    give_away(theirs, 0)
    refused()
    (theirs / ".git/whyslow/history.db").unlink()
    assert call(theirs, *add).returncode == DONE
    assert (theirs / ".git/whyslow/history.db").is_file()
    assert call(theirs, "history").returncode == DONE
    os.chown(theirs / ".git/whyslow/history.db", OTHER, OTHER)
    refused()
    # A link may be to anything that has the form of a revision.
    (folder / "other").write_text("2" * 40 + "\n")
    for name, believed in (("refs/heads/main", True), ("refs/heads/main", False), ("HEAD", False)):
        path = theirs / ".git" / name
        if not believed:
            path.unlink()
            path.symlink_to(folder / "other")
        said = json.loads(call(theirs, "doctor", "--json").stdout)["fingerprint"]["run"]["git_revision"]
        assert said == "1" * 40 if believed else said.startswith("n/a: "), (name, said)
    # What is read is not waited for.
    for name in ("HEAD", "commondir", "packed-refs", "refs/heads/main"):
        (theirs / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(theirs / ".git" / name)
        assert call(theirs, "doctor").returncode in (DONE, FAILED)


def discover(folder):
    """`run FOLDER` shows all commands that it would run, and waits for no pipe."""
    place = folder / "place"
    place.mkdir()
    (place / "scenario.toml").write_text('command = ["/bin/true"]\ngolden = "touch ran"\n')
    done = call(folder, "run", "place")
    assert done.returncode == USAGE and b"touch ran" in done.stderr and not (place / "ran").exists()
    # Where it works and what it reads elsewhere is shown, too; what lies in the folder needs no word.
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere/in").touch()
    (place / "in").touch()
    (place / "out").symlink_to(folder / "elsewhere/in")
    for lines, shown in (('folder = "../elsewhere"', ["/place/../elsewhere"]), (f'input = "{folder}/elsewhere/in"', ["/elsewhere/in"]),
                         ('folder = "../elsewhere"\ninput = "in"', ["another folder: ", "another folder's: "]),
                         ('input = "out"', ["/out"]), ('input = "../not-there"', ["/../not-there"]), ('folder = "/"', [": /"]),
                         ('folder = "."\ninput = "in"', []), ('input = "/dev/null"', [])):
        (place / "scenario.toml").write_text(f'command = ["/bin/true"]\n{lines}\n')
        done = call(folder, "run", str(place))
        said = done.stderr.decode()
        assert done.returncode == USAGE and all(word in said for word in shown), (lines, said)
        assert ("another folder" in said) == bool(shown), (lines, said)
    (place / "scenario.toml").unlink()
    for name in ("Makefile", "package.json", "pyproject.toml", "scenario.toml"):
        os.mkfifo(place / name)
        assert call(folder, "run", "place").returncode == USAGE


SHELL_LOOP = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
SPIN = {"x86_64": b"\x48\xff\xcf\x75\xfb\xc3", "aarch64": bytes.fromhex("000400f1e1ffff54c0035fd6")}


def cpu_ticks(pid):
    return sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))


def record_spinning(folder, recording, target):
    """Until it has had the CPU for half a second while it was recorded, however long that takes."""
    with subprocess.Popen([whyslow, "record", "-o", recording, "-p", str(target.pid)], cwd=folder,
                          stdin=subprocess.DEVNULL) as recorder:
        # What it records is written when it does.
        ask = [whyslow, "query", "--json", recording, "SELECT name FROM document WHERE name = 'target'"]
        while b'"target"' not in subprocess.run(ask, capture_output=True, check=False).stdout:
            assert recorder.poll() is None, recorder.returncode
            time.sleep(0.05)
        before = cpu_ticks(target.pid)
        while cpu_ticks(target.pid) < before + os.sysconf("SC_CLK_TCK") // 2:
            time.sleep(0.05)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait() == DONE, recorder.returncode


def perf_map(folder):
    """Names of code made at run time come from who runs it, or from root."""
    needs_root()
    machine = os.uname().machine
    if machine not in SPIN:
        skip("no code for this machine")
    (folder / "jit.py").write_text(f"""
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write({SPIN[machine]!r})
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
print(hex(address), flush=True)
spin = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(address)
while True:
    spin(100000000)
""")
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if not python:
        skip("no python3 that another user may run")
    for runs, owner, mode, believed in ((0, 0, 0o644, True), (0, OTHER, 0o644, False), (0, 0, 0o666, False),
                                        (OTHER, OTHER, 0o644, True), (OTHER, 0, 0o644, True),
                                        (OTHER, OTHER - 1, 0o644, False), (OTHER, OTHER, 0o664, False),
                                        (0, 0, None, False)):
        before = [] if runs == 0 else NOBODY
        target = subprocess.Popen([*before, python, folder / "jit.py"], stdout=subprocess.PIPE, text=True)
        path = pathlib.Path(f"/tmp/perf-{target.pid}.map")
        try:
            address = target.stdout.readline().strip()
            path.unlink(missing_ok=True)
            if mode is None:  # a link, of root's to root's
                path.symlink_to(folder / "map")
            path.write_text(f"{address[2:]} 1000 planted_name\n")
            os.chown(path, owner, owner)
            path.chmod(mode or 0o644)
            recording = folder / f"{runs}-{owner}-{mode}"
            record_spinning(folder, recording, target)
        finally:
            target.kill()
            target.wait()
            path.unlink(missing_ok=True)
        done = call(folder, "report", recording)
        assert done.returncode == DONE
        assert (b"planted_name" in done.stdout) == believed, (runs, owner, mode, done.stdout.decode())


def latest(folder):
    """`latest` is ours to move only when it is our link; whyslow-out of others is not used."""
    run = ["run", "--quick", "--force", "--runs", "3", "--", "/bin/true"]
    work, out = folder / "work", folder / "work/whyslow-out"
    work.mkdir()

    def done(*statuses):
        result = call(work, *run)
        assert result.returncode in (statuses or (DONE, INCONCLUSIVE)), result.returncode
        return result.stderr

    assert b"latest" not in done() and (out / "latest").is_symlink()
    first = os.readlink(out / "latest")
    done()
    assert os.readlink(out / "latest") != first
    (out / "latest").unlink()
    (out / "latest").write_text("mine")
    assert b"latest' is left as it is: it is no link" in done()
    assert (out / "latest").read_text() == "mine"
    (out / "latest").unlink()
    (out / "latest").mkdir()
    assert b"latest' is left as it is: it is no link" in done()
    (out / "latest").rmdir()
    if os.geteuid() != 0:
        return
    (out / "latest").symlink_to("/etc")
    os.chown(out / "latest", OTHER, OTHER, follow_symlinks=False)
    assert b"latest' is left as it is: it is another user's link" in done()
    assert os.readlink(out / "latest") == "/etc"
    shutil.rmtree(out)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    out.symlink_to(elsewhere)
    os.chown(out, OTHER, OTHER, follow_symlinks=False)
    assert b"belongs to another user" in done(USAGE) and not list(elsewhere.iterdir())
    os.chown(out, 0, 0, follow_symlinks=False)
    done()  # a link of our own leads where we want it to
    assert list(elsewhere.iterdir())
    out.unlink()
    out.mkdir()
    os.chown(out, OTHER, OTHER)
    assert b"belongs to another user" in done(USAGE) and not list(out.iterdir())


def in_bytes(folder):
    """A command that is no UTF-8 is run again by its scenario.toml."""
    script(folder / "keep", 'printf "%s|" "$@" >>"$0.args"\n')
    odd = [b"\xff\xfe", "ä".encode(), b'" \\ \xc3']
    run = ["run", "--quick", "--force", "--runs", "3", "--out"]
    assert call(folder, *run, "out", "--", "./keep", *odd).returncode in (DONE, INCONCLUSIVE)
    kept = folder / "keep.args"
    assert set(kept.read_bytes().split(b"|")) == {*odd, b""}, kept.read_bytes()
    kept.unlink()
    scenario = folder / "out/latest/scenario.toml"
    print(scenario.read_text(encoding="utf-8"))  # which TOML has to be
    assert call(folder, *run, "again", "--scenario", scenario).returncode in (DONE, INCONCLUSIVE)
    assert set(kept.read_bytes().split(b"|")) == {*odd, b""}, kept.read_bytes()
    for wrong in ('command_hex = ["6"]', 'command_hex = ["00"]', 'command_hex = "zz"'):
        (folder / "wrong.toml").write_text(wrong + "\n")
        done = call(folder, "bench", "--scenario", "wrong.toml")
        assert done.returncode == USAGE and b"line 1" in done.stderr


class Pipe:
    """A pipe with a writer who waits for somebody to open it."""

    def __init__(self, path):
        os.mkfifo(path)
        path.chmod(0o644)
        self.writer = subprocess.Popen([sys.executable, "-c", "import os, sys; os.open(sys.argv[1], os.O_WRONLY)", path])
        opens, seen = {"x86_64": "257", "aarch64": "56"}.get(os.uname().machine), []
        until = time.monotonic() + 20
        # One that does not wait yet would only see less.
        while time.monotonic() < until and (len(seen) < 3 or seen[-3:] != [opens] * 3):
            time.sleep(0.02)
            seen.append(pathlib.Path(f"/proc/{self.writer.pid}/syscall").read_text().split()[0])

    def was_opened(self):
        try:
            self.writer.wait(0.5)
            return True
        except subprocess.TimeoutExpired:
            self.writer.kill()
            self.writer.wait()
            return False


def source(folder):
    """A binary of somebody else that names a file of root as its source does not get it shown."""
    needs_root()
    compiler = shutil.which("gcc", path="/usr/bin:/bin")
    if not compiler:
        skip("there is no gcc")
    secrets = folder / "closed"
    secrets.mkdir()
    secret = secrets / "secret.c"
    secret.write_text("".join(f"planted secret {i}\n" for i in range(1, 40)))
    code = "int main(void){volatile unsigned long i=0;\nwhile(i<300000000ul)\ni++;\nreturn 0;}\n"
    (folder / "main.c").write_text(f'# 1 "{secret}"\n{code}')
    subprocess.run([compiler, "-g", "-O1", "-o", folder / "app", folder / "main.c"], check=True)
    os.utime(secret, (10**9, 10**9))
    for owner, folder_mode, mode, shown in ((OTHER, 0o755, 0o644, True), (OTHER, 0o755, 0o600, False),
                                            (OTHER, 0o700, 0o644, False), (0, 0o700, 0o600, True)):
        secrets.chmod(folder_mode)
        secret.chmod(mode)
        os.chown(folder / "app", owner, owner)
        recording = folder / f"r{owner}{folder_mode}{mode}"
        assert call(folder, "record", "-o", recording, "--", folder / "app").returncode == DONE
        assert (b"planted secret" in recording.read_bytes()) == shown, (owner, oct(folder_mode), oct(mode))
    # A debug file that lies beside it speaks for its own owner, whoever has the binary.
    secret.chmod(0o600)
    run = [shutil.which("objcopy")]
    if run[0]:
        subprocess.run([*run, "--only-keep-debug", "app", "app.debug"], cwd=folder, check=True)
        subprocess.run([*run, "--strip-debug", "--add-gnu-debuglink=app.debug", "app"], cwd=folder, check=True)
        for owner, mode, shown in ((0, 0o644, True), (OTHER, 0o644, False), (0, 0o666, False)):
            os.chown(folder / "app.debug", owner, owner)
            (folder / "app.debug").chmod(mode)
            recording = folder / f"debug{owner}{mode}"
            assert call(folder, "record", "-o", recording, "--", folder / "app").returncode == DONE
            assert (b"planted secret" in recording.read_bytes()) == shown, ("debug file", owner, oct(mode))
    # What is no regular file is not even opened.
    (folder / "main.c").write_text(f'# 1 "{folder}/pipe"\n{code}')
    subprocess.run([compiler, "-g", "-O1", "-o", "piped", "main.c"], cwd=folder, check=True)
    subprocess.run([compiler, "-g", "-O1", "-gsplit-dwarf", "-c", "-o", "split.o", "main.c"], cwd=folder, check=True)
    subprocess.run([compiler, "-o", "split", "split.o"], cwd=folder, check=True)
    for app, path in (("piped", folder / "pipe"), ("split", folder / "split.dwo")):
        path.unlink(missing_ok=True)
        pipe = Pipe(path)
        assert call(folder, "record", "-o", f"{app}.whyslow", "--", folder / app).returncode == DONE
        assert not pipe.was_opened(), path


def cache(folder):
    """Root with the HOME of a user keeps nothing there; one with its own is believed by nobody else."""
    needs_root()
    home, own = folder / "home", folder / "own"
    home.mkdir()
    own.mkdir()
    give_away(home)
    work = folder / "work"
    work.mkdir()
    for place, kept in ((home, False), (own, True)):
        env = {"HOME": str(place), "PATH": os.environ["PATH"]}
        os.environ.pop("XDG_CACHE_HOME", None)
        assert call(work, "record", "-o", place.name, "--", "sh", "-c", SHELL_LOOP, env=env).returncode == DONE
        assert bool(list(place.rglob("*"))) == kept, list(place.rglob("*"))
    for path in own.rglob("*"):
        assert path.stat().st_mode & 0o022 == 0, path


def newest(folder):
    """Of the recordings here, one of somebody else is read only when it is named; what is passed over is said."""
    needs_root()
    shutil.copy(whyslow, folder / "copy")
    own, theirs, link = (folder / name for name in ("own.whyslow", "theirs.whyslow", "link.whyslow"))

    def report(status, *says, **how):
        done = call(folder, "report", program=folder / "copy", **how)
        assert done.returncode == status, done.returncode
        for words in says:
            assert words in done.stderr.decode(), words

    assert call(folder, "record", "-o", own, "--", "sh", "-c", SHELL_LOOP).returncode == DONE
    shutil.copy(own, theirs)
    os.chown(theirs, OTHER, OTHER)
    os.utime(theirs, (4 * 10**9, 4 * 10**9))
    report(DONE, "reading 'own.whyslow'", "'theirs.whyslow' is newer, and passed over: it belongs to another user")
    assert call(folder, "report", "theirs.whyslow").returncode == DONE
    # A link is its owner's, whatever it leads to just now.
    shutil.move(theirs, folder / "newer")
    os.chown(folder / "newer", 0, 0)
    link.symlink_to("newer")
    report(DONE, "reading 'link.whyslow'")
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    report(DONE, "reading 'own.whyslow'", "'link.whyslow' is newer, and passed over: it belongs to another user")
    own.unlink()
    report(USAGE, "recording here, 'link.whyslow', is passed over: it belongs to another user", "try: name it")
    link.unlink()
    # What sudo has left here is named to the user.
    (folder / "newer").rename(own)
    report(USAGE, "'own.whyslow', is passed over: it belongs to root and may not be read", "chown", before=NOBODY)
    (folder / "whyslow-out").mkdir(mode=0o700)
    own.unlink()
    report(USAGE, "'whyslow-out/latest/recording.whyslow', is passed over: Permission denied", "chown", before=NOBODY)
    report(USAGE, "there is no recording in this folder")


def log(folder):
    """A log (-wal) that somebody else has put beside a recording does not speak for it."""
    needs_root()
    name, wal = folder / "own.whyslow", folder / "own.whyslow-wal"
    assert call(folder, "record", "-o", name, "--", "/bin/true").returncode == DONE
    shutil.copy(name, folder / "copy")
    with contextlib.closing(sqlite3.connect(folder / "copy")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE meta SET value = 'planted' WHERE key = 'writer'")
        db.commit()
        planted = (folder / "copy-wal").read_bytes()

    def planting(owner, link=False):
        wal.unlink(missing_ok=True)
        path = folder / "elsewhere" if link else wal
        path.write_bytes(planted)
        if link:
            wal.symlink_to(path)
        os.chown(wal, owner, owner, follow_symlinks=False)
        done = call(folder, "query", name, "SELECT value FROM meta WHERE key = 'writer'")
        newest = call(folder, "report").stderr
        return done, newest

    done, newest = planting(0)
    assert done.returncode == DONE and b"planted" in done.stdout and b"own.whyslow" in newest
    (folder / "own.whyslow-shm").unlink(missing_ok=True)
    for owner, link in ((OTHER, False), (0, True), (OTHER, True)):
        done, newest = planting(owner, link)
        assert done.returncode == DENIED and b"is not believed" in done.stderr, (owner, link, done.returncode)
        assert b"planted" not in done.stdout, (owner, link)
        assert b"'own.whyslow', is passed over: the log beside it" in newest, (owner, link, newest)
    # One that is empty may be filled at any time: it is not looked at. Of ours, an index of others is not used.
    wal.unlink()
    wal.touch()
    os.chown(wal, OTHER, OTHER)
    assert call(folder, "query", name, "SELECT value FROM meta WHERE key = 'writer'").returncode == DONE
    index = folder / "own.whyslow-shm"
    index.write_bytes(b"x" * 32768)
    os.chown(index, OTHER, OTHER)
    done, _ = planting(0)
    assert done.returncode == DONE and b"planted" in done.stdout and index.read_bytes() == b"x" * 32768
    # What SQLite has beside a new recording is made by us before it has its name.
    if not shutil.which("strace"):
        skip("there is no strace")
    call(folder, "-e", "trace=openat,link,linkat,rename,renameat2", "-o", "calls", whyslow, "record", "-o", "new.whyslow",
         "--", "/bin/true", program="strace")
    calls = (folder / "calls").read_text().splitlines()
    named = next(i for i, line in enumerate(calls) if line.startswith("link") and 'new.whyslow")' in line)
    for suffix in ("-wal", "-shm", "-journal"):
        first = next(i for i, line in enumerate(calls) if f'new.whyslow{suffix}"' in line and "O_CREAT" in line)
        assert first < named and "O_EXCL" in calls[first] and "0600) = " in calls[first], (suffix, calls[first])
    assert sorted(path.name for path in folder.glob("new.whyslow*")) == ["new.whyslow"]


def counts(folder):
    """valgrind takes no settings from the folder that one is in."""
    if not shutil.which("valgrind"):
        skip("there is no valgrind")
    work = folder / "work"
    trapped(work, folder / "ran")
    (work / ".valgrindrc").write_text(f"--log-file={folder}/planted\n--verbose\n")
    env = {"PATH": f".::{os.environ['PATH']}"}
    done = call(work, "gate", "--counts", "--baseline", "/bin/true", "--candidate", "/bin/true", env=env)
    assert done.returncode in (DONE, INCONCLUSIVE), done.returncode
    assert not (folder / "planted").exists() and not (folder / "ran").exists()


def main():
    cases = {"programs": programs, "repository": repository, "discover": discover, "perf-map": perf_map,
             "latest": latest, "bytes": in_bytes, "source": source, "cache": cache, "newest": newest, "counts": counts,
             "log": log}
    with tempfile.TemporaryDirectory(prefix="whyslow-trust-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        cases[case](folder)


main()
