# Every view's JSON follows docs/schema/heap.schema.json.
for kind in plain more sampled kernel machine bare hostile; do
    make-heap $kind $kind.whyslow
done
check() {
    whyslow heap "$@" --json > answer.json || echo "failed"
    python3 - "$SRC/docs/schema/heap.schema.json" "$*" << 'END'
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
errors = list(jsonschema.Draft7Validator(schema).iter_errors(json.load(open("answer.json"))))
print(sys.argv[2], "follows" if not errors else "; ".join(str(list(e.path))[:80] + e.message[:200] for e in errors[:3]))
END
}
check plain.whyslow
check plain.whyslow --limit 1 --flame f.svg --icicle i.svg --html p.html
for view in functions peak leaks churn temporary-sites growth threads images sizes timeline; do
    check plain.whyslow --$view
done
check plain.whyslow --at 1
check plain.whyslow --leaks --images --limit 0
check plain.whyslow --diff more.whyslow
check plain.whyslow --diff more.whyslow --leaks
check sampled.whyslow
check sampled.whyslow --diff plain.whyslow
check kernel.whyslow
check machine.whyslow
check bare.whyslow
check bare.whyslow --peak --sizes --timeline --threads
check hostile.whyslow
