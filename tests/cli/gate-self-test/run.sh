# The gate is put to the test: what is injected must be caught, A/A must not fail. A slowdown of
# 400%, judged by CPU time, leaves room for the noise of any machine.
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
whyslow gate --self-test --budget 30s --max-regression 200% --metric cpu --baseline 'sleep 0.01' --json >result; echo "exit $?"
check 'r["benchmarks"][0]["answer"] != "fail"' 'r["benchmarks"][1]["answer"] == "fail"' 'r["benchmarks"][1]["ratio"] > 3'
whyslow gate --self-test --budget 24s --max-regression 200% --metric peak_rss --baseline true --json >result; echo "exit $?"
check '[b["verdict"] for b in r["benchmarks"]] == ["pass", "pass"]' '4 < r["benchmarks"][1]["ratio"] < 6'
# The wrapper keeps the command's status.
whyslow gate --self-test --baseline 'sh -c "exit 3"'; echo "exit $?"
whyslow gate --burn --burn-ns 1000 -- sh -c 'exit 5'; echo "exit $?"
whyslow gate --burn --burn-ns 1000 -- no-such-program; echo "exit $?"
whyslow gate --burn; echo "exit $?"
