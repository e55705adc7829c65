# Stored results with numbers made by hand: pass, fail, inconclusive, several at once.
store() { python3 "$SRC/tests/cli/stored.py" "$@"; }
store old laptop-intel 1
store worse laptop-intel 1.3
store better laptop-intel 0.8
store edge laptop-intel 1.1 20 0.05
store few laptop-intel 1.5 5
whyslow gate --baseline old.json --candidate worse.json; echo "exit $?"
whyslow gate --baseline old.json --candidate better.json; echo "exit $?"
whyslow gate --baseline old.json --candidate edge.json; echo "exit $?"
whyslow gate --baseline old.json --candidate few.json | head -2; echo "exit ${PIPESTATUS[0]}"
whyslow gate --baseline old.json --candidate worse.json --max-regression 50% | head -2; echo "exit ${PIPESTATUS[0]}"
whyslow gate --baseline old.json --candidate worse.json --metric p95 | head -2; echo "exit ${PIPESTATUS[0]}"
whyslow gate --baseline old.json --candidate worse.json --metric cycles | head -2; echo "exit ${PIPESTATUS[0]}"
whyslow gate --baseline old.json --candidate worse.json --metric peak_rss | head -2; echo "exit ${PIPESTATUS[0]}"
# Several: one that fails is enough; Holm multiplies the smallest p by their number.
whyslow gate --baseline old.json --candidate better.json --baseline old.json --candidate edge.json \
    --baseline old.json --candidate worse.json --json --summary summary.md --name old > result 2> err; echo "name: $?"
whyslow gate --baseline old.json --candidate better.json --baseline old.json --candidate edge.json \
    --baseline old.json --candidate worse.json --json --summary summary.md > result; echo "exit $?"
/usr/bin/python3 - "$SRC/docs/schema/gate.schema.json" <<'PY'
import json, math, sys
import jsonschema
r = json.load(open("result"))
jsonschema.validate(r, json.load(open(sys.argv[1])))
assert [b["verdict"] for b in r["benchmarks"]] == ["pass", "inconclusive", "fail"]
p = 2 / math.comb(40, 20)  # complete separation, of better and of worse
worse = r["benchmarks"][2]
assert abs(worse["p"] / p - 1) < 1e-6 and abs(worse["p_adjusted"] / (3 * p) - 1) < 1e-6, worse
assert worse["confidence"] == 0.95 and worse["mode"] == "stored"
print("as the schema says")
PY
# A second gate appends to the same summary.
whyslow gate --baseline old.json --candidate better.json --summary summary.md > /dev/null
cat summary.md
whyslow gate --baseline old.json --candidate better.json --summary /nonexistent/summary.md > /dev/null; echo "exit $?"
whyslow gate --baseline old.json --candidate better.json --summary /dev/full > /dev/null; echo "exit $?"
