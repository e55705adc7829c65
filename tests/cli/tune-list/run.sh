# Each knob with value, wanted value and effect; nothing is changed by looking.
cp -a "$SRC/tests/captures/laptop-intel" root
whyslow tune --root root
whyslow tune list --root "$SRC/tests/captures/empty"
whyslow tune list --json --root root | python3 -c 'import json, sys
document = json.load(sys.stdin)
print(document["schema"], document["action"], document["remembered"], document["state_file"])
for row in document["knobs"]:
    assert row["effect"] and row["note"]
    print(row["knob"], "|", row["now"], "|", row["wanted"], "|", row["state"], "|", row["command"])'
diff -r --no-dereference root "$SRC/tests/captures/laptop-intel" && echo "nothing changed"
