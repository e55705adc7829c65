# Ctrl-C: what was finished is reported and kept; the status says how it ended.
# The fifth run waits for it: a warm-up and three are finished by then, however long they take.
cat >nap <<'SH'
#!/bin/sh
echo >>begun
[ "$(wc -l <begun)" -lt 5 ] || exec sleep 3600
SH
chmod +x nap
( trap - INT; exec whyslow run --warmup 1 --budget 1h --out out --json -- ./nap >result 2>/dev/null ) &
pid=$!
until [ "$(cat begun 2>/dev/null | wc -l)" = 5 ]; do sleep 0.05; done
kill -INT $pid
wait $pid; echo "exit $?"
python3 - <<'PY'
import json, glob, os
r = json.load(open("result"))
assert r["runs"] == 3, r["runs"]
assert "interrupted" in r["measured"], r["measured"]
assert r["artifacts"]["recording"] == "n/a: interrupted before", r["artifacts"]
assert any("baseline: interrupted after" in line for line in r["missing"]), r["missing"]
assert len(json.load(open("out/latest/baseline.json"))["runs"]) == r["runs"]
PY
