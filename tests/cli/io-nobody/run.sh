# Without any right: own programs in the user tier, and the kernel tier is refused by name.
home=$(mktemp -d)
chmod 777 "$home"
cp "$(readlink -f "$(command -v whyslow)")" "$home/whyslow"
chmod 755 "$home/whyslow"
cd "$home" || exit 1
mkdir -m 777 tmp
head -c 100000 /dev/zero > data
chmod 644 data
nobody=$((61000 + $$ % 4000))
as_nobody() { TMPDIR=$home/tmp setpriv --reuid=$nobody --regid=65534 --clear-groups "$@"; }
as_nobody ./whyslow io --json -- dd if=data of=copy bs=1000 status=none > result 2> errors
echo "status $?"
python3 - << 'END'
import json
answer = json.load(open("result"))
print(answer["honesty"]["tier"], bool(answer["honesty"]["why_not_higher"]))
# A file that was told in more than one way has more than one row.
def all_of(name, key):
    values = [row[key] for row in answer["files"] if row["name"].split("/")[-1] == name]
    return sum(values) if isinstance(values[0], int) else values[0]
print([all_of("data", key) for key in ("reads", "read_bytes", "missed_bytes")])
print([all_of("copy", key) for key in ("writes", "write_bytes")])
print(any("libc" in row["what"] for row in answer["honesty"]["unseen"]))
END
as_nobody ./whyslow io --tier kernel -- true > result 2> errors
echo "status $?"
grep -c . errors
ls tmp
cd /
rm -rf "$home"
