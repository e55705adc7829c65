# A command that fails: which run, how, what it said last. What was measured before is kept.
whyslow bench -r 5 'sh -c "echo no luck >&2; exit 3"'; echo "exit $?"
whyslow bench -r 5 'sh -c "kill -SEGV $$"' --shell sh; echo "exit $?"
whyslow bench -r 5 --timeout 200ms 'sleep 100'; echo "exit $?"
whyslow bench -r 5 --setup 'echo bad >&2; false' true; echo "exit $?"
whyslow bench -r 5 --prepare 'exit 4' true; echo "exit $?"
whyslow bench -r 5 -w 0 --cleanup 'exit 5' true >/dev/null; echo "exit $?"
# The third run fails: two are kept, shown and exported, and the cleanup is still done.
printf '#!/bin/sh\necho x >>count\n[ "$(wc -l <count)" -lt 3 ]\n' >third; chmod +x third
whyslow bench -w 0 -r 5 --export-json kept.json --cleanup 'echo cleaned >&2; touch cleaned' ./third >out; echo "exit $?"
grep -c '^measured *2 runs after 0 warm-up.*ended by a failure$' out
ls cleaned
python3 -c '
import json
r = json.load(open("kept.json"))["results"][0]
print(r["n"], r["end"], r["failure"])'
# With --ignore-failure they count, and that is said.
rm count
whyslow bench -w 0 -r 5 -i --json ./third >out; echo "exit $(($? % 3))" # 3: unstable
python3 -c '
import json
r = json.load(open("out"))["results"][0]
print(r["n"], r["failed_runs"], r["exit_codes"], [w["kind"] for w in r["warnings"] if w["kind"] == "failed_runs"])'
