# SQL over the heap, as docs/recording.md has it, answers what people ask.
make-heap log rec.whyslow
echo "--- what lives at the end, by stack"
whyslow query rec.whyslow "SELECT stack_text(stack) AS stack, sum(allocations) - sum(frees) AS pieces,
    sum(allocated_bytes) - sum(freed_bytes) AS bytes
    FROM heap_site WHERE kind = 'heap' GROUP BY stack HAVING bytes > 0 ORDER BY bytes DESC"
echo "--- the peak, and what it is made of"
whyslow query rec.whyslow "SELECT p.peak_bytes, p.peak_count, sum(s.peak_bytes) AS bytes, sum(s.peak_count) AS count,
    min(s.peak_bytes) AS least, hex(p.sizes) AS sizes, hex(p.lives) AS lives FROM heap_process p
    JOIN thread t ON t.process = p.process JOIN heap_site s ON s.thread = t.id GROUP BY p.process"
echo "--- what grew from snapshot to snapshot"
whyslow query rec.whyslow "SELECT stack_text(stack) AS stack, group_concat(bytes, ', ') AS bytes FROM heap_snapshot_row
    GROUP BY stack HAVING max(bytes) > min(bytes) ORDER BY max(bytes)"
whyslow query rec.whyslow "SELECT id, process, why, time_ns / 1e9 AS s FROM heap_snapshot"
echo "--- memory over time"
whyslow query rec.whyslow "SELECT process, count(*) AS moments, max(live_bytes) AS live, max(rss_bytes) AS rss
    FROM heap_moment GROUP BY process"
echo "--- one by one"
whyslow query rec.whyslow "SELECT time_ns / 1000000 AS ms, thread, kind, printf('%x', address) AS address, size_bytes,
    stack_text(stack) AS stack FROM heap_event"
echo "--- in pairs"
whyslow query rec.whyslow "SELECT a.address, f.time_ns - a.time_ns AS lived_ns FROM heap_event a JOIN heap_event f
    ON f.address = a.address AND f.kind = 'freed' WHERE a.kind = 'allocated' ORDER BY 1"
whyslow query rec.whyslow | grep heap_
echo "--- damaged"
sqlite3 rec.whyslow "UPDATE heap_chunk SET events = 3"
whyslow query rec.whyslow "SELECT count(*) FROM heap_event"
