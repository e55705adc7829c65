# What ends the runs of a command: the number asked for, the largest number, the budget.
end() { whyslow bench --json "$@" >out; python3 -c '
import json
r = json.load(open("out"))["results"][0]
print(r["end"], r["n"], r["warmup"])'; }
end -w 0 -r 1 true
end -w 2 -r 7 true
end -w 0 -M 7 --budget 1h true
end -w 0 --budget 250ms 'sleep 0.2'
end -w 0 -m 3 --budget 1ms 'sleep 0.01'
# Left to itself it warms up, and stops by the interval or by the budget.
whyslow bench --json --budget 3s true >out; python3 - <<'PY'
import json
r = json.load(open("out"))["results"][0]
assert r["warmup"] >= 1 and r["end"] in ("certain", "budget"), (r["warmup"], r["end"])
assert r["n"] >= (20 if r["end"] == "certain" else 1), r["n"]
if r["n"] < 6:  # of so few runs there is no interval
    assert r["wall_ms"]["ci95"].startswith("n/a: "), r["wall_ms"]
else:
    low, high = r["wall_ms"]["ci95"]
    assert low <= r["wall_ms"]["median"] <= high, r["wall_ms"]
    assert r["end"] == "budget" or (high - low) / 2 / r["wall_ms"]["median"] <= 0.01, r["wall_ms"]
PY
