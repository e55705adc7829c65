# The call tree from the root and from the leaf; who calls a function and what it calls.
make-recording plain rec.whyslow
whyslow report rec.whyslow --tree
echo "--- from 10%"
whyslow report rec.whyslow --tree --min-pct 10
echo "--- inverted"
whyslow report rec.whyslow --tree --inverted --min-pct 5
echo "--- callers by id"
whyslow report rec.whyslow --callers f4
echo "--- callers under recursion"
whyslow report rec.whyslow --callers fib
echo "--- callees by image and name"
whyslow report rec.whyslow --callees libhelp.so.2:helper
echo "--- markdown"
whyslow report rec.whyslow --tree --min-pct 20 --markdown
echo "--- json"
whyslow report rec.whyslow --callees load --json | sed -n '/"callees"/,$p'
