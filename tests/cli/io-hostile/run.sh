# Names of files, peers, functions and what requests say with markup, escapes and newlines stay
# harmless.
make-io hostile rec.whyslow
whyslow io rec.whyslow
echo "--- views"
whyslow io rec.whyslow --files --stacks --requests --limit 3
echo "--- markdown"
whyslow io rec.whyslow --markdown
echo "--- page"
whyslow io rec.whyslow --html page.html --flame flame.svg > /dev/null
grep -c '<script>alert' page.html flame.svg
echo "--- raw control characters anywhere"
{ whyslow io rec.whyslow; whyslow io rec.whyslow --markdown; whyslow io rec.whyslow --json
    whyslow io rec.whyslow --syscalls --files --peers --devices --stacks --requests
    } | grep -c $'[\x01-\x08\x0b-\x1f\x7f]'
true
