#!/usr/bin/python3
"""Programs with the library for the heap in them: what they do is what they do alone, and what
signal handlers do is counted, too.

    heap_hooks.py CASE LIBRARY HOOKS CXX PLUGIN SIGNALS
"""

import ctypes.util
import mmap
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

case = sys.argv[1]
library, hooks, cxx, plugin, signals = map(os.path.abspath, sys.argv[2:7])
HEADER, WINDOW, WINDOWS, CELL, PLACE = 1 << 20, 1 << 30, 1024, 128, 768
MAGIC = 0x7061656877737968


def skip(why):
    print("SKIP:", why)
    sys.exit(77)


class Shared:
    """The memory that whyslow would share with the program (src/format/heap.h)."""

    def __init__(self, windows=WINDOWS, over=0):
        self.fd = os.memfd_create("heap")
        os.ftruncate(self.fd, HEADER + WINDOWS * WINDOW)
        self.header = mmap.mmap(self.fd, 4096)
        self.header[0:36] = struct.pack("<QIIQIII", MAGIC, 1, 1, 0, 0, windows, over)

    def environment(self, others=()):
        return dict(os.environ, LD_PRELOAD=":".join([library, *others]),
                    WHYSLOW_HEAP=f"/proc/{os.getpid()}/fd/{self.fd}")

    def windows(self):
        return struct.unpack("<I", self.header[36:40])[0]

    def refused(self):
        return struct.unpack("<I", self.header[44:48])[0]

    def totals(self, window=0):
        """Allocations, bytes, frees, bytes; then of all places: calls put off, lost, failed."""
        at = HEADER + window * WINDOW
        head = os.pread(self.fd, 128, at)
        threads_at, _, _, cells_at = struct.unpack("<QQQQ", head[24:56])
        threads, _, _, cells = struct.unpack("<IIII", head[88:104])
        sums = [0] * 7
        for i in range(cells):
            row = struct.unpack("<QQQQ", os.pread(self.fd, 32, at + cells_at + i * CELL + 8))
            sums[:4] = [a + b for a, b in zip(sums[:4], row)]
        for i in range(threads):
            row = struct.unpack("<QQQ", os.pread(self.fd, 24, at + threads_at + i * PLACE + 72))
            sums[4:] = [a + b for a, b in zip(sums[4:], row)]
        return sums


def run(*command, env=None, limits=()):
    def prepare():
        for kind, most in limits:
            resource.setrlimit(kind, (most, most))
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env, check=False,
                          preexec_fn=prepare)
    return done.returncode, done.stdout, done.stderr


def same(*command, shared=None, others=(), limits=()):
    """The program's own output, and that with the library in it."""
    alone = dict(os.environ, LD_PRELOAD=":".join(others)) if others else None
    plain = run(*command, env=alone, limits=limits)
    assert plain[0] == 0, plain
    if shared:
        env = shared.environment(others)
    else:
        env = dict(os.environ, LD_PRELOAD=":".join([library, *others]))
    watched = run(*command, env=env, limits=limits)
    assert plain == watched, (plain, watched)
    return plain[1]


def promises_are_kept():
    shared = Shared()
    said = same(hooks, plugin, shared=shared)
    assert not re.search(r": no\b", said) and "thrown and caught" in said, said
    # Itself, twenty children with two of their own each, two that end badly, what it starts.
    assert shared.windows() >= 1 + 20 * 3 + 2 + 2 and shared.refused() == 0, (shared.windows(), shared.refused())
    allocations, _, frees, _, _, lost, failed = shared.totals()
    assert allocations > 20000 * 200 and lost == 0 and failed >= 6, shared.totals()
    assert allocations - frees < 2000, shared.totals()


def promises_are_kept_when_it_is_off():
    same(hooks, plugin)
    for shared in (Shared(over=1), Shared(windows=0)):
        same(hooks, plugin, shared=shared)
        assert shared.windows() == 0 or shared.refused() > 0


def limits_stay_the_programs_own():
    os.environ["MALLOC_ARENA_MAX"] = "2"  # else libc uses up all there is, and then tries with less
    for limits in ([(resource.RLIMIT_AS, 256 << 20)], [(resource.RLIMIT_DATA, 256 << 20)],
                   [(resource.RLIMIT_NOFILE, 32)], [(resource.RLIMIT_NOFILE, 5)]):
        shared = Shared()
        same(hooks, shared=shared, limits=limits)
        sums = shared.totals()
        assert shared.windows() > 60 and sums[0] > 20000 * 200 and sums[6] < 10, (limits, sums)


def operators_throw():
    shared = Shared()
    said = same(cxx, shared=shared)
    assert not re.search(r": no\b", said), said
    sums = shared.totals()
    assert sums[6] >= 1000, sums


def handlers_are_counted():
    shared = Shared()
    status, said, error = run(signals, env=shared.environment())
    assert status == 0, (status, error)
    allocations, size, frees = map(int, said.split())
    counted = shared.totals()
    # The C library's own: a buffer, and a block for each thread.
    own = counted[0] - allocations
    assert own == 1 + 3 and counted[2] == frees and counted[3] == size, (said, counted)
    assert counted[4] > 0 and counted[5] == 0, counted


def handlers_may_leave():
    shared = Shared()
    status, said, error = run(signals, "longjmp", env=shared.environment())
    assert status == 0, (status, error)
    allocations = int(said.split()[0])
    counted = shared.totals()
    # What a handler left in the middle is there or not; the program says so before it asks.
    assert counted[5] > 0 and abs(counted[0] - allocations) < 6000, (said, counted)


def another_allocator_is_behind():
    path = ctypes.util.find_library("jemalloc")
    if not path:
        skip("there is no jemalloc here")
    shared = Shared()
    same(cxx, shared=shared, others=[path])
    sums = shared.totals()
    assert sums[0] > 100, sums


MUSL = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *run(void *arg)
{
    void *volatile p = aligned_alloc(64, 128);
    free(realloc(p, 1000));
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
    void *p = NULL;
    int r = posix_memalign(&p, 3, 100);
    printf("%d\\n", r);
    return 0;
}
"""


def another_libc_passes_it_by():
    if not shutil.which("musl-gcc"):
        skip("there is no musl-gcc here")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        subprocess.run(["musl-gcc", "-x", "c", "-", "-o", program], input=MUSL, text=True, check=True)
        shared = Shared()
        same(program, shared=shared)
        assert shared.windows() == 0, shared.windows()


CHILD = """
import os
{}
pid = os.fork()
if pid == 0:
    text = [str(i) * 1000 for i in range(1000)]
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


def children_are_counted():
    """Whatever became of descriptors and rights before the fork."""
    befores = ["os.closerange(3, 4096)"]
    if os.geteuid() == 0:
        befores += ["os.setgid(65534); os.setuid(65534)", "os.chroot('/proc/self/fdinfo')"]
    for before in befores:
        shared = Shared()
        status, _, error = run("/usr/bin/python3", "-c", CHILD.format(before), env=shared.environment())
        assert status == 0 and shared.windows() == 2 and shared.refused() == 0, (before, error, shared.windows())
        assert shared.totals(1)[0] > 1000, (before, shared.totals(1))


FIRST = "#include <stdlib.h>\nvoid *first;\n__attribute__((constructor)) static void ask(void) { first = malloc(10); }\n"


def an_allocator_that_spins_is_not_asked():
    """The first hook that is called is mmap(), from inside the program's own malloc(): chromium hung there."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../workloads/heap_spins.c")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/first.c", "w", encoding="ascii") as file:
            file.write(FIRST)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{folder}/libfirst.so", f"{folder}/first.c"], check=True)
        for kind in ("-pie", "-no-pie"):
            program = f"{folder}/spins{kind}"
            subprocess.run(["cc", "-O1", "-fno-builtin", "-fPIE" if kind == "-pie" else "-fno-pie", kind, "-o", program,
                            source, f"-L{folder}", "-Wl,--no-as-needed", "-lfirst", f"-Wl,-rpath,{folder}"], check=True)
            shared = Shared()
            done = subprocess.run([program], env=shared.environment(), capture_output=True, text=True, check=False,
                                  timeout=600)
            assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), (kind, done)
            assert shared.refused() == 1 and shared.windows() == 0, (kind, shared.refused(), shared.windows())


CASES = {
    "promises": promises_are_kept,
    "off": promises_are_kept_when_it_is_off,
    "limits": limits_stay_the_programs_own,
    "operators": operators_throw,
    "handlers": handlers_are_counted,
    "longjmp": handlers_may_leave,
    "jemalloc": another_allocator_is_behind,
    "musl": another_libc_passes_it_by,
    "children": children_are_counted,
    "spins": an_allocator_that_spins_is_not_asked,
}
CASES[case]()
