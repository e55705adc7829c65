# Fewer than 6 runs: what they cannot carry is n/a with the reason, not a number.
whyslow run --runs 3 --out out -- /bin/true
echo "exit $?"
ls out | sed -E 's/^[0-9].*/RUN-ID/'
ls out/latest/
readlink out/latest | sed -E 's/^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}$/a run id/'
grep -v -e run_id -e folder out/latest/scenario.toml
