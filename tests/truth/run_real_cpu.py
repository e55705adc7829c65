#!/usr/bin/python3
"""Programs of Debian's packages that only compute: the top finding must be the right one.

    run_real_cpu.py gcc|python WHYSLOW
"""

import functools
import os
import sys

import corpus_tools

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


# Of gcc nothing is to be fixed: its profile is flat, and that it is stripped is context.
TRUE = {"gcc": set(), "python": {"one_function"}}
IMAGE = {"gcc": "cc1", "python": "python3"}


def truth(name, result):
    yield from corpus_tools.misplaced(result)
    confirmed = corpus_tools.suspicions(result, "confirmed")
    yield from (f"false: {row['detector']}: {row['title']}" for row in confirmed if row["detector"] not in TRUE[name])
    # What is said is about the program that computes: gcc itself only starts it.
    said = confirmed or corpus_tools.apart(result, "unsymbolised_build", "confirmed")
    if not said or IMAGE[name] not in said[0]["title"] + said[0].get("location", ""):
        others = [row["reason"] for row in result["suspicions"]
                  if row["detector"] in TRUE[name] and row not in confirmed]
        yield f"the first is not about {IMAGE[name]}: {said[:1]}; dismissed: {others}"
    # It computes all the time, like any compiler: that is no hot loop.
    loop = next(row for row in result["ledger"] if row["id"] == "hot_loop")
    if (loop["verdict"] in ("confirmed", "supported")) != (name == "python"):
        yield f"hot_loop is {loop['verdict']}: {loop}"
    if name == "python" and (not confirmed or confirmed[0]["detector"] != "one_function"):
        yield f"one_function is not first: {corpus_tools.suspicions(result, detector='one_function')}"


def cases():
    for name, command, needs in (("gcc", gcc_command, "gcc"), ("python", python_command, "/usr/bin/python3")):
        yield corpus_tools.Case("real", name, "planted", command, options=("--budget", "90s"), needs=needs,
                                truth=functools.partial(truth, name))


if __name__ == "__main__":
    sys.exit(corpus_tools.live({case.kind: case for case in cases()}[sys.argv[1]], *sys.argv[2:]))
