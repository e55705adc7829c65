# Without any right the same figures come out.
home=$(mktemp -d); chmod 777 "$home"
cp "$(readlink -f "$(command -v whyslow)")" "$home/whyslow"; chmod 755 "$home/whyslow"
cd "$home" || exit 1
setpriv --reuid=65534 --regid=65534 --clear-groups ./whyslow run --force --runs 20 --budget 5m --json -- /bin/true >result 2>errors
echo "exit $?"
grep -v -e 'check failed' -e 'sample rings are' -e '^  spoils: ' -e '^  mend: ' -e '^\[' errors
python3 - <<'PY'
import json
r = json.load(open("result"))
missing = [m["metric"] for m in r["metrics"] if not isinstance(m["median"], (int, float))]
assert not missing, missing
PY
cd /; rm -rf "$home"
