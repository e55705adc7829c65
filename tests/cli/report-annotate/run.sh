# Source and instructions with their cost, from what the recording embeds.
make-recording plain rec.whyslow
whyslow report rec.whyslow --annotate checksum
echo "--- inlined everywhere: lines, but no code of its own"
whyslow report rec.whyslow --annotate rotate
echo "--- not embedded, and the file is not here"
whyslow report rec.whyslow --annotate f2
echo "--- nothing is known of it"
whyslow report rec.whyslow --annotate '[libhelp.so.2]'
echo "--- json"
whyslow report rec.whyslow --annotate checksum --json | sed -n '/"id"/,$p'
