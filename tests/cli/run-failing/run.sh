# The run is named, the end of its stderr shown, and nothing reported as if it were good.
whyslow run --runs 3 -- sh -c 'echo first >&2; printf "bad\033[31m\nlast" >&2; exit 7'; echo "exit $?"
whyslow run --runs 3 --warmup 0 -- sh -c 'kill -SEGV $$'; echo "exit $?"
# Fails in the third run only.
whyslow run --runs 5 --warmup 0 -- sh -c 'echo x >>count; test $(wc -l <count) -lt 3'; echo "exit $?"
whyslow run --runs 2 --timeout 200ms -- sleep 5; echo "exit $?"
whyslow run --runs 3 --force -- sh -c 'exit 7' 2>/dev/null | grep ^measured; echo "exit ${PIPESTATUS[0]}"
