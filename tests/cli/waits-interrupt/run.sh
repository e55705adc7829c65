# Ctrl-C and SIGTERM: what was recorded is reported, the status says how the command ended, no file
# is left behind.
export TMPDIR=$PWD/tmp
mkdir tmp
answer() { python3 -c 'import json; print(json.load(open("result"))["schema"])'; }
for signal in INT TERM; do
    echo "--- $signal to a command"
    rm -f begun
    # A session of its own, so that the signal reaches whyslow and command as from a terminal.
    setsid -w python3 - "$signal" << 'END'
import os, signal, subprocess, sys, time
which = getattr(signal, "SIG" + sys.argv[1])
signal.signal(which, signal.SIG_DFL)
child = subprocess.Popen(["whyslow", "waits", "--json", "--", "sh", "-c", "echo >begun; exec sleep 3600"],
                         stdout=open("result", "w"), stderr=subprocess.DEVNULL)
while not os.path.exists("begun"):
    time.sleep(0.05)
if which == signal.SIGINT:
    signal.signal(which, signal.SIG_IGN)
    os.killpg(os.getpgrp(), which)
else:
    os.kill(child.pid, which)
print("status", child.wait())
END
    answer
    ls tmp
done
echo "--- INT ends the recording of a process, which lives on"
sleep 3600 &
target=$!
(trap - INT; exec whyslow waits --json -p $target > result 2> /dev/null) &
pid=$!
# It records once it says what.
begun() {
    whyslow query --json tmp/*/recording.whyslow "SELECT name FROM document WHERE name = 'target'" 2> /dev/null |
        grep -q '"target"'
}
until begun; do sleep 0.05; done
kill -INT $pid
wait $pid
echo "status $?"
answer
kill -0 $target && echo alive
kill $target
ls tmp
