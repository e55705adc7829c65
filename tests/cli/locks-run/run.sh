# A command is run and reported on: its status, its stdout, and no file left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
echo "--- status and stdout are the command's"
whyslow locks -- sh -c 'echo from the command; exit 7' > out 2> err
echo "status $?"
grep -c '^from the command$' out
grep -c '^Locks, the longest waited for first$' out
ls tmp
echo "--- the answer alone on stdout"
whyslow locks --json -- sh -c 'echo from the command; exit 3' > out 2> err
echo "status $?"
python3 -c 'import json; print(json.load(open("out"))["schema"])'
grep -c '^from the command$' err
ls tmp
echo "--- kept"
whyslow locks -o kept.whyslow -- true > out
echo "status $?"
whyslow locks kept.whyslow --json > again
python3 -c 'import json; print(json.load(open("again"))["command"])'
ls tmp
