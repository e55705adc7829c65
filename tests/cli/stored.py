"""Stored results with numbers made by hand, for the cases of compare and gate.

    stored.py NAME CAPTURE FACTOR [COUNT [SPREAD]]

COUNT runs (20) of NAME.json: wall times 100 ms * FACTOR, spread evenly over +-SPREAD (1%) in an
order that has no trend; user time half of it; 1 MiB of memory. CAPTURE is the machine it claims to
come from: a folder of tests/captures, or "none" for no fingerprint.
"""

import json
import os
import subprocess
import sys

name, capture, factor = sys.argv[1], sys.argv[2], float(sys.argv[3])
count = int(sys.argv[4]) if len(sys.argv) > 4 else 20
spread = float(sys.argv[5]) if len(sys.argv) > 5 else 0.01
runs = []
for i in range(count):
    step = (i * 7) % count if count % 7 else i
    wall = 100 * factor * (1 + spread * (2 * step / max(count - 1, 1) - 1))
    runs.append({"wall_ms": round(wall, 6), "user_ms": round(wall / 2, 6), "peak_rss_kb": 1024,
                 "faults_major": 0, "exit_code": 0})
document = {"schema": "whyslow.bench/1",
            "results": [{"command": f"./{name}", "name": name, "warmup": 1, "runs": runs}]}
if capture != "none":
    told = subprocess.run(["whyslow", "doctor", "--json", "--root",
                           f"{os.environ['SRC']}/tests/captures/{capture}"],
                          capture_output=True, check=True).stdout
    document["fingerprint"] = json.loads(told)["fingerprint"]
with open(f"{name}.json", "w") as out:
    json.dump(document, out)
