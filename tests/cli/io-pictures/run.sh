# Flame graphs have the stacks of calls, each with the call and what it was about on top; what is
# idle is not drawn.
make-io plain rec.whyslow
leaves() { grep -o '<title>[a-z0-9_ ]* of [^<]*' "$1" | sed 's/<title>//' | sort; }
whyslow io rec.whyslow --flame flame.svg --icicle icicle.svg --html page.html | sed -n '/^Written/,$p'
leaves flame.svg
cmp <(leaves flame.svg) <(leaves icicle.svg) && echo the same
python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("flame.svg")'
grep -c 'epoll_wait\|futex' flame.svg
grep -o 'fdatasync of /var/log/shop.log' page.html | sort -u
