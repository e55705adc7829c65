# On a terminal it shows the plan and asks; only a yes changes anything.
cat > ask.py <<'PY'
import os, pty, subprocess, sys
answer = sys.argv[1]
main, terminal = pty.openpty()
run = subprocess.Popen(["whyslow", "tune", "apply", "swappiness", "--root", "root"], stdin=terminal,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
os.write(main, answer.encode() + b"\n")
out, err = run.communicate()
print(f"answer {answer!r}: {run.returncode}\n{err}\n--\n{out}")
PY
cp -a "$SRC/tests/captures/laptop-intel" root
for answer in n "" yesterday y; do
    python3 ask.py "$answer"
    cat root/proc/sys/vm/swappiness
done
