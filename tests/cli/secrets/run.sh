# What is hidden where it is shown is run as it was typed.
told="sh -c 'echo \$0 >>log' --token=planted"
whyslow compare --warmup 0 --blocks 3 --json "$told" "$told" >result; echo "exit $?"
sort log | uniq -c; rm log
whyslow gate --warmup 0 --budget 100ms --max-regression 10000% --json --baseline "$told" --candidate "$told" >>result; echo "exit $(($? % 3))" # 0 or 3
sort -u log; rm log
whyslow scale --json -r 3 --units 1,2 "$told {n}" >>result; echo "exit $?"
sort -u log; rm log
# So is what prepares and cleans up.
again="sh -c 'echo \$0 >>log' --password=planted"
whyslow compare --warmup 0 --blocks 3 --prepare "$again" --json true true >>result; echo "exit $?"
whyslow bench -w 0 -r 2 --setup "$again" --prepare "$again" --cleanup "$again" --json true >>result
sort log | uniq -c
# Also where it fails, in a file and in the command that is said to come next.
whyslow bench -w 0 -r 2 --cleanup 'false --password=planted' --export-json failed.json true >>result; echo "exit $?"
python3 -c 'import json; print(json.load(open("failed.json"))["results"][0]["failure"])'
python3 - <<'PY'
import json
for name, wall in ("one", 1), ("two", 2):
    runs = [{"wall_ms": wall + i / 1000, "exit_code": 0} for i in range(20)]
    json.dump({"schema": "whyslow.bench/1", "results": [{"command": "x", "runs": runs}]}, open(name + ".json", "w"))
PY
whyslow gate --force --prepare 'true --password=planted' --shell 'sh --token=planted' --baseline one.json --candidate two.json \
    --summary summary.md >>result; echo "exit $?"
grep -h 'whyslow compare' summary.md result | sed -E 's/ --budget [0-9]+s//'
# Nor is it in what refuses to be run.
whyslow compare 'true --token=planted' one.json; echo "exit $?"
whyslow compare true 'cat --token=planted not-there.json'; echo "exit $?"
whyslow gate 'true --token=planted'; echo "exit $?"
grep -l planted result failed.json summary.md; echo "found: $?"
