# A recording without its end says so, on stderr and in the JSON.
cp "$SRC/tests/captures/schema-1.whyslow" cut.whyslow
sqlite3 cut.whyslow "UPDATE meta SET value = 0 WHERE key = 'finished'"
whyslow query cut.whyslow "SELECT count(*) AS n FROM sample"
whyslow query cut.whyslow "SELECT 1 AS one" --json 2> /dev/null
