# A heap for other tools: pprof's four values, or one measure; without a name where there is nothing else.
make-heap plain rec.whyslow
for series in heap heap_bytes heap_count heap_peak heap_leak heap_temporary; do
    echo "--- $series"
    whyslow export rec.whyslow --series $series -f folded | sort | head -3
    whyslow export rec.whyslow --series $series -f folded | awk '{ sum += $NF } END { print sum }'
done
echo "--- nothing else to mean"
whyslow export rec.whyslow -f folded | cmp - <(whyslow export rec.whyslow --series heap -f folded) && echo the same
whyslow export rec.whyslow -f speedscope | grep -c '"bytes"'
echo "--- pprof"
whyslow export rec.whyslow -o heap.pb.gz
gzip -dc heap.pb.gz | grep -aoE '(alloc|inuse)_(objects|space)' | sort | uniq -c
echo "--- refused"
whyslow export rec.whyslow --series heap --time 1..2 -f folded
echo "status $?"
make-recording plain cpu.whyslow
whyslow export cpu.whyslow --series heap -f folded
echo "status $?"
