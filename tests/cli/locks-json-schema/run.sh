# Every view's JSON follows docs/schema/locks.schema.json.
make-recording locks rec.whyslow
make-recording locks-hostile hostile.whyslow
make-recording locks-none none.whyslow
check() {
    whyslow locks "$@" --json > answer.json || echo "failed"
    python3 - "$SRC/docs/schema/locks.schema.json" "$*" << 'END'
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
errors = list(jsonschema.Draft7Validator(schema).iter_errors(json.load(open("answer.json"))))
print(sys.argv[2], "follows" if not errors else "; ".join(e.message[:200] for e in errors[:3]))
END
}
check rec.whyslow
check rec.whyslow --limit 1 --flame f.svg --icicle i.svg --html p.html
check rec.whyslow --lock l1
check rec.whyslow --lock l2
check rec.whyslow --lock l5
check hostile.whyslow
check hostile.whyslow --lock l1
check none.whyslow
