#!/usr/bin/python3
"""What other programs read from our exports, against the recording's own tables.

    exchange.py CHECK WHYSLOW EXCHANGE_MAKE

The truth is computed here from the recording's SQLite tables, not by whyslow. Each reader is a
program that nobody here wrote: go tool pprof, the Firefox Profiler's and speedscope's own import
code (npm), callgrind_annotate, llvm-profdata. Sums are compared exactly, or to the rounding of
what the reader prints.
"""

import collections
import fcntl
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

import jsonschema

HERE = pathlib.Path(__file__).resolve().parent
NPM = HERE.parent / "npm"
SKIP = 77
failed = 0


def check(name, value, expected):
    global failed
    good = value == expected
    failed += not good
    print(f"{'ok' if good else 'WRONG':<6} {name}: {value!r}"[:300] + ("" if good else f", not {expected!r}"[:300]))


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(SKIP)


def need(program):
    found = shutil.which(program)
    if not found:
        skip(f"{program} is not installed")
    return found


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, check=False, **options)
    if done.returncode != 0:
        print(done.stdout.decode(errors="replace")[-3000:], done.stderr.decode(errors="replace")[-3000:])
        raise SystemExit(f"{command[0]} failed with {done.returncode}")
    return done


class Truth:
    """Self and total weight and count of functions, from a recording's tables."""

    def __init__(self, path, series="cpu"):
        db = sqlite3.connect(path)
        db.text_factory = bytes
        texts = dict(db.execute("SELECT id, text FROM text"))
        texts[0] = b""
        images = dict(db.execute("SELECT id, path FROM image"))
        functions = {row[0]: row for row in db.execute(
            "SELECT id, name, linkage, file, line, image FROM function")}
        places = collections.defaultdict(list)
        for frame, function, line in db.execute(
                "SELECT frame, function, line FROM location ORDER BY frame, depth"):
            _, name, linkage, file, start, _ = functions[function]
            places[frame].append((texts[name], texts[linkage] or texts[name], texts[file], line, start))
        frames = {}
        for ident, kind, reason, image, name in db.execute("SELECT id, kind, reason, image, name FROM frame"):
            base = os.path.basename(images.get(image, b""))
            made_up = texts[name] or (b"[unknown: stack slice ended]" if kind == b"unknown" else
                                      base if base.startswith(b"[") else b"[" + base + b"]")
            frames[ident] = (kind, places.get(ident) or [(made_up, b"", b"", 0, 0)])
        frames[0] = (b"unknown", [(b"[no stack]", b"", b"", 0, 0)])
        stacks = {row[0]: row[1:] for row in db.execute("SELECT id, parent, frame FROM stack")}
        self.self, self.total = collections.Counter(), collections.Counter()
        self.self_count, self.outer_self = collections.Counter(), collections.Counter()
        self.autofdo, self.stacks = collections.Counter(), collections.Counter()
        self.outer_stacks = collections.Counter()  # without what is inlined
        self.weight = self.count = 0
        for stack, count, weight in db.execute(
                "SELECT stack, count, weight FROM total JOIN series ON series.id = total.series"
                " WHERE series.name = ?", (series,)):
            kind, leaf = frames[stacks[stack][1] if stack else 0]
            path, outer = [], []
            at = stack
            while True:
                path += [place[0] for place in frames[stacks[at][1] if at else 0][1]]
                outer.append(path[-1])
                at = stacks[at][0] if at else 0
                if at == 0:
                    break
            self.weight += weight
            self.count += count
            self.self[leaf[0][0]] += weight
            self.self_count[leaf[0][0]] += count
            self.outer_self[leaf[-1][0]] += weight
            self.stacks[tuple(reversed(path))] += weight
            self.outer_stacks[tuple(reversed(outer))] += weight
            for name in set(path):
                self.total[name] += weight
            if kind == b"user" and all(p[3] > 0 and p[4] > 0 for p in leaf):
                self.autofdo[leaf[-1][1]] += count
        threads = db.execute("SELECT name FROM thread").fetchall()
        self.threads = {row[0].decode() for row in threads}


def text(counter):
    return {key.decode(errors="replace"): value for key, value in counter.items() if value}


def node_modules():
    """The readers that come from npm, installed once a build folder and lock file."""
    need("npm")
    lock = (NPM / "package-lock.json").read_bytes()
    cache = pathlib.Path(os.environ.get("BUILD_ROOT", tempfile.gettempdir())) / "npm-readers"
    folder = cache / hashlib.sha256(lock).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w", encoding="ascii") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(NPM / name, folder)
            run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
            (folder / "done").touch()
    return folder / "node_modules"


class Work:
    def __init__(self, whyslow, make, folder):
        self.whyslow, self.make, self.folder = whyslow, make, pathlib.Path(folder)

    def recording(self, kind):
        path = self.folder / f"{kind}.whyslow"
        if not path.exists():
            run(self.make, path, kind)
        return path

    def export(self, kind, name, *options):
        path = self.folder / f"{kind}-{name}"
        run(self.whyslow, "export", self.recording(kind), "-o", path, *options)
        return path

    def imported(self, path, *options):
        made = self.folder / (pathlib.Path(path).name + ".whyslow")
        done = run(self.whyslow, "import", path, "-o", made, "--json", *options)
        said = json.loads(done.stdout)
        jsonschema.validate(said, json.loads((HERE.parent.parent / "docs/schema/import.schema.json").read_text()))
        return made, said


def pprof_top(path, index):
    env = dict(os.environ, PPROF_TMPDIR=str(pathlib.Path(path).parent))
    done = run("go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-unit=ns",
               f"-sample_index={index}", path, env=env)
    flat, cum = {}, {}
    for line in done.stdout.decode(errors="replace").splitlines():
        row = re.match(r"\s*([\d.]+)(?:ns)?\s+[\d.]+%\s+[\d.]+%\s+([\d.]+)(?:ns)?\s+[\d.]+%\s+(.*)", line)
        if row:
            name = row[3].removesuffix(" (inline)").removesuffix(" (partial-inline)")
            flat[name] = flat.get(name, 0) + float(row[1])
            cum[name] = cum.get(name, 0) + float(row[2])
    return done.stdout.decode(errors="replace"), flat, cum


def some(counter):
    return {key: value for key, value in counter.items() if value}


def check_pprof(work):
    need("go")
    truth = Truth(work.recording("plain"))
    path = work.export("plain", "a.pb.gz")
    said, flat, cum = pprof_top(path, "cpu")
    check("self, by go tool pprof", some(flat), text(truth.self))
    check("total, by go tool pprof", some(cum), text(truth.total))
    _, counts, _ = pprof_top(path, "samples")
    check("samples, by go tool pprof", some(counts), text(truth.self_count))
    check("the honesty is in it", "118 samples" in said, True)
    raw = run("go", "tool", "pprof", "-raw", path).stdout.decode()
    check("inlined lines stand callee first",
          re.search(r"step<4> /src/step.h:6(:0)? s=5.*\n\s+parse\(int\) /src/parse.cc:14(:0)? s=10", raw) is not None, True)
    check("build-id", "/opt/app 0123456789abcdef0123456789abcdef01234567 [FN]" in raw, True)
    check("period", re.search(r"Period: \d{6,}", raw) is not None, True)
    check("threads are labels", "thread:[worker-1]" in raw, True)
    hostile = work.export("hostile", "a.pb.gz")
    raw = run("go", "tool", "pprof", "-raw", hostile).stdout.decode(errors="replace")
    check("hostile names", "<script>alert(1)</script>" in raw and "semi;colon" in raw, True)
    _, flat, _ = pprof_top(hostile, "cpu")
    check("sum of hostile names", sum(flat.values()) >= Truth(work.recording("plain")).weight, True)


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Numbers and texts of a protobuf message, in its order."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def check_pprof_ids(work):
    """Parca and others take ids for places in the tables: from 1, without a gap, in order, and every one refers to one."""
    mapping, location, function, sample, line = 3, 4, 5, 2, 4
    for name, options in {"all": (), "filtered": ("--filter", "worker-2"), "focused": ("--focus", "step")}.items():
        path = work.export("plain", f"ids-{name}.pb.gz", *options)
        tables = collections.defaultdict(list)
        for kind, message in fields(gzip.decompress(path.read_bytes())):
            if kind in (mapping, location, function, sample):
                tables[kind].append(list(fields(message)))
        used = {mapping: set(), location: set(), function: set()}
        for message in tables[sample]:
            packed, at = dict(message)[1], 0
            while at < len(packed):
                ident, at = varint(packed, at)
                used[location].add(ident)
        for message in tables[location]:
            used[mapping].add(dict(message).get(2, 0))
            used[function].update(dict(fields(value))[1] for kind, value in message if kind == line)
        used[mapping].discard(0)
        for kind, what in {mapping: "mappings", location: "locations", function: "functions"}.items():
            dense = list(range(1, len(tables[kind]) + 1))
            check(f"{name}: ids of {what}", [dict(message)[1] for message in tables[kind]], dense)
            check(f"{name}: {what} that are referred to", sorted(used[kind]), dense)


def heap_truth(whyslow, path):
    """Values by the innermost function of the program: what was called is nobody's. Then by what is anywhere in it."""
    db = sqlite3.connect(path)
    names = dict(db.execute("SELECT frame, text FROM location JOIN function ON function.id = location.function"
                            " JOIN text ON text.id = function.name"))
    stacks = {row[0]: row[1:] for row in db.execute("SELECT id, parent, frame FROM stack")}
    flat = {index: collections.Counter() for index in HEAP_VALUES}
    # Sites lie packed in the file.
    rows = run(whyslow, "query", "--json", "--limit", "0", path,
               "SELECT stack, sum(allocations), sum(allocated_bytes), sum(allocations - frees),"
               " sum(allocated_bytes - freed_bytes) FROM heap_site WHERE kind = 'heap' GROUP BY stack")
    for row in json.loads(rows.stdout)["rows"]:
        stack, calls, size, live, live_size = row.values()
        caller = stacks[stack][0] if stack else 0
        name = names[stacks[caller][1]] if caller else "[no stack]"
        for index, value in zip(HEAP_VALUES, (calls, size, live, live_size)):
            flat[index][name] += value
    return {index: some(counter) for index, counter in flat.items()}


HEAP_VALUES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def check_heap(work):
    """pprof's heap profiles: four values, the allocator hidden, what lives shown first."""
    need("go")
    path = work.folder / "heap.whyslow"
    run(work.make, "plain", path)
    out = work.folder / "heap.pb.gz"
    run(work.whyslow, "export", path, "-o", out)
    for index, expected in heap_truth(work.whyslow, path).items():
        said = run("go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-unit=B",
                   f"-sample_index={index}", out, env=dict(os.environ, PPROF_TMPDIR=str(work.folder)))
        flat = {}
        for line in said.stdout.decode().splitlines():
            row = re.match(r"\s*(\d+)B?\s+[\d.]+%\s+[\d.]+%\s+(\d+)B?\s+[\d.]+%\s+(.*)", line)
            if row and int(row[1]):
                flat[row[3]] = int(row[1])
        check(f"{index}, by go tool pprof", flat, expected)
    raw = run("go", "tool", "pprof", "-raw", out).stdout.decode()
    check("what lives is shown first", "inuse_space/bytes[dflt]" in raw, True)
    check("the honesty is in it", "every call counted" in raw, True)


def speedscope(work, path):
    done = run(need("node"), NPM / "speedscope_import.js", node_modules(), path)
    return json.loads(done.stdout)


def speedscope_sums(group):
    self, total = collections.Counter(), collections.Counter()
    for profile in group["profiles"]:
        for frame in profile["frames"]:
            self[frame["name"]] += frame["self"]
            total[frame["name"]] += frame["total"]
    return self, total


def check_speedscope(work):
    for kind in ("plain", "hostile"):
        truth = Truth(work.recording(kind))
        group = speedscope(work, work.export(kind, "a.speedscope.json"))
        self, total = speedscope_sums(group)
        check(f"{kind}: weight, by speedscope", sum(p["weight"] for p in group["profiles"]), truth.weight)
        check(f"{kind}: self, by speedscope", some(self), utf8_ours(truth.self))
        if kind == "plain":  # "twin" is two functions: a stack never has both
            check("total, by speedscope", some(total), text(truth.total))
            names = {re.sub(r" \(\d+\)$", "", p["name"]) for p in group["profiles"]}
            check("a profile a thread", names, truth.threads | {"[no thread]"})


def utf8_ours(counter):
    """Names as our JSON writes them: each byte that is no UTF-8 is one U+FFFD."""
    out = collections.Counter()
    for key, value in counter.items():
        name, at = "", 0
        while at < len(key):
            for size in range(min(4, len(key) - at), 0, -1):
                try:
                    name += key[at:at + size].decode()
                    at += size
                    break
                except UnicodeDecodeError:
                    if size == 1:
                        name += "\ufffd"
                        at += 1
        out[name] += value
    return {key: value for key, value in out.items() if value}


def check_firefox(work):
    """The Firefox Profiler's own loader, which upgrades version 66 to its own and checks it."""
    node = need("node")
    cli = node_modules() / "@firefox-devtools/profiler-cli/dist/profiler-cli.js"
    env = dict(os.environ, HOME=str(work.folder))

    def ask(*words):
        return subprocess.run([node, str(cli), *map(str, words)], env=env, capture_output=True,
                              check=False, timeout=600)

    for kind, name in (("plain", "a.json"), ("hostile", "a.json.gz")):
        truth = Truth(work.recording(kind))
        loaded = ask("load", work.export(kind, name))
        print(loaded.stdout.decode(errors="replace"), loaded.stderr.decode(errors="replace"))
        try:
            # Its daemon has half a second to start by its own clock; ours is more patient.
            for _ in range(100):
                listed = ask("thread", "list", "--json")
                if listed.returncode == 0:
                    break
                time.sleep(0.3)
            threads = json.loads(listed.stdout)["threads"]
            self, total = collections.Counter(), collections.Counter()
            for thread in threads:
                handle = thread.get("threadHandle") or thread["handle"]
                rows = json.loads(ask("thread", "functions", "--thread", handle, "--limit", "0",
                                      "--include-idle", "--json").stdout)
                check(f"{kind}: weights of {handle} are time", rows["weightType"], "tracing-ms")
                for row in rows["functions"]:
                    self[row["name"]] += row["selfSamples"]
                    total[row["name"]] += row["totalSamples"]
            # It adds up milliseconds as doubles: a nanosecond is the sixth digit.
            check(f"{kind}: self, by the Firefox Profiler",
                  {k: round(v * 1e6) for k, v in self.items() if v}, utf8_ours(truth.self))
            if kind == "plain":
                check("total, by the Firefox Profiler",
                      {k: round(v * 1e6) for k, v in total.items() if v}, text(truth.total))
        finally:
            ask("stop", "--all")
            for found in re.findall(rb'kill (\d+)', loaded.stderr + loaded.stdout):
                try:  # only the daemon that this load has started
                    command = pathlib.Path(f"/proc/{int(found)}/cmdline").read_bytes()
                    if str(cli).encode() in command:
                        os.kill(int(found), 15)
                except OSError:
                    pass


def annotate(path, inclusive):
    done = run("callgrind_annotate", "--auto=no", "--threshold=100", "--show=ns",
               f"--inclusive={'yes' if inclusive else 'no'}", path, cwd="/")
    sums = collections.Counter()
    program = 0
    for line in done.stdout.decode(errors="replace").splitlines():
        row = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+(.*)", line)
        if not row:
            continue
        cost = int(row[1].replace(",", ""))
        if row[2] == "PROGRAM TOTALS":
            program = cost
            continue
        name = re.sub(r" \[(\[[^\]]*\]|[^\]]*)\]$", "", row[2]).split(":", 1)[1] if ":" in row[2] else row[2]
        sums[name] += cost
    return program, sums, done.stderr.decode(errors="replace")


def check_callgrind(work):
    need("callgrind_annotate")
    truth = Truth(work.recording("plain"))
    path = work.export("plain", "a.callgrind")
    program, self, _ = annotate(path, False)
    check("weight, by callgrind_annotate", program, truth.weight)
    wanted = text(truth.self)
    check("self, by callgrind_annotate", {k: self.get(k) for k in wanted}, wanted)
    _, total, _ = annotate(path, True)
    wanted = text(truth.total)
    check("total, by callgrind_annotate", {k: total.get(k) for k in wanted}, wanted)
    path = work.export("hostile", "a.callgrind")
    program, _, warnings = annotate(path, False)
    check("hostile: weight, by callgrind_annotate", program, Truth(work.recording("hostile")).weight)
    check("hostile: no line is malformed", "malformed" in warnings, False)


def check_autofdo(work):
    profdata = shutil.which("llvm-profdata-14") or need("llvm-profdata")
    for kind in ("plain", "hostile"):
        truth = Truth(work.recording(kind))
        path = work.export(kind, "a.afdo")
        binary = str(path) + ".binary"
        run(profdata, "merge", "--sample", "--binary", path, "-o", binary)
        for form in (path, binary):
            said = run(profdata, "show", "--sample", form).stdout.decode(errors="replace")
            sums = {row[1]: int(row[2]) for row in re.finditer(r"^Function: (.*): (\d+), 0, ", said, re.M)}
            # Names that the text format cannot hold are left out, and only those.
            wanted = {k.decode(): v for k, v in truth.autofdo.items()
                      if re.fullmatch(rb"[!-9;-~]+", k) and not k.startswith((b"#", b"[", b"!"))}
            check(f"{kind}: samples a function, by llvm-profdata", sums, wanted)
            check(f"{kind}: inlined callsite at its offset",
                  re.search(r"4: inlined callee: _Z4stepILi4EEvv: 50, 0, 1 sampled lines\n"
                            r"\s+Samples collected in the function's body \{\n\s+1: 50\n", said) is not None, True)
    said = path.read_text(encoding="utf-8")
    check("what is left out is said", re.match(r"# whyslow: \d+ samples; \d+ more have no known", said) is not None, True)


def check_folded(work):
    for kind in ("plain", "hostile"):
        truth = Truth(work.recording(kind))
        path = work.export(kind, "a.folded")
        lines = path.read_bytes().decode().splitlines()
        check(f"{kind}: weight, line by line", sum(int(line.rsplit(" ", 1)[1]) for line in lines), truth.weight)
        if kind == "plain":
            check("stacks", {tuple(line.rsplit(" ", 1)[0].encode().split(b";")): int(line.rsplit(" ", 1)[1])
                             for line in lines}, dict(truth.stacks))
        found = {tuple(line.rsplit(" ", 1)[0].split(";")): int(line.rsplit(" ", 1)[1]) for line in lines}
        check(f"{kind}: a ';' in a name makes no frame", depths(found), depths(truth.stacks))
        if shutil.which("npm"):
            group = speedscope(work, path)
            check(f"{kind}: weight, by speedscope", sum(p["weight"] for p in group["profiles"]), truth.weight)


def check_round_trip(work):
    for kind in ("plain", "hostile"):
        truth = Truth(work.recording(kind))
        made, said = work.imported(work.export(kind, "a.pb.gz"))
        again = Truth(made)
        check(f"{kind}: pprof: detected", said["format"], "pprof")
        check(f"{kind}: pprof: weight and count", (again.weight, again.count), (truth.weight, truth.count))
        check(f"{kind}: pprof: self", utf8_ours(again.self), utf8_ours(truth.self))
        check(f"{kind}: pprof: total", utf8_ours(again.total), utf8_ours(truth.total))
        check(f"{kind}: pprof: threads", again.threads, truth.threads)
        made, said = work.imported(work.export(kind, "a.folded"), "--unit", "ns")
        again = Truth(made)
        check(f"{kind}: folded: detected", said["format"], "folded")
        check(f"{kind}: folded: weight", again.weight, truth.weight)
        if kind == "plain":
            check("folded: self", again.self, truth.self)
            check("folded: total", again.total, truth.total)
    # Go's own profile, read by both.
    if shutil.which("go"):
        path = work.export("plain", "b.pb.gz")
        run(work.whyslow, "export", work.imported(path)[0], "-o", work.folder / "c.pb.gz")
        check("pprof of an imported pprof", pprof_top(work.folder / "c.pb.gz", "cpu")[1:],
              pprof_top(path, "cpu")[1:])


class Script:
    """What perf itself says of a recording: the samples of `perf script`, by event."""

    def __init__(self, said):
        self.count, self.weight = collections.Counter(), collections.Counter()
        self.stacks, self.outer_stacks = (collections.defaultdict(collections.Counter) for _ in range(2))
        for block in re.split(r"\n\s*\n", said):
            lines = [line for line in block.splitlines() if line and not line.startswith("#")]
            head = lines and re.match(r"\s*(.*?)\s+(\d+)(?:/\d+)? (?:\[\d+\] )?\s*([\d.]+):\s+(\d+)\s+([^ ]+?):\s*(.*)",
                                      lines[0])
            if not head:
                continue
            event = head[5].split(":")[0]
            frames = []
            for line in lines[1:]:
                row = re.match(r"\s+([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$", line)
                kernel = row[3].startswith("[kernel")
                frames.append(("[kernel]" if kernel else row[2], row[3] == "inlined"))
            self.count[event] += 1
            self.weight[event] += int(head[4])
            self.stacks[event][tuple(f[0].encode() for f in reversed(frames))] += int(head[4])
            self.outer_stacks[event][tuple(f[0].encode() for f in reversed(frames) if not f[1])] += int(head[4])


def leaves(stacks):
    out = collections.Counter()
    for stack, weight in stacks.items():
        out[stack[-1]] += weight
    return dict(out)


def depths(stacks):
    """Weight by how many frames a stack has."""
    out = collections.Counter()
    for stack, weight in stacks.items():
        out[len(stack)] += weight
    return dict(out)


def check_perf_captures(work):
    """Recordings of perf that are kept in tests/captures/perf, with what perf said of them."""
    captures = HERE.parent / "captures" / "perf"
    # The recordings name the program by this path; it is found there, by its build-id.
    place = pathlib.Path("/tmp/whyslow-capture")
    place.mkdir(exist_ok=True)
    temporary = place / f"burn.{os.getpid()}"
    shutil.copy(captures / "burn", temporary)
    os.replace(temporary, place / "burn")
    for name in ("fp", "compressed", "pipe", "dwarf"):
        perf = Script((captures / f"{name}.txt").read_text())
        made, said = work.imported(captures / f"{name}.data")
        ours = Truth(made)
        check(f"{name}: detected", said["format"], "perf.data")
        check(f"{name}: nothing skipped", said["skipped"], [])
        check(f"{name}: samples", ours.count, perf.count["cpu-clock"])
        check(f"{name}: time", ours.weight, perf.weight["cpu-clock"])
        wanted = perf.outer_stacks["cpu-clock"]
        if name == "dwarf":
            # perf's own unwinder gets no further than the innermost frame of this program.
            check("dwarf: functions", leaves(ours.outer_stacks), leaves(wanted))
            deep = (b"_start", b"main") + 6 * (b"deeper",) + (b"heavy", b"inlined")
            check("dwarf: the whole of a stack", ours.stacks[deep] > 0, True)
            check("dwarf: all stacks are complete", all(s[0] == b"_start" for s in ours.stacks), True)
        elif name == "fp":
            check("fp: stacks", dict(ours.outer_stacks), dict(wanted))
        else:
            # No build-id, and the copy has another inode: names from a file that may be another
            # one would be guesses. The shape is known all the same.
            check(f"{name}: depths", depths(ours.outer_stacks), depths(wanted))
            check(f"{name}: no guessed names", {n for s in ours.outer_stacks for n in s},
                  {b"[burn]"} | ({b"[kernel]"} if any(b"[kernel]" in s for s in wanted) else set()))
            continue
        check(f"{name}: inlined functions are found", b"inlined" in ours.self, True)
        check(f"{name}: thread", ours.threads, {"burn"})
    perf = Script((captures / "events.txt").read_text())
    made, said = work.imported(captures / "events.data")
    check("events: series", set(said["series"]), {"cpu", "task-clock", "page-faults"})
    for event, series in (("cpu-clock", "cpu"), ("task-clock", "task-clock"), ("page-faults", "page-faults")):
        ours = Truth(made, series)
        check(f"events: {event}", (ours.count, ours.weight), (perf.count[event], perf.weight[event]))
    for name in ("fp", "dwarf", "events"):
        text_file = captures / f"{name}.txt"
        perf = Script(text_file.read_text())
        made, said = work.imported(text_file)
        ours = Truth(made)
        check(f"{name}.txt: detected", said["format"], "perf-script")
        check(f"{name}.txt: samples and time", (ours.count, ours.weight),
              (perf.count["cpu-clock"], perf.weight["cpu-clock"]))
        user = {s: w for s, w in perf.stacks["cpu-clock"].items() if b"[kernel]" not in s}
        check(f"{name}.txt: stacks", {s: ours.stacks[s] for s in user}, user)
    shutil.rmtree(place, ignore_errors=True)


def check_perf_live(work):
    """perf records now, and both read it: the same samples, the same user functions."""
    perf = need("perf")
    burn = work.make
    for name, options in (("fp", ["-g"]), ("dwarf", ["--call-graph", "dwarf,1024"]),
                          ("compressed", ["-g", "-z"])):
        path = work.folder / f"{name}.data"
        done = subprocess.run([perf, "record", "-F", "499", *options, "-o", path, burn], capture_output=True, check=False)
        if done.returncode != 0 or not path.exists():
            skip(f"perf record does not work here: {done.stderr.decode(errors='replace').splitlines()[-1:]}")
        shown = subprocess.run([perf, "script", "-i", path, "--no-inline"], capture_output=True, check=False)
        if shown.returncode < 0:
            skip(f"perf script itself is killed here by signal {-shown.returncode}")
        assert shown.returncode == 0, shown.stderr
        said = Script(shown.stdout.decode(errors="replace"))
        event = max(said.count, key=said.count.get)
        ours = Truth(work.imported(path)[0])
        check(f"{name}: samples", ours.count, said.count[event])
        if event in ("cpu-clock", "task-clock"):
            check(f"{name}: time", ours.weight, said.weight[event])
            names = {b"heavy", b"light", b"deeper", b"main"}
            check(f"{name}: functions", {k: v for k, v in leaves(ours.outer_stacks).items() if k in names},
                  {k: v for k, v in leaves(said.stacks[event]).items() if k in names})


def main():
    name, whyslow, make = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        globals()[f"check_{name}"](Work(whyslow, make, folder))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
