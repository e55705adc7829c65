# Names of threads, functions and files with markup, escapes and newlines stay harmless.
make-waits hostile rec.whyslow
whyslow waits rec.whyslow
echo "--- markdown"
whyslow waits rec.whyslow --markdown
echo "--- one"
whyslow waits rec.whyslow --stack w2
echo "--- page"
whyslow waits rec.whyslow --html page.html --flame flame.svg > /dev/null
grep -c '<script>alert' page.html flame.svg
echo "--- raw control characters anywhere"
{ whyslow waits rec.whyslow; whyslow waits rec.whyslow --stack w2; whyslow waits rec.whyslow --markdown
    whyslow waits rec.whyslow --json; } | grep -c $'[\x01-\x08\x0b-\x1f\x7f]'
true
