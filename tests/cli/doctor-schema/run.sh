# The JSON keeps to its schema: on this machine as root and as nobody, for a target, for captures.
cat > check.py <<'PY'
import json, pathlib, sys
import jsonschema
schemas = pathlib.Path(sys.argv[1]) / "docs" / "schema"
doctor = json.loads((schemas / "doctor.schema.json").read_text())
parts = {"fingerprint.schema.json": json.loads((schemas / "fingerprint.schema.json").read_text())}
resolver = jsonschema.RefResolver("", doctor, store=parts)
document = json.load(sys.stdin)
jsonschema.Draft202012Validator(doctor, resolver=resolver).validate(document)
verdicts = [row["verdict"] for row in document["checks"]]
assert document["summary"]["failed"] == verdicts.count("fail")
assert document["summary"]["warned"] == verdicts.count("warn")
assert document["checks"], "no checks"
assert ("root" in document) or document["collectors"], "no collectors"
print("valid")
PY
check() { python3 "$PWD/check.py" "$SRC"; }
whyslow doctor --json | check
whyslow doctor --json --for /bin/true | check
for machine in laptop-intel container-v2 server-arm empty; do
    whyslow doctor --json --root "$SRC/tests/captures/$machine" | check
done
# As nobody, from a place nobody can read.
place=$(mktemp -d) && chmod 755 "$place" && cp -L "$(command -v whyslow)" "$place/whyslow"
(cd / && setpriv --reuid=65534 --regid=65534 --clear-groups "$place/whyslow" doctor --json --for /bin/true) > nobody.json
echo "nobody: $?"
check < nobody.json
rm -rf "$place"
# A broken document must not pass: the check is a check.
sed 's/"model"/"modle"/' nobody.json | check > /dev/null 2>&1; echo "broken: $?"
sed 's/"verdict": "ok"/"verdict": "fine"/' nobody.json | check > /dev/null 2>&1; echo "broken: $?"
