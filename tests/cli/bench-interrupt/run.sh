# Ctrl-C: what was finished is shown and exported, the command is ended, the cleanup is done.
# The fourth run waits for it: three are finished by then, however long they take, and it is in the midst of one.
cat >nap <<'SH'
#!/bin/sh
echo >>begun
[ "$(wc -l <begun)" -lt 4 ] || exec sleep 3600.$1
SH
chmod +x nap
( trap - INT; exec whyslow bench -w 0 --budget 1h --json --export-json kept.json --cleanup 'touch cleaned' \
    "./nap $$" >result 2>errors ) &
pid=$!
until [ "$(cat begun 2>/dev/null | wc -l)" = 4 ]; do sleep 0.05; done
kill -INT $pid
wait $pid; echo "exit $?"
grep -c '^whyslow: SIGINT: ' errors; grep -v '^whyslow: SIGINT: ' errors
ls cleaned
cmp result kept.json
python3 - <<'PY'
import json
r = json.load(open("result"))["results"][0]
print(r["n"], r["end"])
PY
pgrep -f "^sleep 3600.$$"
true
