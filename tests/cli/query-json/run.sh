# Every kind of value, a repeated name, text that would move a terminal's cursor.
rec=$SRC/tests/captures/schema-1.whyslow
whyslow query "$rec" "SELECT NULL AS n, 9007199254740993 AS big, -0.5 AS real, 'a' || char(27) || '[31m\"' AS text,
    x'00ff' AS blob, zeroblob(65) AS blob UNION ALL SELECT 2, 2, 2, 2, 2, 2" --json | sed 's|"recording": ".*"|"recording": "PATH"|'
