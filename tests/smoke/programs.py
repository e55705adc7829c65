#!/usr/bin/python3
"""Runs programs that nobody here wrote by themselves and under whyslow, which they must not notice.

    programs.py quick|all WHYSLOW [ROW-TEXT]

The rows are in programs.txt. A program is run alone, and then under each of MODES, as who runs this and, where that is
root, as nobody: what it prints to either stream and its status must be the same each time, and none may hang. By itself
it ends with status 0, or what its row says. Its streams are files that a shell opens for it, so that what whyslow itself
says is not among them. Nothing is taken out of what is compared: a row whose program prints something else each time is
wrong, and reported as that.

Each recording must say that our library was in the shell and in the program: a program cannot notice what is not there.

ROW-TEXT: only rows that contain it, with what they print.
"""

import concurrent.futures
import contextlib
import gzip
import json
import os
import pathlib
import pwd
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
import wave

HANGS_S = 600  # only what hangs takes so long, whoever else wants the CPU; and five times what it took alone
AT_ONCE = 2
ROWS_WANTED = 150
MODES = {
    "heap": ["heap", "--tier", "user"],
    "heap --sample": ["heap", "--tier", "user", "--sample", "64"],
    "locks": ["locks", "--tier", "user"],
    "io": ["io", "--tier", "user"],
}
# What `make test` has time for.
QUICK = [("heap", True), ("io", True), ("locks", True), ("heap --sample", False)]
# What a recording says of the library: a document with a member, and the counter of programs that it was in.
LIBRARY = {
    "heap": ("heap", ("tier", "user"), "heap.processes"),
    "locks": ("locks", ("library", "loaded"), "locks.processes"),
    "io": ("io", ("tier", "user"), "io.processes"),
}
SHELL = 'exec >"$WHYSLOW_TEST_OUT" 2>"$WHYSLOW_TEST_ERR"; unset WHYSLOW_TEST_OUT WHYSLOW_TEST_ERR; exec "$@"'

FILES = {
    "text": ("text.txt", b"".join(b"line %d of the text\n" % i for i in range(400))),
    "ppm": ("picture.ppm", b"P6\n64 48\n255\n" + bytes(i * 7 % 256 for i in range(64 * 48 * 3))),
    "json": ("numbers.json", str(list(range(500))).encode()),
    "xml": ("page.html", b"<html><body><p>one</p><p>two <b>three</b></p></body></html>\n"),
    "c": ("source.c", b"int sum(const int *a, int n) { int s = 0; while (n-- > 0) s += a[n]; return s; }\n"),
    "man": ("page.1", b".TH PAGE 1\n.SH NAME\npage \\- a page\n.SH TEXT\n" + b"Words, and more words.\n" * 50),
    "java": ("Main.java", b"""import java.util.stream.*;
public class Main {
    public static void main(String[] a) throws Exception {
        Thread t = new Thread(() -> System.err.println("thread"));
        t.start();
        t.join();
        System.out.println(IntStream.range(0, 999).mapToObj(Integer::toString).collect(Collectors.joining(",")));
    }
}
"""),
}
NAMES = {key: name for key, (name, _) in FILES.items()} | {"wav": "tone.wav", "tar": "text.tar", "gz": "text.gz"}


class Row:
    def __init__(self, line, number):
        words, rest = line.split(" | ", 1)
        package, *marks = words.split()
        self.quick = package.endswith("!")
        self.package = package.rstrip("!")
        assert all(mark in ("static", "setuid") or mark.startswith("status=") for mark in marks), line
        self.static, self.setuid = "static" in marks, "setuid" in marks
        self.status = int(next((mark.removeprefix("status=") for mark in marks if mark.startswith("status=")), 0))
        self.text, _, text = (part.strip() for part in rest.partition(" <<< "))
        self.input = text.replace("\\n", "\n").encode()
        self.number, self.took = number, 0.0


def rows_read():
    lines = (pathlib.Path(__file__).parent / "programs.txt").read_text(encoding="utf-8").splitlines()
    return [Row(line, number) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]


def inputs_make(folder):
    """The files of all rows, once; the same bytes and times in each folder."""
    for name, data in FILES.values():
        (folder / name).write_bytes(data)
    with wave.open(str(folder / NAMES["wav"]), "wb") as file:
        file.setparams((1, 2, 8000, 8000, "NONE", ""))
        file.writeframes(b"".join((i * 331 % 9973).to_bytes(2, "little") for i in range(8000)))
    text = FILES["text"]
    (folder / NAMES["gz"]).write_bytes(gzip.compress(text[1], mtime=0))
    with tarfile.open(folder / NAMES["tar"], "w") as file:
        member = tarfile.TarInfo(text[0])
        member.size = len(text[1])
        file.addfile(member, open(folder / text[0], "rb"))
    for file in folder.iterdir():
        os.utime(file, (0, 0))


class Lab:
    """One folder for everything; each row has its own in there, made anew for each run, always at the same path."""

    def __init__(self, whyslow):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="whyslow-programs-"))
        self.root.chmod(0o755)
        self.whyslow = self.root / "whyslow"
        shutil.copy(whyslow, self.whyslow)
        self.whyslow.chmod(0o755)
        self.inputs = self.root / "inputs"
        self.inputs.mkdir()
        inputs_make(self.inputs)
        self.users = [None]
        if os.geteuid() == 0:
            self.users.append(pwd.getpwnam("nobody"))
        for user in self.users:
            cache = self.cache(user)
            cache.mkdir()
            self.give(cache, user)

    def cache(self, user):
        return self.root / f"cache-{user.pw_name if user else 'own'}"

    @staticmethod
    def give(path, user):
        if user:
            os.chown(path, user.pw_uid, user.pw_gid)

    def place_make(self, row, user):
        place = self.root / str(row.number)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.inputs, place / "work")
        (place / "home").mkdir()
        (place / "tmp").mkdir()
        for path in [place, *place.rglob("*")]:
            self.give(path, user)
        os.utime(place / "work", (0, 0))
        return place

    def run(self, row, user, mode):
        """(status, stdout, stderr) of the program, what whyslow said, and what is wrong with its library; None for the
        status of one that hangs."""
        place = self.place_make(row, user)
        words = {key: name for key, name in NAMES.items()} | {"home": place / "home"}
        argv = shlex.split(row.text)
        for key, name in words.items():
            argv = [word.replace("{" + key + "}", str(name)) for word in argv]
        out, err, own, recording = place / "out", place / "err", place / "own", place / "it.whyslow"
        command = [*([self.whyslow, *MODES[mode], "-o", recording, "--"] if mode else []), "/bin/sh", "-c", SHELL, "sh",
                   *argv]
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/local/go/bin",
            "HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), "XDG_CACHE_HOME": str(self.cache(user)),
            "LC_ALL": "C.UTF-8", "TERM": "dumb", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1",
            "WHYSLOW_TEST_OUT": str(out), "WHYSLOW_TEST_ERR": str(err),
        }
        drop = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        with open(own, "wb") as said, subprocess.Popen(
                command, cwd=place / "work", env=environment, stdin=subprocess.PIPE if row.input else subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=said, start_new_session=True, **drop) as process:
            try:
                begun = time.monotonic()
                process.communicate(row.input or None, timeout=HANGS_S + 5 * (row.took if mode else HANGS_S))
                row.took = row.took if mode else time.monotonic() - begun
                status = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                status = None
        status = 128 - status if status is not None and status < 0 else status
        texts = [path.read_bytes() if path.exists() else b"" for path in (out, err)]
        return (status, *texts), own.read_text(errors="replace"), library_judge(recording, row, user, mode)


def library_judge(path, row, user, mode):
    """None where the recording says that the library was in the shell, and in what that became if it can be there."""
    if not mode:
        return None
    document, member, counter = LIBRARY[mode.split()[0]]
    if not path.exists():
        return "there is no recording"
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as recording:
        text = recording.execute("SELECT json FROM document WHERE name = ?", [document]).fetchone()
        count = recording.execute("SELECT value FROM counter WHERE name = ?", [counter]).fetchone()
    if not text or json.loads(text[0]).get(member[0]) != member[1]:
        return f"the recording says of {document}: {text}"
    is_root = user is None and os.geteuid() == 0
    programs = count[0] if count else 0
    good = programs == 1 if row.static else programs >= (1 if row.setuid and not is_root else 2)
    return None if good else f"the library was in {programs} programs, of which one is the shell"


def shown(result):
    status, out, err = result
    return f"status {status}\n--- stdout\n{out[-1500:].decode(errors='replace')}\n--- stderr\n{err[-1500:].decode(errors='replace')}"


def first_difference(a, b):
    for name, before, after in zip(("stdout", "stderr"), a[1:], b[1:]):
        if before == after:
            continue
        left, right = before.split(b"\n"), after.split(b"\n")
        for x, y in zip(left + [b"(end)"], right + [b"(end)"]):
            if x != y:
                return f"{name}: alone {x[:300]!r}, under whyslow {y[:300]!r}"
    return f"status: alone {a[0]}, under whyslow {b[0]}"


def row_check(lab, row, runs):
    """What is wrong, one line each."""
    wrong = []
    alone = {}
    for mode, as_own in runs:
        user = None if as_own else lab.users[-1]
        who = user.pw_name if user else "own"
        if who not in alone:
            alone[who], _, _ = lab.run(row, user, None)
        plain = alone[who]
        if plain[0] is None:
            return [f"{row.text}: hangs by itself"]
        if plain[0] in (126, 127):
            return [f"{row.text}: cannot be run ({plain[2][-200:].decode(errors='replace').strip()}); is {row.package} installed?"]
        if plain[0] != row.status:
            return [f"{row.text}: ends with status {plain[0]} by itself as {who}, its row says {row.status}: "
                    f"{plain[2][-300:].decode(errors='replace').strip()}"]
        got, said, library = lab.run(row, user, mode)
        if got[0] is None:
            wrong.append(f"{row.text}: hangs under {mode} as {who}")
            continue
        if library:
            wrong.append(f"{row.text}: under {mode} as {who}: {library}; whyslow said: {said.strip()[-400:]}")
        if got == plain:
            continue
        again, _, _ = lab.run(row, user, None)
        if again != plain:
            return [f"{row.text}: prints something else each time by itself: {first_difference(plain, again)}"]
        wrong.append(f"{row.text}: under {mode} as {who}: {first_difference(plain, got)}; whyslow said: {said.strip()[-400:]}")
    return wrong


def main():
    which, whyslow = sys.argv[1:3]
    rows = rows_read()
    assert len(rows) >= ROWS_WANTED, f"{len(rows)} rows"
    lab = Lab(whyslow)
    own_and_nobody = [True, False] if len(lab.users) > 1 else [True]
    runs = QUICK if which == "quick" else [(mode, own) for own in own_and_nobody for mode in MODES]
    rows = [row for row in rows if row.quick] if which == "quick" else rows
    if len(sys.argv) > 3:
        rows = [row for row in rows if sys.argv[3] in row.text]
    start = time.monotonic()
    try:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            wrong = [line for lines in pool.map(lambda row: row_check(lab, row, runs), rows) for line in lines]
        if len(sys.argv) > 3:
            for row in rows:
                print(row.text, shown(lab.run(row, None, None)[0]), sep="\n")
    finally:
        shutil.rmtree(lab.root, ignore_errors=True)
    print(f"{len(rows)} programs, {len(runs)} runs under whyslow each, {time.monotonic() - start:.0f} s")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


main()
