# The facts of four captured machines; what belongs to this run or this build is left out.
for machine in laptop-intel container-v2 server-arm empty; do
    echo "== $machine"
    whyslow doctor --json --root "$SRC/tests/captures/$machine" | python3 -c '
import json, sys
facts = json.load(sys.stdin)["fingerprint"]
for key in "id", "time":
    del facts["run"][key]
del facts["toolchain"], facts["build"]
json.dump(facts, sys.stdout, indent=1, ensure_ascii=False)
print()'
done
