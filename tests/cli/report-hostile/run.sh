# Names are data: no escape reaches the terminal, no markup the page, no line is broken.
make-recording hostile rec.whyslow
whyslow report rec.whyslow > text
cut -c 1-120 text
whyslow report rec.whyslow --threads | tail -n 8 | cut -c 1-120
whyslow report rec.whyslow --markdown --limit 3
whyslow report rec.whyslow --json > json
python3 - <<'EOF'
import json, re
root = json.load(open("json"))
names = [row["function"] for row in root["hotspots"]]
print([len(name) for name in names])
print(names[0], repr(names[1]), repr(names[2]))
text = open("text", "rb").read()
print("control characters in text:", len(re.findall(rb"[\x00-\x09\x0b-\x1f\x7f]", text)))
print("lines in text:", text.count(b"\n"))
EOF
for view in --tree --lines "--annotate f1" "--callers f2" "--callees f3" "--diff rec.whyslow"; do
    # shellcheck disable=SC2086
    whyslow report rec.whyslow $view > shown || echo "failed: $view"
    grep -c $'[\x1b\x07\r]' shown
done
whyslow report rec.whyslow --flame f.svg --html p.html > /dev/null
grep -c '<script>alert' f.svg p.html
whyslow report rec.whyslow --annotate $'\x1b[32mgreen'
