# The JSON keeps to its schema, also with too few steps for a law; the plot is proper SVG.
check() {
    /usr/bin/python3 - "$SRC/docs/schema/scale.schema.json" "$1" <<'PY'
import json, sys
import xml.etree.ElementTree as ET
import jsonschema
s = json.load(open("result"))
jsonschema.validate(s, json.load(open(sys.argv[1])))
assert [step["runs"] for step in s["steps"]] == [3] * len(s["steps"]), s
assert all(len(step["values"]) == 3 for step in s["steps"])
assert s["steps"][0]["p95_ratio"] == 1
svg = ET.parse("plot.svg").getroot()
ns = "{http://www.w3.org/2000/svg}"
assert len(svg.findall(f"{ns}circle")) == len(s["steps"])
print(sys.argv[2], "law" in s and s["law"].startswith("n/a") if "law" in s else "scalability" in s)
PY
}
whyslow scale --budget 5m --json --svg plot.svg -r 3 --units 8,1,2,4 'head -c {n} /dev/zero' >result
echo "exit $?"
check units
whyslow scale --budget 5m --json --svg plot.svg -r 3 --units 1,2 'head -c {n} /dev/zero' >result
check few
whyslow scale --budget 5m --json --svg plot.svg -r 3 --threads 1,2,3 'head -c {n} /dev/zero' >result
check threads
whyslow scale -r 3 --units 1,2,3,4 --shell sh 'echo {n} | cat' | grep -q '●' && echo drawn
echo "--- what gets slower with threads says so; one run has no interval"
cat > slower.py <<'PY'
import json, sys
import jsonschema
s = json.load(open("result"))
jsonschema.validate(s, json.load(open(sys.argv[1])))
law = s["scalability"]
print(s["verdict"])
print(0 <= law["contention"] <= 1, law["coherency"] > 0, law["peak_threads"] == 1)
print(isinstance(law["contention_ci95"], list), [step["cv_percent"] for step in s["steps"] if isinstance(step["cv_percent"], str)])
PY
for runs in 3 1; do
    whyslow scale --json -r $runs --warmup 0 --threads 1,2,4 'sleep 0.{n}' >result
    python3 slower.py "$SRC/docs/schema/scale.schema.json"
done
whyslow scale --json -r 1 --warmup 0 --units 1,2,3,4 'head -c {n} /dev/zero' >result
python3 - "$SRC/docs/schema/scale.schema.json" <<'PY'
import json, sys
import jsonschema
s = json.load(open("result"))
jsonschema.validate(s, json.load(open(sys.argv[1])))
print({law["wins_percent"] for law in s["laws"]}, s["verdict"].split("fits best, ")[1])
PY
