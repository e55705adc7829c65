# No critical path for a machine; the user tier knows no wakers; a server with nothing to do.
for kind in machine user idle; do
    echo "--- $kind"
    make-waits $kind $kind.whyslow
    whyslow waits $kind.whyslow
done
