# Nothing but reading: each is refused with a reason and status 2, and the file stays as it was.
cp "$SRC/tests/captures/schema-1.whyslow" rec.whyslow
before=$(sha256sum < rec.whyslow)
refuse() { whyslow query rec.whyslow "$@" 2>&1; echo "status $?"; }
refuse "SELEC 1"
refuse "SELECT no_such_column FROM text"
refuse "SELECT 1; SELECT 2"
refuse "SELECT 1; DROP TABLE text"
refuse " -- nothing"
refuse "DELETE FROM text"
refuse "INSERT INTO text SELECT 99, 'x'"
refuse "CREATE TEMP TABLE t(x)"
refuse "BEGIN"
refuse "ATTACH 'other.db' AS other"
refuse "VACUUM INTO 'copy.db'"
refuse "PRAGMA journal_mode = WAL"
refuse "PRAGMA query_only = 0"
refuse "PRAGMA writable_schema = 1"
refuse "SELECT load_extension('x')"
refuse "UPDATE sample SET weight = 0"
refuse "SELECT a.*, b.*, c.*, d.*, e.*, f.*, g.*, h.*, i.*, j.* FROM sample a, sample b, sample c, sample d, sample e, sample f, sample g, sample h, sample i, sample j"
refuse "SELECT 1" "SELECT 2"
refuse "SELECT 1" --limit many
[ "$before" = "$(sha256sum < rec.whyslow)" ] && ls
# Damage that a function of ours meets is the file's fault, not the SQL's: status 5, not 2.
make-recording plain bad.whyslow
sqlite3 bad.whyslow "UPDATE stack SET parent = 5 WHERE id = 3"
whyslow query bad.whyslow "SELECT stack_text(4)"
echo "status $?"
