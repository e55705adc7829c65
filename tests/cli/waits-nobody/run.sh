# Without any right: own programs in the user tier, and the kernel tier is refused by name.
home=$(mktemp -d)
chmod 777 "$home"
cp "$(readlink -f "$(command -v whyslow)")" "$home/whyslow"
chmod 755 "$home/whyslow"
cd "$home" || exit 1
mkdir -m 777 tmp
nobody=$((61000 + $$ % 4000))
as_nobody() { TMPDIR=$home/tmp setpriv --reuid=$nobody --regid=65534 --clear-groups "$@"; }
as_nobody ./whyslow waits --json -- sleep 0.3 > result 2> errors
echo "status $?"
python3 - << 'END'
import json
answer = json.load(open("result"))
print(answer["honesty"]["tier"], bool(answer["honesty"]["why_not_higher"]))
print(answer["waits"][0]["class"], answer["waits"][0]["total_ms"] > 290)
END
as_nobody ./whyslow waits --tier kernel -- sleep 0.1 > result 2> errors
echo "status $?"
grep -c . errors
ls tmp
cd /
rm -rf "$home"
