# Drift is refused, two kinds of runs and dependence are named; sleeps of different length make them,
# far enough apart that a busy machine does not hide them.
cat >slower <<'SH'
#!/bin/sh
echo x >>count
n=$(wc -l <count)
exec sleep 0.$((10 + n * 2))
SH
cat >two <<'SH'
#!/bin/sh
echo x >>count
n=$(wc -l <count)
[ $((n % 2)) = 0 ] && exec sleep 0.03
exec sleep 0.18
SH
chmod +x slower two
kinds() { python3 -c '
import json
r = json.load(open("out"))["results"][0]
kinds = {w["kind"] for w in r["warnings"]}
print(r["n"], r["stable"], [k for k in ("unstable", "two_modes", "dependent") if k in kinds])'; }
whyslow bench -w 0 -r 18 --json ./slower >out; echo "exit $?"; kinds
rm count
whyslow bench -w 0 -r 18 ./slower >out; grep -c '^  unstable: wall time moved by +[0-9.]*% from the first to the last third' out
rm count
whyslow bench -w 0 -r 24 --json ./two >out; kinds
python3 - <<'PY'
import json, re
r = json.load(open("out"))["results"][0]
assert r["series"]["two_modes"] and r["series"]["lag1"] < -0.5, r["series"]
message = [w["message"] for w in r["warnings"] if w["kind"] == "two_modes"][0]
# Half of them are short; one or two may be held up on a busy machine.
assert 40 <= int(re.match(r"two kinds of runs: (\d+)% near ", message).group(1)) <= 60, message
PY
