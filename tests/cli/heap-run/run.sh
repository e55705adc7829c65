# A command is run and reported on: its status, its stdout, its heap, and no file left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
echo "--- status and stdout are the command's"
whyslow heap --tier user -- sh -c 'echo from the command; exit 7' > out 2> err
echo "status $?"
grep -c '^from the command$' out
grep -c '^Functions that ask for memory' out
ls tmp
echo "--- the answer alone on stdout"
whyslow heap --tier user --json -- sh -c 'echo from the command; exit 3' > out 2> err
echo "status $?"
python3 - << 'END'
import json
answer = json.load(open("out"))
print(answer["schema"], answer["honesty"]["tier"], answer["honesty"]["mode"], answer["honesty"]["lost"])
print("recording" in answer, answer["allocations"] > 0, answer["peak_bytes"] > 0)
END
grep -c '^from the command$' err
ls tmp
echo "--- kept: the same figures again, and again as a picture"
whyslow heap --tier user --temporary 3 -o kept.whyslow -- sort "$SRC/README.md" > out
echo "status $?"
cmp <(head -n "$(wc -l < "$SRC/README.md")" out) <(sort "$SRC/README.md") && echo "the command's own output"
whyslow heap kept.whyslow --json > again
python3 - << 'END'
import json
answer = json.load(open("again"))
print(answer["command"].split()[0], answer["honesty"]["temporary_within"], answer["honesty"]["complete_pct"] > 90)
for key in ("allocations", "frees", "allocated_bytes", "leaked_bytes", "temporary", "peak_bytes"):
    print(key, sum(row[key] for row in answer["sites"]) == answer[key])
print(any(row["image"] == "sort" for row in answer["functions"]), all(row["frames"] for row in answer["sites"]))
END
whyslow heap kept.whyslow --flame flame.svg > /dev/null && grep -c 'heap at its peak: sort' flame.svg
echo "--- samples are estimates, and say so"
whyslow heap --tier user --sample 4KiB --json -- sort "$SRC/README.md" 2> /dev/null | python3 -c '
import json, sys
answer = json.load(sys.stdin)
print(answer["honesty"]["mode"], answer["honesty"]["sample_bytes"], answer["plus_minus_bytes"] > 0, answer["samples"] <= answer["allocations"])'
ls tmp
