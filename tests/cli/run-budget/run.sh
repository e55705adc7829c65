# The budget ends the baseline, and the report says so. At least one run is made.
whyslow run --budget 300ms --json -- sleep 0.1 2>/dev/null >result; echo "exit $?"
python3 - <<'PY'
import json
r = json.load(open("result"))
assert 1 <= r["runs"] <= 3, r["runs"]
assert r["complete"] is False and "allowed no more" in r["measured"], r["measured"]
PY
whyslow run --budget 1ms --warmup 0 --json -- sleep 0.1 2>/dev/null | grep '"runs":'
