# Flame graphs have the waiters' stacks, each with the lock on top; --lock draws one alone.
make-recording locks rec.whyslow
make-recording locks-none none.whyslow
leaves() { grep -o '<title>lock: [^<]*' "$1" | sed 's/<title>//' | sort; }
whyslow locks rec.whyslow --flame flame.svg --icicle icicle.svg --html page.html | sed -n '/^Written/,$p'
leaves flame.svg
cmp <(leaves flame.svg) <(leaves icicle.svg) && echo the same
python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("flame.svg")'
grep -o 'lock: queue_mutex' page.html | sort -u
echo "--- one lock"
whyslow locks rec.whyslow --lock l2 --flame one.svg > /dev/null
leaves one.svg
echo "--- nothing to draw"
whyslow locks none.whyslow --flame none.svg > /dev/null
echo "status $?"
ls none.svg 2> /dev/null
true
