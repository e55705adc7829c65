# The JSON keeps to its schema, agrees with itself, and hyperfine's names mean what they mean there.
whyslow bench --json -r 25 --ops 100 --size 1MB --export-json file.json -L text abc,de \
    "sh -c 'printf {text}; exit 0'" >result 2>errors
status=$?
[ "$status" = 0 ] || [ "$status" = 3 ] && echo "exit 0 or 3" # 3: unstable, on a busy machine
cat errors
cmp result file.json
/usr/bin/python3 - "$SRC/docs/schema/bench.schema.json" <<'PY'
import hashlib, json, statistics, sys
import jsonschema
r = json.load(open("result"))
jsonschema.validate(r, json.load(open(sys.argv[1])))
assert [x["parameters"] for x in r["results"]] == [{"text": "abc"}, {"text": "de"}]
for x in r["results"]:
    text = x["parameters"]["text"]
    assert x["n"] == len(x["runs"]) == len(x["times"]) == len(x["exit_codes"]) == 25
    assert x["command"] == x["name"] == f"sh -c 'printf {text}; exit 0'"
    walls = [run["wall_ms"] for run in x["runs"]]
    assert all(abs(t * 1000 - w) < 1e-9 for t, w in zip(x["times"], walls))
    m = x["wall_ms"]
    assert abs(m["median"] - statistics.median(walls)) < 1e-9 and m["p50"] == m["median"]
    assert abs(m["mean"] - statistics.mean(walls)) < 1e-9
    assert abs(m["stddev"] - statistics.stdev(walls)) < 1e-9
    assert m["min"] == min(walls) and m["max"] == max(walls)
    # 25 runs: order statistics 8 and 18 cover the median with 95.7%.
    assert m["ci95"] == [sorted(walls)[7], sorted(walls)[17]], m["ci95"]
    assert m["conservative"] == ["p99", "p99_9", "p99_99"], m["conservative"]
    assert abs(x["median"] * 1000 - m["median"]) < 1e-9 and abs(x["mean"] * 1000 - m["mean"]) < 1e-9
    assert abs(x["user"] * 1000 - x["user_ms"]["mean"]) < 1e-9
    assert abs(x["ops_per_s"]["median"] - 100 / x["median"]) < 1e-3
    assert abs(x["bytes_per_s"]["median"] - 1e6 / x["median"]) < 1
    assert x["peak_pss_kb"] == {"median": "n/a: PSS was not sampled"}
    for run in x["runs"]:
        assert run["output_sha256"] == hashlib.sha256(text.encode()).hexdigest()
        assert run["output_bytes"] == len(text) and run["exit_code"] == 0 and not run["failed"]
        assert abs(run["cpu_ms"] - run["user_ms"] - run["sys_ms"]) < 1e-9
        assert run["written_bytes"] == len(text)
print("as the schema says")
PY
