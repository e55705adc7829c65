# A command is run and reported on: its status, its stdout, its calls, and no file left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
echo "--- status and stdout are the command's"
whyslow io -- sh -c 'echo from the command; exit 7' > out 2> err
echo "status $?"
grep -c '^from the command$' out
grep -c '^System calls' out
ls tmp
echo "--- the answer alone on stdout"
whyslow io --json -- sh -c 'echo from the command; exit 3' > out 2> err
echo "status $?"
python3 -c 'import json; print(json.load(open("out"))["schema"])'
grep -c '^from the command$' err
ls tmp
echo "--- kept"
head -c 100000 /dev/zero > data
whyslow io -o kept.whyslow -- dd if=data of=copy bs=1000 count=100 status=none > out
echo "status $?"
whyslow io kept.whyslow --json > again
python3 - << 'END'
import json
answer = json.load(open("again"))
print(answer["command"])
files = {row["name"].split("/")[-1]: row for row in answer["files"]}
print([files["data"][key] for key in ("reads", "read_bytes", "writes")])
print([files["copy"][key] for key in ("writes", "write_bytes", "reads")])
END
ls tmp
