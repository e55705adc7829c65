# A command is run and reported on: its status, its stdout, and no file left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
echo "--- status and stdout are the command's"
whyslow waits -- sh -c 'echo from the command; sleep 0.2; exit 7' > out 2> err
echo "status $?"
grep -c '^from the command$' out
grep -c '^Where the time of' out
ls tmp
echo "--- the answer alone on stdout"
whyslow waits --json -- sh -c 'echo from the command; exit 3' > out 2> err
echo "status $?"
python3 -c 'import json; print(json.load(open("out"))["command"])'
grep -c '^from the command$' err
ls tmp
echo "--- killed"
whyslow waits --json -- sh -c 'kill -9 $$' > out 2> err
echo "status $?"
python3 -c 'import json; print(json.load(open("out"))["schema"])'
ls tmp
echo "--- kept"
whyslow waits -o kept.whyslow -- sleep 0.2 > out
echo "status $?"
grep -c 'whyslow waits kept.whyslow --stack' out
whyslow waits kept.whyslow --json > again
python3 - << 'END'
import json
answer = json.load(open("again"))
# What else it waited for, as for its pages, may have taken longer on a busy machine.
print(answer["command"], "timer", max(row["total_ms"] for row in answer["waits"] if row["class"] == "timer") > 190)
END
ls tmp
echo "--- a name that is taken: the recording steps back, what is none is left alone"
cp kept.whyslow before
whyslow waits -o kept.whyslow -- true > out 2> err
echo "status $?"
grep -h .old err
cmp before kept.whyslow.old && echo "the one before"
cp kept.whyslow now
whyslow waits -o kept.whyslow -p 99999999 2>&1 > out | head -1
cmp now kept.whyslow && cmp before kept.whyslow.old && ls kept*
echo text > text.whyslow
whyslow waits -o text.whyslow -- true 2>&1 > out | head -1
echo text > kept.whyslow.old
whyslow waits -o kept.whyslow -- true 2>&1 > out | head -1
cat text.whyslow kept.whyslow.old
echo "--- a recording as the command's operand"
whyslow waits -- cat kept.whyslow 2> /dev/null | grep -ac 'SQLite format'
ls tmp
