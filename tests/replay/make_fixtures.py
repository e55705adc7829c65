#!/usr/bin/python3
"""Makes the stored runs anew: `make fixtures`, on a machine that does nothing else.

    make_fixtures.py [--force] [--only NAME,NAME...] [--missing] WHYSLOW REPLAY PROGRAMS...
    FIXTURES="--only small_io-near" make fixtures

Runs `whyslow run` on every program of the corpus, judges what it says, keeps what interpretation needs, and checks
that interpreting that again says the same. A machine that is disturbed is refused, and so is a case during which it
was, after a few tries: --force takes both, and says so in the fixture. A case with a wrong verdict is not kept.
"""

import argparse
import difflib
import os
import pathlib
import shlex
import sys
import tempfile
import time

import fixtures
import replay

sys.path.insert(0, str(fixtures.HERE.parent / "truth"))
import corpus  # pylint: disable=wrong-import-position
import corpus_tools  # pylint: disable=wrong-import-position

BYTES_MAX = 10 << 20
# Others are what these are about; servers that are somebody else's processes are never ours.
CROWDED = ("cpu_starvation-planted", "real-postgresql-slow", "real-postgresql-fast")
TRIES = 3
LOOK_S, LOOKS = 1, 30


class Refused(Exception):
    """No fixture came of it."""


class Disturbed(Exception):
    """It is of no use to go on now."""


class Watch:
    """Did others have the CPUs since? What a case starts beside its command (a server) is ours once it has ended."""

    def __init__(self):
        self.start, self.before = time.monotonic(), corpus_tools.busy_seconds()

    def is_crowded(self):
        capacity = (time.monotonic() - self.start) * os.cpu_count()
        return corpus_tools.is_crowded(self.before, corpus_tools.busy_seconds(), capacity)


def machine_need_quiet():
    for _ in range(LOOKS):
        watch = Watch()
        time.sleep(LOOK_S)
        if not watch.is_crowded():
            return
    raise Disturbed("others have the CPUs: fixtures are made on a quiet machine (--force: all the same; "
                    "--missing: go on from here)")


def same_again(program, run, packed, clean):
    """The packed fixture says what the run said, word for word; its figures."""
    with tempfile.TemporaryDirectory() as folder:
        archive, again, to = (pathlib.Path(folder) / part for part in ("packed", "again", "said"))
        archive.write_bytes(packed)
        again.mkdir()
        to.mkdir()
        fixtures.unpack(archive, again)
        now = fixtures.replay(program, again, to)
    before = fixtures.comparable(fixtures.said(run), run.name, clean)
    after = fixtures.comparable(now, fixtures.RUN_ID, clean)
    for name, text in before.items():
        if text != after[name]:
            changes = difflib.unified_diff(text.splitlines(), after[name].splitlines(), "the run", "replayed",
                                           lineterm="", n=1)
            raise Refused(f"{name} differs:\n" + "\n".join(list(changes)[:40]))
    return "".join(line + "\n" for line in fixtures.summary(now))


def attempt(case, args, folder):
    """Archive and figures of a run made now."""
    if not args.force:
        machine_need_quiet()
    watch = Watch()
    result, run = corpus_tools.record(case, args.whyslow, folder, args.force)
    run = run.resolve()
    if watch.is_crowded() and not args.force and case.name not in CROWDED:
        raise Refused("others had the CPUs meanwhile")
    untrue = list(case.complaints(result))
    if untrue:
        raise Refused("; ".join(untrue)[:2000])
    clean = fixtures.neutral(folder)
    trimmed = pathlib.Path(folder) / "trimmed"
    trimmed.mkdir()
    fixtures.trim(run, trimmed, clean, {"name": case.name, "crowded": result["crowded"], "forced": args.force})
    packed = fixtures.pack(trimmed)
    return packed, same_again(args.replay, run, packed, clean)


def make(case, args):
    """Bytes of the fixture."""
    for number in range(1, TRIES + 1):
        try:
            with tempfile.TemporaryDirectory(dir=os.path.dirname(args.whyslow)) as folder:
                packed, figures = attempt(case, args, folder)
            break
        except (Refused, corpus_tools.Skip, AssertionError) as refused:
            print(f"{case.name}: try {number} of {TRIES}: {refused}", flush=True)
            if number == TRIES:
                raise Refused(str(refused)) from None
    fixtures.write_whole(fixtures.path_of(case.name), packed)
    fixtures.write_whole(fixtures.EXPECTED / f"{case.name}.txt", figures.encode())
    return len(packed)


def make_all(args, names):
    failed = []
    for number, name in enumerate(names):
        start = time.monotonic()
        try:
            size = make(corpus.CASES[name], args)
            took = time.monotonic() - start
            print(f"[{number + 1}/{len(names)}] {name}: {size >> 10} KiB in {took:.1f} s", flush=True)
        except Refused as refused:
            print(f"[{number + 1}/{len(names)}] {name}: NOT MADE: {refused}", flush=True)
            failed.append(name)
    return failed


def names_of(args):
    unknown = set(args.only) - set(corpus.CASES)
    if unknown:
        raise Refused(f"there is no {', '.join(sorted(unknown))}")
    names = args.only or list(corpus.CASES)
    return [name for name in names if not (args.missing and is_good(name))]


def was_quiet(facts):
    """Nobody else had the CPUs while it was recorded, or that is what it is about."""
    return not facts["forced"] and (not facts["crowded"] or facts["name"] in CROWDED)


def is_good(name):
    """There is one, and it was made on a quiet machine."""
    return fixtures.path_of(name).exists() and was_quiet(fixtures.facts(fixtures.path_of(name)))


def stored_check(args):
    """What is there, is it all, and is it small enough? 0 when it is."""
    stale = [path for path in fixtures.STORED.glob("*.tar.xz") if path.name.removesuffix(".tar.xz") not in corpus.CASES]
    for path in stale:
        path.unlink()
        (fixtures.EXPECTED / (path.name.removesuffix(".tar.xz") + ".txt")).unlink(missing_ok=True)
    there = [name for name in corpus.CASES if fixtures.path_of(name).exists()]
    (fixtures.HERE / "cases.txt").write_text("".join(name + "\n" for name in there))
    total = sum(fixtures.path_of(name).stat().st_size for name in there)
    print(f"{len(there)} of {len(corpus.CASES)} fixtures, {total / (1 << 20):.2f} MiB of at most {BYTES_MAX >> 20}")
    wrong = [name for name in there if replay.check(args.replay, name)]
    print(f"replayed: {len(there) - len(wrong)} of {len(there)} are as expected", *wrong)
    return 1 if wrong or total > BYTES_MAX or len(there) < len(corpus.CASES) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="on a machine that others use, too")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="names of cases, with commas")
    parser.add_argument("--missing", action="store_true", help="those that are not there, or were made with --force")
    parser.add_argument("whyslow", type=os.path.abspath)
    parser.add_argument("replay", type=os.path.abspath)
    parser.add_argument("programs", nargs="+")
    args = parser.parse_args(shlex.split(os.environ.get("FIXTURES", "")) + sys.argv[1:])
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"  # it is looked through, and that is recorded
    corpus_tools.programs_are(args.programs)
    fixtures.STORED.mkdir(exist_ok=True)
    fixtures.EXPECTED.mkdir(exist_ok=True)
    start = time.monotonic()
    try:
        failed = make_all(args, names_of(args))
    except (Refused, Disturbed) as refused:
        print(refused)
        return 1
    print(f"{time.monotonic() - start:.0f} s; not made: {', '.join(failed) or 'none'}")
    return 1 if stored_check(args) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
