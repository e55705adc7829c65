# What cannot be judged is refused with words, before anything is run.
store() { python3 "$SRC/tests/cli/stored.py" "$@"; }
store a laptop-intel 1
store other container-v2 1
try() { whyslow gate "$@" 2>&1 >/dev/null; echo "status $?"; }
try
try --baseline true
try --baseline true --candidate true --candidate true
try --baseline true --candidate true left over
try --baseline true --candidate no-such-program
try --baseline true --candidate true --metric speed
try --baseline true --candidate true --max-regression -5%
try --baseline true --candidate true --max-regression 20000%
try --baseline true --candidate a.json
try --baseline missing.json --candidate true
try --baseline a.json --candidate other.json
try --baseline "$SRC/tests/captures/schema-1.whyslow" --candidate true
try --counts --baseline a.json --candidate true
try --self-test
try --self-test --baseline a.json
try --self-test --baseline true --metric faults_minor
try --self-test --baseline true --max-regression 0
# A stored baseline of another machine.
try --baseline a.json --candidate true 2>&1 | sed 's/ differ in .*/ differ …/'
# Without valgrind there are no counts: not possible here.
mkdir empty && ln -s "$(command -v whyslow)" empty/whyslow
PATH=$PWD/empty try --counts --baseline /bin/true --candidate /bin/true
