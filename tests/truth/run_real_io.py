#!/usr/bin/python3
"""Programs of the distribution, whose trouble is known because it is their configuration.

    run_real_io.py sqlite|gzip WHYSLOW

sqlite: 2,000 inserts (fewer on a slow disk) into a file on the build's disk. With a commit each, that is what is slow; in
one transaction it is not. gzip: compressing is computing: nothing else may be confirmed.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import corpus_tools

INSERTS, INSERTS_FEW, INSERTS_MIN = 2000, 50, 200
RUN_S = 2.5  # on a disk that others use, fewer inserts do
GZIP_MIB = 24
# True of a machine that others use, whatever is run on it; a busy one needs longer for the same runs.
AROUND = ("cpu_starvation",)
OPTIONS = ["--budget", "90s"]
# What may be said of a program that computes.
CPU = ("one_function", "one_line", "unoptimized_build", "unsymbolised_build")


def confirmed(result):
    return [row for row in corpus_tools.suspicions(result, "confirmed") if row["detector"] not in AROUND]


def sqlite_script(folder, name, count, begin="", end=""):
    lines = ["DROP TABLE IF EXISTS t;", "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, value REAL);", begin]
    lines += [f"INSERT INTO t VALUES ({i}, 'name {i}', {i * 0.5});" for i in range(count)]
    (folder / name).write_text("\n".join([*lines, end, "SELECT count(*) FROM t;"]))
    return ["sqlite3", "shop.db", f".read {name}"]


def sqlite_count(folder):
    start = time.monotonic()
    subprocess.run(sqlite_script(folder, "few.sql", INSERTS_FEW), cwd=folder, check=True, stdout=subprocess.DEVNULL)
    each = (time.monotonic() - start) / INSERTS_FEW
    return max(INSERTS_MIN, min(INSERTS, int(RUN_S / each)))


def sqlite(whyslow, folder):
    count = sqlite_count(folder)
    print(count, "inserts")
    result, _ = corpus_tools.run(whyslow, sqlite_script(folder, "each.sql", count), folder, *OPTIONS)
    corpus_tools.show(result)
    first = confirmed(result)
    if not first or first[0]["detector"] != "fsync_per_message":
        yield f"fsync_per_message is not first: {corpus_tools.suspicions(result, detector='fsync_per_message')}"
    elif first[0]["facts"]["syncs"] < count:
        yield f"{first[0]['facts']['syncs']} syncs of at least {count}"
    result, _ = corpus_tools.run(whyslow, sqlite_script(folder, "all.sql", INSERTS, "BEGIN;", "COMMIT;"), folder, *OPTIONS)
    corpus_tools.show(result)
    yield from (f"in one transaction: {row['detector']}: {row['title']}" for row in confirmed(result)
                if row["detector"] == "fsync_per_message")


def gzip(whyslow, folder):
    words = [bytes(random.Random(i).choices(b"abcdefghijklmnopqrstuvwxyz", k=8)) for i in range(4096)]
    source = random.Random(1)
    data = b" ".join(source.choices(words, k=GZIP_MIB << 17))
    (folder / "data").write_bytes(data[:GZIP_MIB << 20])
    result, _ = corpus_tools.run(whyslow, ["gzip", "-k", "-f", "data"], folder, *OPTIONS)
    corpus_tools.show(result)
    assert subprocess.run(["gzip", "-t", "data.gz"], cwd=folder, check=False).returncode == 0
    yield from (f"{row['detector']}: {row['title']}" for row in confirmed(result) if row["detector"] not in CPU)


def main(name, whyslow):
    tool = {"sqlite": "sqlite3"}.get(name, name)
    if not shutil.which(tool):
        print(f"skipped: no {tool} here")
        return 77
    whyslow = os.path.abspath(whyslow)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        complaints = list({"sqlite": sqlite, "gzip": gzip}[name](whyslow, pathlib.Path(folder)))
    for line in complaints:
        print("WRONG", line)
    return 1 if complaints else 0


sys.exit(main(*sys.argv[1:]))
