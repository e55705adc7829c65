# Fewer than 6 runs: what they cannot carry is n/a with the reason, not a number.
whyslow run --runs 3 --out out -- /bin/true | grep -E '^(command|measured|stability|output) '
echo "exit ${PIPESTATUS[0]}"
ls out | sed -E 's/^[0-9].*/RUN-ID/'
ls out/latest/ | grep -x -e baseline.json -e evidence.json -e fingerprint.json -e scenario.toml -e 'recording.*'
readlink out/latest | sed -E 's/^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}$/a run id/'
grep -v -e run_id -e folder out/latest/scenario.toml
# What was kept is enough to do it again, and the answer is checked then.
whyslow run --scenario out/latest/scenario.toml --out again 2>/dev/null | grep -E '^(command|output) '
echo "exit ${PIPESTATUS[0]}"
# What was typed wins: --quick is 10 runs in 10 s.
whyslow run --quick --runs 3 --scenario out/latest/scenario.toml --out again >/dev/null 2>&1
grep -E '^(runs|budget_s)' again/latest/scenario.toml
whyslow run --quick --scenario out/latest/scenario.toml --out again >/dev/null 2>&1
grep -E '^(runs|budget_s)' again/latest/scenario.toml
