# Files that are no profile, and what is left of them: nothing.
exec 2>&1
refused() { echo "\$ whyslow $*"; whyslow "$@"; echo "status $?"; }
printf '#!/bin/sh\necho hello\n' > script
printf 'no numbers here\n' > text
printf 'PERFILE2\150\0\0\0\0\0\0\0' > cut.data
printf '2ELIFREP\0\0\0\0\0\0\0\150' > big.data
printf '\037\213\010garbage' > bad.pb.gz
: > empty
printf 'main;f 3\n' > a.folded
refused import
refused import missing -o x.whyslow
refused import . -o x.whyslow
refused import empty -o x.whyslow
refused import script -o x.whyslow
refused import text --format folded -o x.whyslow
refused import text --format nonsense -o x.whyslow
refused import cut.data -o x.whyslow
refused import big.data -o x.whyslow
refused import bad.pb.gz -o x.whyslow
refused import a.folded -o a.folded
refused import a.folded --unit hours -o x.whyslow
ls
