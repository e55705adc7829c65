# What cannot be meant is said, with a way out; nothing is run or left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
try() {
    echo "--- $*"
    whyslow "$@"
    echo "status $?"
}
exec 2>&1
printf '#!/bin/sh\ntouch ran\n' > made
chmod +x made
make-heap plain rec.whyslow
make-heap empty empty.whyslow
make-recording plain cpu.whyslow
head -c 5000 rec.whyslow > cut.whyslow
try heap
try heap rec.whyslow -p 1
try heap missing.whyslow
try heap cut.whyslow
try heap cpu.whyslow
try heap empty.whyslow
try heap -- no-such-program
try heap -a
try heap --cgroup /x
try heap --exact --sample 512KiB -- true
try heap --sample lots -- true
try heap --temporary 0 -- true
try heap rec.whyslow --sample 512KiB
try heap rec.whyslow --snapshot 1s
try heap rec.whyslow --log
try heap rec.whyslow --limit some
try heap rec.whyslow --allocations
try heap rec.whyslow --diff
try heap --diff rec.whyslow -- touch ran
try heap --diff rec.whyslow ./made
try heap rec.whyslow --diff cpu.whyslow
try heap rec.whyslow --diff rec.whyslow --threads
try heap rec.whyslow --diff rec.whyslow --peak --leaks
try heap rec.whyslow --at 4
try heap rec.whyslow --diff rec.whyslow --at 1
try heap rec.whyslow --flame-by size
try report rec.whyslow
ls tmp ran
