# Machines get every stack and figure, what is missing as "n/a: reason"; the numbers are those of the
# text, and what adds up does.
make-heap plain rec.whyslow
whyslow heap rec.whyslow --json > answer.json
python3 - << 'END'
import json
answer = json.load(open("answer.json"))
print(*answer)
TOP = ("allocations", "frees", "allocated_bytes", "peak_bytes", "peak_count", "leaked_bytes", "leaked_count", "temporary")
print({key: answer[key] for key in TOP})
print(json.dumps(answer["sites"][0], indent=1))
print(json.dumps(answer["honesty"], indent=1))
for table in ("functions", "sites", "threads", "processes", "images", "mappings", "snapshots", "notes"):
    rows = answer[table]
    print(table, len(rows))
    for row in rows[:2]:
        print(json.dumps({key: value for key, value in row.items() if key != "frames"}))
for key in TOP:
    for table in ("sites", "functions", "images"):
        total = sum(row[key] for row in answer[table])
        if total != answer[key]:
            print("does not add up:", table, key, total, answer[key])
for key in ("allocations", "frees", "allocated_bytes", "temporary"):
    for table in ("threads", "processes"):
        if sum(row[key] for row in answer[table]) != answer[key]:
            print("does not add up:", table, key)
print(sum(row["count"] for row in answer["sizes"]) == answer["allocations"])
print(sum(row["count"] for row in answer["lifetimes"]) == answer["frees"])
print([row["function"] for row in answer["sites"] if row["growing"] is True])
END
echo "--- a view has its part alone"
whyslow heap rec.whyslow --leaks --json | python3 -c 'import json, sys; print(*json.load(sys.stdin))'
echo "--- estimates have intervals"
make-heap sampled sampled.whyslow
whyslow heap sampled.whyslow --json | python3 -c '
import json, sys
answer = json.load(sys.stdin)
print(answer["plus_minus_bytes"], answer["sites"][0]["plus_minus_bytes"], answer["honesty"]["sample_bytes"])'
echo "--- nothing is known"
make-heap bare bare.whyslow
whyslow heap bare.whyslow --json | python3 -c '
import json, sys
answer = json.load(sys.stdin)
print(answer["peak_bytes"], answer["peak_ms"], answer["rss_max_bytes"], answer["lifetimes"], sep="\n")'
