#!/usr/bin/python3
"""What must not be found in anything that whyslow leaves behind or prints.

    secrets.py http|both|postgresql|redis kernel|nobody WHYSLOW

Words are planted in the arguments, environment, statements, headers, queries, bodies and answers
of real programs that talk to real servers. Every command that stores or prints something is run
on them, and then every byte is looked at: files, pages of SQLite, packed chunks, what was
printed. And everything that was made must be for its owner alone. One recording is made with
--keep-arguments, to see that a planted word would be found.
"""

import base64
import ctypes
import ctypes.util
import hashlib
import http.server
import itertools
import json
import os
import pathlib
import re
import shlex
import sqlite3
import stat
import subprocess
import sys
import threading
import urllib.parse
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
import server_tools
import wait_tools

name, tier = sys.argv[1:3]
lab = wait_tools.Lab(sys.argv[3], [], "whyslow-private-")
if tier == "kernel":
    wait_tools.need_kernel_tier()
who = lab.nobody() if tier == "nobody" and os.geteuid() == 0 else []
out = lab.folder / "out"  # all that whyslow and its targets make
printed = lab.folder / "printed"
for folder in (out, printed):
    folder.mkdir()
    folder.chmod(0o777)
for folder in ("cache", "tmp", "history"):
    (out / folder).mkdir()
    (out / folder).chmod(0o777)
os.umask(0)  # what is private must not owe it to the umask
lab.environment.update(XDG_CACHE_HOME=str(out / "cache"), TMPDIR=str(out / "tmp"),
                       WHYSLOW_HISTORY=str(out / "history" / "history.db"), LC_ALL="C", SERVICE_TOKEN="plantedenvironment",
                       SOME_SETTING="plantedsetting")
PLANTED = b"planted"  # part of every secret, and of nothing else
EXPORTS = ("pprof", "firefox", "firefox-gz", "speedscope", "folded", "callgrind", "flame", "icicle", "html")


class Answers(http.server.BaseHTTPRequestHandler):
    """Lets in who says everything as it was planted."""

    protocol_version = "HTTP/1.1"
    served = refused = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        basic = "Basic " + base64.b64encode(b"user:plantedargument").decode()
        good = (query.get("token") == ["plantedquery"] and self.headers.get("Authorization") == basic
                and self.headers.get("Proxy-Authorization") == "Bearer plantedbearer"
                and self.headers.get("X-Api-Key") == "plantedheader" and self.headers.get("Cookie") == "id=plantedcookie"
                and body == b"card=plantedbody")
        type(self).served += good
        type(self).refused += not good
        answer = b"your number is plantedanswer\n"
        self.send_response(200 if good else 403)
        self.send_header("Set-Cookie", "id=plantedsetcookie")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def curl(port):
    return ["curl", "-fsS", "-o", "/dev/null", "-u", "user:plantedargument", "-H", "X-Api-Key: plantedheader",
            "-H", "Proxy-Authorization: Bearer plantedbearer", "-b", "id=plantedcookie", "-d", "card=plantedbody",
            f"http://127.0.0.1:{port}/orders?token=plantedquery&page=2"]


def cases():
    """(command, what a recording of its calls must hold, so that there was something to hide)"""
    if name == "http":
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield curl(server.server_port), "POST /orders?token=?&page=?"
        assert Answers.served >= 10 and Answers.refused == 0, (Answers.served, Answers.refused)
        server.shutdown()
    elif name == "both":
        # Server and client below one command, whose own arguments say nothing: what is read of
        # children, and heads of messages as the server has them.
        script = lab.folder / "both.py"
        script.write_text(f"""
import base64, http.server, subprocess, threading, urllib.parse
{source()}
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
threading.Thread(target=server.serve_forever, daemon=True).start()
open("{lab.folder}/f?token=plantedname&page=2", "w").close()  # as wget calls what it fetches
for i in range(3):
    subprocess.run(curl(server.server_port), check=True)
server.shutdown()
""")
        yield ["/usr/bin/python3", str(script)], "POST /orders?token=?&page=?"
    elif name == "postgresql":
        if not server_tools.PostgreSQL.there():
            wait_tools.skip(f"not installed: {server_tools.PostgreSQL.missing}")
        with server_tools.PostgreSQL(lab.folder / "postgresql") as server:
            uri = f"postgresql://bench:planteduri@/postgres?host={server.folder}"
            yield [server.bin / "psql", "-XAtq", "-c", "SELECT length('plantedliteral'), 'x' AS plain", uri], \
                "SELECT length(?), ? AS plain"
    else:
        if not server_tools.Redis.there():
            wait_tools.skip(f"not installed: {server_tools.Redis.missing}")
        with server_tools.Redis(lab.folder / "redis") as server:
            os.chmod(server.socket, 0o777)
            server.ask("redis-cli", "-s", server.socket, "config", "set", "requirepass", "plantedpassword")
            yield ["redis-cli", "-s", server.socket, "--no-auth-warning", "-a", "plantedpassword", "SET", "key",
                   "plantedvalue"], "SET ? ?"


def source():
    """Server and client of this file."""
    text = pathlib.Path(__file__).resolve().read_text()
    return text[text.index("class Answers"):text.index("def cases")]


def run(*args, good=(0,), cwd=out):
    """What it printed is kept to be looked at."""
    args = [str(arg) for arg in args]
    done = subprocess.run([*who, lab.whyslow, *args], env=lab.environment, cwd=cwd, capture_output=True, timeout=600,
                          check=False, stdin=subprocess.DEVNULL)
    number = len(list(printed.iterdir()))
    shown = " ".join(args[:3])
    (printed / f"{number}-{args[0]}").write_bytes(done.stdout + done.stderr)
    print(f"$ whyslow {shown} ... -> {done.returncode}")
    assert done.returncode in good, done.stderr.decode(errors="replace")[-3000:]
    return done.stdout.decode(errors="replace")


# Once: to look a library up starts a program, and this is asked for each of 30,000 cells.
zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
zstd.ZSTD_findFrameCompressedSize.restype = ctypes.c_size_t
zstd.ZSTD_decompress.restype = ctypes.c_size_t


def zstd_frames(data):
    """All that unpacks, wherever it lies."""
    for match in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), data):
        frame = data[match.start():]
        size = zstd.ZSTD_getFrameContentSize(frame, ctypes.c_size_t(len(frame)))
        length = zstd.ZSTD_findFrameCompressedSize(frame, ctypes.c_size_t(len(frame)))
        if zstd.ZSTD_isError(ctypes.c_size_t(length)) or size > 1 << 28:
            continue
        to = ctypes.create_string_buffer(max(size, 1))
        got = zstd.ZSTD_decompress(to, ctypes.c_size_t(size), frame, ctypes.c_size_t(length))
        if not zstd.ZSTD_isError(ctypes.c_size_t(got)):
            yield to.raw[:got]


def layers(data):
    """The bytes, and those packed in them."""
    yield data
    yield from zstd_frames(data)
    whole = memoryview(data)  # most matches are none: a copy for each would take minutes
    for match in re.finditer(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]", data):
        window = 31 if match.group()[0] == 0x1f else zlib.MAX_WBITS
        try:
            yield zlib.decompressobj(window).decompress(whole[match.start():], 1 << 26)
        except zlib.error:
            pass
    for match in re.finditer(rb"[A-Za-z0-9+/]{64,}={0,2}", data):
        text = match.group()
        yield base64.b64decode(text[:len(text) // 4 * 4])


def cells(path, data):
    """Rows of SQLite: a value may be cut in pieces by pages, and packed."""
    if not data.startswith(b"SQLite format 3\0"):
        return
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.text_factory = bytes
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        for row in db.execute(f'SELECT * FROM "{table.decode()}"'):
            for cell in row:
                if isinstance(cell, bytes) and len(cell) >= 4:
                    yield from layers(cell)
    db.close()


# As it is, and as Basic authorization has it: base64 at each of three places in a word.
SHAPES = [PLANTED] + [base64.b64encode(b"x" * i + PLANTED)[4:-4] for i in (1, 2, 3)]


clean = set()  # digests of files in which nothing was found


def finds(path):
    data = path.read_bytes()
    digest = hashlib.sha256(data).digest()
    if digest in clean:
        return None
    for piece in itertools.chain(layers(data), cells(path, data)):
        for shape in SHAPES:
            if shape in piece:
                at = piece.index(shape)
                return piece[max(at - 60, 0):at + 60]
    clean.add(digest)
    return None


def files(*folders):
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]


def all_of(command, sign):
    """Everything that stores or prints."""
    run("run", "--budget", "8s", "--runs", "3", "--force", "-o", "runs", "--", *command, good=(0, 3))
    folder = (out / "runs" / "latest").resolve()
    run("record", "--io", "--offcpu", "--cpu", "-o", "r.whyslow", "--", *command)
    said = [row["text"] for row in json.loads(run("query", "--json", "--limit", "0", "r.whyslow",
                                                  "SELECT DISTINCT text.text FROM request JOIN text ON text.id = request.text"))
            ["rows"]]
    assert sign in said, said
    for view in (("io",), ("io", "--requests"), ("waits",), ("waits", "--json"), ("report",), ("report", "--json")):
        run(*view, "r.whyslow", good=(0, 3))
    for axis in ("io", "waits", "locks", "heap"):
        # Of allocations nothing is kept that the program says: any program will do.
        target = ["/bin/ls", "--color=never", "--hide", "token=plantedheap"] if axis == "heap" else command
        run(axis, "-o", f"{axis}.whyslow", "--", *target, good=(0, 3))
        run(axis, "--json", "--", *target, good=(0, 3))
    for format in EXPORTS:
        run("export", "--format", format, "-o", f"export.{format}", "r.whyslow", good=(0, 2, 3))
    for table in ("process", "text", "object", "document"):
        run("query", "--limit", "0", "r.whyslow", f"SELECT * FROM {table}")
    run("bench", "--runs", "3", "--export-json", "b.json", "--export-csv", "b.csv", "--export-markdown", "b.md", "--",
        *command)
    run("bench", "--runs", "2", "--", "sh", "-c", shell(command))
    run("bench", "--runs", "2", "--json", shell(command))
    run("compare", "--blocks", "3", "--json", shell(command), shell(command))
    run("gate", "--budget", "2s", "--summary", "summary.md", "--prepare", "true --password plantedprepare",
        "--baseline", shell(command), "--candidate", shell(command), good=(0, 1, 3))
    run("scale", "--units", "1,2", "--runs", "3", "--shell", "sh", shell(command) + " #{n}")
    run("bench", "--runs", "2", "--cleanup", "false --password plantedcleanup", "--export-json", "c.json", "true",
        good=(1,))
    # Headers as they are typed, in words and in a text.
    run("bench", "--runs", "2", "--export-json", "h.json", "--", "true", "-H", "Authorization:Bearer plantedbearer",
        "--header=Cookie: a=b; c=plantedpart")
    run("bench", "--runs", "2", "--json", 'true --header="Authorization: Bearer plantedbearer" -H"Cookie: a=b; c=plantedpart"')
    run("history", good=(0, 3))
    # What cannot be started is said without them, too.
    run("bench", "--", "./not-there", "--password", "plantedmissing", good=(2, 4, 5))
    run("bench", "curl -u 'user:planted", good=(2, ))
    run("record", "--", "./not-there", "--password=plantedmissing", good=(2, 4, 5))
    run("run", "--", "./not-there", "https://user:planted@host/", good=(2, 4, 5))
    return folder


def shell(command):
    return shlex.join(map(str, command))


def repeat(folder, command):
    """The scenario runs what was run, with the words that it does not show."""
    arguments = folder / "arguments.0600"
    if name == "both":
        assert not arguments.exists(), "nothing was hidden: no file is needed"
        return
    assert arguments.read_bytes() == b"".join(str(word).encode() + b"\0" for word in command)
    handoff = (folder / "handoff.md").read_text()
    assert f"whyslow bench --scenario runs/{folder.name}/scenario.toml" in handoff
    scenario = f"runs/{folder.name}/scenario.toml"
    before = Answers.served
    run("bench", "--scenario", scenario, "--runs", "2", "--export-json", "again.json")
    result = json.loads((out / "again.json").read_text())["results"][0]
    assert result["redacted"] >= 1 and "[redacted]" in result["command"], result
    run("gate", "--max-regression", "5%", "--baseline", "again.json", "--candidate", "again.json", good=(0, 3))
    run("run", "--scenario", scenario, "--budget", "4s", "--runs", "2", "--force", "-o", "runs-again", good=(0, 3))
    assert name != "http" or Answers.served > before + 3
    assert json.loads((folder / "profile_result.json").read_text())["e2e_test"]["redacted"] >= 1
    arguments.unlink()
    run("run", "--scenario", scenario, good=(2, 4))


def check():
    wrong = []
    for path in files(out, printed):
        # The one file that is there to have them.
        found = path.name != "arguments.0600" and finds(path)
        if found:
            wrong.append(f"{path.relative_to(lab.folder)}: {found!r}")
    for path in sorted(out.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        made_by_us = path.parent == out and path.is_dir() and not path.name.startswith("runs")
        # Our own library holds nothing of a target's, and targets must be able to read it.
        if not (made_by_us or path.is_symlink() or path.suffix == ".so") and mode & 0o077:
            wrong.append(f"{path.relative_to(lab.folder)}: mode {mode:o}")
    print(len(files(out, printed)), "files looked at")
    assert not wrong, "\n" + "\n".join(wrong)


try:
    for command, sign in cases():
        folder = all_of(command, sign)
        check()
        repeat(folder, command)
        check()
        if name != "both":
            run("record", "--keep-arguments", "-o", "kept.whyslow", "--", *command)
            assert finds(out / "kept.whyslow"), "a planted word is not found: the search is worth nothing"
finally:
    lab.close()
