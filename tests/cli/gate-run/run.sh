# Two commands run side by side, and judged by the bytes that they read: those are the same whatever else the machine does.
# (Judged by times: truth/compare-known.) How many runs fit into a budget is the machine's affair: with 7 of each, which
# the last look needs, the answer is there, and with fewer it is said that they are too few.
check() {
    /usr/bin/python3 - "$SRC/docs/schema/gate.schema.json" "$@" <<'PY'
import json, sys
import jsonschema
r = json.load(open("result"))
jsonschema.validate(r, json.load(open(sys.argv[1])))
def told(benchmark, answer):
    if benchmark["baseline_runs"] < 7:
        return benchmark["verdict"] == "inconclusive" and "too few" in benchmark["because"]
    if answer == "fail" and benchmark["p_adjusted"] >= 0.025:  # of several 7 may be too few for that
        return benchmark["verdict"] == "inconclusive" and "chance" in benchmark["because"]
    return benchmark["verdict"] == answer
def ends():
    status = {"pass": 0, "fail": 1, "inconclusive": 3}
    return status[r["verdict"]] == int(sys.argv[2])
for condition in ["ends()", *sys.argv[3:]]:
    assert eval(condition), (condition, sys.argv[2], r["benchmarks"])
print("as the schema says")
PY
}
small='dd if=/dev/zero of=/dev/null status=none count=1 bs=300K'
large='dd if=/dev/zero of=/dev/null status=none count=1 bs=1800K'
whyslow gate --metric read --baseline "$small" --candidate "$large" --budget 4s --json >result
check $? 'r["benchmarks"][0]["mode"] == "interleaved"' 'r["benchmarks"][0]["ratio"] > 2' 'told(r["benchmarks"][0], "fail")'
whyslow gate --metric read --baseline "$large" --candidate "$small" --budget 4s --json >result
check $? 'told(r["benchmarks"][0], "pass")' 'r["benchmarks"][0]["confidence"] in (0.99, 0.985, 0.975)'
# No time to say anything: inconclusive, and status 3.
whyslow gate --baseline 'sleep 0.1' --candidate 'sleep 0.1' --budget 400ms --json >result
check $? 'r["verdict"] == "inconclusive"' '"too few" in r["benchmarks"][0]["because"]' 'r["benchmarks"][0]["looks"] == 3'
# Several, of which one fails.
whyslow gate --metric read --baseline "$large" --candidate "$small" --baseline "$small" --candidate "$large" \
    --budget 8s --json >result
check $? 'told(r["benchmarks"][0], "pass")' 'told(r["benchmarks"][1], "fail")'
# A stored baseline and a command: weaker, and said so. It took 1 ms, and no machine is so quick that this takes less
# than 100.
python3 - <<'PY'
import json
runs = [{"wall_ms": 1 + i / 1000, "exit_code": 0} for i in range(20)]
json.dump({"schema": "whyslow.bench/1", "results": [{"command": "x", "runs": runs}]}, open("stored.json", "w"))
PY
whyslow gate --baseline stored.json --candidate 'sleep 0.1' --budget 4s --force --json >result
check $? 'r["benchmarks"][0]["mode"] == "stored baseline"' 'any("weaker" in w for w in r["warnings"])' \
    'r["benchmarks"][0]["baseline_runs"] == 20' 'r["benchmarks"][0]["verdict"] == "fail" or "too few" in r["benchmarks"][0]["because"]'
