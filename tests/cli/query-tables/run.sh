whyslow query "$SRC/tests/captures/schema-1.whyslow"
