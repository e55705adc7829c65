# Two commands run side by side; the difference is large, so that no noise can turn the answer.
check() {
    /usr/bin/python3 - "$SRC/docs/schema/gate.schema.json" "$@" <<'PY'
import json, sys
import jsonschema
r = json.load(open("result"))
jsonschema.validate(r, json.load(open(sys.argv[1])))
for condition in sys.argv[2:]:
    assert eval(condition), (condition, r["benchmarks"])
print("as the schema says")
PY
}
whyslow gate --baseline 'sleep 0.02' --candidate 'sleep 0.2' --budget 12s --json >result; echo "exit $?"
check 'r["benchmarks"][0]["mode"] == "interleaved"' 'r["benchmarks"][0]["ratio"] > 2'
whyslow gate --baseline 'sleep 0.1' --candidate 'sleep 0.02' --budget 12s --json >result; echo "exit $?"
check 'r["benchmarks"][0]["answer"] == "pass"' 'r["benchmarks"][0]["confidence"] in (0.99, 0.985, 0.975)'
# No time to say anything: inconclusive, and status 3.
whyslow gate --baseline 'sleep 0.1' --candidate 'sleep 0.1' --budget 400ms --json >result; echo "exit $?"
check 'r["verdict"] == "inconclusive"' '"too few" in r["benchmarks"][0]["because"]' 'r["benchmarks"][0]["looks"] == 3'
# Several, of which one fails.
whyslow gate --baseline 'sleep 0.1' --candidate 'sleep 0.02' --baseline 'sleep 0.02' --candidate 'sleep 0.2' \
    --budget 24s --json >result; echo "exit $?"
check '[b["verdict"] for b in r["benchmarks"]] == ["pass", "fail"]'
# A stored baseline and a command: weaker, and said so.
python3 - <<'PY'
import json
runs = [{"wall_ms": 1 + i / 1000, "exit_code": 0} for i in range(20)]
json.dump({"schema": "whyslow.bench/1", "results": [{"command": "x", "runs": runs}]}, open("stored.json", "w"))
PY
whyslow gate --baseline stored.json --candidate 'sleep 0.1' --budget 4s --force --json >result; echo "exit $?"
check 'r["benchmarks"][0]["mode"] == "stored baseline"' 'any("weaker" in w for w in r["warnings"])' 'r["benchmarks"][0]["baseline_runs"] == 20'
