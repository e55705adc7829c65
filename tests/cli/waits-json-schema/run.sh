# Every view's JSON follows docs/schema/waits.schema.json.
for kind in plain machine user many idle bare hostile; do
    make-waits $kind $kind.whyslow
done
check() {
    whyslow waits "$@" --json > answer.json || echo "failed"
    python3 - "$SRC/docs/schema/waits.schema.json" "$*" << 'END'
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
errors = list(jsonschema.Draft7Validator(schema).iter_errors(json.load(open("answer.json"))))
print(sys.argv[2], "follows" if not errors else "; ".join(e.message[:200] for e in errors[:3]))
END
}
check plain.whyslow
check plain.whyslow --limit 0 --idle --threads
check plain.whyslow --class idle
check plain.whyslow --class lock --flame f.svg --icicle i.svg --html p.html
check plain.whyslow --stack w1
check plain.whyslow --stack w9
check machine.whyslow
check machine.whyslow --stack w9
check user.whyslow
check many.whyslow
check idle.whyslow
check bare.whyslow
check bare.whyslow --stack w1
check hostile.whyslow
check hostile.whyslow --stack w1
