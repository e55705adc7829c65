# What cannot be done is said with the remedy.
say() { "$@"; echo "exit $?"; }
say whyslow scale
say whyslow scale 'true'
say whyslow scale --units 1 'true {n}'
say whyslow scale --units 1,2,x 'true {n}'
say whyslow scale --units 0,1 'true {n}'
say whyslow scale --units 1,2,2 'true {n}'
say whyslow scale --metric sugar 'true {n}'
say whyslow scale --runs 0 'true {n}'
say whyslow scale --work-per-thread 'true {n}'
say whyslow scale 'no-such-program {n}'
# Sizes come in random order: either may be the first to fail.
whyslow scale --units 1,2 'sh -c "exit {n}"' 2>&1 | sed 's/[12]/N/g'
whyslow scale --units 1,2 --timeout 50ms 'sleep {n}0' 2>&1 | sed 's/[12]/N/g'
