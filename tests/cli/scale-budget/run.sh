# The budget comes first: a size that would take an hour is ended and left out, the others are reported.
cat > step <<'SH'
#!/bin/sh
[ "$1" -lt 100 ] || exec sleep 3600
SH
chmod +x step
whyslow scale --budget 5s --units 1,2,3,4,1000,2000 --json './step {n}' > scale.json
echo "status $?"
python3 - <<'PY'
import json
scale = json.load(open("scale.json"))
left_out = [text for text in scale["warnings"] if text.startswith("left out")]
print("sizes:", [step["units"] for step in scale["steps"]], "laws:", len(scale["laws"]))
print("left out:", [text.split(":")[1].split(" units")[0].strip() for text in left_out])
PY
# Not one run fits: that is said, and not an empty table.
whyslow scale --budget 300ms --units 1000,2000 './step {n}'
echo "status $?"
