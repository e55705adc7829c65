# Counts do not depend on the machine's noise: 5% are enough, and the slowdown is known to a percent.
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
whyslow gate --self-test --counts --budget 1s --max-regression 5% --baseline true --json >result; echo "exit $?"
check 'r["self_test"]' '[b["answer"] for b in r["benchmarks"]] == ["pass", "fail"]' \
    '1.09 < r["benchmarks"][1]["ratio"] < 1.11'
