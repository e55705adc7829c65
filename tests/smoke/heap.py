#!/usr/bin/python3
"""Memory that a program knows all about, and what whyslow tells of it: every total equal.

    heap.py CASE TIER WHYSLOW KNOWN KNOWN_CPP REPLACED STACKS PLUGIN_A PLUGIN_B

TIER: user (the library in the target), nobody (the same without privileges), kernel (uprobes).
CASE: of the program (heap_known.c; after "cpp-" or "replaced-" of heap_known.cpp, after "stacks-" of
heap_stacks.c).
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import heap_tools  # noqa: E402
from heap_tools import compare, copied, nobody, record, skip  # noqa: E402
from judged import JUDGED  # noqa: E402

case, tier = sys.argv[1:3]
programs = [os.path.abspath(path) for path in sys.argv[3:]]
heap_tools.Heap.whyslow = programs[0]
ARGUMENTS = {"threads-1": ("threads", "1", "100"), "threads-16": ("threads", "16", "100"),
             "threads-64": ("threads", "64", "30"), "plugins": ("plugins", "40")}


def main():
    before = ()
    if tier == "kernel" and os.geteuid() != 0:
        skip("the kernel tier needs root")
    whyslow, known, cpp, replaced, stacks, plugin_a, plugin_b = programs
    if tier == "nobody":
        before = nobody()
        whyslow, known, cpp, replaced, stacks, plugin_a, plugin_b = copied(*programs)
    program, name = known, case
    for prefix, other in (("cpp-", cpp), ("replaced-", replaced), ("stacks-", stacks)):
        if case.startswith(prefix):
            program, name = other, case[len(prefix):]
    command = (program, *ARGUMENTS.get(name, (name,)))
    if tier == "kernel" and name == "threads-4":
        command = (program, "threads", "4", "20", "50")  # no more at once than it can tell the stacks of
    env = {"KNOWN_TRUTH": os.path.abspath("truth"), "KNOWN_PLUGIN_A": plugin_a, "KNOWN_PLUGIN_B": plugin_b}
    if name == "reentrant":
        env["KNOWN_EARLY"] = "1"
    options = ("--tier", "kernel" if tier == "kernel" else "user")
    for _ in range(9 if JUDGED and name.startswith(("threads-", "mountains")) and tier == "user" else 0):
        # What goes wrong between threads does so now and then. In the suite `truth`, since it is long.
        record(whyslow, *command, options=options, before=before, env=env)
        compare(whyslow)
        os.unlink("truth")
    done = record(whyslow, *command, options=options, before=before, env=env)
    if name == "plugins":
        assert "at the same address: yes" in done.stdout, done.stdout
    heap = compare(whyslow)
    if name == "wide" and tier != "kernel":
        assert len(heap.sites) > 1000, len(heap.sites)
    if name == "mapped":
        maps = {kind: heap.db.execute("SELECT sum(allocations), sum(allocated_bytes) FROM heap_site WHERE kind = ?"
                                      " AND stack IN (%s)" % ",".join(
                                          str(stack) for stack in heap.parents
                                          if any("known_map" in n or "case_mapped" in n for n in heap.names(stack))),
                                      (kind,)).fetchone() for kind in ("map", "unmap")}
        assert tuple(maps["map"]) == (10, 10 << 20) and tuple(maps["unmap"]) == (5, 5 << 20), {
            kind: tuple(row) for kind, row in maps.items()}
    if name == "deep":
        # Recursion of every depth, and its frames are all there as far as frames go.
        depths = {len(heap.names(row["stack"])) for row in heap.sites if heap.owner(row["stack"]) == "known_deep"}
        assert len(depths) > 100, depths


heap_tools.in_folder(main)
