# `whyslow PROGRAM …` is `whyslow run PROGRAM …`; options end at the program.
whyslow /bin/echo --runs 7 'it'\''s "quoted"' 2>/dev/null | grep '^command'
# All of its 20 runs, or as many as the budget allowed.
python3 - <<'PY'
import glob, json
runs = len(json.load(open("whyslow-out/latest/baseline.json"))["runs"])
handoff = open("whyslow-out/latest/handoff.md").read()
print("all" if runs == 20 or f"{runs} of 20 runs" in handoff else runs)
PY
