# What cannot be compared is refused with words and status 2, before anything is run.
store() { python3 "$SRC/tests/cli/stored.py" "$@"; }
store a laptop-intel 1
store b laptop-intel 1
store other container-v2 1
store bare none 1
try() { whyslow compare "$@" 2>&1 >out; echo "status $?"; }
try
try true
try true true true
try true no-such-program
try --shell no-such-shell 'true | cat' true
try '' true
try true true --metric wal
try true true --metric wall:most
try true true --metric p0
try true true --margin 200%
try true true --blocks 1000000
try true true --warmup 5000
try missing.json b.json
try a.json true
try true a.json
try "$SRC/tests/captures/schema-1.whyslow" true
try a.json b.json --duet
echo '{"schema": "whyslow.doctor/1"}' > doctor.json
echo '{' > broken.json
try a.json doctor.json
try a.json broken.json
try a.json other.json
try a.json bare.json
# Two results in a file: which is meant?
python3 - <<'PY'
import json
a = json.load(open("a.json"))
two = dict(a, results=a["results"] + [dict(a["results"][0], name="second")])
json.dump(two, open("two.json", "w"))
failed = json.load(open("b.json"))
failed["results"][0]["runs"][3].update(exit_code=1, failed=True)
json.dump(failed, open("failed.json", "w"))
PY
try two.json two.json
try two.json two.json --name third
try two.json two.json --name second
try two.json a.json
try a.json failed.json
try a.json failed.json --ignore-failure
# --force compares nevertheless, and says over what it went.
try a.json other.json --force; grep -A2 ^Warnings out
try a.json bare.json --force; grep -A2 ^Warnings out
