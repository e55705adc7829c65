# In a repository stable results are kept with their revision; outside of one, and when told so, nothing
# is kept. What a run reads is stable on a busy machine, too, and is what is asked for.
mkdir -p repo/.git/refs/heads
printf 'ref: refs/heads/main\n' >repo/.git/HEAD
printf '0123456789012345678901234567890123456789\n' >repo/.git/refs/heads/main

whyslow bench -r 3 -w 0 --style none true 2>/dev/null
ls
cd repo || exit
whyslow bench --metric read -r 12 -w 1 --style none -n nap 'sleep 0.02'
whyslow history --json >history.json
/usr/bin/python3 - <<'PY'
import json
h = json.load(open("history.json"))
row = h["benchmarks"][0]
print(row["name"], row["results"], row["last_revision"], 20 <= row["last_median"])
PY
rm -rf .git/whyslow
whyslow bench -r 3 -w 0 --style none --no-history true 2>/dev/null
WHYSLOW_HISTORY=off whyslow bench -r 3 -w 0 --style none true 2>/dev/null
ls -A .git
chmod a-w .git 2>/dev/null
touch .git/whyslow
whyslow bench --metric read -r 12 -w 1 --style none 'sleep 0.02' 2>&1 | grep -c 'not kept in the history'
