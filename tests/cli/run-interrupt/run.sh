# Ctrl-C: what was finished is reported and kept; the status says how it ended.
( trap - INT; exec whyslow run --out out --json -- sh -c 'echo >>begun; sleep 0.15' >result 2>/dev/null ) &
pid=$!
for i in $(seq 600); do [ "$(cat begun 2>/dev/null | wc -l)" -ge 4 ] && break; sleep 0.05; done
kill -INT $pid
wait $pid; echo "exit $?"
python3 - <<'PY'
import json, glob, os
r = json.load(open("result"))
assert 1 <= r["runs"] < 20, r["runs"]
assert "interrupted" in r["measured"], r["measured"]
assert r["artifacts"]["recording"] == "n/a: interrupted before", r["artifacts"]
assert any("baseline: interrupted after" in line for line in r["missing"]), r["missing"]
assert len(json.load(open("out/latest/baseline.json"))["runs"]) == r["runs"]
PY
