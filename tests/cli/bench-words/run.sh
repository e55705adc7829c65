# Drift is refused, two kinds of runs and dependence are named: bytes that runs read make them, which no other
# load changes. (Times that do: truth/bench-words.)
cat >slower <<'SH'
#!/bin/sh
echo x >>count
n=$(wc -l <count)
exec dd if=/dev/zero of=/dev/null status=none count=1 bs=$((1000 + n * 200))K
SH
cat >two <<'SH'
#!/bin/sh
echo x >>count
n=$(wc -l <count)
[ $((n % 2)) = 0 ] && exec dd if=/dev/zero of=/dev/null status=none count=1 bs=300K
exec dd if=/dev/zero of=/dev/null status=none count=1 bs=1800K
SH
chmod +x slower two
kinds() { python3 -c '
import json
r = json.load(open("out"))["results"][0]
kinds = {w["kind"] for w in r["warnings"]}
print(r["n"], r["stable"], [k for k in ("unstable", "two_modes", "dependent") if k in kinds])'; }
whyslow bench --metric read -w 0 -r 18 --json ./slower >out; echo "exit $?"; kinds
rm count
whyslow bench --metric read -w 0 -r 18 ./slower >out; grep -c '^  unstable: read by calls moved by +[0-9.]*% from the first to the last third' out
rm count
whyslow bench --metric read -w 0 -r 24 --json ./two >out; kinds
python3 - <<'PY'
import json, re
r = json.load(open("out"))["results"][0]
assert r["series"]["two_modes"] and r["series"]["lag1"] < -0.5, r["series"]
message = [w["message"] for w in r["warnings"] if w["kind"] == "two_modes"][0]
assert re.match(r"two kinds of runs: 50% near 3\d\d KiB, 50% near 1\.\d+ MiB", message), message
PY
