# A question without an end: a time limit ends it, with a reason and status 2; so does an interrupt. Rows have a limit,
# and where they have none, memory has.
cp "$SRC/tests/captures/schema-1.whyslow" rec.whyslow
endless="WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
whyslow query rec.whyslow "$endless SELECT count(x) FROM n" --timeout 50ms 2>&1
echo "status $?"
whyslow query rec.whyslow "$endless SELECT count(x) FROM n" --json --timeout 50ms 2>&1
echo "status $?"
whyslow query rec.whyslow "$endless SELECT x FROM n" --limit 3 --timeout 0
echo "status $?"
whyslow query rec.whyslow "$endless SELECT printf('%.*c', 1000000, 'x') FROM n LIMIT 20" --limit 0 --memory 2500k --json > out
echo "status $?"
grep -e note -e truncated -e row_count out
python3 - "$endless SELECT count(x) FROM n" <<'PY'
import pathlib, signal, subprocess, sys, time
query = subprocess.Popen(["whyslow", "query", "rec.whyslow", sys.argv[1], "--timeout", "0"])
def ticks():
    return sum(map(int, pathlib.Path(f"/proc/{query.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
# Until it is in its question: it has used more CPU time than anything else of it takes.
while ticks() < 100:
    time.sleep(0.02)
query.send_signal(signal.SIGINT)
print("interrupted:", query.wait())
PY
