# Flame graphs end in class and cause; what is idle is drawn only when asked for.
make-waits plain rec.whyslow
leaves() { grep -o '<title>[a-z]*: [^<(]*' "$1" | sed 's/<title>//' | sort; }
whyslow waits rec.whyslow --flame flame.svg --icicle icicle.svg --html page.html | sed -n '/^Written/,$p'
leaves flame.svg
echo "--- the same upside down"
cmp <(leaves flame.svg) <(leaves icicle.svg) && echo the same
grep -o 'fsync of /var/log/demo.log' page.html | sort -u
grep -o '<h2 id="table">[^/]*' page.html
echo "--- with what is idle"
whyslow waits rec.whyslow --idle --flame idle.svg > /dev/null
comm -13 <(leaves flame.svg) <(leaves idle.svg)
echo "--- one class"
whyslow waits rec.whyslow --class disk --flame disk.svg > /dev/null
leaves disk.svg
echo "--- nothing to draw"
make-waits idle idle.whyslow
whyslow waits idle.whyslow --flame none.svg > /dev/null
echo "status $?"
ls none.svg 2> /dev/null
whyslow waits idle.whyslow --idle --flame some.svg > /dev/null
leaves some.svg
