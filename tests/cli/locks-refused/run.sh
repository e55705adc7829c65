# What cannot be meant is said, with a way out; nothing is run or left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
try() {
    echo "--- $*"
    whyslow "$@"
    echo "status $?"
}
exec 2>&1
make-recording locks rec.whyslow
make-recording plain cpu.whyslow
head -c 5000 rec.whyslow > cut.whyslow
(mkdir alone && cp cpu.whyslow alone && cd alone && try locks)
try locks rec.whyslow -p 1
try locks missing.whyslow
try locks cut.whyslow
try locks cpu.whyslow
try locks -- no-such-program
try locks rec.whyslow --lock l3
try locks rec.whyslow --lock l
try locks rec.whyslow --lock queue
try locks rec.whyslow --limit some
ls tmp
