# The locks of a recording, ranked; one of them in full; what is missing is said.
make-recording locks rec.whyslow
whyslow locks rec.whyslow
echo "--- the first only"
whyslow locks rec.whyslow --limit 1
echo "--- one, with hold times"
whyslow locks rec.whyslow --lock queue_mutex
echo "--- one of the kernel"
whyslow locks rec.whyslow --lock l5
echo "--- markdown"
whyslow locks rec.whyslow --markdown
