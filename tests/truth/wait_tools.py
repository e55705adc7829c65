"""What the tests of waits and locks share: a folder to work in, recordings made in every tier,
and the programs' own measurements beside whyslow's answers.

The workloads (tests/workloads/waits_*.c) time each wait where it happens and tell it as lines of
JSON. Whyslow tells blocked from ready; a program sees the sum. So whyslow's figure may not be
larger than the program's, and with what it saw on the run queue not smaller.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import seen
from judged import between, time_between, timed  # noqa: F401

PATIENCE_S = 600  # for what hangs: tools/run_tests allows 900
# Between the program's look at the clock and the switch lie a system call and the scheduler.
EACH_SWITCH_MS = 0.02
CLASSES = ("running", "runq", "lock", "disk", "net", "pagefault", "child", "pipe", "timer", "idle")
ROOTS = {"main", "_start", "_dl_start_user", "_dl_start", "__libc_start_main", "start_thread", "clone", "__clone",
         "clone3", "__clone3", "thread_start", "__libc_start_call_main", "__libc_start_main_impl",
         "__libc_start_main_alias_2", "runtime.goexit", "runtime.goexit.abi0", "runtime.mstart", "runtime.mstart.abi0",
         "runtime.rt0_go", "runtime.rt0_go.abi0", "runtime.mstart0", "runtime.mstart1", "_rt0_amd64_linux"}


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def need_kernel_tier():
    if os.geteuid() != 0:
        skip("the kernel tier needs root")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        skip("this kernel has no BTF")


def functions(stack):
    """Names of a stack in JSON, the innermost first."""
    return [frame if isinstance(frame, str) else frame.get("function") or frame.get("name") or ""
            for frame in stack or []]


def number(value):
    """What is not known ("n/a: reason", null) adds nothing."""
    return value if isinstance(value, (int, float)) else 0


class Truth:
    """What the program measured about itself."""

    def __init__(self, text):
        self.waits, self.lives, self.numbers = {}, {}, {}
        for line in text.splitlines():
            row = json.loads(line)
            if "function" in row:
                self.waits.setdefault(row["function"], []).append(row)
            elif "life" in row:
                self.lives[row["life"]] = row
            else:
                self.numbers[row["name"]] = row["value"]

    def sum(self, function, field="off_ms"):
        return sum(row[field] for row in self.waits[function])

    def tids(self, function):
        return {row["tid"] for row in self.waits[function]}


class Answer:
    """What whyslow says about a recording."""

    def __init__(self, waits):
        self.json = waits
        self.rows = waits["waits"] + waits.get("idle_waits", [])
        self.threads = {}
        for thread in waits["threads"]:  # before and after an exec it is one thread
            first = self.threads.setdefault(thread["tid"], {**thread, "classes_ms": dict.fromkeys(CLASSES, 0),
                                                            "life_ms": 0, "unaccounted_ms": 0})
            for kind in CLASSES:
                first["classes_ms"][kind] += number(thread["classes_ms"][kind])
            for part in ("life_ms", "unaccounted_ms"):
                first[part] += number(thread[part])

    def with_function(self, function):
        return [row for row in self.rows if function in functions(row["stack"])]

    def total(self, function):
        return sum(row["total_ms"] for row in self.with_function(function))

    def runq(self, tids=None):
        if tids and tids <= set(self.threads):
            return sum(self.threads[tid]["classes_ms"]["runq"] for tid in tids)
        return number(self.json["classes_ms"]["runq"])

    def show(self):
        print({k: v for k, v in self.json.items() if k in ("classes_ms", "honesty")})
        for row in self.rows[:20]:
            print(f"  {row['class']:10} {row['total_ms']:10.3f} ms {row['count']:6}  {row['cause']}  ",
                  " < ".join(functions(row["stack"])[:12]))


class Lab:
    """A folder of its own, whyslow in it, and what runs there."""

    def __init__(self, whyslow, programs, prefix):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
        self.folder.chmod(0o777)
        # Copied, so that nobody can read them, too; the names are what recordings show.
        self.whyslow = self.copy(whyslow)
        for program in programs:
            setattr(self, pathlib.Path(program).name.replace("-", "_"), self.copy(program))
        self.environment = {**os.environ, "HOME": str(self.folder), "NO_COLOR": "1"}
        os.chdir(self.folder)
        self.count = 0

    def copy(self, file):
        shutil.copy(file, self.folder)
        return str(self.folder / pathlib.Path(file).name)

    def close(self):
        os.chdir("/")
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *args, status=0, until_seen=None, **more):
        """`until_seen`: a program whose first long sleep lasts until whyslow has looked at it (seen.py)."""
        args = [str(arg) for arg in args]
        if until_seen:
            done = seen.run(args, pathlib.Path(until_seen).name, env=self.environment, timeout=PATIENCE_S, **more)
        else:
            done = subprocess.run(args, env=self.environment, capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=False, **more)
        print("$", " ".join(args), "->", done.returncode, "\n", done.stderr, sep="")
        assert done.returncode == status, f"status {done.returncode}, not {status}: {done.stdout[-2000:]}"
        return done

    def nobody(self):
        # A nobody of its own: locked memory is counted by user, and tests run side by side.
        number = 61000 + os.getpid() % 4000
        return ["setpriv", f"--reuid={number}", "--regid=65534", "--clear-groups"]

    def record(self, *command, tier="kernel", locks=False, before=(), status=0, options=(), **more):
        """Returns the path of a recording and what the program measured."""
        self.count += 1
        path = str(self.folder / f"{self.count}.whyslow")
        who = self.nobody() if tier == "nobody" else []
        named = "user" if tier == "nobody" else tier
        done = self.run(*who, *before, self.whyslow, "record", "--offcpu", *(["--locks"] if locks else []),
                        "--tier", named, *options, "-o", path, "--", *command, status=status, **more)
        print(done.stdout, end="")
        return path, Truth(done.stdout), done.stderr

    def wait_recording(self, recorder, path):
        """Until all that it has to put into the kernel is there, however long that takes: then it says what it records."""
        end = time.monotonic() + PATIENCE_S
        command = [self.whyslow, "query", "--json", path, "SELECT count(*) AS n FROM document WHERE name = 'target'"]
        while True:
            done = subprocess.run(command, env=self.environment, capture_output=True, check=False)
            if done.returncode == 0 and json.loads(done.stdout)["rows"][0]["n"] > 0:
                return
            assert recorder.poll() is None and time.monotonic() < end, "the recorder does not begin"
            time.sleep(0.05)

    def waits(self, path):
        done = self.run(self.whyslow, "waits", "--json", "--idle", "--limit", "0", path)
        answer = Answer(json.loads(done.stdout))
        answer.show()
        return answer

    def locks(self, path):
        done = self.run(self.whyslow, "locks", "--json", "--limit", "0", path)
        answer = json.loads(done.stdout)
        for row in answer["locks"][:20]:
            print("  ", {k: v for k, v in row.items() if k not in ("holders", "waiters")})
        return answer


def lost(answer):
    honesty = answer.json["honesty"]
    return sum(value for key, value in honesty.items() if key == "lost" and isinstance(value, (int, float)))


def races_of(switches):
    """Whoever is woken while it goes to sleep is counted as waiting by one side, and as preempted by the other."""
    return 1 + switches // 100


def check_wait(answer, truth, function, kinds, tier="kernel", exact_count=True, seen_for_certain=False):
    """Time within 5%, and of the right class; every switch is one wait."""
    off, switches = truth.sum(function), truth.sum(function, "switches")
    rows = answer.with_function(function)
    slack = EACH_SWITCH_MS * switches + 0.1
    if tier != "kernel":
        slack += 25  # two looks of the reader at 97 Hz, before which a stack is not known
    got = sum(row["total_ms"] for row in rows)
    print(f"{function}: {got:.3f} ms, measured {off:.3f} ms in {switches} waits, "
          f"run queue {answer.runq(truth.tids(function)):.3f} ms")
    timed(f"{function}: no more than there was", got <= off * 1.05 + slack)
    # The program counts as off what it was neither asleep nor charged for.
    timed(f"{function}: no less than there was", got + answer.runq(truth.tids(function)) >= off * 0.95 - slack)
    # What is over before a reader comes by has no stack.
    if rows or tier == "kernel" or seen_for_certain:
        check_classes(rows, function, kinds)
    else:
        timed(f"{function}: seen", max(row["longest_ms"] for row in truth.waits[function]) < 100)
    if tier == "kernel" and exact_count and not lost(answer):
        counted = sum(row["count"] for row in rows)
        # Some have lost their stack, and say so: none may have another's.
        races = races_of(switches)
        least = switches - number(answer.json["honesty"]["parts_lost"]) - races
        assert least <= counted <= switches + races, f"{function}: {counted} waits, {switches} switches"


def check_classes(rows, function, kinds):
    """It is of the right class; nearly all of it, unless somebody is in the way: a page may have to be waited for in any
    function, and a busy machine makes that long, or makes a reader come by less often."""
    assert rows, f"no wait in {function}"
    of_class = sum(row["total_ms"] for row in rows if row["class"] in kinds)
    found = {row["class"] for row in rows}
    assert found & set(kinds), (function, kinds, found)
    timed(f"{function}: of {kinds}", of_class >= 0.95 * sum(row["total_ms"] for row in rows), str(found))


def is_entry(name):
    """A stripped program ("dash+0x4760") at its first instruction: read from the disk, it waits there."""
    program, _, offset = name.partition("+0x")
    path = shutil.which(program)
    if not offset or not path:
        return False
    with open(path, "rb") as file:
        head = file.read(32)
    return head[:4] == b"\x7fELF" and int(offset, 16) == int.from_bytes(head[24:32], "little")


def check_complete(answer, share=0.99, roots=frozenset(ROOTS), within=4):
    """Stacks reach main or the thread's root."""
    whole = all_of_them = 0
    for row in answer.rows:
        names = [name.split("@")[0] for name in functions(row["stack"])]
        if row["cause"].startswith("execve"):
            continue  # the old program's stack is gone, the new one has none yet
        all_of_them += row["count"]
        ours = [n for n in names if n.startswith(("bpf_prog_", "bpf_trace_run", "__traceiter_"))]
        assert not ours, f"our own programs are on the target's stack: {ours}"
        # Where libc has no symbols for it, a thread's first function has no name.
        if roots & set(names[-within:]) or (names and (names[-1].startswith("libc.so.6+") or is_entry(names[-1]))):
            whole += row["count"]
        else:
            print("incomplete:", row["count"], row["cause"], names)
    assert all_of_them > 0
    # What has lost its stack is said to have: on a busy machine there may be more of it.
    said = number(answer.json["honesty"].get("parts_lost"))
    time_between("complete stacks", whole / all_of_them, share, 1)
    between("complete stacks, and such as are said to be lost", min(1, (whole + said) / all_of_them), share, 1)


def check_lives(answer, truth, within=0.02, each=None, before=()):
    """What a thread did makes up its life, and its life is as long as it saw it: times, all of it.

    `within` holds for all of them together, `each` (or the same) for every one. Classes of `before` are of another
    program, which a thread was until it became this one."""
    # When a thread has said its end and is on its way out, it may be kept waiting for a CPU once more.
    latency = answer.json["sched_latency"]
    latest = latency["max_ms"] if isinstance(latency, dict) else 0
    threads = [answer.threads[tid] for tid in truth.lives if tid in answer.threads]
    time_between("ms of all their lives that nobody knows of", sum(thread["unaccounted_ms"] for thread in threads), 0,
            sum(thread["life_ms"] for thread in threads) * within + (latest + 1) * len(threads))
    within = each or within
    switches = sum(row["count"] for row in answer.rows)
    for tid, life in truth.lives.items():
        thread = answer.threads.get(tid)
        assert thread or lost(answer), f"thread {tid} is missing"
        timed(f"thread {tid} is there", bool(thread))
        if not thread:
            continue
        parts = sum(thread["classes_ms"][name] or 0 for name in CLASSES)
        time_between(f"thread {tid}, ms of its life that nobody knows of", thread["unaccounted_ms"], 0,
                thread["life_ms"] * within + latest + 1)
        # It was begun before it could look at a clock, and ended after: by others' time, too.
        low = life["life_ms"] * (1 - within) - 1
        high = life["life_ms"] * (1 + within) + 30 + sum(thread["classes_ms"][name] for name in ("runq", *before))
        time_between(f"thread {tid}, sum of its classes in ms", parts, low, high)
        # What a switch takes, and what we take in it (up to 2 us), is on one side for the kernel's
        # books and on the other for ours: it shows where there are very many of them.
        time_between(f"thread {tid}, running ms", thread["classes_ms"]["running"], life["cpu_ms"] * 0.9 - 2 - 0.002 * switches,
                     life["cpu_ms"] * 1.1 + 10)


def check_schema(schema_file, value):
    import jsonschema
    schema = json.loads(pathlib.Path(schema_file).read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(value, schema)
