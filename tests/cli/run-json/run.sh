# The JSON keeps to its schema; baseline.json has every run; numbers are numbers.
whyslow run --force --runs 20 --budget 5m --json --out out -- sh -c 'echo same; head -c 100000 /dev/zero >zero' >result 2>/dev/null
echo "exit $?"
/usr/bin/python3 - "$SRC/docs/schema/run.schema.json" <<'PY'
import json, pathlib, sys
import jsonschema
r = json.load(open("result"))
schema = json.load(open(sys.argv[1]))
parts = jsonschema.RefResolver(pathlib.Path(sys.argv[1]).as_uri(), schema)
jsonschema.Draft7Validator(schema, resolver=parts).validate(r)
m = {row["metric"]: row for row in r["metrics"]}
for name in ("wall", "cpu_time", "peak_rss", "faults_minor", "written"):
    low, median, high = (m[name][k] for k in ("median_low", "median", "median_high"))
    assert low <= median <= high <= m[name]["max"], m[name]
assert m["written"]["median"] == 100005, m["written"]
assert r["output_stable"] is True and r["complete"] is True and r["runs"] == 20
b = json.load(open(r["artifacts"]["baseline"]))
assert b["schema"] == "whyslow.baseline/1" and len(b["runs"]) == 20
assert b["metrics"]["wall"]["median"] == m["wall"]["median"]
f = json.load(open(r["artifacts"]["fingerprint"]))
assert f["run"]["id"] == r["run_id"] if "id" in f["run"] else True
print("as the schema says")
PY
