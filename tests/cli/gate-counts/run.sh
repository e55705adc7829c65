# Simulated counts: the same program is equal, one that does ten times the work is not.
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
command -v valgrind >/dev/null || { echo "valgrind is not installed: make test installs it"; exit 1; }
seq 20000 >many; seq 2000 >few
whyslow gate --counts --max-regression 2% --budget 1s --baseline 'sort -n few' --candidate 'sort -n few' --json >result; echo "exit $?"
check 'r["benchmarks"][0]["mode"] == "simulated"' 'r["metric"] == "instructions, simulated"' \
    'abs(r["benchmarks"][0]["ratio"] - 1) < 0.01' 'r["benchmarks"][0]["baseline_value"] > 100000' \
    'r["benchmarks"][0]["p"].startswith("n/a: ")'
whyslow gate --counts --budget 1s --baseline 'sort -n few' --candidate 'sort -n many'  | head -2; echo "exit ${PIPESTATUS[0]}"
# Children are counted too.
whyslow gate --counts --budget 1s --shell sh --baseline 'sort -n few | tail -1' --candidate 'sort -n many | tail -1' --json >result; echo "exit $?"
check 'r["benchmarks"][0]["ratio"] > 2'
# A failing command, one that hangs; nothing is left in TMPDIR.
mkdir tmp
TMPDIR=$PWD/tmp whyslow gate --counts --baseline true --candidate false; echo "exit $?"
TMPDIR=$PWD/tmp whyslow gate --counts --timeout 3s --baseline 'sleep 60' --candidate true; echo "exit $?"
TMPDIR=$PWD/nowhere whyslow gate --counts --baseline true --candidate true; echo "exit $?"
ls tmp
