# The run is named, the end of its stderr shown, no verdict given; no child is left behind.
whyslow compare true "sh -c 'echo oops >&2; exit 7'"; echo "exit $?"
whyslow compare --warmup 0 true "sh -c 'kill -SEGV \$\$'"; echo "exit $?"
# Fails in the third run only.
whyslow compare --warmup 0 -S sh true 'echo x >>count; test $(wc -l <count) -lt 3'; echo "exit $?"
whyslow compare --timeout 200ms "sleep 5.$$" true; echo "exit $?"
pgrep -f "sleep 5.$$"; echo "left: $?"
whyslow compare --prepare false true true; echo "exit $?"
whyslow compare --ignore-failure --blocks 6 true false --json >result; echo "exit $?"
python3 -c 'import json; r = json.load(open("result")); print([w for w in r["warnings"] if "failed" in w], r["blocks"])'
whyslow gate --baseline true --candidate false; echo "exit $?"
