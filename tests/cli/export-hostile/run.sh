# Every format there is, also those to come: hostile names stay names. Text has no control
# characters but line ends, pages and pictures no markup of a name, JSON gives names back whole.
make-recording hostile rec.whyslow
whyslow export --list --json > formats
python3 - <<'END'
import gzip, json, re, subprocess

SCRIPT = b"</script><script>alert(1)</script>"
HUGE = b"A" * 100000

def strings(value):
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from strings(inner)

for row in json.load(open("formats"))["formats"]:
    name = row["format"]
    done = subprocess.run(["whyslow", "export", "rec.whyslow", "--format", name, "--output", "out"],
                          capture_output=True, check=False)
    data = open("out", "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    facts = [f"status {done.returncode}"]
    try:
        text = data.decode()
        control = len(re.findall("[\0-\x08\x0b-\x1f\x7f-\x9f]", text))
        facts.append(f"{control} control characters" if not name.startswith("pprof") else "binary")
    except UnicodeDecodeError:
        facts.append("binary")
    if data[:1] in b"{[":
        names = set(strings(json.loads(data)))
        facts.append("JSON, names whole: %s" % all(
            any(wanted.decode() in found for found in names) for wanted in (SCRIPT, HUGE)))
        facts.append("markup: %s" % (b"<script" in data))
    elif re.match(rb"\s*<(svg|\?xml|!doctype|html)", data, re.I):
        facts.append("markup of a name: %s" % (b"<script>alert" in data))
    else:
        facts.append("script named: %s, 100 KB: %s" % (SCRIPT in data, HUGE in data))
    print(f"{name}: " + ", ".join(facts))
END
# Drawn by the other renderers: a row stays a row, a cell a cell.
for format in "" --markdown --json; do
    # shellcheck disable=SC2086
    whyslow query rec.whyslow "SELECT text FROM text ORDER BY id" $format > shown
    echo "query $format: status $?, $(grep -c $'[\x1b\x07\r\x7f]' shown) lines with control characters," \
        "$(grep -c '^| .*[^\\]|.*[^\\]|.*|' shown) rows with more cells, $(wc -l < shown) lines"
done
whyslow report rec.whyslow --limit 0 --markdown > shown
echo "report --markdown: $(grep -c $'[\x1b\x07\r\x7f]' shown) lines with control characters," \
    "markup: $(grep -c '[^\\]<script' shown), longest name $(grep -o 'A*' shown | wc -L)"
