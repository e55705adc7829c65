# Which fields forbid a comparison; and what is refused.
facts() { whyslow doctor --json --root "$SRC/tests/captures/$1" > "$1.json"; }
facts laptop-intel; facts container-v2; facts empty
python3 - <<'PY'
import json
document = json.load(open("laptop-intel.json"))
json.dump(document["fingerprint"], open("bare.json", "w"))
facts = document["fingerprint"]
facts["cpu"]["governor"] = "performance"
facts["cpu"]["microcode"] = "0xf8"
facts["memory"]["total_bytes"] += 1000
facts["run"]["uptime_s"] = 1
del facts["kernel"]["clocksource"]
json.dump(document, open("other.json", "w"))
PY
whyslow doctor --diff laptop-intel.json bare.json --strict; echo "same: $?"
whyslow doctor --diff bare.json other.json; echo "without --strict: $?"
whyslow doctor --diff bare.json other.json --strict --json; echo "with: $?"
whyslow doctor --diff laptop-intel.json container-v2.json --strict | sed -n 3p; echo "two machines: ${PIPESTATUS[0]}"
whyslow doctor --diff laptop-intel.json empty.json --strict | sed -n 3p; echo "one unknown: ${PIPESTATUS[0]}"
echo '{"cpu": {},
 "kernel": nonsense}' > bad.json
echo '{"schema": "whyslow.tune/1"}' > foreign.json
echo '[1]' > list.json
for bad in bad.json foreign.json list.json missing.json /; do
    whyslow doctor --diff bare.json "$bad"; echo "$bad: $?"
done
whyslow doctor --diff bare.json; echo "one file: $?"
whyslow doctor bare.json; echo "no --diff: $?"
