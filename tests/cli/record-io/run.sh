# What cannot be meant is said before anything runs; what is said at the end of a recording, and
# that it has what was called. The tier is whichever is to be had here.
try() {
    echo "--- $*"
    whyslow record "$@" 2>&1
    echo "status $?"
}
try --no-requests -- touch ran
try --no-io-stacks --offcpu -- touch ran
try --keep-payloads -- touch ran
try --io --keep-payloads --no-requests -- touch ran
try --io --tier user -p 1
try --io
ls
echo "--- a recording"
head -c 300000 /dev/zero > input
try --io -o r.whyslow -- dd if=input of=output bs=1000 count=300 status=none
cmp input output
whyslow query r.whyslow "SELECT object.name LIKE '%/input' AS input, sum(count) AS calls,
    sum(bytes) AS bytes FROM call JOIN object ON object.id = call.object WHERE bytes > 0
    AND (object.name LIKE '%/input' OR object.name LIKE '%/output') GROUP BY 1 ORDER BY 1"
whyslow query r.whyslow "SELECT json_extract(json, '\$.requests') AS requests,
    json_extract(json, '\$.stacks') AS stacks FROM document WHERE name = 'io'"
whyslow query r.whyslow "SELECT name, kind, unit FROM series ORDER BY name"
echo "--- without stacks and requests; the exit status is the command's"
try --io --no-io-stacks --no-requests -o s.whyslow -- sh -c 'cat input > copy; exit 7'
whyslow query s.whyslow "SELECT count(*) > 0 AS rows, sum(stack) AS stacks FROM call"
whyslow query s.whyslow "SELECT json_extract(json, '\$.requests') AS requests,
    json_extract(json, '\$.stacks') AS stacks FROM document WHERE name = 'io'"
echo "--- with CPU time in the same recording"
try --io --cpu -F 100 -o t.whyslow -- dd if=input of=/dev/null bs=100 status=none | grep -v '^ '
