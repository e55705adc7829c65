#!/usr/bin/python3
"""Real servers of Debian's packages: the top finding of `whyslow run` is the right one.

    run_real_net.py postgresql WHYSLOW NET_PG
    run_real_net.py redis WHYSLOW
"""

import contextlib
import os
import pathlib
import sys
import tempfile

import corpus_net
import corpus_tools
import gain_tools
import server_tools

SKIP = 77
ROWS = 2000
# Every SET is made durable. One client at a time: nothing is to be shared by several.
REDIS = """
rm -rf appendonlydir
redis-server --port 0 --unixsocket ./r.sock --dir . --save '' --appendonly yes --appendfsync always --daemonize no >log &
until redis-cli -s ./r.sock ping >/dev/null 2>&1; do sleep 0.02; done
redis-benchmark -s ./r.sock -t set -n 500 -c 1 -q >/dev/null
redis-cli -s ./r.sock shutdown nosave >/dev/null
wait
"""


@contextlib.contextmanager
def postgresql_beside():
    """How to reach a server of ours."""
    if not server_tools.PostgreSQL.there() or "net-pg" not in corpus_tools.PROGRAMS:
        raise corpus_tools.Skip(f"needs {server_tools.PostgreSQL.missing}, and libpq-dev")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)  # the server is somebody else
        server = stack.enter_context(server_tools.PostgreSQL(pathlib.Path(folder) / "pg"))
        yield [f"host={server.folder} user=bench dbname=postgres"]


def slow_truth(result):
    yield from corpus_tools.judge("n_plus_one", "planted", result)
    for row in corpus_tools.suspicions(result, "confirmed", "n_plus_one"):
        yield from place_truth(row)


def place_truth(row):
    if "main" not in row["location"] and "balance_of" not in row["location"]:
        yield f"the place is {row['location']}"
    if row["facts"]["requests"] != ROWS:
        yield f"{row['facts']['requests']} requests were seen"


def fast_truth(result):
    # A few milliseconds are all start-up, and that may be said of it.
    yield from (f"false: {row['title']}" for row in corpus_tools.suspicions(result, "confirmed")
                if row["detector"] in corpus_net.CASES)


def redis_truth(result):
    # The event loop does stand still meanwhile, and each of these writes is small: both true of it.
    yield from corpus_tools.judge("fsync_per_message", "planted", result,
                                  also=("event_loop_io", "small_io"))


def cases():
    for kind, name, truth in (("postgresql-slow", "n_plus_one", slow_truth), ("postgresql-fast", "batched", fast_truth)):
        yield corpus_tools.Case("real", kind, "planted", ["net-pg", name, str(ROWS)], options=corpus_net.BUDGET,
                                around=postgresql_beside, truth=truth)
    yield corpus_tools.Case("real", "redis", "planted", ["sh", "-c", REDIS], options=corpus_net.BUDGET,
                            needs="redis-benchmark", truth=redis_truth)


class Unsteady(Exception):
    """The machine is too busy: what a run takes differs too much from one minute to the next."""


def postgresql(whyslow, client):
    """Complaints: N+1 must be first, with its place and what batching really gains; batched is clean."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)  # the server is somebody else
        server = stack.enter_context(server_tools.PostgreSQL(pathlib.Path(folder) / "pg"))
        info = f"host={server.folder} user=bench dbname=postgres"
        slow, fast = ([client, kind, str(ROWS), info] for kind in ("n_plus_one", "batched"))
        result, _ = corpus_tools.run(whyslow, slow, folder, *corpus_net.BUDGET)
        yield from corpus_tools.judge("n_plus_one", "planted", result)
        for row in corpus_tools.suspicions(result, "confirmed", "n_plus_one"):
            yield from postgresql_gain(row, result, slow, fast, folder)
        result, _ = corpus_tools.run(whyslow, fast, folder, *corpus_net.BUDGET)
        corpus_tools.show(result)
        yield from fast_truth(result)


def postgresql_gain(row, result, slow, fast, folder):
    """Complaints about what is said of the N+1."""
    yield from place_truth(row)
    # Shares, not times: a round trip here is CPU time of two processes, at whatever load there is just now.
    runs = [(gain_tools.wall(slow, folder), gain_tools.wall(fast, folder)) for _ in range(gain_tools.PAIRS)]
    said = row["recoverable_ms"] / 1e3 / gain_tools.baseline_of(result)
    error, _ = gain_tools.compared("n_plus_one", runs, said)
    if abs(error) > gain_tools.TOLERANCE:
        yield f"what is said to be recoverable is off by {error:+.1%}"


def redis(whyslow):
    """Complaints: what makes every SET durable must be first."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
        result, _ = corpus_tools.run(whyslow, ["sh", "-c", REDIS], folder, *corpus_net.BUDGET)
    for row in corpus_tools.suspicions(result, "not judged", "fsync_per_message"):
        if "usual time" in row["reason"] or "budget" in row["reason"]:
            raise Unsteady
    yield from redis_truth(result)


def main(name, whyslow, *programs):
    whyslow, *programs = map(os.path.abspath, (whyslow, *programs))
    server = {"postgresql": server_tools.PostgreSQL, "redis": server_tools.Redis}[name]
    if not server.there() or (name == "postgresql" and not programs):
        print(f"needs {server.missing}, and libpq-dev for PostgreSQL")
        return SKIP
    try:
        complaints = list(postgresql(whyslow, *programs) if name == "postgresql" else redis(whyslow))
    except Unsteady as unsteady:
        print(f"SKIP: {unsteady.__doc__}")
        return SKIP
    for line in complaints:
        print("WRONG", line)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
