# What cannot be meant is refused with a remedy, and nothing is left behind.
exec 2>&1
refused() { echo "\$ whyslow $*"; whyslow "$@"; echo "status $?"; }
printf 'main;f 3\nmain;g 1\n' > a.folded
whyslow import a.folded -o a.whyslow > /dev/null
(mkdir none && cd none && refused export)
refused export
refused export a.whyslow
refused export a.whyslow --format nonsense
refused export a.whyslow -o out.txt
refused export a.folded -f folded
refused export a.whyslow -f folded --series nonsense
refused export a.whyslow -f folded --series heap
refused export a.whyslow -f folded --time 3..1
refused export a.whyslow -f folded --focus nowhere
refused export a.whyslow -f autofdo -o out.afdo
refused export a.whyslow -o missing/out.folded
refused export a.whyslow -f folded -o /dev/full
script -qec 'whyslow export a.whyslow -f pprof' /dev/null | tr -d '\r'
ls
