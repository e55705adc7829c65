# What changed from one recording to the next, per run and per operation.
make-recording plain a.whyslow
make-recording after b.whyslow
whyslow report a.whyslow --diff b.whyslow --limit 6
echo "--- the second did 1.5 times the work"
whyslow report a.whyslow --diff b.whyslow --limit 3 --work 100:150
echo "--- markdown"
whyslow report a.whyslow --diff b.whyslow --limit 2 --markdown
echo "--- json"
whyslow report a.whyslow --diff b.whyslow --limit 2 --json
echo "--- nothing changed"
whyslow report a.whyslow --diff a.whyslow --limit 2
