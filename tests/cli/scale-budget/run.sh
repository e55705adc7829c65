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
sizes = [step["units"] for step in scale["steps"]]
said = [text.split(":")[1].split(" units")[0].strip() for text in scale["warnings"] if text.startswith("left out")]
left_out = [int(size) for size in said[0].split(", ")]
# Where the machine is busy small ones may not fit either: each is reported, or said to be left out.
print(len(said), sizes + left_out, "the long ones are left out:", {1000, 2000} <= set(left_out))
assert len(sizes) < 4 or len(scale["laws"]) == 6, scale["laws"]
PY
# Not one run fits: that is said, and not an empty table.
whyslow scale --budget 300ms --units 1000,2000 './step {n}'
echo "status $?"
