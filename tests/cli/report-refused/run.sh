# What cannot be answered is refused with the reason and a remedy.
make-recording plain rec.whyslow
make-recording empty empty.whyslow
try() { echo "\$ whyslow report $*" >&2; whyslow report "$@"; echo "status $?" >&2; }
(mkdir none && cd none && try)
try rec.whyslow extra
try missing.whyslow
try empty.whyslow
try rec.whyslow --tree --lines
try rec.whyslow --callers helper
try rec.whyslow --callers nobody
try rec.whyslow --annotate f99999
try rec.whyslow --time 5
try rec.whyslow --time 5..2
try rec.whyslow --time 10%..200%
try rec.whyslow --time 50..60
try rec.whyslow --filter nobody
try rec.whyslow --focus nobody
try rec.whyslow --series heap
try rec.whyslow --work 1:2
try rec.whyslow --diff missing.whyslow
try rec.whyslow --diff empty.whyslow
try rec.whyslow --diff rec.whyslow --work 0:1
try rec.whyslow --diff rec.whyslow --work 1
try rec.whyslow --min-pct 101
try rec.whyslow --limit many
