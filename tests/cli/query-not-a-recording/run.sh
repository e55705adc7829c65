# Each kind of wrong file is called by its name.
try() { whyslow query "$@" 2>&1; echo "status $?"; }
try missing.whyslow
mkdir folder && try folder
touch empty && try empty
try /bin/true
echo "some text" > notes && try notes
echo '{"a": 1}' > a.json && try a.json
sqlite3 other.db "CREATE TABLE a(x)" && try other.db
head -c 50000 "$SRC/tests/captures/schema-1.whyslow" > short.whyslow && try short.whyslow
cp "$SRC/tests/captures/schema-1.whyslow" newer.whyslow
sqlite3 newer.whyslow "PRAGMA user_version = 99; UPDATE meta SET value = '7.0.0' WHERE key = 'writer'"
try newer.whyslow
try
