# Ctrl-C: the blocks that were finished are compared; the status says how it ended.
( trap - INT; exec whyslow compare --budget 60s --json 'sleep 0.05' 'sleep 0.06' >result 2>/dev/null ) &
pid=$!
for i in $(seq 100); do pgrep -P $pid >/dev/null && break; sleep 0.05; done
sleep 1.5
kill -INT $pid
wait $pid; echo "exit $?"
python3 - <<'PY'
import json
r = json.load(open("result"))
assert r["blocks"] >= 1, r["blocks"]
assert "interrupted" in r["measured"] and any("interrupted" in w for w in r["warnings"])
PY
