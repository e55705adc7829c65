# What cannot be meant is said, with a way out; nothing is run or left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
try() {
    echo "--- $*"
    whyslow "$@"
    echo "status $?"
}
exec 2>&1
make-waits plain rec.whyslow
make-recording plain cpu.whyslow
head -c 5000 rec.whyslow > cut.whyslow
(mkdir alone && cp cpu.whyslow alone && cd alone && try waits)
try waits rec.whyslow -p 1
try waits rec.whyslow -o other.whyslow
try waits -a -p 1
try waits -p 4000000000
try waits missing.whyslow
try waits cut.whyslow
try waits cpu.whyslow
try waits -- no-such-program
try waits -- rec.whyslow
try waits rec.whyslow --stack w8
try waits rec.whyslow --stack w
try waits rec.whyslow --stack 9
try waits rec.whyslow --class sleep
try waits rec.whyslow --flame no/such/folder/f.svg --json 2>&1 | sed 's/svg\.[0-9]*\./svg.N./'
TMPDIR=$PWD/nowhere try waits -- true
ls tmp
