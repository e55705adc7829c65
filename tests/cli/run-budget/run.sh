# The budget ends the baseline, and the report says so. At least one run is made, or its beginning.
ends() {
    whyslow run "$@" --json -- sleep 0.1 2>/dev/null >result; echo "exit $?"
    python3 - <<'PY'
import json
r = json.load(open("result"))
# No more than one ever: what is left of such a budget is less than what is kept for recordings. And this one is ended
# where it takes longer than a second, which it does on a machine that does not let it run.
assert r["complete"] is False and r["runs"] in (0, 1), r["runs"]
assert ("allowed no more" if r["runs"] == 1 else "longer than the budget") in r["measured"], r["measured"]
PY
}
ends --budget 300ms
ends --budget 1ms --warmup 0
