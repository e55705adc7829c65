# The shell's own cost is a row, and nothing is taken off in silence.
whyslow bench --shell sh -r 6 'echo a | wc -c' >out; echo "exit $(($? % 3))"
grep -c 'the shell alone, in each of them' out
whyslow bench --shell sh -r 6 --json 'echo a | wc -c' >out; echo "exit $(($? % 3))"
python3 - <<'PY'
import json
r = json.load(open("out"))
assert r["shell"]["command"] == "sh -c ''" and r["shell"]["n"] >= 6
assert r["shell"]["wall_ms"]["median"] > 0 and r["shell"]["wall_ms"]["ci95"]
assert len(r["results"]) == 1 and r["results"][0]["runs"][0]["output_bytes"] == 2
PY
whyslow bench --shell sh -N -r 2 -w 0 --json 'echo a' >out; echo "exit $?"
python3 -c 'import json; print("shell" in json.load(open("out")))'
