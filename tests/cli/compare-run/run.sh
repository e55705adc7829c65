# Two commands: the JSON keeps to its schema in every mode, and what was asked for was done.
check() {
    /usr/bin/python3 - "$SRC/docs/schema/compare.schema.json" "$@" <<'PY'
import json, sys
import jsonschema
r = json.load(open("result"))
jsonschema.validate(r, json.load(open(sys.argv[1])))
for condition in sys.argv[2:]:
    assert eval(condition), (condition, {k: v for k, v in r.items() if k not in ("fingerprint", "per_metric")})
print("as the schema says")
PY
}
# Every run leaves a line: A and B equally often, one warm-up each, not always in the same order.
whyslow compare --blocks 20 --seed 7 --json --shell sh 'echo A >>log' 'echo B >>log' >result; echo "exit $?"
check 'r["blocks"] == 20' 'r["mode"] == "interleaved"' 'r["runs_a"] == r["runs_b"] == 20' 'r["fingerprint"]["cpu"]'
sort log | uniq -c
# Block for block: one of each, in both orders.
tail -n +3 log | paste -d '' - - | sort -u
# The same seed, the same order; the size of the environment is the same inside a block, and varies.
order() { rm -f log; whyslow compare --blocks 8 --seed 42 --shell sh 'echo A ${#WHYSLOW_PADDING} >>log' 'echo B ${#WHYSLOW_PADDING} >>log' >/dev/null; tail -n +3 log; }
order > one; order > two; cmp one two && echo "the same order"
python3 - <<'PY'
rows = [line.split() for line in open("one")]
pairs = list(zip(rows[::2], rows[1::2]))
assert all(a[1] == b[1] for a, b in pairs), pairs
assert len({a[1] for a, b in pairs}) > 1
print("padding is shared in a block")
PY
# A duet runs both at once: each waits for the other to be there.
whyslow compare --duet --blocks 6 --warmup 0 --timeout 5m --json --shell sh --prepare 'rm -f a b' \
    'echo >a; until [ -e b ]; do :; done' 'echo >b; until [ -e a ]; do :; done' >result; echo "exit $?"
check 'r["mode"] == "duet"' 'r["blocks"] == 6'
# --prepare runs before every run, warm-up too; the commands see what it did.
# A shell that only it needs costs the runs nothing, and nothing is said.
whyslow compare --blocks 6 --prepare 'echo >ready; echo >>prepared' 'rm ready' 'rm ready' --json >result; echo "exit $?"
wc -l <prepared
check 'any("same command" in w for w in r["warnings"])'
# Different output is told; too few blocks are no verdict.
whyslow compare --blocks 3 'echo one' 'echo two' --json >result
check 'any("different output" in w for w in r["warnings"])' 'r["verdict"] == "unknown"' '"too few" in r["answer"]' 'r["ci95"].startswith("n/a: ")'
# The budget ends it; without a budget there are at least 6 blocks.
whyslow compare --budget 300ms 'sleep 0.1' 'sleep 0.1' --json >result
check '1 <= r["blocks"] <= 2'
