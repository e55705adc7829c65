# Time ranges, filter, focus and series; ids stay the same.
make-recording plain rec.whyslow
whyslow report rec.whyslow --time 10%..20%
echo "--- seconds"
whyslow report rec.whyslow --time 0.95..
echo "--- milliseconds, up to"
whyslow report rec.whyslow --time ..20ms
echo "--- threads by name"
whyslow report rec.whyslow --filter worker
echo "--- innermost image by name"
whyslow report rec.whyslow --filter libhelp
echo "--- focus on an inlined function leaves out what it is inlined into"
whyslow report rec.whyslow --focus rotate --tree
echo "--- focus"
whyslow report rec.whyslow --focus load --tree
echo "--- another series, in its own unit"
whyslow report rec.whyslow --series alloc
whyslow report rec.whyslow --series alloc --json --limit 1 | sed -n '/"hotspots"/,$p'
