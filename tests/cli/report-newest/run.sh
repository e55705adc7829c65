# Without a name the newest recording here is read, and which one it was is said.
make-recording plain old.whyslow
make-recording plain new.whyslow
touch -d '2001-01-01' old.whyslow
echo 'no recording' > newer.whyslow
whyslow report --json > out
python3 -c 'import json; print(json.load(open("out"))["recording"])'
touch old.whyslow
touch -d '2002-02-02' new.whyslow
whyslow report -q --json > out
python3 -c 'import json; print(json.load(open("out"))["recording"])'
echo "--- of the last run here, and by axis" >&2
mkdir -p whyslow-out/one && ln -s one whyslow-out/latest
make-io plain whyslow-out/one/recording-io.whyslow
touch -d '2100-01-01' whyslow-out/one/recording-io.whyslow
whyslow io --json > out
python3 -c 'import json; print(json.load(open("out"))["recording"])'
echo "--- the newest that holds what is asked for" >&2
mkdir axis && cd axis
make-io plain io.whyslow && touch -d '2001-01-01' io.whyslow
make-recording plain recording.whyslow
whyslow io --json > out
python3 -c 'import json; print(json.load(open("out"))["recording"])'
whyslow report > out
rm io.whyslow
whyslow io; echo "status $?"
cd ..
echo "--- a function by a part of its name" >&2
whyslow report old.whyslow --callers hel > out; echo "status $?"
whyslow report old.whyslow --callers E
whyslow report old.whyslow --callers hepler
