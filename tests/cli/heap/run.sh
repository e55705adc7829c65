# One screen: totals, functions, the stack with most of the peak, heap against resident memory, notes, what was not seen.
make-heap plain rec.whyslow
whyslow heap rec.whyslow
echo "--- markdown"
whyslow heap rec.whyslow -n 2 --markdown
echo "--- sampled: with intervals"
make-heap sampled sampled.whyslow
whyslow heap sampled.whyslow -n 3
echo "--- a running program, by the kernel"
make-heap kernel kernel.whyslow
whyslow heap kernel.whyslow -n 1
echo "--- one allocation about which nothing is known"
make-heap bare bare.whyslow
whyslow heap bare.whyslow
