# Ctrl-C: what was finished is shown and exported, the command is ended, the cleanup is done.
( trap - INT; exec whyslow bench -w 0 --json --export-json kept.json --cleanup 'touch cleaned' \
    'sleep 0.3' >result 2>errors ) &
pid=$!
sleep 3
kill -INT $pid
wait $pid; echo "exit $?"
# Between two runs there is no program to hand it to, and other words.
grep -c '^whyslow: SIGINT: ' errors; grep -v '^whyslow: SIGINT: ' errors
ls cleaned
cmp result kept.json
python3 - <<'PY'
import json
r = json.load(open("result"))["results"][0]
assert 1 <= r["n"] <= 10 and r["end"] == "interrupted", (r["n"], r["end"])
PY
pgrep -x -P 1 sleep -a | grep ' 0.3$'
true
