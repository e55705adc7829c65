# Names of functions, files, threads and entries with markup, escapes and newlines stay harmless.
make-heap hostile rec.whyslow
whyslow heap rec.whyslow
echo "--- views"
whyslow heap rec.whyslow --peak --threads --limit 3
echo "--- markdown"
whyslow heap rec.whyslow --markdown
echo "--- against itself"
whyslow heap rec.whyslow --diff rec.whyslow
echo "--- page"
whyslow heap rec.whyslow --html page.html --flame flame.svg > /dev/null
grep -c '<script>alert' page.html flame.svg
echo "--- raw control characters anywhere"
{ whyslow heap rec.whyslow; whyslow heap rec.whyslow --markdown; whyslow heap rec.whyslow --json
    whyslow heap rec.whyslow --functions --peak --leaks --churn --temporary-sites --growth --threads --images
    whyslow export rec.whyslow --series heap -f folded
    } | grep -c $'[\x01-\x08\x0b-\x1f\x7f]'
true
