# Every view's JSON follows docs/schema/report.schema.json.
make-recording plain rec.whyslow
make-recording after after.whyslow
make-recording bare bare.whyslow
make-recording hostile hostile.whyslow
check() {
    whyslow report "$@" --json > answer.json || echo "failed"
    python3 - "$SRC/docs/schema/report.schema.json" "$*" << 'EOF'
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
errors = list(jsonschema.Draft7Validator(schema).iter_errors(json.load(open("answer.json"))))
print(sys.argv[2], "follows" if not errors else "; ".join(e.message[:200] for e in errors[:3]))
EOF
}
check rec.whyslow
check rec.whyslow --limit 0
check bare.whyslow
check hostile.whyslow
check rec.whyslow --time 0..0.5 --filter demo --focus main
check rec.whyslow --tree
check rec.whyslow --tree --inverted
check rec.whyslow --callers fib
check rec.whyslow --callees main
check rec.whyslow --threads
check rec.whyslow --lines
check rec.whyslow --annotate checksum
check rec.whyslow --annotate rotate
check rec.whyslow --annotate f2
check bare.whyslow --annotate f1
check rec.whyslow --diff after.whyslow
check rec.whyslow --diff after.whyslow --work 1:2 --flame d.svg
for view in "" --tree --lines --threads "--annotate f4" "--diff after.whyslow"; do
    # shellcheck disable=SC2086
    check rec.whyslow --series alloc $view
done
