rec=$SRC/tests/captures/schema-1.whyslow
whyslow query "$rec" "SELECT s.name AS series, stack_text(stack) AS stack, sum(count) AS samples,
    sum(weight) AS weight FROM total JOIN series s ON s.id = series WHERE s.name = 'cpu'
    GROUP BY 2 ORDER BY weight DESC" --limit 4
whyslow query "$rec" "SELECT * FROM sample WHERE series = 1 AND time_ns BETWEEN 20000 AND 24000"
whyslow query "$rec" "SELECT count(*), min(time_ns), max(time_ns) FROM sample WHERE series = 2"
whyslow query "$rec" "SELECT name, frame_text(1), frame_text(99999), stack_text(NULL) FROM series" --markdown
whyslow query "$rec" "SELECT 1 WHERE 0"
