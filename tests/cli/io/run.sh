# One screen: time in calls, system calls, files, peers, devices, requests, notes, what was not seen.
make-io plain rec.whyslow
whyslow io rec.whyslow
echo "--- markdown"
whyslow io rec.whyslow -n 2 --markdown
echo "--- as the user tier sees it"
make-io user user.whyslow
whyslow io user.whyslow
echo "--- without requests"
make-io calls calls.whyslow
whyslow io calls.whyslow -n 1
echo "--- one call about which nothing is known"
make-io bare bare.whyslow
whyslow io bare.whyslow
