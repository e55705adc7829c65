# Standard output, a file, and parts of a recording.
printf 'main;parse;read 30\nmain;parse 5\nmain;draw 7\n' > a.folded
whyslow import a.folded -o a.whyslow > /dev/null
whyslow export a.whyslow -f folded
echo "--focus parse"
whyslow export a.whyslow -f folded -o - --focus parse
echo "to a file, which is replaced"
echo old > b.folded
whyslow export a.whyslow -o b.folded --focus draw
cat b.folded
whyslow export a.whyslow -o c.callgrind --title 'my title'
cat c.callgrind
ls
