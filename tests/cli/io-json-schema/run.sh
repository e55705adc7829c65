# Every view's JSON follows docs/schema/io.schema.json.
for kind in plain machine user calls bare hostile; do
    make-io $kind $kind.whyslow
done
check() {
    whyslow io "$@" --json > answer.json || echo "failed"
    python3 - "$SRC/docs/schema/io.schema.json" "$*" << 'END'
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
errors = list(jsonschema.Draft7Validator(schema).iter_errors(json.load(open("answer.json"))))
print(sys.argv[2], "follows" if not errors else "; ".join(e.message[:200] for e in errors[:3]))
END
}
check plain.whyslow
check plain.whyslow --limit 1 --flame f.svg --icicle i.svg --html p.html
for view in syscalls files peers devices stacks requests; do
    check plain.whyslow --$view
done
check plain.whyslow --files --requests --limit 0
check machine.whyslow
check user.whyslow
check calls.whyslow
check bare.whyslow
check hostile.whyslow
