#!/usr/bin/python3
"""What `whyslow run` leaves behind: every file keeps to its schema, they agree with each other, and the commands
in the hand-off really run.

    run_artifacts.py WHYSLOW KNOWN SCHEMAS WHAT

`program`: a program of the user's own; `system`: one of the distribution, which cannot be kept beside itself;
`hostile`: names full of markup, quotes and line ends. Nothing here depends on how fast the machine is.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import jsonschema
import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from judged import timed  # noqa: E402

whyslow, known, schemas = map(os.path.abspath, sys.argv[1:4])
what = sys.argv[4]
failed = 0

FILES = ["scenario.toml", "fingerprint.json", "baseline.json", "evidence.json", "recording.whyslow", "hotspots.json", "map.yaml",
         "map.json", "profile_result.json", "ledger.json", "suspicions.json", "handoff.md"]


def check(name, good, detail=""):
    global failed
    failed += not good
    print(f"{'ok' if good else 'WRONG':<6} {name} {detail if not good else ''}")


def validate(document, name):
    path = pathlib.Path(schemas) / f"{name}.schema.json"
    schema = json.loads(path.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    parts = jsonschema.RefResolver(path.as_uri(), schema)
    errors = [f"{list(e.path)}: {e.message[:300]}" for e in
              jsonschema.Draft7Validator(schema, resolver=parts).iter_errors(document)]
    check(f"{name} follows its schema", not errors, errors[:3])


def near(a, b, share=0.001):
    return abs(a - b) <= share * max(abs(a), abs(b), 1e-9)


def steps_of(steps):
    for step in steps:
        yield step
        yield from steps_of(step["children"])


def check_time(result):
    rows = [row["ms"] for row in result["time"] if not isinstance(row["ms"], str)]
    wall = next(row["median"] for row in result["metrics"] if row["metric"] == "wall") / 1e6
    check("where the time goes adds up to the wall time", near(sum(rows), wall, 0.01), (rows, wall))


def check_map(performance_map):
    for step in steps_of(performance_map["steps"]):
        functions = [child for child in step["children"] if child["kind"] == "function"]
        inside = sum(child["wall_time_ms"] for child in functions)
        check(f"children of {step['id']} are part of it", inside <= step["wall_time_ms"] * 1.001, (step, inside))
        check(f"{step['id']} is worth a line", step["share_pct"] >= 1)
    top = sum(step["wall_time_ms"] for step in performance_map["steps"] if step["kind"] == "function")
    wall = performance_map["baseline"]["wall_time_ms"]
    check("steps and what was left out are the wall time",
          near(top + performance_map["steps_left_out_ms"], wall, 0.01), (top, performance_map["steps_left_out_ms"]))


def check_agreement(result, files):
    """One value was drawn many times."""
    confirmed = [row for row in result["suspicions"] if row["verdict"] == "confirmed"]
    stored = files["suspicions.json"]["suspicions"]
    check("the screen has the suspicions of the file",
          [(row["detector"], row["rank"], row["verdict"]) for row in stored] ==
          [(row["detector"], row["rank"], row["verdict"]) for row in result["suspicions"]])
    for name in ("context", "environment"):
        said = [[(row["detector"], row["verdict"], row["ms"], row["effect"]) for row in table[name]]
                for table in (result, files["suspicions.json"], files["profile_result.json"])]
        check(f"{name} is the same on the screen and in the files", said[0] == said[1] == said[2] and said[0], said)
        check(f"{name} is not among what can be fixed",
              not {row[0] for row in said[0]} & {row["detector"] for row in stored})
    check("ranks count from 1", [row["rank"] for row in confirmed] == list(range(1, len(confirmed) + 1)))
    whole = files["profile_result.json"]
    check("the map is the same as a file and in the whole result",
          whole["performance_map"]["steps"] == files["map.json"]["steps"])
    withheld = bool(whole["wrong_tool_indicators"])
    hints = whole["optimization_hints"]
    check("hints come from confirmed suspicions only",
          len(hints) == (0 if withheld else len(confirmed)), (hints, confirmed))
    check("every suspicion is in the stack or not judged",
          len(whole["suspicion_stack"]) + len(whole["not_judged"]) == len(stored))
    for row in files["suspicions.json"]["opportunities"]:
        check("the score is the formula", abs(row["impact"] * row["confidence"] / row["effort"] - row["score"]) < 0.006,
              row)
        check("after is before without the gain",
              near(row["wall_after_ms"], max(0, files["map.json"]["wall_ms"] - row["recoverable_ms"]), 0.01), row)


def commands(handoff):
    """Blocks of commands, and under which words they stand."""
    before = ""
    for match in re.finditer(r"(?P<words>[^`]*)(?P<fence>`{3,})sh\n(?P<text>.*?)\n(?P=fence)\n", handoff, re.S):
        before = match["words"].strip().splitlines()[-1] if match["words"].strip() else before
        yield before, match["text"]


def check_commands(folder, handoff):
    """Typed as they stand, but for less time. Whether it is faster is not asked: nothing was changed."""
    shorter = {"compare": "--blocks 2", "bench": "--runs 3", "gate": "--budget 2s", "run": "--quick --force"}
    tools = pathlib.Path(folder) / "bin"
    tools.mkdir()
    (tools / "whyslow").symlink_to(whyslow)
    environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")
    done = set()
    for title, text in list(commands(handoff))[1:]:  # the first is the program itself
        if text in done:
            continue
        done.add(text)
        for verb, option in shorter.items():
            text = re.sub(rf"\bwhyslow {verb} (?!.*{option})", f"whyslow {verb} {option} ", text)
        # "keep what there is" comes later in the text than the checks that need it.
        keep = re.search(r"^(cp -p .*|whyslow bench --export-json \S*before\.json .*)$", handoff, re.M)[1]
        if not title.startswith("One change"):
            subprocess.run(["sh", "-c", keep.replace("whyslow bench", "whyslow bench --runs 3")], cwd=folder,
                           env=environment, capture_output=True, check=False, timeout=600)
        status = subprocess.run(["sh", "-c", text], cwd=folder, env=environment, capture_output=True, check=False,
                                timeout=600)
        allowed = (0, 1, 3) if "whyslow gate" in text or "whyslow bench" in text else (0,)
        check(f"can be typed: {text[:100]}", status.returncode in allowed,
              (status.returncode, status.stderr.decode(errors="replace")[-500:]))
    check("there are commands to keep, compare, gate and run again", len(done) >= 4, done)


def command_of(folder):
    if what == "program":
        shutil.copy(known, pathlib.Path(folder) / "app")
        return ["./app", "burn-ms=150", "sleep-ms=60", "write-mib=4", "file=scratch"]
    if what == "system":
        return ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.05"]
    name = "evil | `id` <b>\"'\n# x *y* [z](http:) \x1b[31m"
    shutil.copy(known, pathlib.Path(folder) / name)
    return ["./" + name, "burn-ms=150", "sleep-ms=60", "write-mib=1", "file=scra\ntch|"]


def check_handoff(handoff, result):
    check("it says what a run costs", "of wall time" in handoff)
    for row in result["suspicions"]:
        if row["verdict"] != "confirmed":
            continue
        section = re.search(rf"^### {row['rank']}\. .*?(?=^###? |\Z)", handoff, re.S | re.M)
        check(f"recommendation {row['rank']} is there", section is not None)
        text = section[0] if section else ""
        for word in ("**Where:**", "**Expected effect:**", "saves", "**Why:**"):
            check(f"recommendation {row['rank']} has {word}", word in text, text)
        advised = not any(tool["holds"] for tool in result["wrong_tools"])
        for word in ("**Worth:**", "**Do this:**", "**Check it**"):
            check(f"recommendation {row['rank']} has {word}: {advised}", (word in text) == advised, text)
        if advised:
            check(f"recommendation {row['rank']} says how to check it", "```sh\nwhyslow compare" in text or
                  "```sh\nwhyslow bench" in text, text)


def check_harmless(handoff):
    check("no escape sequence of a name gets through", "\x1b" not in handoff)
    inside = re.sub(r"^(`{3,})sh\n.*?\n\1\n", "", handoff, flags=re.S | re.M)
    check("blocks of commands end where they should", "burn-ms" not in inside, inside)
    for line in inside.splitlines():
        check("no name begins a line as a heading", not line.startswith("# x"), line)
    check("no name becomes a tag", "<b>" not in inside.replace("\\<b\\>", ""), inside)


with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
    done = subprocess.run([whyslow, "run", "--quick", "--force", "--json", "--out", "out", "--", *command_of(folder)],
                          cwd=folder, capture_output=True, check=False, timeout=600)
    print(done.stderr.decode(errors="replace"))
    assert done.returncode in (0, 3), done.returncode  # 3: the baseline drifted, as on a busy machine
    result = json.loads(done.stdout)
    latest = pathlib.Path(folder) / "out" / "latest"
    for name in FILES:
        check(f"there is {name}", (latest / name).exists())
    files = {name: json.loads((latest / name).read_text()) for name in FILES if name.endswith(".json")}
    validate(result, "run")
    for path in sorted(latest.glob("*.json")):
        validate(json.loads(path.read_text()), path.stem)
    check("map.yaml says what map.json says",
          yaml.safe_load((latest / "map.yaml").read_text()) == files["map.json"])
    check_time(result)
    check_map(files["map.json"])
    check_agreement(result, files)
    handoff = (latest / "handoff.md").read_text()
    check_handoff(handoff, result)
    if what == "hostile":
        check_harmless(handoff)
    else:
        check_commands(folder, handoff)
if failed:
    sys.exit(1)
timed("the baseline did not drift", done.returncode == 0)
