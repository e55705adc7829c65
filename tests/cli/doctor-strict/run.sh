# The status tells of failed checks only with --strict, and exactly then.
for root in "" "$SRC/tests/captures/laptop-intel" "$SRC/tests/captures/empty"; do
    whyslow doctor --json ${root:+--root "$root"} > plain.json; echo "plain: $?"
    whyslow doctor --strict --json ${root:+--root "$root"} > strict.json; status=$?
    python3 -c 'import json, sys
failed = json.load(open("strict.json"))["summary"]["failed"]
print("strict agrees" if int(sys.argv[1]) == (1 if failed else 0) else "strict disagrees")' $status
done
whyslow doctor --root /nonexistent; echo "no root: $?"
whyslow doctor --root "$SRC/STYLE.md"; echo "a file: $?"
