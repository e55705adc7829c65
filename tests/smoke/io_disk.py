#!/usr/bin/python3
"""`whyslow record --io` beside what the kernel counts of a device, and what is known of files.

    io_disk.py devices|files|late|full kernel|user WHYSLOW

The device is a file as a loop device, which nobody else asks for anything.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from wait_tools import between, need_kernel_tier, skip, timed  # noqa: E402

name, tier, whyslow = sys.argv[1:4]


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def record(folder, *command):
    path = f"{folder}/recording.whyslow"
    run(whyslow, "record", "--io", "--tier", tier, "-o", path, "--", *command)
    return path


def document(path):
    rows = json.loads(run(whyslow, "query", "--json", path, "SELECT json FROM document WHERE name = 'files'"))["rows"]
    assert len(rows) == 1, rows
    return json.loads(rows[0]["json"])


def lost_names(path):
    """Calls that may have lost what they were on: the library in the target never waits for whyslow, and counts them."""
    rows = json.loads(run(whyslow, "query", "--json", path, "SELECT name, value FROM counter"))["rows"]
    lost = sum(row["value"] for row in rows if row["name"] in ("io.folded", "io.lost.objects", "io.lost.ring_full"))
    timed("no name is lost", lost == 0, str(lost))
    return lost


def of_file(files, end, lost=0):
    """The row of a file; None: no call on it has kept its name."""
    found = [file for file in files["files"] if file["path"].endswith(end)]
    assert len(found) == 1 or (lost > 0 and not found), (end, files)
    print(found)
    return found[0] if found else None


# Looks end after a while, and say so: whyslow may have had no CPU for all of it.
LATE_WORDS = ("there was no time left to look", "there was no time left to look at all of them")


def looked(row, *facts):
    """Whether there was time for these."""
    late = [fact for fact in facts if row["na"].get(fact) in LATE_WORDS]
    timed("looked at in time", not late, str(late))
    return not late


@contextlib.contextmanager
def loop_device(folder):
    if not shutil.which("losetup"):
        skip("there is no losetup")
    with open(f"{folder}/image", "wb") as file:
        file.truncate(16 << 20)
    made = subprocess.run(["losetup", "--show", "-f", f"{folder}/image"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        skip(f"no loop device to be had here: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "-d", device], check=False)


def kernel_counts(device):
    """Writes, bytes written, flushes, reads."""
    words = pathlib.Path(f"/sys/block/{os.path.basename(device)}/stat").read_text(encoding="ascii").split()
    return int(words[4]), int(words[6]) * 512, int(words[15]) if len(words) > 15 else None, int(words[0])


def case_devices(folder):
    need_kernel_tier()
    with loop_device(folder) as device:
        before = kernel_counts(device)
        path = record(folder, "dd", "if=/dev/zero", f"of={device}", "oflag=direct", "bs=64k", "count=100", "conv=fsync")
        after = kernel_counts(device)
    rows = {row["op"]: row for row in json.loads(run(whyslow, "io", "--json", path))["devices"]
            if row["device"] == os.path.basename(device)}
    print(rows, before, after)
    # The kernel counts a write without bytes as well: it is what asked for the flush.
    assert rows["write"]["count"] == after[0] - before[0] - rows["flush"]["count"] == 100, rows
    assert rows["write"]["bytes"] == after[1] - before[1] == 100 * 65536, rows
    # Who looks what is on a new device may still be at it, and its reads are in the device with the writes.
    assert rows["write"]["max_depth"] >= 1 and rows["write"]["mean_depth"] > 0, rows
    if after[3] == before[3]:
        assert rows["write"]["max_depth"] == 1 and rows["write"]["mean_depth"] <= 1, rows
    assert rows["flush"]["count"] >= 1, rows
    if after[2] is not None:
        assert rows["flush"]["count"] == after[2] - before[2], rows


# 64 files are looked at closely, those with the most time: with fewer in all none of them is left out for that.
FILES_MAX = 64
FILES = """
import os
with open("holes", "wb") as file:
    for i in range(40):
        file.seek(i << 16)
        file.write(b"x" * 4096)
    file.flush()
    os.fsync(file.fileno())
os.mkdir("many")
for i in range(35):
    with open(f"many/{i}", "wb") as file:
        file.write(b"x" * (10 if i < 30 else 5000))
with open("gone", "wb") as file:
    file.write(b"x" * 100000)
os.unlink("gone")
"""


def case_files(folder):
    if tier == "kernel":
        need_kernel_tier()
    path = record(folder, sys.executable, "-I", "-S", "-c", f"import os\nos.chdir({folder!r})\n{FILES}")
    files, lost = document(path), lost_names(path)
    assert len(files["files"]) < FILES_MAX, len(files["files"])
    print(len(files["files"]), "files were used")
    holes = of_file(files, "/holes", lost)
    if holes and looked(holes, "size_bytes"):
        assert holes["size_bytes"] == (39 << 16) + 4096, holes
        assert holes.get("extents") == 40 or "extents" in holes["na"], holes
    gone = of_file(files, "/gone", lost)
    if gone and looked(gone, "size_bytes"):
        assert gone["na"]["size_bytes"] == "it is not there any more", gone
    many = [row for row in files["folders"] if row["path"].endswith("/many")]
    assert len(many) == 1 or (lost > 0 and not many), many
    if not many:
        return
    between("files of a folder that were used", many[0]["used"], 35 - lost, 35)
    if looked(many[0], "tiny"):
        between("tiny ones", many[0]["tiny"], 30 - lost, 30)
    if looked(many[0], "entries"):
        assert many[0]["entries"] == 35, many


LATE = """
import os, signal, time
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
recorder = parent(os.getppid())
if os.fork() == 0:
    time.sleep(0.7)
    os.kill(recorder, signal.SIGCONT)
    os._exit(0)
os.kill(recorder, signal.SIGSTOP)
os.chdir(FOLDER)
open("late", "wb").write(b"x" * 10000)
open("./missing") if os.path.exists("./missing") else None
os._exit(0)
"""


def case_late(folder):
    """Whoever is over before it is looked at was not where it began: its files are where they are."""
    path = record(folder, sys.executable, "-c", LATE.replace("FOLDER", repr(folder)))
    lost = lost_names(path)
    late = of_file(document(path), "/late", lost)
    assert not late or late["path"] == f"{folder}/late", late
    assert not late or not looked(late, "size_bytes") or late["size_bytes"] == 10000, late
    names = [row["name"] for row in json.loads(run(whyslow, "query", "--json", path, "SELECT name FROM object"))["rows"]]
    assert f"{folder}/missing" in names or lost > 0, names


def case_full(folder):
    """A file system of its own, which only those in this mount namespace see."""
    if tier == "kernel":
        need_kernel_tier()
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        skip("no mount namespace to be had here")
    os.mkdir(f"{folder}/small")
    recording = f"{folder}/recording.whyslow"
    run("unshare", "-m", "sh", "-ec", 'mount -t tmpfs -o size=1m small "$1"; exec "$2" record --io --tier "$3" -o "$4" -- '
        'dd if=/dev/zero of="$1/file" bs=1k count=980', "sh", f"{folder}/small", whyslow, tier, recording)
    file = of_file(document(recording), "/small/file", lost_names(recording))
    if not file or not looked(file, "size_bytes", "filesystem", "free_pct"):
        return
    assert file["filesystem"] == "tmpfs" and file["memory"] and file["mount"] == f"{folder}/small", file
    assert file["size_bytes"] == 980 * 1024 and file["free_pct"] <= 5, file
    notes = json.loads(run(whyslow, "io", "--json", recording))["notes"]
    assert any(f"{folder}/small has" in json.dumps(note) for note in notes), notes


with tempfile.TemporaryDirectory(prefix="whyslow-io-disk-") as place:
    globals()[f"case_{name}"](os.path.realpath(place))
