# Whatever goes wrong on the way, nothing is changed that was not remembered first.
fresh() { rm -rf root && cp -a "$SRC/tests/captures/laptop-intel" root; }
compare() { rm -rf root/var && diff -r --no-dereference root "$SRC/tests/captures/laptop-intel" && echo "as it was"; }
cpu=root/sys/devices/system/cpu

echo "== a knob whose write the kernel refuses (EINVAL): the rest is applied, and reverts"
fresh
rm $cpu/cpu1/cpufreq/scaling_governor && ln -s /proc/self/oom_score_adj $cpu/cpu1/cpufreq/scaling_governor
whyslow tune apply governor turbo --yes --root root; echo "apply: $?"
whyslow tune revert --root root; echo "revert: $?"
rm $cpu/cpu1/cpufreq/scaling_governor && echo powersave > $cpu/cpu1/cpufreq/scaling_governor
compare

echo "== no place for the state file: nothing may change"
fresh
mkdir -p root/var/lib && echo > root/var/lib/whyslow
whyslow tune apply --yes --root root; echo "apply: $?"
compare

echo "== a damaged state file is neither used nor overwritten"
fresh
mkdir -p root/var/lib/whyslow && echo '{"schema": ' > root/var/lib/whyslow/tune.json
whyslow tune apply --yes --root root; echo "apply: $?"
whyslow tune revert --root root; echo "revert: $?"
cat root/var/lib/whyslow/tune.json
compare

echo "== killed with the governors written and turbo not"
fresh
cat > kill.py <<'PY'
# turbo is a pipe: it answers two readings (plan, and the second look under the lock), then
# the writer waits for a reader that never comes, and is killed there.
import glob, os, subprocess, time
fifo = "root/sys/devices/system/cpu/intel_pstate/no_turbo"
os.unlink(fifo)
os.mkfifo(fifo)
run = subprocess.Popen(["whyslow", "tune", "apply", "governor", "turbo", "--yes", "--root", "root"])
def reads():
    return any(os.path.realpath(fd) == os.path.realpath(fifo) for fd in glob.glob(f"/proc/{run.pid}/fd/*"))
for _ in range(2):
    with open(fifo, "w") as pipe:
        pipe.write("0\n")
    while reads(): # or the next answer would be part of this one
        time.sleep(0.01)
governors = glob.glob("root/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
while any(open(governor).read() != "performance\n" for governor in governors):
    time.sleep(0.01)
print("still waiting:", run.poll() is None)
run.kill()
run.wait()
os.unlink(fifo)
with open(fifo, "w") as turbo:
    turbo.write("0\n")
PY
timeout 250 python3 kill.py
grep -h . $cpu/cpu*/cpufreq/scaling_governor
whyslow tune revert --root root; echo "revert: $?"
compare
