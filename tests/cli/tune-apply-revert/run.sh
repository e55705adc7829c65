# Applied, applied again, changed by somebody else, reverted: the machine is as it was.
cp -a "$SRC/tests/captures/laptop-intel" root
cpu=root/sys/devices/system/cpu
whyslow tune apply --yes --root root; echo "apply: $?"
grep -H . $cpu/cpu*/cpufreq/scaling_governor $cpu/intel_pstate/no_turbo root/proc/sys/vm/swappiness root/proc/sys/vm/drop_caches
cat root/var/lib/whyslow/tune.json
whyslow tune apply --yes --root root; echo "again: $?"
whyslow tune list --root root | tail -3
echo 42 > root/proc/sys/vm/swappiness
whyslow tune revert governor --root root; echo "revert governor: $?"
whyslow tune revert --root root; echo "revert: $?"
whyslow tune revert --force --json --root root; echo "force: $?"
whyslow tune revert --root root; echo "nothing left: $?"
whyslow tune apply --yes drop_caches --root root; echo "drop_caches: $?"
cat root/proc/sys/vm/drop_caches; echo 0 > root/proc/sys/vm/drop_caches
# The kernel would show the choices again.
cat root/sys/kernel/mm/transparent_hugepage/enabled
echo '[always] madvise never' > root/sys/kernel/mm/transparent_hugepage/enabled
rmdir root/var/lib/whyslow root/var/lib root/var
diff -r --no-dereference root "$SRC/tests/captures/laptop-intel" && echo "as it was"
