# Killing whyslow does not touch the program: it writes on without SIGPIPE, and ends by itself.
mark=mark-$$
whyslow run --warmup 0 -- sh -c 'touch started; until [ -e killed ]; do sleep 0.05; done
head -c 300000 /dev/zero && echo out && touch ended' $mark >/dev/null 2>&1 &
pid=$!
disown $pid # else bash reports its death, with the pid
until [ -e started ]; do sleep 0.02; done
kill -9 $pid
while kill -0 $pid 2>/dev/null; do sleep 0.02; done
touch killed
until [ -e ended ]; do sleep 0.02; done
ls started ended
# Nobody is left waiting.
while pgrep -f "whyslow-launcher.*$mark" >/dev/null; do sleep 0.02; done
