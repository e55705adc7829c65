# One wait with its stacks; one class; what is idle; threads in groups and each.
make-waits plain rec.whyslow
echo "--- a lock and who let go of it"
whyslow waits rec.whyslow --stack w9
echo "--- a sleep: nobody ended it"
whyslow waits rec.whyslow --stack w1
echo "--- locks"
whyslow waits rec.whyslow --class lock | sed -n '/^Waits/,/^$/p'
echo "--- what is idle, apart"
whyslow waits rec.whyslow --idle | sed -n '/^Waits/,/^Critical/p'
echo "--- nothing but what is idle"
whyslow waits rec.whyslow --class idle | sed -n '/^Waits/,/^Critical/p'
echo "--- many threads"
make-waits many many.whyslow
whyslow waits many.whyslow
echo "--- each of them"
whyslow waits many.whyslow --threads --limit 3 | sed -n '/^Threads/,/^$/p'
