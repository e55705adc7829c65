# What --for takes: a path, a name on PATH, a process, a process whose file is gone.
field() { python3 -c 'import json, sys
value = json.load(sys.stdin)["fingerprint"]
for key in sys.argv[1].split("."):
    value = value[key]
print(value)' "$1"; }
whyslow doctor --json --for /bin/true > /dev/null; echo "path: $?"
whyslow doctor --json --for true > /dev/null; echo "name: $?"
# Until it is the program, not what comes before its exec.
become() { until [ "$(cat /proc/$pid/comm)" = "$1" ]; do sleep 0.02; done; }
taskset -c 0 sleep 100 & pid=$!
disown
become sleep
whyslow doctor --json --for $pid | field isolation.affinity
kill $pid
cp /bin/sleep gone
./gone 100 & pid=$!
disown
become gone
rm gone
whyslow doctor --json --for $pid > /dev/null; echo "deleted: $?"
kill $pid
# Refused, each with what to do.
for bad in ./missing no-such-program 999999999 0 99999999999999999999 / /etc; do
    whyslow doctor --for "$bad" > /dev/null; echo "$bad: $?"
done
echo > here
whyslow doctor --for here > /dev/null; echo "here: $?"
whyslow doctor --for $$ --root "$SRC/tests/captures/empty" 2>&1 > /dev/null | sed "s/$$/PID/"
