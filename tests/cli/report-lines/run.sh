# Hot lines, with their source where the recording has it.
make-recording plain rec.whyslow
whyslow report rec.whyslow --lines
whyslow report rec.whyslow --lines --limit 1 --json | sed -n '/"lines"/,$p'
