"""A fixture: what one `whyslow run` left that interpretation needs, small and without traces of its machine.

fixtures/NAME.tar.xz has evidence.json, the recordings, and fixture.json (what was so when it was made). What is said
of it is in expected/NAME.txt: summary() draws that from what the program `replay` writes.
"""

import io
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
STORED, EXPECTED = HERE / "fixtures", HERE / "expected"
HOME = "/home/user/whyslow"
RUN_ID = "20000101-000000-0000"  # as replay.c says
# All that is said is compared between a run and its replay; sentences about the run itself are not in a replay.
SAID = ("suspicions.json", "hotspots.json", "ledger.json", "map.json")


def neutral(folder):
    """A function that takes folders of this machine out of a text: that of the run (in that of the build), and where
    programs and their sources are, or were when a compiler's cache was filled."""
    folders = [(str(folder), HOME + "/run"), (os.path.dirname(folder), HOME + "/build"),
               (str(HERE.parent.parent), HOME)]
    build = re.compile(r"(?:/[\w.+-]+)+/(?=tests/workloads/)")
    source = re.compile(r"(?:/[\w.+-]+)+/(?=tests/workloads/trouble/)|(?:/[\w.+-]+)+(?=/tests/workloads\b)")

    def clean(text):
        for have, instead in folders:
            text = text.replace(have, instead)
        return source.sub(HOME, build.sub(HOME + "/", text))
    return clean


def recording_trim(path, clean):
    database = sqlite3.connect(path)
    database.create_function("clean", 1, clean, deterministic=True)
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for _, column, kind, *_ in database.execute(f'PRAGMA table_info("{table}")').fetchall():
            if kind in ("TEXT", ""):
                database.execute(f'UPDATE "{table}" SET "{column}" = clean("{column}") '
                                 f"WHERE typeof(\"{column}\") = 'text' AND \"{column}\" <> clean(\"{column}\")")
    # Of the machine only what names system calls.
    for (text,) in database.execute("SELECT json FROM document WHERE name = 'fingerprint'").fetchall():
        whole = json.loads(text)
        kept = {"schema": whole["schema"], "kernel": {"arch": whole["kernel"]["arch"]}}
        database.execute("UPDATE document SET json = ? WHERE name = 'fingerprint'", (json.dumps(kept, indent=2),))
    database.commit()
    database.execute("VACUUM")
    database.execute("PRAGMA journal_mode = DELETE")
    database.close()


def trim(run, to, clean, facts):
    """From the folder of a run to that of a fixture."""
    for path in sorted(run.glob("recording*.whyslow")):
        (to / path.name).write_bytes(path.read_bytes())
        for beside in ("-wal", "-shm"):
            assert not path.with_name(path.name + beside).exists(), f"{path} is still written to"
        recording_trim(to / path.name, clean)
    (to / "evidence.json").write_text(clean((run / "evidence.json").read_text()))
    (to / "fixture.json").write_text(json.dumps(facts, indent=2) + "\n")


def pack(folder):
    """The archive's bytes: the same files give the same bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz", preset=9 | 1 << 31) as archive:
        for path in sorted(folder.iterdir()):
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    return out.getvalue()


def facts(archive):
    """Its fixture.json."""
    with tarfile.open(archive, "r:xz") as files:
        return json.load(files.extractfile("fixture.json"))


def unpack(archive, to):
    """The files of a fixture, into a folder; and its fixture.json."""
    with tarfile.open(archive, "r:xz") as files:
        for entry in files:
            assert entry.isfile() and "/" not in entry.name, entry.name
            (to / entry.name).write_bytes(files.extractfile(entry).read())
    return json.loads((to / "fixture.json").read_text())


def replay(program, folder, to):
    """What is said of the run in a folder: the artifacts by name."""
    # In the folder: where it is stands in reasons.
    done = subprocess.run([os.path.abspath(program), ".", str(to)], cwd=folder, capture_output=True, text=True,
                          check=False, timeout=120)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr}"
    assert not done.stderr, done.stderr
    return said(to)


def said(folder):
    return {name: json.loads((folder / name).read_text()) for name in SAID}


def screen(artifacts):
    """What the corpus judges, as `whyslow run --json` has it."""
    hotspots = artifacts["hotspots.json"]
    return {**artifacts["suspicions.json"], "time": hotspots["time"], "hotspots": hotspots["hotspots"],
            "ledger": artifacts["ledger.json"]["hypotheses"]}


def comparable(artifacts, run, clean):
    """Without what a replay cannot know: when it was run, and what `whyslow run` did besides."""
    run_id = re.compile(r"\S*" + re.escape(run) + r"(?=/)|" + re.escape(run))
    texts = {}
    for name, artifact in artifacts.items():
        artifact = {key: value for key, value in artifact.items() if key not in ("run_id", "honesty")}
        text = run_id.sub(".", clean(json.dumps(artifact, indent=1)))
        texts[name] = re.sub(r"(?<=[ \"'])\S*/(?=recording(-\w+)?\.whyslow)", "", text)
    return texts


def ms(number):
    return f"{number:.3f} ms" if isinstance(number, (int, float)) else number


def short(number):
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def numbers(text):
    """Those that decide a verdict, without the words around them; the bounds are among them."""
    return " ".join(re.findall(r"\d+(?:[.,]\d+)*%?", text))


def confirmed_lines(row):
    saves, low, high, cost = (ms(row[key]) for key in ("recoverable_ms", "recoverable_low_ms", "recoverable_high_ms",
                                                       "cost_ms"))
    yield (f"confirmed {row['rank']} {row['detector']}: saves {saves} ({low} to {high}) of {cost}, "
           f"x{row['occurrences']}, {row['category']}, {row['owner']}, at {row['location']}")
    for name, value in sorted(row["facts"].items()):
        yield f"    {name} = {short(value)}"
    angles = (f"{name} {word['verdict']}" for name, word in row["angles"].items())
    yield f"    angles: {', '.join(angles)}; confidence {short(row['confidence'])}"
    for place in row["affected_steps"]:
        yield f"    also at {place if isinstance(place, str) else json.dumps(place, sort_keys=True)}"


def summary(artifacts, hotspots_max=8):
    """What is said, as lines to read and to compare: figures, not sentences."""
    suspicions, hotspots = artifacts["suspicions.json"], artifacts["hotspots.json"]
    yield f"wall time {ms(suspicions['wall_ms'])}"
    for row in hotspots["time"]:
        if row["ms"]:
            yield f"time {row['class']} {ms(row['ms'])}"
    # In the order of the file, confirmed ones first.
    for row in suspicions["suspicions"]:
        if row["verdict"] == "confirmed":
            yield from confirmed_lines(row)
        else:
            yield f"{row['verdict']} {row['detector']}: {numbers(row['reason'])}".rstrip(": ")
    # What is true and no change of the program mends.
    for section in ("context", "environment"):
        for row in suspicions.get(section, ()):
            if row["verdict"] == "confirmed":
                facts = ", ".join(f"{name} = {short(value)}" for name, value in sorted(row["facts"].items()))
                yield f"{section} {row['detector']}: {ms(row['ms'])}; {facts}"
            else:
                yield f"{section} {row['detector']}: {row['verdict']}: {numbers(row['reason'])}".rstrip(": ")
    together = suspicions["together"]
    if isinstance(together, dict) and together.get("findings"):
        yield f"together saves {ms(together['recoverable_ms'])}"
    for row in suspicions["wrong_tools"]:
        yield f"wrong tool {row['id']}: {row['holds']}"
    for row in artifacts["ledger.json"]["hypotheses"]:
        angles = ", ".join(f"{name} {word['verdict']}" for name, word in row["angles"].items())
        yield f"hypothesis {row['id']}: {row['verdict']}, {short(row['share_pct'])}% ({angles})"
    for row in hotspots["hotspots"][:hotspots_max]:
        yield f"hotspot {row['rank']} {row['location']} {row['metric']} {short(row['value_ms'])}"


def names():
    return (HERE / "cases.txt").read_text().split()


def path_of(name):
    return STORED / f"{name}.tar.xz"


def write_whole(path, data):
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(data)
    os.replace(temporary, path)
