# Functions ranked by self time; ids do not change with --limit; Markdown has the same figures.
make-recording plain rec.whyslow
whyslow report rec.whyslow
echo "--- two rows"
whyslow report rec.whyslow --limit 2
echo "--- markdown"
whyslow report rec.whyslow -n 3 --markdown
echo "--- one sample, no counters, no names"
make-recording bare bare.whyslow
whyslow report bare.whyslow
