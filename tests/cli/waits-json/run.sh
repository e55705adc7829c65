# The figures of the text, with whole stacks, and every thread whatever the limit.
make-waits plain rec.whyslow
whyslow waits rec.whyslow --json --limit 3
