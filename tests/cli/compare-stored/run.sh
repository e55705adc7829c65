# Stored results with numbers made by hand: every verdict, and the weaker label.
store() { python3 "$SRC/tests/cli/stored.py" "$@"; }
store old laptop-intel 1
store slower laptop-intel 1.05
store faster laptop-intel 0.9
store same laptop-intel 1.001 200 0.002
store steady laptop-intel 1 200 0.002
store noisy laptop-intel 1.02 20 0.2
store few laptop-intel 1.5 5
whyslow compare old.json slower.json; echo "exit $?"
for b in faster noisy few; do
    whyslow compare old.json $b.json | grep -E '^(verdict|sensitivity)'
done
whyslow compare steady.json same.json | grep -E '^(verdict|sensitivity)'
# Half a percent surely, but within the margin; and beyond a smaller one.
store half laptop-intel 1.005 200 0.002
whyslow compare steady.json half.json | grep ^verdict
whyslow compare steady.json half.json --margin 0.1% | grep ^verdict
# Other metrics, other parts of the runs.
whyslow compare steady.json half.json --metric user --margin 0.1% | grep ^verdict
whyslow compare old.json slower.json --metric peak_rss | grep ^verdict
whyslow compare old.json slower.json --metric cycles | grep -E '^(verdict|sensitivity)'
whyslow compare steady.json same.json --metric p95 | grep ^verdict
whyslow compare old.json slower.json --metric p95 | grep ^verdict
whyslow compare old.json slower.json --markdown | head -8
# The JSON keeps to its schema, and the numbers are those worked out by hand: 5% of the medians;
# complete separation of 20 and 20 runs: p = 2/C(40,20) = 1.45e-11.
whyslow compare old.json slower.json --json > result
/usr/bin/python3 - "$SRC/docs/schema/compare.schema.json" <<'PY'
import json, math, sys
import jsonschema
r = json.load(open("result"))
jsonschema.validate(r, json.load(open(sys.argv[1])))
assert r["verdict"] == "slower" and r["mode"] == "stored" and r["blocks"].startswith("n/a: ")
assert abs(r["ratio"] - 1.05) < 1e-9, r["ratio"]
assert 1.03 < r["ci95"][0] < 1.05 < r["ci95"][1] < 1.07, r["ci95"]
assert abs(r["p"] / (2 / math.comb(40, 20)) - 1) < 1e-6, r["p"]
rows = {row["metric"]: row for row in r["per_metric"]}
assert rows["user"]["verdict"] == "slower" and abs(rows["user"]["a"] - 50) < 1e-9
assert rows["peak_rss"]["verdict"] == "equivalent" and rows["peak_rss"]["ratio"] == 1
assert rows["cycles"]["ratio"].startswith("n/a: ")
assert r["fingerprint_differences"] == []
print("as the schema says")
PY
