# Nothing is changed without a yes, and nonsense is refused with a remedy.
cp -a "$SRC/tests/captures/laptop-intel" root
try() { whyslow tune "$@" --root root; echo "$*: $?"; }
try apply governor
try frobnicate
try list governor
try apply --yes govenor
try apply --yes affinity
try revert nothing
whyslow tune apply --yes governor --root "$SRC/tests/captures/empty"; echo "absent: $?"
whyslow tune --root /nonexistent; echo "no root: $?"
diff -r --no-dereference root "$SRC/tests/captures/laptop-intel" && echo "nothing changed"
