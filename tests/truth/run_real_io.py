#!/usr/bin/python3
"""Programs of the distribution, whose trouble is known because it is their configuration.

    run_real_io.py sqlite|gzip WHYSLOW

sqlite: 2,000 inserts (fewer on a slow disk) into a file on the build's disk. With a commit each, that is what is slow; in
one transaction it is not. gzip: compressing is computing: nothing else may be confirmed.
"""

import pathlib
import random
import subprocess
import sys
import time

import corpus_tools

INSERTS, INSERTS_FEW, INSERTS_MIN = 2000, 50, 200
RUN_S = 2.5  # on a disk that others use, fewer inserts do
GZIP_MIB = 24
# A machine that others use needs longer for the same runs.
OPTIONS = ("--budget", "90s")
# What may be said of a program that computes.
CPU = ("one_function", "one_line", "unoptimized_build")


def confirmed(result):
    return corpus_tools.suspicions(result, "confirmed")


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


# How many it was here and now; a replay does not know.
inserted = [INSERTS_MIN]


def sqlite_each(folder):
    inserted[0] = sqlite_count(pathlib.Path(folder))
    return sqlite_script(pathlib.Path(folder), "each.sql", inserted[0])


def sqlite_all(folder):
    return sqlite_script(pathlib.Path(folder), "all.sql", INSERTS, "BEGIN;", "COMMIT;")


def sqlite_each_truth(result):
    first = confirmed(result)
    if not first or first[0]["detector"] != "fsync_per_message":
        yield f"fsync_per_message is not first: {corpus_tools.suspicions(result, detector='fsync_per_message')}"
    elif first[0]["facts"]["syncs"] < inserted[0]:
        yield f"{first[0]['facts']['syncs']} syncs of at least {inserted[0]}"


def sqlite_all_truth(result):
    yield from (f"in one transaction: {row['detector']}: {row['title']}" for row in confirmed(result)
                if row["detector"] == "fsync_per_message")


def gzip_command(folder):
    words = [bytes(random.Random(i).choices(b"abcdefghijklmnopqrstuvwxyz", k=8)) for i in range(4096)]
    source = random.Random(1)
    data = b" ".join(source.choices(words, k=GZIP_MIB << 17))
    (pathlib.Path(folder) / "data").write_bytes(data[:GZIP_MIB << 20])
    return ["gzip", "-k", "-f", "data"]


def gzip_truth(result):
    yield from (f"{row['detector']}: {row['title']}" for row in confirmed(result) if row["detector"] not in CPU)


def gzip_whole(folder):
    subprocess.run(["gzip", "-t", "data.gz"], cwd=folder, check=True)


def cases():
    rows = (("sqlite-each", sqlite_each, sqlite_each_truth, None), ("sqlite-all", sqlite_all, sqlite_all_truth, None),
            ("gzip", gzip_command, gzip_truth, gzip_whole))
    for kind, command, truth, after in rows:
        yield corpus_tools.Case("real", kind, "planted", command, options=OPTIONS, truth=truth, after=after,
                                needs="gzip" if kind == "gzip" else "sqlite3")


def main(name, whyslow):
    """Live; sqlite in both ways."""
    answers = [corpus_tools.live(case, whyslow) for case in cases() if case.kind.startswith(name)]
    return 1 if 1 in answers else max(answers)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
