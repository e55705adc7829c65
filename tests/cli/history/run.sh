# Results over time: a planted step is found at its commit, machines are not mixed, adding twice adds
# nothing.
export WHYSLOW_HISTORY=$PWD/history.db
/usr/bin/python3 - <<'PY'
import json, random
random.seed(4)
def result(i, name, machine, ms):
    runs = [{"wall_ms": round(ms + random.uniform(-1, 1), 3), "exit_code": 0} for _ in range(20)]
    json.dump({"schema": "whyslow.bench/1",
               "fingerprint": {"cpu": {"model": machine, "threads": 4},
                               "run": {"time": f"2026-03-{i + 1:02}T12:00:00Z", "git_branch": "main",
                                       "git_revision": f"{i:02x}" * 20}},
               "results": [{"command": name + " big", "name": name, "runs": runs}]},
              open(f"{name}-{machine}-{i:02}.json", "w"))
for i in range(24):
    result(i, "parse", "fast", 100 if i < 15 else 110)
result(25, "parse", "slow", 900)
for i in range(8):
    result(i, "noise", "fast", 50)
PY
whyslow history
echo "exit $?"
whyslow history add parse-*.json noise-*.json
whyslow history add parse-fast-03.json
whyslow history
whyslow history --machine fast --svg parse.svg parse
echo "exit $?"
whyslow history parse | grep -A1 note
whyslow history noise | sed -n '/changes/,/results/p'
whyslow history --json --machine fast parse >history.json
/usr/bin/python3 - "$SRC/docs/schema/history.schema.json" <<'PY'
import json, sys
import xml.etree.ElementTree as ET
import jsonschema
h = json.load(open("history.json"))
jsonschema.validate(h, json.load(open(sys.argv[1])))
assert len(h["results"]) == 24 and len(h["changes"]) == 1, h["changes"]
change = h["changes"][0]
assert change["last_good"] == "0e" * 20 and change["first_new"] == "0f" * 20, change
assert 1.09 < change["ratio"] < 1.11 and change["p"] <= 0.01
svg = ET.parse("parse.svg").getroot()
ns = "{http://www.w3.org/2000/svg}"
assert len(svg.findall(f"{ns}circle")) == 24
print("as the schema says")
PY
