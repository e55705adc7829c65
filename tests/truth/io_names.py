#!/usr/bin/python3
"""A walk over a tree of many names: of hundreds of thousands of calls nearly each is about another one.

    io_names.py kernel|user|nobody WHYSLOW

How many lose their stack or object, and how much longer the walk takes: both belong to the machine, since whyslow
reads while the walk goes on.
"""

import statistics
import subprocess
import sys

import io_tools
from wait_tools import need_kernel_tier, skip, timed

TIER, ROUNDS = sys.argv[1], 3
FOLDERS, FILES = 1000, 100
# A call of find takes about as long as all that has to be done for one with a new name: twice as long, and what a busy
# cache adds.
LONGER_MAX = 3
# In the user tier the library's rings hold what find does in some tens of milliseconds, and no more.
LOST_MAX_PCT = {"kernel": 1, "user": 5, "nobody": 5}[TIER]


def main():
    lab = io_tools.Lab(sys.argv[2], [], "whyslow-io-names-")
    try:
        command = io_tools.walk(io_tools.tree_make(lab.folder / "tree", FOLDERS, FILES))
        lab.run(*command)  # what was written is in memory, but not yet as it is read
        plain, longer, lost = [], [], []
        for _ in range(ROUNDS):
            plain.append(io_tools.walk_ms(lab.run(*command).stdout))
            path, said, _ = lab.record_io(*command, tier=TIER)
            longer.append(io_tools.walk_ms(said) / statistics.median(plain))
            counters = lab.counters(path)
            assert counters["io.calls"] >= FOLDERS * FILES, counters
            lost.append(100 * counters["io.unattributed"] / counters["io.calls"])
            print({name: value for name, value in counters.items() if value and name.startswith("io.")})
        print("plain", plain, "ms; longer", longer, "times; without stack or object", lost, "%")
        timed("calls without stack or object, %", statistics.median(lost) < LOST_MAX_PCT, str(lost))
        timed("times as long as plain", statistics.median(longer) < LONGER_MAX, str(longer))
    finally:
        lab.close()


if __name__ == "__main__":
    if TIER == "kernel":
        need_kernel_tier()
    if subprocess.run(["find", "--version"], capture_output=True, check=False).returncode != 0:
        skip("no find here")
    main()
