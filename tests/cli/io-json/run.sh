# Machines get every row and figure, what is missing as "n/a: reason"; the numbers are those of the
# text.
make-io plain rec.whyslow
whyslow io rec.whyslow --json > answer.json
python3 - << 'END'
import json
answer = json.load(open("answer.json"))
print(*answer)
print(json.dumps(answer["syscalls"], indent=1))
show = lambda row: {key: value for key, value in row.items() if key not in ("latency", "sizes", "stack", "histogram")}
for table in ("files", "lookups", "missing", "peers", "devices", "stacks", "requests", "waterfall", "notes"):
    rows = answer[table]
    print(table, len(rows))
    for row in rows[:3]:
        print(json.dumps(show(row)))
print(json.dumps(answer["files"][0], indent=1))
print(json.dumps(answer["devices"][0], indent=1))
print(json.dumps(answer["honesty"], indent=1))
print(json.dumps(answer["time"]))
# What adds up does.
calls = sum(row["calls"] for row in answer["syscalls"])
print(calls == answer["time"]["calls"] + answer["time"]["idle_calls"] == answer["honesty"]["calls"])
total = sum(row["total_ms"] for row in answer["syscalls"])
print(abs(total - answer["time"]["calls_ms"] - answer["time"]["idle_ms"]) < 1e-6)
print(abs(sum(row["total_ms"] for row in answer["stacks"]) - answer["time"]["calls_ms"] - answer["time"]["faults_ms"]) < 1e-6)
print(sum(row["count"] for row in answer["requests"]) == answer["request_count"] == answer["honesty"]["requests"])
print([sum(row["errors_by"].values()) - row["errors"] for row in answer["syscalls"] if row["errors"]])
END
echo "--- a view has its part alone"
whyslow io rec.whyslow --requests --json | python3 -c 'import json, sys; print(*json.load(sys.stdin))'
echo "--- the user tier does not know"
make-io user user.whyslow
whyslow io user.whyslow --json | python3 -c '
import json, sys
file = json.load(sys.stdin)["files"][0]
print(file["name"], file["sequential_pct"], file["missed"], file["missed_bytes"], sep="\n")'
