# Ctrl-C: the blocks that were finished are compared; the status says how it ended.
# The warm-ups are a run of each; of the third block nobody comes further than its first run.
cat >nap <<'SH'
#!/bin/sh
echo >>begun
[ "$(wc -l <begun)" -lt 7 ] || exec sleep 3600
SH
chmod +x nap
( trap - INT; exec whyslow compare --warmup 1 --budget 1h --json './nap a' './nap b' >result 2>/dev/null ) &
pid=$!
until [ "$(cat begun 2>/dev/null | wc -l)" = 7 ]; do sleep 0.05; done
kill -INT $pid
wait $pid; echo "exit $?"
python3 - <<'PY'
import json
r = json.load(open("result"))
assert r["blocks"] == 2, r["blocks"]
assert "interrupted" in r["measured"] and any("interrupted" in w for w in r["warnings"])
PY
