#!/usr/bin/python3
"""Programs of Debian's packages that only compute: the top finding must be the right one.

    run_real_cpu.py gcc|python WHYSLOW
"""

import os
import sys
import tempfile

import corpus_tools

name, whyslow = sys.argv[1], os.path.abspath(sys.argv[2])

# Calls that a compiler has work with: many functions, loops and branches.
STATEMENTS = ["x ^= x << {};", "s += t[(x + {}) & 255];", "if (x & {}) s ^= x; else x += i;", "x = x * {} + s;",
              "s -= (x >> 3) / (i + {});", "switch (x & 7) {{ case 1: s++; break; case 3: x -= s; break; case 5: s ^= {}; }}"]
LOOP = """
def work(count):
    total = 0
    for i in range(count):
        if i & 1:
            total += 1
        elif total > 100:
            total = 0
    return total


print(work(4000000))
"""


def gcc_command(folder):
    with open(os.path.join(folder, "big.c"), "w", encoding="utf-8") as file:
        file.write("typedef unsigned long u64;\n")
        for number in range(80):
            lines = "\n".join(STATEMENTS[(number * 7 + k * 3) % 6].format(number * 31 % 13 + k + 1) for k in range(12))
            call = f" + f{number // 2}(x, s & 3, t)" if number else ""
            file.write(f"u64 f{number}(u64 a, u64 b, const u64 *t) {{ u64 x = a, s = 0;\nfor (u64 i = 0; i < b; i++) {{\n"
                       f"{lines}\n}}\nreturn x + s{call}; }}\n")
    return ["gcc", "-O2", "-c", "big.c", "-o", "big.o"]


def python_command(folder):
    with open(os.path.join(folder, "loop.py"), "w", encoding="utf-8") as file:
        file.write(LOOP)
    return ["/usr/bin/python3", "loop.py"]


COMMANDS = {"gcc": gcc_command, "python": python_command}
# That others have the CPUs is true of a busy machine, and nothing about the program.
TRUE = {"gcc": {"unsymbolised_build"}, "python": {"one_function", "unsymbolised_build"}}
IMAGE = {"gcc": "cc1", "python": "python3"}

with tempfile.TemporaryDirectory(dir=os.path.dirname(whyslow)) as folder:
    result, _ = corpus_tools.run(whyslow, COMMANDS[name](folder), folder, "--budget", "90s")
confirmed = [row for row in corpus_tools.suspicions(result, "confirmed") if row["detector"] != "cpu_starvation"]
corpus_tools.show(result)
complaints = [f"false: {row['detector']}: {row['title']}" for row in confirmed if row["detector"] not in TRUE[name]]
# The first is about the program that computes: gcc itself only starts it.
if not confirmed or IMAGE[name] not in confirmed[0]["title"] + confirmed[0]["location"]:
    others = [row["reason"] for row in result["suspicions"] if row["detector"] in TRUE[name] and row not in confirmed]
    complaints.append(f"the first is not about {IMAGE[name]}: {confirmed[:1]}; dismissed: {others}")
if name == "python" and (not confirmed or confirmed[0]["detector"] != "one_function"):
    complaints.append(f"one_function is not first: {corpus_tools.suspicions(result, detector='one_function')}")
for line in complaints:
    print("WRONG", line)
sys.exit(1 if complaints else 0)
