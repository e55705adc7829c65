"""What the tests of I/O share: recordings made in every tier, their rows, and what programs and
servers say themselves beside them."""

import json
import os
import pathlib
import platform
import sys

import wait_tools

NUMBERS = {}
for line in (pathlib.Path(__file__).resolve().parent.parent.parent / "data" / "syscalls.txt").read_text().splitlines():
    if line and not line.startswith("#"):
        name, *numbers = line.split()
        number = numbers[0 if platform.machine() == "x86_64" else 1]
        if number != "-":
            NUMBERS[int(number)] = name

CALLS = """SELECT object.kind AS kind, object.name AS name, call.syscall AS syscall, call.error AS error, call.flags AS flags,
    sum(count) AS calls, sum(bytes) AS bytes, sum(asked_bytes) AS asked, sum(partial) AS partial, sum(placed) AS placed,
    sum(sequential) AS sequential, sum(missed) AS missed, sum(missed_bytes) AS missed_bytes, sum(total_ns) / 1e6 AS ms,
    max(max_ns) / 1e6 AS max_ms
    FROM call LEFT JOIN object ON object.id = call.object
    GROUP BY object.kind, object.name, call.syscall, call.error, call.flags"""
SYNC, DIRECT, NONBLOCK, FAULT, CREATES = 1, 2, 4, 8, 16


class Rows:
    """All calls of a recording, by what they were on."""

    def __init__(self, rows):
        self.rows = [{**row, "call": NUMBERS.get(row["syscall"], "?"), "name": row["name"] or "", "kind": row["kind"] or ""}
                     for row in rows]

    def of(self, call=None, name=None, kind=None, error=None, flag=None, end=None):
        return [row for row in self.rows
                if (call is None or row["call"] in ((call,) if isinstance(call, str) else call))
                and (name is None or row["name"] == name) and (kind is None or row["kind"] == kind)
                and (end is None or row["name"].endswith(end)) and (flag is None or row["flags"] & flag)
                and (error is None or row["error"] == error)]

    def show(self, most=40):
        for row in sorted(self.rows, key=lambda row: -row["ms"])[:most]:
            print(f"  {row['call']:16} {row['calls']:8} calls {row['bytes']:12} bytes {row['ms']:10.3f} ms "
                  f"error {row['error']} flags {row['flags']} {row['kind']} {row['name'][:80]}")


def total(rows, field="calls"):
    return sum(row[field] for row in rows)


class Lab(wait_tools.Lab):
    def record_io(self, *command, tier="kernel", options=(), before=(), status=0, io=("--io",), **more):
        """Returns the path of a recording, what the program said, line by line, and whyslow's words."""
        self.count += 1
        path = str(self.folder / f"{self.count}.whyslow")
        who = self.nobody() if tier == "nobody" else []
        done = self.run(*who, *before, self.whyslow, "record", *io, "--tier", "user" if tier == "nobody" else tier, *options,
                        "-o", path, "--", *command, status=status, **more)
        print(done.stdout[-4000:], end="")
        return path, done.stdout, done.stderr

    def query(self, path, sql):
        done = self.run(self.whyslow, "query", "--json", "--limit", "0", path, sql)
        return json.loads(done.stdout)["rows"]

    def rows(self, path):
        rows = Rows(self.query(path, CALLS))
        rows.show()
        return rows

    def io(self, path, *options):
        done = self.run(self.whyslow, "io", "--json", "--limit", "0", *options, path)
        return json.loads(done.stdout)

    def counters(self, path):
        return {row["name"]: row["value"] for row in self.query(path, "SELECT name, value FROM counter")}


def tree_make(top, folders, files):
    """A tree of so many names, which all look like those that walk() asks about. Those of a folder are one file."""
    for i in range(folders):
        folder = top / f"{i % 10}" / f"{i}"
        folder.mkdir(parents=True)
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.close(os.open("lib0.so.1", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=at))
        for k in range(1, files):
            os.link("lib0.so.1", f"lib{k}.so.1", src_dir_fd=at, dst_dir_fd=at)
        os.close(at)
    return top


WALK = """
import json, subprocess, sys, time
begun = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(json.dumps({"name": "wall_ms", "value": 1000 * (time.monotonic() - begun)}))
"""


def walk(top):
    """A command that walks over a tree and says how long it took, without the start and end of whoever looks on."""
    return [sys.executable, "-c", WALK, "find", str(top), "-name", "*.so*", "-newer", "/etc/passwd"]


def walk_ms(text):
    return next(row["value"] for line in text.splitlines() if (row := json.loads(line))["name"] == "wall_ms")


def accounts(text):
    """What a workload says it did: lines {"file", "call", "calls", "bytes", "errors", "ms"}."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [row for row in rows if "call" in row]

