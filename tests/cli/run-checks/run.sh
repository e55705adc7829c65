# A stripped program: what that spoils is said before any time is spent.
cp /usr/bin/true ./stripped && strip stripped
whyslow run --runs 1 --warmup 0 -- ./stripped 2>&1 >/dev/null |
    sed -n -e 's/^\(whyslow: check failed: symbols present\): .*/\1/p' -e '/^  spoils: functions show/p' -e 's/ (at .*//;/^\[3/p'
