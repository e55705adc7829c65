# Processes that a run leaves behind are killed, and that is said.
whyslow bench -w 0 -r 2 --json 'sh -c "sleep 98765 &"' >out; echo "exit $?"
python3 -c '
import json
print([w["message"] for w in json.load(open("out"))["warnings"] if w["kind"] == "left_behind"])'
# They have their signal; when the kernel gets round to it is its affair.
while pgrep -f '^sleep 98765' >/dev/null; do sleep 0.05; done
