#!/usr/bin/python3
"""What is said of a stored run must be what was said before, and what is true of its program.

    replay.py REPLAY NAME               one case: its verdicts beside the corpus's truth, its figures beside expected/
    replay.py REPLAY --update [NAME...] writes expected/ anew: read the difference

The truth (tests/truth/corpus.py: what is planted is confirmed and first; what is near is dismissed with a reason; of
what is clean nothing is confirmed) is no figure and is not written by --update: a wrong verdict stays red.
"""

import difflib
import pathlib
import sys
import tempfile

import fixtures

sys.path.insert(0, str(fixtures.HERE.parent / "truth"))
import corpus  # pylint: disable=wrong-import-position


def look(program, name):
    """What is said of the fixture now: complaints about what is untrue, and the figures."""
    with tempfile.TemporaryDirectory() as folder:
        run, to = (pathlib.Path(folder) / part for part in ("run", "said"))
        run.mkdir()
        to.mkdir()
        made = fixtures.unpack(fixtures.path_of(name), run)
        artifacts = fixtures.replay(program, run, to)
    untrue = list(corpus.CASES[name].complaints({**fixtures.screen(artifacts), "crowded": made["crowded"]}))
    return untrue, "".join(line + "\n" for line in fixtures.summary(artifacts))


def check(program, name):
    untrue, figures = look(program, name)
    for line in untrue:
        print("WRONG", line)
    path = fixtures.EXPECTED / f"{name}.txt"
    before = path.read_text().splitlines(True) if path.exists() else []
    changes = list(difflib.unified_diff(before, figures.splitlines(True), f"expected/{name}.txt", "said now"))
    if changes:
        print(f"the figures of {name} are others than those of expected/{name}.txt; if they ought to be: "
              f"tests/replay/replay.py {program} --update {name}")
        sys.stdout.writelines(changes)
    return 1 if untrue or changes else 0


def update(program, names):
    failed = 0
    fixtures.EXPECTED.mkdir(exist_ok=True)
    for name in names or fixtures.names():
        untrue, figures = look(program, name)
        fixtures.write_whole(fixtures.EXPECTED / f"{name}.txt", figures.encode())
        for line in untrue:
            print("WRONG", name, line)
        failed += bool(untrue)
    print(f"{failed} of {len(names or fixtures.names())} are untrue")
    return 1 if failed else 0


def main(program, *args):
    if args and args[0] == "--update":
        return update(program, args[1:])
    return check(program, *args)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
