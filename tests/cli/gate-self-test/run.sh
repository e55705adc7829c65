# The gate is put to the test: what is injected must be caught, A/A must not fail. Memory is made worse by 400%: the same
# on every machine. (Time: truth/compare-known has the gate's judgements of it.)
check() {
    /usr/bin/python3 - "$SRC/docs/schema/gate.schema.json" "$@" <<'PY'
import json, sys
import jsonschema
r = json.load(open("result"))
jsonschema.validate(r, json.load(open(sys.argv[1])))
same, worse = r["benchmarks"]
for condition in sys.argv[2:]:
    assert eval(condition), (condition, r["benchmarks"])
print("as the schema says")
PY
}
# How many runs fit into a budget is the machine's affair: with fewer than 7 of each nothing is said, but that.
whyslow gate --self-test --budget 8s --max-regression 200% --metric peak_rss --baseline true --json >result; status=$?
check "$status == {'pass': 0, 'fail': 1, 'inconclusive': 3}[r['verdict']]" '4 < worse["ratio"] < 6' \
    'same["verdict"] == "pass" and same["answer"] == ("pass" if same["baseline_runs"] >= 7 else "inconclusive")' \
    'worse["answer"] == ("fail" if worse["baseline_runs"] >= 7 else "inconclusive")' \
    'worse["verdict"] == ("pass" if worse["baseline_runs"] >= 7 else "inconclusive")' \
    'all(b["answer"] != "inconclusive" or "too few" in b["because"] for b in (same, worse))'
whyslow gate --self-test --budget 4s --max-regression 200% --metric cpu --baseline 'sleep 0.01' --json >result; status=$?
check "$status == {'pass': 0, 'fail': 1, 'inconclusive': 3}[r['verdict']]" 'r["self_test"]' \
    'worse["candidate_runs"] >= 1 and same["candidate_runs"] >= 1'
# The wrapper keeps the command's status.
whyslow gate --self-test --baseline 'sh -c "exit 3"'; echo "exit $?"
whyslow gate --burn --burn-ns 1000 -- sh -c 'exit 5'; echo "exit $?"
whyslow gate --burn --burn-ns 1000 -- no-such-program; echo "exit $?"
whyslow gate --burn; echo "exit $?"
