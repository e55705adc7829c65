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
timeout --preserve-status -s INT 1 whyslow query rec.whyslow "$endless SELECT count(x) FROM n" --timeout 0
echo "interrupted: $?"
