# The shell's own cost is a row, and nothing is taken off in silence.
whyslow bench --shell sh -r 6 'echo a | wc -c' >out; echo "exit $(($? % 3))"
grep -c 'the shell alone, in each of them' out
whyslow bench --shell sh -r 6 --json 'echo a | wc -c' >out; echo "exit $(($? % 3))"
python3 - <<'PY'
import json
r = json.load(open("out"))
assert r["shell"]["command"] == "sh -c ''" and r["shell"]["n"] >= 1
wall = r["shell"]["wall_ms"]
# It has two seconds of its own, and of fewer than 6 runs there is no interval.
assert wall["median"] > 0 and isinstance(wall["ci95"], list) == (r["shell"]["n"] >= 6), r["shell"]
assert len(r["results"]) == 1 and r["results"][0]["runs"][0]["output_bytes"] == 2
PY
whyslow bench --shell sh -N -r 2 -w 0 --json 'echo a' >out; echo "exit $?"
python3 -c 'import json; print("shell" in json.load(open("out")))'
# What needs a shell gets one, and so do those it is compared with; -N says no.
whyslow bench -r 6 --json 'echo a' 'echo a > /dev/null' >out 2>err; echo "exit $(($? % 3))"; cat err
python3 -c 'import json; r = json.load(open("out")); print(r["shell"]["command"], [x["runs"][0]["output_bytes"] for x in r["results"]])'
whyslow bench -r 6 -q --json 'echo a > /dev/null' >out; echo "exit $(($? % 3))"
whyslow scale --units 1,2 --runs 2 'echo {n} | cat' 2>&1 >out; echo "exit $?"
whyslow bench -N -r 6 'echo a > /dev/null' 2>&1 >out; echo "exit $?"
# Patterns, homes, and words that only a shell knows need one, too; a value of -L as much as what was typed.
printf a >part1.txt; printf bc >part2.txt
for command in 'cat part?.txt' 'cat part[12].txt' 'ls -d ~root' 'ulimit -n' 'cd .' '! false'; do
    whyslow bench -w 0 -r 2 --json "$command" 2>&1 >out; echo "exit $?"
done
whyslow bench -w 0 -r 2 --json 'cat part?.txt' >out 2>err
python3 -c 'import json; print(json.load(open("out"))["results"][0]["runs"][0]["output_bytes"])'
whyslow bench -w 0 -r 2 --json -L files 'part1.txt,part*.txt' 'cat {files}' 2>&1 >out; echo "exit $?"
python3 -c 'import json; r = json.load(open("out")); print(r["shell"]["command"], [x["runs"][0]["output_bytes"] for x in r["results"]])'
# Where nothing of this is meant there is none: a bracket alone, a ~ inside, a builtin that is a program as well.
whyslow bench -w 0 -r 2 --json 'echo [ a] [] b~c' 'test a' 2>&1 >out; echo "exit $?"
python3 -c 'import json; r = json.load(open("out")); print("shell" in r, r["results"][0]["runs"][0]["output_bytes"])'
