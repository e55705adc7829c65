#!/usr/bin/python3
"""All of the corpus is stored, and the replay can fail: a stored run that is changed is noticed, by its figures or by
the truth.

    selftest.py REPLAY
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile

import fixtures
import make_fixtures
import replay

NAME, AXIS, RECORDING = "small_io-planted", "io", "recording-io.whyslow"


def evidence_change(folder, change):
    path = folder / "evidence.json"
    evidence = json.loads(path.read_text())
    change(evidence)
    path.write_text(json.dumps(evidence))


def costs_more(folder):
    evidence_change(folder, lambda evidence: evidence["costs"].update(wall_ns=evidence["costs"]["wall_ns"] * 1.001))


def recording_gone(folder):
    (folder / RECORDING).unlink()


def axis_gone(folder):
    evidence_change(folder, lambda evidence: evidence["axes"].update({AXIS: {"na": "gone"}}))


def evidence_gone(folder):
    (folder / "evidence.json").write_text("{}")


def checked(program, change):
    """What the check prints, and its status, of a fixture that was changed."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        run.mkdir()
        fixtures.unpack(fixtures.path_of(NAME), run)
        change(run)
        packed = fixtures.pack(run)
        stored, fixtures.STORED = fixtures.STORED, pathlib.Path(folder)
        fixtures.path_of(NAME).write_bytes(packed)
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                status = replay.check(program, NAME)
        except AssertionError as error:
            status = str(error)
        finally:
            fixtures.STORED = stored
        return out.getvalue(), status


def stored():
    """Complaints about what there is."""
    names = fixtures.names()
    yield from (f"{name} has no fixture: make fixtures" for name in replay.corpus.CASES if name not in names)
    yield from (f"{name} is no case of the corpus" for name in names if name not in replay.corpus.CASES)
    total = 0
    for path in (path for name in names for path in (fixtures.path_of(name), fixtures.EXPECTED / f"{name}.txt")):
        if not path.exists():
            yield f"{path} is missing"
            continue
        total += path.stat().st_size
    yield from (f'{name} was recorded while others had the CPUs: FIXTURES="--only {name}" make fixtures'
                for name in names if fixtures.path_of(name).exists() and not make_fixtures.is_good(name))
    if total > make_fixtures.BYTES_MAX:
        yield f"{total} bytes are stored, {make_fixtures.BYTES_MAX} are allowed"


def unsampled(program):
    """300 short processes are known by their switches: where samples cost too much none are kept."""
    with tempfile.TemporaryDirectory() as folder:
        run, said = pathlib.Path(folder) / "run", pathlib.Path(folder) / "said"
        run.mkdir()
        said.mkdir()
        fixtures.unpack(fixtures.path_of("start_up-planted"), run)
        evidence_change(run, lambda evidence: evidence["axes"].update(cpu={"na": "gone"}))
        lines = list(fixtures.summary(fixtures.replay(program, run, said)))
    if not any(line.startswith("confirmed 1 start_up") and ", x300," in line for line in lines):
        yield f"start_up needs samples: {[line for line in lines if 'start_up' in line]}"


def main(program):
    complaints = [*stored(), *unsampled(program)]
    for line in complaints:
        print("WRONG", line)
    failed = len(complaints)
    for change, status, words in ((lambda _: None, 0, ""),
                                  (costs_more, 1, f"the figures of {NAME} are others"),
                                  (recording_gone, 1, "WRONG small_io is not first"),
                                  (axis_gone, 1, "WRONG small_io is not first"), (evidence_gone, None, "")):
        text, had = checked(program, change)
        good = "exit status 1" in str(had) if status is None else had == status and words in text
        failed += not good
        print("ok" if good else f"WRONG {had}: {text}", getattr(change, "__name__", "unchanged"))
    for name, crowded, forced, good in ((NAME, False, False, True), (NAME, True, False, False), (NAME, False, True, False),
                                        (make_fixtures.CROWDED[0], True, False, True)):
        if make_fixtures.was_quiet({"name": name, "crowded": crowded, "forced": forced}) != good:
            print(f"WRONG a fixture {name}, crowded {crowded}, forced {forced}, passes or not")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
