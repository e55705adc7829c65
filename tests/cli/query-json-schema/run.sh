# The JSON is what docs/schema says it is, in every shape it has.
cat > check.py <<'PY'
import json, sys, jsonschema
jsonschema.Draft7Validator.check_schema(json.load(open(sys.argv[1])))
answer = json.load(sys.stdin)
jsonschema.Draft7Validator(json.load(open(sys.argv[1]))).validate(answer)
print("valid:", ", ".join(answer), "| truncated" if answer.get("truncated") else "")
PY
rec=$SRC/tests/captures/schema-1.whyslow
check() { whyslow query "$rec" "$@" --json | /usr/bin/python3 check.py "$SRC/docs/schema/query.schema.json"; }
check
check --tables "SELECT NULL, 1, 2.5, 'x', x'00' FROM text"
check "SELECT * FROM sample" --limit 7
check "SELECT * FROM sample" --limit 0
check "SELECT 1 WHERE 0"
