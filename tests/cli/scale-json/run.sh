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
