# Classes, threads, waits ranked without what is idle, critical path, scheduler latency.
make-waits plain rec.whyslow
whyslow waits rec.whyslow
echo "--- two rows"
whyslow waits rec.whyslow --limit 2
echo "--- markdown"
whyslow waits rec.whyslow -n 3 --markdown
echo "--- one wait about which nothing is known"
make-waits bare bare.whyslow
whyslow waits bare.whyslow
