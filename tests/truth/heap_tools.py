"""What the tests of the heap share: recordings of programs that keep an account of their own
memory (tests/workloads/heap_account.h), and that account beside the recording's rows.

Every figure must be equal, not close. Memory that libc and the loader ask for themselves is told
apart by its stack: no function known_NAME() is on it.
"""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from judged import timed
from seen import below  # noqa: F401

PATIENCE_S = 600  # for what hangs: tools/run_tests allows 900
FIELDS = ("allocations", "allocated_bytes", "frees", "freed_bytes", "temporary", "grown", "grown_bytes")
PEAK = ("peak_count", "peak_bytes")
# The whyslow that is tested reads what lies packed in its recordings.
READER = next((os.path.abspath(word) for word in sys.argv[2:] if os.path.basename(word).startswith("whyslow")), None)
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "workloads"


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def nobody():
    """What stands before a command to be run by a user who may nothing, and who is nobody else: locked memory is counted
    by user, and tests run side by side."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={61000 + os.getpid() % 4000}", "--regid=65534", "--clear-groups"]


def work_folder():
    folder = tempfile.mkdtemp(prefix="whyslow-heap-")
    os.chmod(folder, 0o777)
    os.chdir(folder)
    # The cache of the user's that a test must not fill.
    os.environ.update(HOME=folder, XDG_CACHE_HOME=folder + "/cache")
    os.mkdir("cache", 0o777)
    os.chmod("cache", 0o777)
    return folder


def in_folder(run):
    folder = work_folder()
    try:
        run()
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    print("ok")


def copied(*programs):
    """Where a nobody may read them."""
    copies = []
    for program in programs:
        copies.append(shutil.copy(program, os.path.basename(program)))
        os.chmod(copies[-1], 0o755)
    return [os.path.abspath(copy) for copy in copies]


def compiled(output, *arguments, compiler="gcc"):
    if not shutil.which(compiler):
        skip(f"{compiler} is not installed")
    done = subprocess.run([compiler, "-O2", "-g", "-o", output, *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return os.path.abspath(output)


KNOWN_ARGS = ("-D_GNU_SOURCE", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread")


def unpack(db, path, table):
    """What lies packed in the file, as a table of this connection."""
    done = subprocess.run([READER, "query", "--json", "--limit", "0", path, f"SELECT * FROM {table}"],
                          capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, (done.returncode, done.stderr)
    told = json.loads(done.stdout)
    columns = told["columns"]
    db.execute(f"CREATE TEMP TABLE {table}({', '.join(columns)})")
    db.executemany(f"INSERT INTO temp.{table} VALUES({', '.join('?' * len(columns))})",
                   ([row[column] for column in columns] for row in told["rows"]))


class Heap:
    """The heap rows of a recording."""

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row
        for table in ("heap_site", "heap_snapshot_row"):
            unpack(self.db, path, table)
        functions = {}
        for row in self.db.execute("SELECT location.frame AS frame, text.text AS name FROM location"
                                   " JOIN function ON function.id = location.function"
                                   " JOIN text ON text.id = function.name ORDER BY location.frame, depth"):
            functions.setdefault(row["frame"], []).append(row["name"])
        for row in self.db.execute("SELECT frame.id AS frame, text.text AS name FROM frame"
                                   " JOIN text ON text.id = frame.name"):
            functions.setdefault(row["frame"], [row["name"]])
        self.functions = functions
        self.parents = {row[0]: (row[1], row[2]) for row in self.db.execute("SELECT id, parent, frame FROM stack")}
        self.counters = {row[0]: row[1] for row in self.db.execute("SELECT name, value FROM counter")}
        self.tier = json.loads(self.db.execute("SELECT json FROM document WHERE name = 'heap'").fetchone()[0])["tier"]
        self.owners = {0: None}
        self.sites = self.db.execute("SELECT heap_site.*, process.pid AS pid, process.id AS process FROM heap_site"
                                     " JOIN thread ON thread.id = heap_site.thread"
                                     " JOIN process ON process.id = thread.process"
                                     " WHERE kind = 'heap'").fetchall()
        self.processes = self.db.execute("SELECT heap_process.*, process.pid AS pid FROM heap_process"
                                         " JOIN process ON process.id = heap_process.process").fetchall()

    def names(self, stack):
        """Functions, the innermost first."""
        found = []
        while stack:
            stack, frame = self.parents[stack]
            found += self.functions.get(frame, ["?"])
        return found

    def owner(self, stack):
        """The innermost known_NAME on it; None: memory of others."""
        walked = []
        while stack not in self.owners:
            walked.append(stack)
            above, frame = self.parents[stack]
            found = next((m.group() for name in self.functions.get(frame, ())
                          if (m := re.search(r"\bknown_\w+", name))), None)
            if found:
                self.owners[stack] = found
                break
            stack = above
        owner = self.owners[stack]
        for each in walked:
            self.owners[each] = owner
        return owner

    def by_owner(self, pid):
        """{known_NAME or None: sums} of a process."""
        sums = {}
        for row in self.sites:
            if row["pid"] == pid:
                into = sums.setdefault(self.owner(row["stack"]), dict.fromkeys(FIELDS + PEAK, 0))
                for field in FIELDS + PEAK:
                    into[field] += row[field]
        return sums

    def total(self, field):
        return sum(row[field] for row in self.sites)

    def of_process(self, pid, field):
        return [row[field] for row in self.processes if row["pid"] == pid]

    def lost(self):
        return {name: value for name, value in self.counters.items()
                if name.startswith("heap.") and "lost" in name and value}

    def nothing_lost(self):
        assert not self.lost(), self.lost()


def record(whyslow, *command, path="r.whyslow", options=(), before=(), status=0, env=None, **more):
    pathlib.Path(path).unlink(missing_ok=True)
    done = subprocess.run([*before, whyslow, "record", "--heap", *options, "-o", path, "--", *command],
                          capture_output=True, text=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})}, **more)
    assert done.returncode == status, (done.returncode, done.stdout[-2000:], done.stderr[-4000:])
    return done


def report(whyslow, path="r.whyslow", *options):
    done = subprocess.run([whyslow, "heap", "--json", *options, path], capture_output=True, text=True, check=False,
                          timeout=PATIENCE_S)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return json.loads(done.stdout)


def differences(truth, found):
    return [f"{name}.{field}: is {values[field]}, told {found.get(name, {}).get(field, 0)}"
            for name, values in truth.items() for field in values
            if values[field] != found.get(name, {}).get(field, 0)]


def added(truths):
    """Accounts of one pid: exec() begins anew."""
    sites = {}
    for truth in truths:
        for name, values in truth["sites"].items():
            into = sites.setdefault(name, dict.fromkeys(FIELDS, 0))
            for field in FIELDS:
                into[field] += values[field]
    return sites


def compare_less(heap, truths, lost):
    """Where so many calls have lost their stack, or were lost altogether: nothing is told that is not, and no more is
    missing."""
    pid, sites = truths[0]["pid"], added(truths)
    found, missing = heap.by_owner(pid), 0
    wrong = [f"{name}: told, but is not" for name in found if name and name not in sites]
    for name, values in sites.items():
        told = found.get(name, {})
        wrong += [f"{name}.{field}: is {values[field]}, told {told[field]}" for field in ("allocations", "allocated_bytes")
                  if told.get(field, 0) > values[field]]
        missing += values["allocations"] - told.get("allocations", 0)
    if missing > lost:
        wrong.append(f"allocations: {missing} are missing, {lost} calls are said to have lost something")
    return [f"{truths[0]['name']} ({pid}): {line}" for line in wrong]


def compare_process(heap, truths):
    pid = truths[0]["pid"]
    found = heap.by_owner(pid)
    wrong = differences(added(truths), found)
    wrong += [f"{name}: told, but is not" for name in found if name and name not in added(truths)]
    for field in ("failed", "unseen_frees", "inherited_frees", "inherited_bytes"):
        is_, told = sum(truth[field] for truth in truths), sum(heap.of_process(pid, field))
        # Others may be refused, too; not in programs that say so.
        if field == "failed" and truths[0]["name"] != "odd":
            continue
        # At the end of a thread glibc frees once more what it kept for it; only the kernel sees that.
        if field == "unseen_frees" and heap.tier == "kernel" and truths[0]["name"] == "threads":
            continue
        if is_ != told:
            wrong.append(f"{field}: is {is_}, told {told}")
    if len(truths) == 1 and truths[0]["settled"]:
        at_peak = {name: {field: values[field] for field in PEAK} for name, values in truths[0]["sites"].items()}
        wrong += differences(at_peak, found)
        others = found.get(None, {}).get("peak_bytes", 0)
        told = heap.of_process(pid, "peak_bytes")
        # What stood in this process before exec() has a peak of its own.
        if truths[0]["peak_bytes"] + others not in told:
            wrong.append(f"peak_bytes: is {truths[0]['peak_bytes']} and {others} of others, told {told}")
    if truths[0]["peak_to"]:
        others, told = found.get(None, {}).get("peak_bytes", 0), heap.of_process(pid, "peak_bytes")
        if not truths[0]["peak_from"] <= max(told) - others <= truths[0]["peak_to"]:
            wrong.append(f"peak_bytes: from {truths[0]['peak_from']} to {truths[0]['peak_to']}, told {told}, {others} of others")
    return [f"{truths[0]['name']} ({pid}): {line}" for line in wrong]


def compare_report(heap, told):
    """The command's own totals are those of the rows."""
    expected = {"allocations": heap.total("allocations"), "frees": heap.total("frees"),
                "allocated_bytes": heap.total("allocated_bytes"), "temporary": heap.total("temporary"),
                "leaked_count": heap.total("allocations") - heap.total("frees"),
                "leaked_bytes": heap.total("allocated_bytes") - heap.total("freed_bytes"),
                "peak_bytes": max(row["peak_bytes"] for row in heap.processes)}
    return [f"heap --json {name}: is {value}, told {told.get(name)}" for name, value in expected.items()
            if told.get(name) != value]


def account(path="truth"):
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def compare(whyslow, path="r.whyslow", truth="truth"):
    heap = Heap(path)
    by_pid = {}
    for line in account(truth):
        by_pid.setdefault(line["pid"], []).append(line)
    assert by_pid, "the program kept no account"
    if heap.tier != "kernel":
        heap.nothing_lost()
    # Where whyslow gets no CPU for long that tier loses stacks, and says how many.
    lost = sum(heap.lost().values())
    timed("nothing was lost", not lost, str(heap.lost()))
    wrong = [line for truths in by_pid.values()
             for line in (compare_less(heap, truths, lost) if lost else compare_process(heap, truths))]
    wrong += compare_report(heap, report(whyslow, path))
    calls = sum(site["allocations"] for truths in by_pid.values() for t in truths for site in t["sites"].values())
    print(f"{len(by_pid)} processes, {calls} allocations of known places, {heap.total('allocations')} in all")
    assert not wrong, "\n".join(wrong[:40])
    return heap
