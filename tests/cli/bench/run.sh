# The figures differ from machine to machine; their names, places and reasons do not.
whyslow bench --runs 30 --warmup 3 -- /bin/true
echo "exit $?"
