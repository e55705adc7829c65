# What cannot be meant is said, with a way out; nothing is run or left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
try() {
    echo "--- $*"
    whyslow "$@"
    echo "status $?"
}
exec 2>&1
make-io plain rec.whyslow
make-io empty empty.whyslow
make-recording plain cpu.whyslow
head -c 5000 rec.whyslow > cut.whyslow
(mkdir alone && cp cpu.whyslow alone && cd alone && try io)
try io rec.whyslow -p 1
try io missing.whyslow
try io cut.whyslow
try io cpu.whyslow
try io empty.whyslow
try io -- no-such-program
try io rec.whyslow --limit some
try io rec.whyslow --calls
ls tmp
