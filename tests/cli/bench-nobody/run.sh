# Without any right the same figures come out; a result of the unprivileged can be read back.
home=$(mktemp -d); chmod 777 "$home"
cp "$(readlink -f "$(command -v whyslow)")" "$home/whyslow"; chmod 755 "$home/whyslow"
cd "$home" || exit 1
setpriv --reuid=65534 --regid=65534 --clear-groups ./whyslow bench -r 20 --json /bin/true >result 2>errors
echo "exit $(($? % 3))"
cat errors
python3 - <<'PY'
import json
r = json.load(open("result"))["results"][0]
counters = ("cycles", "instructions", "cache_misses", "branch_misses", "peak_pss_kb")
missing = [k for k, v in r.items() if isinstance(v, dict) and "median" in v
           and not isinstance(v["median"], (int, float)) and k not in counters]
assert not missing, missing
assert r["peak_rss_kb"]["source"].startswith("VmHWM"), r["peak_rss_kb"]["source"]
PY
cd /; rm -rf "$home"
