# Without any right: own programs in the user tier, and the kernel tier is refused by name.
home=$(mktemp -d)
chmod 777 "$home"
cp "$(readlink -f "$(command -v whyslow)")" "$home/whyslow"
chmod 755 "$home/whyslow"
cd "$home" || exit 1
mkdir -m 777 tmp
nobody=$((61000 + $$ % 4000))
# In a subshell of its own this is the recorder, under its process number.
as_nobody() { TMPDIR=$home/tmp exec setpriv --reuid=$nobody --regid=65534 --clear-groups "$@"; }
# It sleeps until it was looked at.
(as_nobody ./whyslow waits --json -- sleep 3600 > result 2> errors) & recorder=$!
python3 "$SRC/tests/truth/seen.py" $recorder sleep TERM
wait $recorder
echo "status $?"
python3 - << 'END'
import json
answer = json.load(open("result"))
print(answer["honesty"]["tier"], bool(answer["honesty"]["why_not_higher"]))
# What else it waited for, as for its pages, may have taken longer on a busy machine.
print("timer", max(row["total_ms"] for row in answer["waits"] if row["class"] == "timer") > 290)
END
(as_nobody ./whyslow waits --tier kernel -- sleep 0.1 > result 2> errors)
echo "status $?"
grep -c . errors
ls tmp
cd /
rm -rf "$home"
