# SQL over calls and requests, as docs/recording.md has it, answers what people ask.
make-io plain rec.whyslow
echo "--- files"
whyslow query rec.whyslow "SELECT object.name, sum(call.count) AS calls, sum(call.bytes) AS bytes,
    sum(call.total_ns) / 1e6 AS ms FROM call JOIN object ON object.id = call.object
    WHERE object.kind = 'file' GROUP BY object.id ORDER BY ms DESC"
echo "--- lookups in vain, syncs, writes that wait, page faults"
whyslow query rec.whyslow "SELECT
    sum(count) FILTER (WHERE error = 2) AS missing, sum(count) FILTER (WHERE syscall = 75) AS syncs,
    sum(count) FILTER (WHERE flags & 1) AS waiting, sum(count) FILTER (WHERE flags & 8) AS faults FROM call"
echo "--- the same statement again and again, each time with another parameter"
whyslow query rec.whyslow "SELECT text.text, request.count, request.parameters,
    request.total_ns / 1e6 AS ms, stack_text(request.stack) AS stack
    FROM request JOIN text ON text.id = request.text
    WHERE request.count >= 100 AND request.parameters > request.count / 2 ORDER BY ms DESC"
echo "--- calls to one host, one after another"
whyslow query rec.whyslow "SELECT text.text, count(*) AS requests, count(DISTINCT connection) AS connections,
    sum(e.first_byte_ns + e.rest_ns) / 1e6 AS ms, (max(e.start_ns + e.first_byte_ns + e.rest_ns) -
    min(e.start_ns)) / 1e6 AS span_ms FROM request_event e JOIN request ON request.id = e.request
    JOIN text ON text.id = request.text WHERE request.protocol = 'http' AND request.role = 'client'
    GROUP BY request.id HAVING requests > 5"
echo "--- a connection for every request"
whyslow query rec.whyslow "SELECT protocol, peer, count(*) AS connections, sum(requests) AS requests,
    sum(closed_ns - opened_ns) / 1e6 AS ms FROM connection GROUP BY peer HAVING connections > 1"
echo "--- devices"
whyslow query rec.whyslow "SELECT name, op, count, bytes, total_ns / 1e6 AS ms, max_ns / 1e6 AS max_ms,
    depth_max, length(buckets) AS buckets, hex(sizes) AS sizes FROM device"
