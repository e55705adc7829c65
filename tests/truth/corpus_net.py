#!/usr/bin/python3
"""Planted trouble with requests and networks: what `whyslow run` must confirm, dismiss, and never say.

    corpus_net.py DETECTOR gain WHYSLOW PROGRAMS...

The server runs beside the command, not in it, as servers do: what it takes is the client's to wait for. `gain`: what is
said to be recoverable beside what the mended program really gains. The cases are those of corpus.py; `nobody` is the
plant without privileges.
"""

import contextlib
import functools
import os
import subprocess
import sys
import tempfile

import corpus_tools
import gain_tools

# DNS is looked for at its port only; an address of our own, since 127.0.0.1:53 may be somebody's.
DNS_ADDRESS = "127.53.0.7"
# Whatever else the machine does, no axis is left out.
BUDGET = ("--budget", "60s")

# Each command is a name of net_client and how often; of poll_loop a name of net_poll and for how long.
CASES = {
    "n_plus_one": {"planted": ("n_plus_one", 100), "pattern": ("n_plus_one_pattern", 40),
                   "near": ("n_plus_one_near", 100), "clean": ("n_plus_one_clean", 100),
                   "gain": (("n_plus_one", 100), ("n_plus_one_mended", 100))},
    "duplicate_query": {"planted": ("duplicate_query", 100), "near": ("duplicate_query_near", 100),
                        "clean": ("duplicate_query_clean", 100),
                        "gain": (("duplicate_query", 100), ("duplicate_query_mended", 100))},
    "sequential_http": {"planted": ("sequential_http", 15), "near": ("sequential_http_near", 15),
                        "clean": ("sequential_http_clean", 15),
                        "gain": (("sequential_http", 15), ("sequential_http_mended", 15))},
    "connection_per_request": {"planted": ("connection_per_request", 60), "near": ("connection_per_request_near", 24),
                               "clean": ("connection_per_request_clean", 24),
                               "gain": (("connection_per_request", 60), ("connection_per_request_mended", 60)),
                               # On each connection it asks for one more row: where answers take long, that is N+1.
                               "also": {"planted": ("n_plus_one",), "nobody": ("n_plus_one",)}},
    # Those that are no delayed ACKs are requests of 40 ms one after another, and that is true of them.
    "delayed_ack": {"planted": ("delayed_ack", 20), "near": ("delayed_ack_near", 15),
                    "nodelay": ("delayed_ack_nodelay", 15), "clean": ("delayed_ack_clean", 20),
                    "gain": (("delayed_ack", 20), ("delayed_ack_mended", 20)),
                    "also": {"near": ("sequential_http",), "nodelay": ("sequential_http",)}},
    "repeated_dns": {"planted": ("repeated_dns", 60), "near": ("repeated_dns_near", 60),
                     "clean": ("repeated_dns_clean", 60),
                     "gain": (("repeated_dns", 60), ("repeated_dns_mended", 60))},
    "poll_loop": {"planted": ("spin", 100), "near": ("sleep", 100), "clean": ("wait", 100),
                  "gain": (("spin", 100), ("wait", 100))},
}
# What else a kind is judged as.
KIND_OF = {"pattern": "planted", "nobody": "planted", "nodelay": "near"}


NOBODY = ("n_plus_one", "sequential_http", "connection_per_request", "delayed_ack")


@contextlib.contextmanager
def server_of(detector):
    """Address and port; nothing for those that need none."""
    if detector == "poll_loop":
        yield ()
        return
    if detector == "repeated_dns" and os.geteuid() != 0:
        raise corpus_tools.Skip("port 53 is for root only")
    program = corpus_tools.PROGRAMS["net-server"]
    dns = detector == "repeated_dns"
    address = DNS_ADDRESS if dns else "127.0.0.1"
    process = subprocess.Popen([program, address, *(["dns"] if dns else [])], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        port = process.stdout.readline().strip()
        assert port, "the server does not start"
        yield (address, port)
    finally:
        process.stdin.close()
        process.wait(timeout=30)


def attempt(whyslow, detector, trouble, mended, folder):
    answers = {subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=60).stdout
               for command in (trouble, mended)}
    assert len(answers) == 1, "the mended program says something else"
    pairs, (result, _) = gain_tools.around(
        lambda: (gain_tools.wall(trouble, folder), gain_tools.wall(mended, folder)),
        lambda: corpus_tools.run(whyslow, trouble, folder, *BUDGET))
    return gain_tools.compared_by_wall(detector, pairs, result)


def command_of(detector, name, count):
    return ["net-poll" if detector == "poll_loop" else "net-client", name, str(count)]


def cases():
    for detector, kinds in CASES.items():
        kinds = {kind: what for kind, what in kinds.items() if kind not in ("gain", "also")}
        if detector in NOBODY:
            kinds["nobody"] = kinds["planted"]
        for kind, what in kinds.items():
            yield corpus_tools.Case(detector, kind, KIND_OF.get(kind, kind), command_of(detector, *what),
                                    CASES[detector].get("also", {}).get(kind, ()), BUDGET,
                                    functools.partial(server_of, detector), nobody=kind == "nobody")


def main(detector, _, whyslow, *programs):
    corpus_tools.programs_are(programs)
    whyslow = os.path.abspath(whyslow)
    try:
        with server_of(detector) as at, tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
            commands = [[*corpus_tools.resolved(command_of(detector, *what)), *at]
                        for what in CASES[detector]["gain"]]
            return gain_tools.verdict(lambda: attempt(whyslow, detector, *commands, folder))
    except corpus_tools.Skip as skip:
        print("SKIP:", skip)
        return gain_tools.SKIP


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
