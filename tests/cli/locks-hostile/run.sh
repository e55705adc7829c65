# Names of locks and functions with markup, escapes and newlines stay harmless.
make-recording locks-hostile rec.whyslow
whyslow locks rec.whyslow
echo "--- markdown"
whyslow locks rec.whyslow --markdown
echo "--- one"
whyslow locks rec.whyslow --lock l1
echo "--- page"
whyslow locks rec.whyslow --html page.html --flame flame.svg > /dev/null
grep -c '<script>alert' page.html flame.svg
echo "--- raw control characters anywhere"
{ whyslow locks rec.whyslow; whyslow locks rec.whyslow --lock l1; whyslow locks rec.whyslow --markdown
    whyslow locks rec.whyslow --json; } | grep -c $'[\x01-\x08\x0b-\x1f\x7f]'
true
