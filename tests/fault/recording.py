#!/usr/bin/python3
"""Things that go wrong with a recording on purpose, one test a name.

    recording.py TEST --tool recording-tool --whyslow whyslow [--inject inject.so]

The promise in every case: what was committed stays readable, whatever cannot be read is
refused in words, and nothing crashes, hangs or ends with status 0 after a failure.
"""

import argparse
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 600  # for what hangs
RACES = 1000  # until one is won; most are
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class Failed(Exception):
    """A promise was broken."""


def expect(truth, text):
    if not truth:
        raise Failed(text)


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          errors="replace", timeout=TIMEOUT_S, check=False, **more)


def last_number(text, word):
    numbers = [int(line.split()[1]) for line in text.splitlines()
               if line.startswith(word + " ") and len(line.split()) == 2]
    return numbers[-1] if numbers else 0


def describe(done):
    return f"status {done.returncode}, stdout {done.stdout[-300:]!r}, stderr {done.stderr[-600:]!r}"


def expect_no_crash(done, what):
    expect(0 <= done.returncode < 128, f"{what}: crashed: {describe(done)}")
    expect("Sanitizer" not in done.stderr and "runtime error" not in done.stderr,
           f"{what}: {describe(done)}")


def expect_refused(done, what):
    """A failure in words: a message, and a status that says so."""
    expect_no_crash(done, what)
    expect(done.returncode != 0, f"{what}: a failure must not look like success: {describe(done)}")
    expect(len(done.stderr.strip()) > 10, f"{what}: no reason given: {describe(done)}")


def expect_whole(tool, path, at_least, what):
    """Our reader finds all that was committed; SQLite finds nothing wrong."""
    done = run(tool, "check", path, at_least)
    expect(done.returncode == 0, f"{what}: {describe(done)}")
    # On a copy: this reader may write, and folds the log into the file.
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy"
        for suffix in ("", "-wal"):
            if pathlib.Path(str(path) + suffix).exists():
                shutil.copy(str(path) + suffix, str(copy) + suffix)
        with sqlite3.connect(copy) as db:
            answer = db.execute("PRAGMA integrity_check").fetchall()
        expect(answer == [("ok",)], f"{what}: integrity_check says {answer[:3]}")
    return last_number(done.stdout, "samples")


def kill_loop(args, work):
    """The writer is killed at random moments; everything announced is there."""
    rng = random.Random(17)
    kept = []
    for round_number in range(args.rounds):
        path = work / "r.whyslow"
        for leftover in work.glob("r.whyslow*"):
            leftover.unlink()
        writer = subprocess.Popen([args.tool, "write", path, "100000000", "700"],
                                  stdout=subprocess.PIPE, text=True)
        # Every third round is killed while it starts; the others after some commits, which
        # may mean after many checkpoints, and anywhere inside the next one.
        said = "" if round_number % 3 == 0 else "".join(
            writer.stdout.readline() for _ in range(rng.choice((1, 5, 40, 400, 900))))
        time.sleep(rng.random() * (0.02 if said == "" else 0.003))
        writer.send_signal(signal.SIGKILL)
        said += writer.communicate(timeout=TIMEOUT_S)[0]
        if "\n" in said:
            said = said[:said.rindex("\n")]
        committed = last_number(said, "committed")
        if not path.exists():
            expect(committed == 0, f"round {round_number}: {committed} committed, but no file")
            continue
        kept.append(expect_whole(args.tool, path, committed, f"round {round_number}"))
    print(f"{args.rounds} kills: {len(kept)} files, up to {max(kept)} samples")
    expect(len(kept) >= args.rounds * 2 // 3 and max(kept) > 200000, "the writer never got far: this shows nothing")


def nth(args, work, kind, sticky, command, after):
    """Fails the 1st, 2nd, 3rd … call until a run sees no fault."""
    mark = work / "mark"
    at = 1
    hits = 0
    while True:
        for leftover in work.glob("r.whyslow*"):
            leftover.unlink()
        mark.unlink(missing_ok=True)
        env = {**os.environ, "LD_PRELOAD": str(args.inject), "FAULT_KIND": kind,
               "FAULT_AT": str(at), "FAULT_MARK": str(mark)}
        if sticky:
            env["FAULT_STICKY"] = "1"
        done = run(*command, env=env)
        what = f"{kind} {at}{' and later' if sticky else ''}"
        expect_no_crash(done, what)
        if not mark.exists():
            expect(done.returncode == 0, f"{what}: no fault, but {describe(done)}")
            print(f"{kind}{' (sticky)' if sticky else ''}: {hits} faults survived")
            expect(hits >= 1, f"{kind}: no fault was ever injected")
            return
        hits += 1
        after(done, what)
        # Every one of the first hundred (or so many rounds), then in growing steps: thousands of allocations of the
        # same kind fail in the same way.
        at += 1 if at < args.rounds else max(1, at // (args.rounds // 4))


def nth_writer(args, work):
    """Allocation, open, write and sync fail under the writer, each in its turn."""
    path = work / "r.whyslow"

    def after(done, what):
        if done.returncode != 0:
            expect_refused(done, what)
        committed = last_number(done.stdout, "committed")
        expect(committed == 0 or path.exists(), f"{what}: {committed} committed, but no file")
        if path.exists():
            expect_whole(args.tool, path, committed, what)
        if "dropped" in done.stdout:
            expect(last_number(done.stdout, "dropped") >= 100, f"{what}: loss not counted")
        expect(not list(work.glob("*.new")), f"{what}: left a temporary file")

    command = [args.tool, "write", path, "30000", "6000"]
    for kind in ("malloc", "open", "write", "sync"):
        for sticky in (False, True):
            nth(args, work, kind, sticky, command, after)


def nth_query(args, work):
    """The same under `whyslow query`, which must answer in full or say why not."""
    path = work / "good.whyslow"
    expect(run(args.tool, "write", path, "20000", "5000").returncode == 0, "cannot write")
    sql = ("SELECT s.name, stack_text(m.stack) AS stack, count(*) AS n, sum(m.weight) AS w FROM"
           " sample m JOIN series s ON s.id = m.series GROUP BY 1, 2 ORDER BY 1, 2")
    command = [args.whyslow, "query", path, sql, "--json"]
    good = run(*command)
    expect(good.returncode == 0 and '"rows"' in good.stdout, describe(good))

    def after(done, what):
        if done.returncode != 0:
            expect_refused(done, what)
        else:  # a fault that did not matter must not have changed the answer
            expect(done.stdout == good.stdout, f"{what}: another answer: {describe(done)}")

    for kind in ("malloc", "open"):
        for sticky in (False, True):
            nth(args, work, kind, sticky, command, after)


def nth_report(args, work):
    """The same under every view of `whyslow report`."""
    path = work / "good.whyslow"
    expect(run(args.tool, "write", path, "20000", "5000").returncode == 0, "cannot write")
    picture = work / "picture.svg"
    views = [[], ["--tree", "--inverted", "--min-pct", "0"], ["--callers", "decode"], ["--lines"],
             ["--threads"], ["--annotate", "decode"], ["--time", "0..50%", "--focus", "decode"],
             ["--diff", path, "--flame", picture]]
    for view in views:
        command = [args.whyslow, "report", path, "--json", *view]
        good = run(*command)
        expect(good.returncode == 0 and '"honesty"' in good.stdout, describe(good))

        def after(done, what):
            if done.returncode != 0:
                expect_refused(done, f"{view} {what}")
            else:
                expect(done.stdout == good.stdout, f"{view} {what}: another: {describe(done)}")
            expect(not list(work.glob("*.tmp")), f"{view} {what}: left a temporary file")

        # An annotation opens the image's file too, and says in its answer when it cannot.
        for kind in ("malloc",) if "--annotate" in view else ("malloc", "open"):
            nth(args, work, kind, kind == "malloc" and not view, command, after)


def nth_axis(args, work, axis, views):
    """The same under a command that knows a recording of its own."""
    path = work / f"{axis}.whyslow"
    expect(run(args.made, "user", path).returncode == 0, "cannot write")
    for view in views:
        command = [args.whyslow, axis, path, "--json", *view]
        good = run(*command)
        expect(good.returncode == 0 and '"honesty"' in good.stdout, describe(good))

        def after(done, what):
            if done.returncode != 0:
                expect_refused(done, f"{view} {what}")
            else:
                expect(done.stdout == good.stdout, f"{view} {what}: another: {describe(done)}")
            expect(not list(work.glob("*.tmp")), f"{view} {what}: left a temporary file")

        # Sticky only: when a single allocation fails inside jansson, its lexer goes on with half a
        # text, and nobody can tell afterwards.
        for kind in ("malloc", "open"):
            nth(args, work, kind, kind == "malloc", command, after)


def nth_waits(args, work):
    """Under `whyslow waits`."""
    nth_axis(args, work, "waits", [[], ["--stack", "w9"], ["--idle", "--flame", work / "picture.svg", "--html",
                                                           work / "page.html"]])


def nth_io(args, work):
    """Under `whyslow io`."""
    nth_axis(args, work, "io", [[], ["--requests", "--flame", work / "picture.svg"]])


def nth_heap(args, work):
    """Under `whyslow heap`."""
    nth_axis(args, work, "heap", [[], ["--json"], ["--leaks", "--growth", "--flame", work / "picture.svg"],
                                  ["--diff", work / "heap.whyslow"]])


def disk_full(args, work):
    """A full disk and a file size limit: an error in words, committed data kept, loss counted."""
    mount = work / "small"
    mount.mkdir()
    full = run("mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", mount)
    if full.returncode == 0:
        try:
            path = mount / "r.whyslow"
            done = run(args.tool, "write", path, "100000000", "3000")
            expect_refused(done, "full disk")
            expect("No space left on device" in done.stderr, describe(done))
            expect(last_number(done.stdout, "dropped") >= 100, describe(done))
            committed = last_number(done.stdout, "committed")
            expect(committed > 0, "nothing was committed before the disk was full")
            expect_whole(args.tool, path, committed, "full disk")
            # No room even for an empty recording.
            for leftover in mount.glob("r.whyslow*"):
                leftover.unlink()
            run("sh", "-c", f"head -c 390k /dev/zero > {mount}/ballast")
            done = run(args.tool, "write", mount / "second.whyslow", "1000", "1000")
            expect_refused(done, "no room to begin")
            expect([p.name for p in mount.iterdir()] == ["ballast"], "a failed start left files")
        finally:
            run("umount", mount)
    else:
        print("SKIP: no permission to mount a small disk; the file size limit is tested")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600 * 1024, 600 * 1024))

    path = work / "limited.whyslow"
    done = run(args.tool, "write", path, "100000000", "3000", preexec_fn=limit)
    expect_refused(done, "file size limit")
    expect("File too large" in done.stderr or "No space" in done.stderr, describe(done))
    expect_whole(args.tool, path, last_number(done.stdout, "committed"), "file size limit")


def damage(args, work):
    """Truncation at many lengths and flipped bytes: refused in words, or the right data."""
    path = work / "good.whyslow"
    expect(run(args.tool, "write", path, "20000", "5000").returncode == 0, "cannot write")
    good = path.read_bytes()
    whole = run(args.whyslow, "query", path, "SELECT count(*), sum(weight) FROM sample", "--json")
    expect(whole.returncode == 0, describe(whole))
    bad = work / "bad.whyslow"
    rng = random.Random(4)
    refused = 0

    def look(what):
        nonlocal refused
        done = run(args.tool, "check", bad, 0)
        expect_no_crash(done, what)
        if done.returncode != 0:
            expect_refused(done, what)
            expect(done.returncode != 9 or "finished 0" in done.stdout or "flip" in what,
                   f"{what}: {describe(done)}")
            refused += 1
        return done

    lengths = {0, 1, 15, 16, 50, 99, 100, 101, 4095, 4096, 4097, len(good) - 1, len(good) - 4096}
    lengths |= {rng.randrange(len(good)) for _ in range(args.rounds)}
    for length in sorted(lengths):
        bad.write_bytes(good[:length])
        done = look(f"cut at {length}")
        expect(done.returncode == 5, f"cut at {length}: {describe(done)}")
    for number in range(args.rounds * 2):
        at = rng.randrange(100) if number % 4 == 0 else rng.randrange(len(good))
        flipped = bytearray(good)
        flipped[at] ^= 1 << rng.randrange(8)
        bad.write_bytes(flipped)
        done = look(f"flip at {at}")
        # Rows without a checksum (a total, a name) may be wrong; samples may not.
        if done.returncode == 9:
            expect("samples 20000" in done.stdout, f"flip at {at}: {describe(done)}")
        if number % 5 == 0:
            query = run(args.whyslow, "query", bad, "SELECT count(*), sum(weight) FROM sample",
                        "--json")
            expect_no_crash(query, f"query, flip at {at}")
            expect(query.returncode != 0 or query.stdout.split('"columns"')[1] ==
                   whole.stdout.split('"columns"')[1] or "series" in query.stderr,
                   f"query, flip at {at}: {describe(query)}")
    print(f"{len(lengths)} lengths and {args.rounds * 2} flips: {refused} refused")
    expect(refused > len(lengths), "no flip was noticed")


def varint(number):
    """As SQLite writes them: seven bits a byte, the highest first."""
    digits = [number & 0x7F]
    while number > 0x7F:
        number >>= 7
        digits.append(number & 0x7F | 0x80)
    return bytes(reversed(digits))


def varint_read(data, at):
    number = 0
    while True:
        number = number << 7 | data[at] & 0x7F
        at += 1
        if data[at - 1] < 0x80:
            return number, at


class Pages:
    """A database as pages, whose trees can be bent."""

    def __init__(self, path):
        with sqlite3.connect(path) as db:
            self.size = db.execute("PRAGMA page_size").fetchone()[0]
            self.roots = {"sqlite_schema": 1, **dict(db.execute(
                "SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0"))}
        db.close()
        data = path.read_bytes()
        self.pages = [bytearray(data[at:at + self.size]) for at in range(0, len(data), self.size)]

    def save(self, path):
        self.pages[0][28:32] = len(self.pages).to_bytes(4, "big")
        path.write_bytes(b"".join(self.pages))

    def start(self, number):
        return 100 if number == 1 else 0  # the first page begins with the file's header

    def interior(self, leaf, child, number):
        """A page above copies of `leaf`: ten ways to the page `child`."""
        at = self.start(leaf)
        kind = {0x0D: 0x05, 0x0A: 0x02}[self.pages[leaf - 1][at]]
        cell = child.to_bytes(4, "big")
        if kind == 0x05:
            cell += varint(1)
        else:  # a tree without row numbers keeps rows here, too
            first = int.from_bytes(self.pages[leaf - 1][at + 8:at + 10], "big")
            length, body = varint_read(self.pages[leaf - 1], first)
            cell += bytes(self.pages[leaf - 1][first:body + length])
        page = bytearray(self.size)
        begin = self.start(number)
        page[:begin] = self.pages[number - 1][:begin] if begin else b""
        place = self.size
        for i in range(10):
            place -= len(cell)
            page[place:place + len(cell)] = cell
            page[begin + 12 + 2 * i:begin + 14 + 2 * i] = place.to_bytes(2, "big")
        page[begin:begin + 12] = bytes([kind]) + b"\0\0" + (10).to_bytes(2, "big") + \
            place.to_bytes(2, "big") + b"\0" + child.to_bytes(4, "big")
        return page

    def leftmost(self, number):
        """The first leaf below a page."""
        while self.pages[number - 1][self.start(number)] in (0x05, 0x02):
            page, begin = self.pages[number - 1], self.start(number)
            cell = int.from_bytes(page[begin + 12:begin + 14], "big")
            number = int.from_bytes(page[cell:cell + 4], "big")
        return number

    def unfold(self, root, levels):
        """Ten ways down at every level: 10^levels times the same leaf. False if it is empty."""
        number = self.leftmost(root)
        begin = self.start(number)
        if self.pages[number - 1][begin + 3:begin + 5] == b"\0\0":
            return False
        leaf = bytearray(self.pages[number - 1])
        if begin:
            # Cells stay where they are; the header moves to the front.
            count = int.from_bytes(leaf[begin + 3:begin + 5], "big")
            leaf[:8 + 2 * count] = leaf[begin:begin + 8 + 2 * count]
        self.pages.append(leaf)
        lowest = len(self.pages)
        for _ in range(levels - 1):
            self.pages.append(bytearray())
            self.pages[-1] = self.interior(lowest, len(self.pages) - 1, len(self.pages))
        self.pages[root - 1] = self.interior(lowest, len(self.pages), root)
        return True

    def shared_text(self, root, rows):
        """The only rows of a table are texts as long as the file, all on one page in a circle."""
        self.pages.append(bytearray(self.size))
        circle = len(self.pages)
        self.pages[-1][:4] = circle.to_bytes(4, "big")
        local = (self.size - 12) * 32 // 255 - 23  # what SQLite keeps in the row itself
        payload = local + (len(self.pages) - 1) * (self.size - 4)
        kind = varint(13 + 2 * (payload - 5))
        header = bytes([2 + len(kind), 0]) + kind
        assert len(header) == 5
        page = bytearray(self.size)
        place = self.size
        for row in range(rows):
            cell = varint(payload) + varint(row + 1) + header + b"x" * (local - len(header)) + \
                circle.to_bytes(4, "big")
            place -= len(cell)
            page[place:place + len(cell)] = cell
            page[8 + 2 * row:10 + 2 * row] = place.to_bytes(2, "big")
        page[:8] = b"\x0d\0\0" + rows.to_bytes(2, "big") + place.to_bytes(2, "big") + b"\0"
        self.pages[root - 1] = page


def circles(args, work):
    """Pages that are reached in 10^14 ways, and texts that share theirs: refused, and soon."""
    path = work / "good.whyslow"
    bad = work / "bad.whyslow"
    expect(run(args.tool, "write", path, "200", "50").returncode == 0, "cannot write")
    asked = [["report", bad, "--json"], ["report", bad, "--time", "0%..99%"], ["query", bad],
             ["query", bad, "SELECT max(stack_text(stack)) FROM sample"],
             ["export", bad, "--format", "folded"], ["export", bad, "--format", "firefox"]]
    whole = [run(args.whyslow, *[path if part == bad else part for part in command]).returncode
             for command in asked]
    expect(whole == [0] * len(asked), f"the sound file: {whole}")
    said = {}
    for name, root in Pages(path).roots.items():
        pages = Pages(path)
        if not pages.unfold(root, 14):
            continue
        pages.save(bad)
        results = [run(args.whyslow, *command) for command in asked]
        for command, done in zip(asked, results):
            expect_no_crash(done, f"{name}: {command}")
            if done.returncode != 0:
                expect_refused(done, f"{name}: {command}")
        check = run(args.tool, "check", bad, 0)
        expect_no_crash(check, f"{name}: check")
        if name in ("object", "wait", "wait_event"):
            expect_refused(check, f"{name}: check")
            expect(f"damaged table '{name}'" in check.stderr, f"{name}: {describe(check)}")
        said[name] = [done.stderr.strip().splitlines()[0] for done in results if done.returncode]
        print(name, *dict.fromkeys(said[name]), sep="\n    ")
    expect(len(said) > 10, f"few tables were bent: {list(said)}")
    for name in ("sqlite_schema", "text", "stack", "frame", "total", "chunk_by_time"):
        expect(said[name], f"{name}: nothing was noticed")
    expect(any("more rows than the file has room for" in text for text in said["total"]), said["total"])
    expect(any("pages must lead in circles" in text for text in said["total"]), said["total"])
    pages = Pages(path)
    pages.shared_text(pages.roots["text"], 7)
    pages.save(bad)
    done = run(args.whyslow, "report", bad)
    expect_refused(done, "texts that share their pages")
    expect("more text than the file has room for" in done.stderr, describe(done))


def cut_off(args, work):
    """A recording without an end, read in a read-only folder and as another user."""
    os.chmod(work, 0o755)
    tools = work / "bin"
    tools.mkdir()
    for tool in (args.tool, args.whyslow):
        shutil.copy(tool, tools)
    tool = tools / pathlib.Path(args.tool).name
    whyslow = tools / pathlib.Path(args.whyslow).name
    folder = work / "folder"
    folder.mkdir(mode=0o755)
    path = folder / "r.whyslow"
    expect(run(tool, "write", path, "20000", "5000", "abandon").returncode == 0, "cannot write")
    expect((folder / "r.whyslow-wal").exists(), "the log is gone: the test shows nothing")
    for file in folder.iterdir():
        expect(file.stat().st_mode & 0o777 == 0o600, f"{file} is not for its owner alone")
        file.chmod(0o644)  # shared by its owner
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix != ".whyslow-shm"}

    def read_as_nobody(what):
        done = run(*NOBODY, tool, "check", path, "20000")
        expect(done.returncode == 0 and "finished 0" in done.stdout, f"{what}: {describe(done)}")
        done = run(*NOBODY, whyslow, "query", path, "SELECT sum(count) AS n FROM total", "--json")
        expect('"n": 20000' in done.stdout, f"{what}: {describe(done)}")
        expect("was not finished" in done.stderr, f"{what}: {describe(done)}")

    read_as_nobody("another user")
    (folder / "r.whyslow-shm").unlink()
    read_as_nobody("another user, no index file")
    after = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix != ".whyslow-shm"}
    expect(before == after, "reading changed the files")
    done = run(*NOBODY, tool, "check", path, "20000", env={"TMPDIR": "/nonexistent"})
    expect_refused(done, "no temporary folder")
    expect("temporary folder" in done.stderr, describe(done))
    os.chmod(folder / "r.whyslow-wal", 0o600)
    done = run(*NOBODY, tool, "check", path, "0")
    expect_refused(done, "unreadable log")
    expect("r.whyslow-wal" in done.stderr and "Permission denied" in done.stderr, describe(done))
    os.chmod(path, 0o600)
    done = run(*NOBODY, whyslow, "query", path)
    expect(done.returncode == 4 and "Permission denied" in done.stderr, describe(done))
    done = run(*NOBODY, tool, "write", folder / "new.whyslow", "10", "10")
    expect_refused(done, "read-only folder")
    expect("new.whyslow'" in done.stderr and "Permission denied" in done.stderr, describe(done))

    # Closed without an end: one file in log mode, complete, in a folder that is not ours.
    closed = folder / "closed.whyslow"
    expect(run(tool, "write", closed, "20000", "5000", "close").returncode == 0, "cannot write")
    closed.chmod(0o644)
    done = run(*NOBODY, tool, "check", closed, "20000")
    expect(done.returncode == 0, describe(done))


def foreign_reader(args, work):
    """The sqlite3 program, which knows nothing of us, reads the plain tables."""
    path = work / "r.whyslow"
    expect(run(args.tool, "write", path, "20000", "5000").returncode == 0, "cannot write")

    def ask(sql):
        done = run("sqlite3", "-readonly", path, sql)
        expect(done.returncode == 0, describe(done))
        return done.stdout.strip()

    expect(ask("PRAGMA integrity_check") == "ok", "integrity_check")
    expect(ask("PRAGMA application_id") == str(0x77687973), "application_id")
    expect(ask("PRAGMA user_version") == "5", "user_version")
    expect(ask("PRAGMA journal_mode") == "delete", "a finished recording has no log")
    expect(ask("SELECT sum(count) FROM total") == "20000", "totals")
    expect(ask("SELECT sum(samples) FROM chunk") == "20000", "chunks")
    expect(ask("SELECT name, kind, unit FROM series ORDER BY id") == "cpu|sum|ns\nrss|level|bytes",
           "series")
    expect(ask("SELECT t.text FROM location l JOIN function f ON f.id = l.function"
               " JOIN text t ON t.id = f.name ORDER BY depth")
           == "step<int;2>\ndecode", "location")
    expect(ask("SELECT value FROM meta WHERE key = 'finished'") == "1", "finished")
    expect(ask("SELECT count(*), sum(run - start_ns) > 0 FROM (SELECT start_ns, start_ns + blocked_ns"
               " + runq_ns AS run FROM wait_event)") == "2500|1", "events of waits")
    expect(ask("SELECT count(*) FROM wait WHERE count <> (SELECT count(*) FROM wait_event e WHERE"
               " e.wait = wait.id) OR total_ns <> (SELECT sum(blocked_ns + runq_ns) FROM wait_event e"
               " WHERE e.wait = wait.id)") == "0", "rows of waits and their events agree")
    expect(ask("SELECT count(*) FROM request WHERE count <> (SELECT count(*) FROM request_event e WHERE"
               " e.request = request.id) OR total_ns <> (SELECT sum(first_byte_ns + rest_ns) FROM"
               " request_event e WHERE e.request = request.id)") == "0", "requests and their events agree")
    expect(ask("SELECT sum(count), sum(placed) FROM call") == "5000|5000", "calls")
    expect(ask("SELECT sum(count) FROM device") == "2500", "devices")
    expect(ask("SELECT id, sites FROM heap_site_chunk") == "1|6", "sites")
    expect(ask("SELECT process, peak_bytes FROM heap_process") == "2|2500", "heap of a process")
    expect(ask("SELECT count(*), sum(rows), min(why) FROM heap_snapshot") == "40|120|signal", "snapshots")
    expect(ask("SELECT count(*), max(live_bytes) FROM heap_moment") == "2500|24990", "moments")
    expect(ask("SELECT sum(events) FROM heap_chunk") == "2500", "events of the heap")
    expect(ask("SELECT protocol, role, flags, opened_ns, closed_ns, service FROM connection WHERE id < 3")
           == "http|client|5||77000|s;h'op\nhttp2|server|3|4001||shop", "connections")
    expect(ask("SELECT kind, flags, process, printf('%x', key), name FROM object ORDER BY id")
           == 'futex|0|2|7fff00001000|queue."lock"\npipe|8|0|4d|pipe:[77]\n'
              "kernel_lock|0|0|ffff888100000010|", "objects")
    walk = ask("WITH RECURSIVE w(id, depth) AS (SELECT max(id), 1 FROM stack UNION ALL SELECT"
               " parent, depth + 1 FROM stack JOIN w USING(id) WHERE parent) SELECT max(depth) FROM w")
    expect(walk == "3", f"stack walk gives {walk}")
    expect(ask("SELECT printf('%x', address) FROM frame WHERE kind = 'kernel' LIMIT 1")
           == "ffffffff81000003", "kernel address")


def came_between(args, work):
    """Something comes in the place of a recording that has stepped back: neither is lost, nor the one before."""
    path, old, precious = work / "r.whyslow", work / "r.whyslow.old", b"precious"
    for _ in range(RACES):
        for leftover in work.glob("r.whyslow*"):
            leftover.unlink()
        expect(all(run(args.tool, "write", *words).returncode == 0 for words in ((path, "10", "10"), (old, "20", "10"))),
               "cannot write")
        before = {path.read_bytes(), old.read_bytes()}
        with subprocess.Popen([args.whyslow, "record", "-o", path, "--", "true"], stderr=subprocess.PIPE, text=True) as record:
            # Its tables are made while nothing has the name.
            while record.poll() is None:
                try:
                    with path.open("xb") as file:
                        file.write(precious)
                    break
                except FileExistsError:
                    pass
            said = record.communicate(timeout=TIMEOUT_S)[1]
        if record.returncode == 0:
            continue  # it was quicker
        print(said)
        expect("exists already" in said and said.count("is left as") == 2, said)
        left = [file.read_bytes() for file in work.glob("r.whyslow*")]
        expect(path.read_bytes() == precious and len(left) == 3 and before < set(left), sorted(work.iterdir()))
        return
    expect(False, "nothing ever came between: this shows nothing")


TESTS = {f.__name__.replace("_", "-"): f
         for f in (kill_loop, nth_writer, nth_query, nth_report, nth_waits, nth_io, nth_heap, disk_full, damage, circles,
                   cut_off, foreign_reader, came_between)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("test", choices=TESTS)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--whyslow", required=True)
    parser.add_argument("--inject")
    parser.add_argument("--made", help="make-waits for nth-waits, make-io for nth-io, make-heap for nth-heap")
    parser.add_argument("--rounds", type=int, default=100)
    args = parser.parse_args()
    for name in ("tool", "whyslow", "inject", "made"):
        if getattr(args, name):
            setattr(args, name, os.path.abspath(getattr(args, name)))
    if args.test in ("cut-off", "disk-full") and os.geteuid() != 0:
        print("SKIP: needs root, to read as another user and to mount a small disk")
        return 77
    with tempfile.TemporaryDirectory(prefix="whyslow-fault-") as work:
        try:
            TESTS[args.test](args, pathlib.Path(work))
        except (Failed, subprocess.TimeoutExpired) as problem:
            print(f"FAILED: {problem}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
