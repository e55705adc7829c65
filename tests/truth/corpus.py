#!/usr/bin/python3
"""All of the corpus of planted trouble, by name; one of them recorded now and judged.

    corpus.py NAME WHYSLOW PROGRAMS...

The suite replay judges stored recordings of all of them (tests/replay). This is for what only a live run can show:
that recorders still see today what they saw then.
"""

import sys

import corpus_cpu
import corpus_io
import corpus_locks
import corpus_net
import corpus_tools
import run_mixed
import run_real_cpu
import run_real_io
import run_real_net

PARTS = (corpus_cpu, corpus_io, corpus_locks, corpus_net, run_mixed, run_real_cpu, run_real_io, run_real_net)
CASES = {case.name: case for part in PARTS for case in part.cases()}

if __name__ == "__main__":
    sys.exit(corpus_tools.live(CASES[sys.argv[1]], *sys.argv[2:]))
